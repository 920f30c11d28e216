//! Answers lost, late, cut or unreadable.

use std::time::Duration;

use oncekey::{Effect, ErrorKind, Failure};

use crate::data::{After, Count, Outcome, Reply, Report, Wait};
use crate::data::{At, Before};
use crate::run::Run;
use crate::scene::replayed;

pub(crate) fn lost_01(report: &Report) -> Vec<Run> {
    vec![report.variant("a: FIN", |_| {}), report.variant("b: RST", |scene| scene.first().after = After::Rst)]
}

pub(crate) fn lost_02(report: &Report) -> Vec<Run> {
    let page = Reply::new(502, "<html><h1>502 Bad Gateway</h1></html>").with("Content-Type", "text/html");
    vec![
        report.as_given(|_| {}),
        report.variant("b: 429 + Retry-After: 1", |scene| {
            scene.first().reply = Some(Reply::json(429, "{\"code\":\"RATE\"}").with("Retry-After", "1"));
            scene.expect.waits.push(Wait { before: Before::Number(2), min_ms: 950, max_ms: None });
        }),
        report.variant("c: 502 text/html", |scene| scene.first().reply = Some(page)),
        report.variant("d: 504 empty", |scene| scene.first().reply = Some(Reply::new(504, ""))),
    ]
}

pub(crate) fn lost_03(report: &Report) -> Vec<Run> {
    vec![report.as_given(|scene| {
        scene.check(|e, problems| {
            let first = e.attempts().first();
            problems.same("first attempt", first.and_then(|attempt| attempt.failure()), Some(Failure::Timeout));
            // The server still works on the first when the second comes, and that is all.
            problems.that(e.record.overlap() <= 2, format!("{} at once", e.record.overlap()));
            if let [first, second, ..] = e.record.requests.as_slice() {
                let apart = second.arrived.saturating_duration_since(first.arrived);
                // The client's 300 ms begin a moment before the request arrives.
                problems.that(apart >= Duration::from_millis(250), format!("not waited for: {apart:?}"));
            }
        });
    })]
}

/// `{"id":"pay_1","status":"captured"}`, compressed.
const GZIPPED: [u8; 53] = [
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xab, 0x56, 0xca, 0x4c, 0x51, 0xb2, 0x52, 0x2a, 0x48,
    0xac, 0x8c, 0x37, 0x54, 0xd2, 0x51, 0x2a, 0x2e, 0x49, 0x2c, 0x29, 0x2d, 0x06, 0x0a, 0x24, 0x27, 0x16, 0x94, 0x94,
    0x16, 0xa5, 0xa6, 0x28, 0xd5, 0x02, 0x00, 0x18, 0x6c, 0x47, 0x77, 0x22, 0x00, 0x00, 0x00,
];

pub(crate) fn lost_05(report: &Report) -> Vec<Run> {
    let gzip = |length: &str| {
        let half = Reply::new(201, &GZIPPED[..25]).with("Content-Type", "application/json");
        half.with("Content-Encoding", "gzip").with("Content-Length", length).with_raw_length()
    };
    let mut runs = vec![
        report.as_given(|_| {}),
        report.variant("b: chunked, no terminator", |scene| {
            let chunked = Reply::json(201, "7\r\n{\"id\":\"\r\n").with("Transfer-Encoding", "chunked");
            scene.first().reply = Some(chunked.with_raw_length());
        }),
        report.variant("c: gzip cut", |scene| scene.first().reply = Some(gzip("53"))),
        report.variant("d: close-delimited half JSON", |scene| {
            scene.first().reply = Some(Reply::json(201, "{\"id\":\"").with_raw_length());
        }),
    ];
    // Without the feature no compression is asked for, and none is undone.
    if cfg!(feature = "gzip") {
        runs.push(report.also("c: gzip cut, its length announced", |scene| scene.first().reply = Some(gzip("25"))));
    }
    #[cfg(feature = "http2")]
    runs.extend(crate::http2::lost_05_e(report));
    runs
}

const PAGE: &str = "<html>maintenance</html>";

pub(crate) fn lost_06(report: &Report) -> Vec<Run> {
    vec![
        report.as_given(|_| {}),
        report.variant("b: executed, HTML 201, then replay", |scene| {
            scene.first().execute = true;
            scene.first().reply = Some(Reply::new(201, PAGE).with("Content-Type", "text/html"));
            scene.others().execute = false;
            scene.others().reply = Some(replayed());
        }),
        report.variant("c: HTML for ever -> UNKNOWN", |scene| {
            let mut page = scene.first().clone();
            page.at = At::AllOthers;
            scene.steps = vec![page];
            scene.expect.outcome = Outcome::Unknown;
            scene.expect.executions = 0;
            scene.expect.http_status = Some(200);
            scene.expect.wire_requests = Count::Exactly(6);
            scene.check(|e, problems| {
                if let Some(error) = e.error(problems) {
                    problems.same("effect", error.effect(), Effect::Unknown);
                    problems.same("kind", error.kind(), ErrorKind::Exhausted);
                    let page = error.response().map(|page| page.bytes());
                    problems.same("the page", page, Some(PAGE.as_bytes()));
                }
            });
        }),
    ]
}
