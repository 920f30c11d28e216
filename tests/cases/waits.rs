//! `Retry-After` in every form, delays, the deadline.

use std::time::Duration;

use oncekey::{Effect, ErrorKind, WaitReason};

use crate::checks::comes_back;
use crate::data::Report;
use crate::run::Run;
use crate::scene::Scene;

pub(crate) fn wait_01(report: &Report) -> Vec<Run> {
    let dated = |form: &'static str| {
        move |scene: &mut Scene| {
            retry_after(scene, form);
            scene.check(|e, problems| {
                let date = e.record.requests[0].reply.as_ref().and_then(|reply| reply.header("Retry-After"));
                let date = httpdate::parse_http_date(date.unwrap()).unwrap();
                let early = e.record.requests.get(1).is_none_or(|second| second.arrived_at < date);
                problems.that(!early, "the second request came before the date");
            });
        }
    };
    vec![
        report.as_given(dated("$IMF+2")),
        report.also("the date in RFC 850 form", dated("$RFC850+2")),
        report.also("the date in asctime form", dated("$ASCTIME+2")),
    ]
}

fn retry_after(scene: &mut Scene, value: &str) {
    let reply = scene.steps[0].reply.take().unwrap();
    scene.steps[0].reply = Some(reply.with("Retry-After", value));
}

pub(crate) fn wait_02(report: &Report) -> Vec<Run> {
    // The last moment that an HTTP-date can name; the engine's time ends there too.
    const YEAR_9999: &str = "Fri, 31 Dec 9999 23:59:59 GMT";
    let too_long = |value: &'static str, seconds: u64| {
        move |scene: &mut Scene| {
            retry_after(scene, value);
            scene.check(move |e, problems| {
                let Some(error) = e.error(problems) else {
                    return;
                };
                problems.same("effect", error.effect(), Effect::Unknown);
                // Beyond the key's life no wait leads to another attempt.
                let kind = if value == "3600" { ErrorKind::Exhausted } else { ErrorKind::KeyExpired };
                problems.same("kind", error.kind(), kind);
                let named = httpdate::parse_http_date(value);
                let earliest = named.unwrap_or_else(|_| e.began + Duration::from_secs(seconds));
                comes_back(error, earliest, problems);
            });
        }
    };
    vec![
        report.as_given(too_long("9999999999", 9_999_999_999)),
        // Where it stops counting is its own affair, but not below the number before.
        report.variant("2^64", too_long("18446744073709551616", 9_999_999_999)),
        report.variant("3600", too_long("3600", 3600)),
        report.variant("year 9999 date", too_long(YEAR_9999, 0)),
    ]
}

pub(crate) fn wait_03(report: &Report) -> Vec<Run> {
    // Our own delay is 20 ms at most here; `1, 2` read as a number would be 1 s.
    let own = |scene: &mut Scene| {
        scene.expect.waits[0].max_ms = Some(700);
        scene.check(|e, problems| {
            let reason = e.attempts().first().and_then(|attempt| attempt.wait_reason());
            problems.same("reason of the wait", reason, Some(WaitReason::Backoff));
        });
    };
    let unusable = |value: &'static str| {
        move |scene: &mut Scene| {
            retry_after(scene, value);
            own(scene);
        }
    };
    vec![
        report.as_given(own),
        report.variant("+3", unusable("+3")),
        report.variant("1.5", |scene| {
            retry_after(scene, "1.5");
            scene.expect.waits[0].min_ms = 1500;
        }),
        report.variant("empty", unusable("")),
        report.variant("soon", unusable("soon")),
        report.variant("1, 2", unusable("1, 2")),
        report.variant("$IMF-3600", |scene| {
            retry_after(scene, "$IMF-3600");
            scene.expect.waits[0].max_ms = Some(700);
        }),
        report.variant("ISO 8601", unusable("2015-10-21T07:28:00Z")),
    ]
}

pub(crate) fn wait_05(report: &Report) -> Vec<Run> {
    vec![report.as_given(|scene| {
        scene.check(|e, problems| {
            let reasons: Vec<_> = e.attempts().iter().map(|attempt| attempt.wait_reason()).collect();
            problems.same("reasons", reasons, vec![Some(WaitReason::Backoff), Some(WaitReason::Backoff), None]);
        });
    })]
}

pub(crate) fn time_01(report: &Report) -> Vec<Run> {
    // The delay of each number of failures and each base, up to the largest, is
    // in the engine's own tests: it cannot be reached over a wire.
    vec![report.as_given(|scene| {
        scene.check(|e, problems| {
            let mut waits: Vec<Duration> = e.attempts().iter().map(|attempt| attempt.wait()).collect();
            waits.sort_unstable();
            // A timer may be late on a busy machine, but not most of the time.
            let middle = waits[waits.len() / 2];
            problems.that(middle <= Duration::from_millis(3 + 3), format!("half of the waits were over {middle:?}"));
        });
    })]
}

pub(crate) fn time_03(report: &Report) -> Vec<Run> {
    // That the row in a journal stays open comes with the journal.
    vec![report.as_given(|scene| {
        scene.check(|e, problems| {
            let Some(error) = e.error(problems) else {
                return;
            };
            problems.same("effect", error.effect(), Effect::Unknown);
            problems.same("attempts", error.attempts().len(), 1);
            let asked = error.response().and_then(|answer| answer.headers().get("retry-after"));
            problems.that(asked.is_some_and(|value| value == "5"), format!("Retry-After: {asked:?}"));
            let code = error.response().is_some_and(|answer| answer.text().contains("MAINTENANCE"));
            problems.that(code, "the code is lost");
            comes_back(error, e.began + Duration::from_secs(5), problems);
        });
    })]
}

pub(crate) fn time_04(report: &Report) -> Vec<Run> {
    vec![report.as_given(|scene| {
        scene.check(|e, problems| {
            if let Some(error) = e.error(problems) {
                problems.same("effect", error.effect(), Effect::Unknown);
                problems.same("kind", error.kind(), ErrorKind::Exhausted);
            }
            // The last attempt is cut to the 200 ms that are left at most.
            let last = e.attempts().last().map_or(Duration::MAX, |attempt| attempt.duration());
            problems.that(last < Duration::from_millis(300), format!("the last attempt took {last:?}"));
            // With less than 50 ms left no attempt is started.
            problems.that(e.took >= Duration::from_millis(945), format!("gave up after {:?}", e.took));
        });
    })]
}
