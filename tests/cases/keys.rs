//! The key: one per operation, well formed, on one header line.

use oncekey::profile::{KeyFormat, Profile};
use oncekey::{ErrorKind, IdempotencyKey, RequestBuilder};

use crate::checks::Problems;
use crate::data::{Count, Outcome, Reply, Report, Settings};
use crate::run::{Findings, Run};
use crate::scene::{BODY, CAPTURED, client, pay, timed};
use crate::script::{Server, answer};

const OURS: &str = "3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506";

// That the answer is the stored one, and the key on the wire the caller's or a
// drawn one, holds for every run: see `checks::always`.
pub(crate) fn key_01(report: &Report) -> Vec<Run> {
    vec![
        report.as_given(|_| {}),
        report.variant("b: caller-supplied key, retries enabled", |scene| {
            scene.key = Some(OURS);
            scene.check(|e, problems| {
                let keys: Vec<&str> = e.record.requests.iter().flat_map(|seen| seen.lines("Idempotency-Key")).collect();
                problems.same("keys on the wire", keys, vec![OURS, OURS]);
            });
        }),
    ]
}

/// What each key is called in the list of runs, and the key.
fn malformed() -> Vec<(&'static str, String)> {
    vec![
        ("abbreviated with an ellipsis", "0xb7ef\u{2026}375a".to_owned()),
        ("empty", String::new()),
        ("a space", " ".to_owned()),
        ("a tab", "a\tb".to_owned()),
        ("a line break", "a\r\nX-Evil: 1".to_owned()),
        ("300 characters", "k".repeat(300)),
        ("UUID in quotes", format!("\"{OURS}\"")),
        ("UUID in upper case", OURS.to_uppercase()),
    ]
}

pub(crate) fn key_05(report: &Report) -> Vec<Run> {
    let expect = &report.expect;
    assert_eq!(expect.outcome, Outcome::CallerError);
    assert!(matches!(expect.wire_requests, Count::Exactly(0)) && expect.executions == 0 && expect.distinct_keys == 0);
    let other = |format| Profile::builder("other").key_format(format).build().unwrap();
    let short = KeyFormat::visible(4..=40);
    let mut runs = Vec::new();
    for (label, key) in malformed() {
        runs.push(Run::also(&format!("{label}, for UUIDs"), refused(Profile::generic(), key.clone())));
        // The other format has nothing against capitals.
        if label != "UUID in upper case" {
            runs.push(Run::also(&format!("{label}, for 4 to 40"), refused(other(short.clone()), key)));
        }
    }
    let upper = OURS.to_uppercase();
    let quoted = format!("\"{upper}\"");
    runs.push(Run::also("bare where the profile says so", sent(Profile::generic(), OURS, OURS.into())));
    runs.push(Run::also("never changed", sent(other(short.clone()), upper.clone(), upper.clone())));
    runs.push(Run::also("quoted where the profile says so", sent(other(short.quoted()), upper, quoted)));
    runs
}

async fn accepting() -> Server {
    Server::start(Box::new(|_, _| answer(true, Reply::json(201, CAPTURED))), 0).await
}

/// Refused by the right way and as a header, and nothing is sent.
async fn refused(profile: Profile, key: String) -> Findings {
    let server = accepting().await;
    let client = client(&Settings::default()).profile(profile).build().unwrap();
    let request = || pay(&client, &server.url("/pay"), BODY.to_vec());
    let mut problems = Problems::default();
    let summary = match IdempotencyKey::parse(&key) {
        Err(error) => error.to_string(),
        Ok(key) => not_sent(request().idempotency_key(key), &mut problems).await,
    };
    problems.that(summary.contains("the idempotency key"), format!("unclear: {summary}"));
    not_sent(request().header("Idempotency-Key", key), &mut problems).await;
    let record = server.record();
    problems.same("requests on the wire", record.requests.len(), 0);
    Findings { problems, summary, details: record.to_string() }
}

/// Its error's text.
async fn not_sent(request: RequestBuilder, problems: &mut Problems) -> String {
    match timed(request).await.0 {
        Ok(response) => {
            problems.that(false, format!("it was sent: {response:?}"));
            String::new()
        }
        Err(error) => {
            problems.same("kind", error.kind(), ErrorKind::Request);
            problems.same("attempts", error.attempts().len(), 0);
            error.to_string()
        }
    }
}

/// The key is taken, and on the wire it is this.
async fn sent(profile: Profile, key: impl Into<String>, on_the_wire: String) -> Findings {
    let server = accepting().await;
    let client = client(&Settings::default()).profile(profile).build().unwrap();
    let key = IdempotencyKey::parse(key.into()).unwrap();
    let mut problems = Problems::default();
    let sent = timed(pay(&client, &server.url("/pay"), BODY.to_vec()).idempotency_key(key)).await.0;
    problems.that(sent.is_ok(), format!("{sent:?}"));
    let record = server.record();
    let keys: Vec<String> = record.requests.iter().map(|seen| seen.key()).collect();
    problems.same("keys on the wire", keys, vec![on_the_wire]);
    Findings { problems, summary: "sent".to_owned(), details: record.to_string() }
}

pub(crate) fn key_06(report: &Report) -> Vec<Run> {
    vec![
        report.as_given(|_| {}),
        // Of the two ways that the report allows, refusing the extra header is ours.
        Run::also("a second key header is refused", second_header()),
        report.also("codes are case-sensitive", |scene| {
            scene.others().reply = Some(Reply::json(409, "{\"code\":\"Idempotency_In_Progress\"}"));
            scene.expect.outcome = Outcome::Unknown;
            scene.expect.http_status = Some(409);
            scene.check(|e, problems| {
                if let Some(error) = e.error(problems) {
                    problems.same("kind", error.kind(), ErrorKind::Unsettled);
                }
            });
        }),
    ]
}

async fn second_header() -> Findings {
    let script = |_, _| answer(true, Reply::json(400, "{\"code\":\"TWO_KEYS\"}"));
    let server = Server::start(Box::new(script), 0).await;
    let client = client(&Settings::default()).build().unwrap();
    let mut problems = Problems::default();
    let url = server.url("/pay");
    let request = || pay(&client, &url, BODY.to_vec());
    let ours = || IdempotencyKey::parse(OURS).unwrap();
    for request in [
        request().header("IDEMPOTENCY-KEY", "other"),
        request().header("IDEMPOTENCY-KEY", "other").idempotency_key(ours()),
        request().idempotency_key(ours()).header("idempotency-key", OURS),
    ] {
        not_sent(request, &mut problems).await;
    }
    let record = server.record();
    problems.same("requests on the wire", record.requests.len(), 0);
    Findings { problems, summary: "refused".to_owned(), details: record.to_string() }
}
