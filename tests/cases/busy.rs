//! Conflicts, and what is stored under the key.
// That `resume` goes on under the same key, or does not resend, comes with the journal.

use oncekey::engine::{AttemptKind, Why};
use oncekey::{Effect, ErrorKind, Profile};

use crate::checks::comes_back;
use crate::data::{At, Before, Count, Outcome, Reply, Report, Wait};
use crate::run::Run;
use crate::scene::{Scene, replayed};

/// Our own interval, 1 s, less a tenth and some leeway.
const fn a_poll_before(n: usize) -> Wait {
    Wait { before: Before::Number(n), min_ms: 850, max_ms: None }
}

pub(crate) fn busy_01(report: &Report) -> Vec<Run> {
    vec![report.as_given(|scene| scene.expect.waits.push(a_poll_before(4)))]
}

pub(crate) fn busy_02(report: &Report) -> Vec<Run> {
    vec![report.as_given(|scene| {
        scene.check(|e, problems| {
            let Some(error) = e.error(problems) else {
                return;
            };
            problems.same("effect", error.effect(), Effect::Unknown);
            problems.same("kind", error.kind(), ErrorKind::Exhausted);
            comes_back(error, e.began + e.took, problems);
            problems.that(error.to_string().contains("still in progress"), error.to_string());
            let last = error.attempts().last().and_then(|attempt| attempt.verdict());
            problems.same("last reading", last.map(|verdict| verdict.why()), Some(Why::InProgress));
            problems.same("last answer", error.response().map(|answer| answer.status().as_u16()), Some(409));
        });
    })]
}

pub(crate) fn busy_03(report: &Report) -> Vec<Run> {
    let refusal = |status: u16, code: &str| Reply::json(status, &format!("{{\"code\":\"{code}\"}}"));
    let refused = |scene: &mut Scene| {
        scene.check(|e, problems| {
            if let Some(error) = e.error(problems) {
                problems.same("kind", error.kind(), ErrorKind::Refused);
            }
        });
    };
    let variant = |label, reply: Reply| {
        report.variant(label, |scene| {
            scene.expect.http_status = Some(reply.status);
            scene.others().reply = Some(reply);
            refused(scene);
        })
    };
    // That a journal's row is closed comes with the journal.
    vec![
        report.as_given(refused),
        variant("b", refusal(409, "INVALID_OPERATION")),
        variant("c", refusal(400, "INSUFFICIENT_FUNDS")),
        variant("d", refusal(402, "INSUFFICIENT_FUNDS")),
        variant("e", refusal(422, "VALIDATION")),
    ]
}

pub(crate) fn busy_04(report: &Report) -> Vec<Run> {
    vec![report.as_given(|scene| {
        scene.check(|e, problems| {
            if let Some(error) = e.error(problems) {
                problems.same("effect", error.effect(), Effect::Unknown);
                problems.same("kind", error.kind(), ErrorKind::Unsettled);
                problems.that(error.to_string().contains("may be with our own earlier attempt"), error.to_string());
            }
        });
    })]
}

pub(crate) fn busy_06(report: &Report) -> Vec<Run> {
    vec![
        report.as_given(|scene| {
            scene.check(|e, problems| {
                if let Some(error) = e.error(problems) {
                    problems.same("effect", error.effect(), Effect::Unknown);
                    problems.same("kind", error.kind(), ErrorKind::Unsettled);
                    problems.that(error.to_string().contains("stored"), error.to_string());
                }
            });
        }),
        report.also("polled where errors are never stored", |scene| {
            scene.profile = Profile::verifika();
            let mut marked = scene.others().clone();
            marked.at = At::Numbers(2..=3);
            scene.others().reply = Some(replayed());
            scene.steps.push(marked);
            // One failure leaves no room for another: the polls are on a budget of their own.
            scene.settings.max_attempts = 2;
            scene.expect.outcome = Outcome::Success;
            scene.expect.http_status = Some(201);
            scene.expect.wire_requests = Count::Exactly(4);
            scene.expect.waits = vec![a_poll_before(3), a_poll_before(4)];
            scene.check(|e, problems| {
                let kinds: Vec<AttemptKind> = e.attempts().iter().map(|attempt| attempt.kind()).collect();
                let expected = [AttemptKind::First, AttemptKind::Retry, AttemptKind::Poll, AttemptKind::Poll];
                problems.same("kinds of attempt", kinds, expected.to_vec());
            });
        }),
    ]
}
