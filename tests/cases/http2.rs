//! What HTTP/2 adds: streams that are refused, connections that are given up, and dead ones.

use std::collections::BTreeSet;

use oncekey::engine::Reach;
use oncekey::{Effect, ErrorKind, Failure};

use crate::checks::{Evidence, Problems};
use crate::data::{After, Count, NO_ERROR, Outcome, Reply, Report, Step};
use crate::run::Run;
use crate::scene::{CAPTURED, Scene};
use crate::script::{Speaks, answer};

const ENHANCE_YOUR_CALM: u32 = 11;

fn over_http2(scene: &mut Scene) {
    scene.speaks = Speaks::Http2 { dead: 0 };
}

/// That requests seen and attempts logged are as many holds for every run: see `checks::always`.
pub(crate) fn h2_01(report: &Report) -> Vec<Run> {
    vec![
        report.as_given(|scene| {
            over_http2(scene);
            scene.check(|e, problems| {
                first_is_in_doubt(e, problems);
                problems.same("connections", e.record.connections, 1);
            });
        }),
        report.variant("b: GOAWAY(last_stream_id=0, NO_ERROR), new connection then 201", |scene| {
            over_http2(scene);
            scene.first().after = After::GoAway { last: 0, code: NO_ERROR };
            scene.check(|e, problems| {
                first_is_in_doubt(e, problems);
                problems.same("connections", e.record.connections, 2);
            });
        }),
    ]
}

/// Whatever the frame says of it, a proxy may have said it after the origin acted.
fn first_is_in_doubt(evidence: &Evidence, problems: &mut Problems) {
    let first = &evidence.attempts()[0];
    problems.same("the first attempt's failure", first.failure(), Some(Failure::Broken));
    let reach = first.verdict().map(|verdict| verdict.reach());
    problems.same("the first attempt's reach", reach, Some(Reach::Ambiguous));
}

pub(crate) fn h2_03(report: &Report) -> Vec<Run> {
    vec![
        report.as_given(|scene| {
            over_http2(scene);
            scene.check(|e, problems| {
                first_is_in_doubt(e, problems);
                problems.same("connections", e.record.connections, 2);
            });
        }),
        report.variant("b: ENHANCE_YOUR_CALM always", |scene| {
            over_http2(scene);
            let after = After::GoAway { last: 0, code: ENHANCE_YOUR_CALM };
            scene.steps = vec![Step { reply: None, after, ..answer(false, Reply::new(500, "")) }];
            scene.expect.outcome = Outcome::Unknown;
            scene.expect.executions = 0;
            scene.expect.http_status = None;
            scene.expect.wire_requests = Count::Exactly(6);
            scene.check(|e, problems| {
                problems.same("connections", e.record.connections, 6);
                if let Some(error) = e.error(problems) {
                    problems.same("kind", error.kind(), ErrorKind::Exhausted);
                    problems.same("effect", error.effect(), Effect::Unknown);
                }
                // Full jitter may draw next to nothing once, and not every time.
                let waited: u128 = e.attempts().iter().map(|attempt| attempt.wait().as_millis()).sum();
                problems.that(waited >= 10, format!("{waited} ms of waits in all: a tight loop"));
            });
        }),
    ]
}

pub(crate) fn h2_04(report: &Report) -> Vec<Run> {
    vec![report.as_given(|scene| {
        scene.speaks = Speaks::Http2 { dead: 1 };
        scene.steps = vec![answer(true, Reply::json(201, CAPTURED))];
        scene.check(|e, problems| {
            let first = &e.attempts()[0];
            problems.same("the first attempt's failure", first.failure(), Some(Failure::Timeout));
            let by: BTreeSet<usize> = e.record.requests.iter().map(|seen| seen.connection).collect();
            problems.that(by.contains(&1) && by.len() >= 2, format!("requests came on connections {by:?}"));
        });
    })]
}

pub(crate) fn lost_05_e(report: &Report) -> Vec<Run> {
    let cut = |length: Option<&'static str>| {
        move |scene: &mut Scene| {
            over_http2(scene);
            let reply = Reply::json(201, "{\"").with_raw_length();
            let reply = length.into_iter().fold(reply, |reply, length| reply.with("Content-Length", length));
            (scene.first().reply, scene.first().after) = (Some(reply), After::RstStream(NO_ERROR));
            scene.check(|e, problems| {
                let reach = e.attempts()[0].verdict().map(|verdict| verdict.reach());
                problems.same("the first attempt's reach", reach, Some(Reach::AppliedUnread));
            });
        }
    };
    vec![
        report.variant("e: h2 RST NO_ERROR mid-body", cut(None)),
        report.also("e, its length announced", cut(Some("100"))),
    ]
}
