//! Asking after an operation with GET: status resources, originals, look-ups of
//! the caller's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use oncekey::engine::AttemptKind;
use oncekey::profile::{Answer, Judgement, Profile};
use oncekey::sandbox::{Fault, Sandbox};
use oncekey::{
    Client, ClientBuilder, Doubtful, Effect, ErrorKind, Event, Found, Parts, Poll, Reconcile, Retry, WaitReason,
};

fn builder() -> ClientBuilder {
    Client::builder()
        .retry(
            Retry::default().max_attempts(3).base_delay(Duration::from_millis(1)).max_delay(Duration::from_millis(2)),
        )
        .poll(Poll::default().interval(Duration::from_millis(5)).max_interval(Duration::from_millis(5)))
        .attempt_timeout(Duration::from_secs(5))
}

fn location(answer: &Answer<'_>) -> Option<String> {
    Some(answer.headers().get("location")?.to_str().ok()?.to_owned())
}

/// Taken, and asked after there.
fn accepted(at: &str) -> Fault {
    Fault::status(202).executing().header("location", at)
}

fn done() -> Fault {
    Fault::status(200).json("{\"status\":\"done\"}")
}

fn judge(answer: &Answer<'_>) -> Judgement {
    let body = String::from_utf8_lossy(answer.body()).into_owned();
    match () {
        () if answer.status() == 202 || body.contains("processing") => Judgement::Pending,
        () if body.contains("failed") => Judgement::Refused,
        () => Judgement::Final,
    }
}

#[tokio::test]
async fn a_status_resource_is_asked_in_the_place_of_the_operation() {
    let sandbox = Sandbox::start().await.unwrap();
    sandbox.fail_next([accepted("/status/7"), Fault::status(202).header("location", "/status/8"), done()]);
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&polls);
    let on_event = move |event: &Event<'_>| {
        if matches!(event, Event::Polling(_)) {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    };
    let client = builder().poll_with(location).on_event(on_event).build().unwrap();
    let request = client.post(sandbox.url("/payments")).bearer_auth("token").header("x-tenant", "t").body("x");
    let answer = request.send().await.unwrap();
    assert_eq!(answer.text(), "{\"status\":\"done\"}");
    let seen = sandbox.requests();
    let lines: Vec<String> = seen.iter().map(|request| format!("{} {}", request.method(), request.path())).collect();
    assert_eq!(lines, ["POST /payments", "GET /status/7", "GET /status/8"]);
    for look in &seen[1..] {
        assert!(look.key().is_none() && look.body().is_empty());
        assert_eq!(look.headers()["authorization"], "Bearer token");
        assert_eq!(look.headers()["x-tenant"], "t");
        assert!(!look.headers().contains_key("content-type"));
    }
    let kinds: Vec<AttemptKind> = answer.attempts().iter().map(|attempt| attempt.kind()).collect();
    assert_eq!(kinds, [AttemptKind::First, AttemptKind::Poll, AttemptKind::Poll]);
    let waits: Vec<_> = answer.attempts().iter().map(|attempt| attempt.wait_reason()).collect();
    assert_eq!(waits, [Some(WaitReason::Poll), Some(WaitReason::Poll), None]);
    assert_eq!(polls.load(Ordering::Relaxed), 2, "and so does the hook hear of it");
    assert_eq!(sandbox.executions(), 1);
}

#[tokio::test]
async fn without_a_status_resource_a_202_without_evidence_is_not_asked_after() {
    let sandbox = Sandbox::start().await.unwrap();
    sandbox.fail_next([Fault::status(202).executing()]);
    let client = builder().poll_with(location).build().unwrap();
    let error = client.post(sandbox.url("/payments")).body("x").send().await.unwrap_err();
    assert_eq!((error.kind(), error.effect(), sandbox.requests().len()), (ErrorKind::Pending, Effect::Unknown, 1));
}

#[tokio::test]
async fn a_404_of_a_status_resource_is_in_doubt_and_no_refusal() {
    let sandbox = Sandbox::start().await.unwrap();
    sandbox.fail_next([accepted("/status/7"), Fault::status(404), done()]);
    let client = builder().poll_with(location).build().unwrap();
    let late = client.post(sandbox.url("/payments")).body("x").send().await.unwrap();
    assert_eq!(late.attempts().len(), 3);
    sandbox.fail_next([accepted("/status/7"), Fault::status(404).times(3)]);
    let error = client.post(sandbox.url("/payments")).body("x").send().await.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Exhausted, Effect::Unknown));
    sandbox.fail_next([accepted("/status/7"), Fault::status(403)]);
    let error = client.post(sandbox.url("/payments")).body("x").send().await.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Refused, Effect::Unknown));
    assert_eq!(sandbox.requests().iter().filter(|seen| *seen.method() == http::Method::POST).count(), 3);
}

#[tokio::test]
async fn the_judge_reads_the_status_resource() {
    let sandbox = Sandbox::start().await.unwrap();
    let body = |status: &str| Fault::status(200).json(format!("{{\"status\":\"{status}\"}}"));
    let client = builder().judge(judge).poll_with(location).build().unwrap();
    sandbox.fail_next([accepted("/status/7"), body("processing"), body("processing"), body("done")]);
    let answer = client.post(sandbox.url("/payments")).body("x").send().await.unwrap();
    assert_eq!(answer.attempts().len(), 4);
    sandbox.fail_next([accepted("/status/7"), body("processing"), body("failed")]);
    let error = client.post(sandbox.url("/payments")).body("x").send().await.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Rejected, Effect::NotApplied));
    // Cut, a look proves nothing.
    sandbox.fail_next([accepted("/status/7"), Fault::body_cut(3).times(3)]);
    let error = client.post(sandbox.url("/payments")).body("x").send().await.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Exhausted, Effect::Unknown));
}

#[tokio::test]
async fn a_303_of_a_status_resource_leads_to_the_result_on_its_own_origin() {
    let (sandbox, other) = (Sandbox::start().await.unwrap(), Sandbox::start().await.unwrap());
    let client = builder().poll_with(location).build().unwrap();
    sandbox.fail_next([accepted("/status/7"), Fault::redirect(303, "/payments/7"), done()]);
    let answer = client.post(sandbox.url("/payments")).body("x").send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(sandbox.requests()[2].path(), "/payments/7");
    sandbox.fail_next([accepted("/status/7"), Fault::redirect(303, &other.url("/payments/7"))]);
    let error = client.post(sandbox.url("/payments")).body("x").send().await.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unsettled, Effect::Unknown));
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn another_origin_gets_no_credentials() {
    let (sandbox, other) = (Sandbox::start().await.unwrap(), Sandbox::start().await.unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let client = builder()
        .poll_with(location)
        .authorize(move |parts: &mut Parts<'_>| {
            counted.fetch_add(1, Ordering::Relaxed);
            parts.set_header("x-signature", format!("{} {}", parts.method(), parts.url().path()))?;
            Ok(())
        })
        .build()
        .unwrap();
    sandbox.fail_next([accepted(&other.url("/status/7"))]);
    other.fail_next([done()]);
    let request = client.post(sandbox.url("/payments")).bearer_auth("token").body("x");
    // What is not marked sensitive may be a secret too.
    let request = request.header("x-api-key", "sk_7").header("host", "api.example").header("accept-language", "es");
    assert_eq!(request.send().await.unwrap().status(), 200);
    let look = &other.requests()[0];
    for name in ["authorization", "x-signature", "x-api-key"] {
        assert!(!look.headers().contains_key(name), "{name}");
    }
    assert_eq!(look.headers()["host"], other.url("").trim_start_matches("http://"));
    assert_eq!(look.headers()["accept-language"], "es");
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    // To its own origin the hook signs what is sent.
    sandbox.fail_next([accepted("/status/7"), done()]);
    assert!(client.post(sandbox.url("/payments")).body("x").send().await.is_ok());
    assert_eq!(sandbox.requests()[2].headers()["x-signature"], "GET /status/7");
}

/// A server's own wait counts whatever the answer that it comes with is read as.
#[tokio::test]
async fn a_look_waits_as_long_as_it_is_told_to() {
    let sandbox = Sandbox::start().await.unwrap();
    let later = |fault: Fault| fault.header("retry-after-ms", "60");
    let client = builder().poll_with(location).build().unwrap();
    sandbox.fail_next([
        accepted("/status/7"),
        later(Fault::status(404)),
        later(Fault::status(200).json("{}").header("location", "/status/8")),
        later(Fault::redirect(303, "/payments/7")),
        done(),
    ]);
    let answer = client.post(sandbox.url("/payments")).body("x").send().await.unwrap();
    let told = answer.attempts()[1..4].iter().map(|attempt| (attempt.wait_reason(), attempt.wait()));
    for (reason, wait) in told {
        assert_eq!(reason, Some(WaitReason::RetryAfter), "{}", answer.table());
        assert!(wait >= Duration::from_millis(60), "{}", answer.table());
    }
    // That of an original, too.
    let client =
        builder().profile(Profile::gocardless()).recover_with(|id| Some(format!("/payments/{id}"))).build().unwrap();
    let conflict = || Fault::status(409).json(CONFLICT);
    sandbox.fail_next([conflict(), later(Fault::status(503)), conflict(), done()]);
    let answer = client.post(sandbox.url("/payments")).body("x").send().await.unwrap();
    assert_eq!(answer.attempts()[0].wait_reason(), Some(WaitReason::RetryAfter), "{}", answer.table());
}

const CONFLICT: &str = r#"{"error":{"type":"invalid_state","code":409,"errors":[{"reason":"idempotent_creation_conflict",
    "message":"A resource has already been created with this idempotency key","links":{"conflicting_resource_id":"PM000123"}}]}}"#;

#[tokio::test]
async fn the_original_is_fetched_by_its_id() {
    let sandbox = Sandbox::start().await.unwrap();
    let profile = Profile::gocardless();
    let client = builder().profile(profile.clone()).recover_with(|id| Some(format!("/payments/{id}"))).build().unwrap();
    let conflict = || Fault::status(409).json(CONFLICT);
    let original = || Fault::status(200).json("{\"id\":\"PM000123\"}");
    sandbox.fail_next([Fault::answer_lost(), conflict(), original()]);
    let answer = client.post(sandbox.url("/payments")).bearer_auth("token").body("x").send().await.unwrap();
    assert_eq!(answer.text(), "{\"id\":\"PM000123\"}");
    let last = answer.attempts().last().unwrap();
    assert_eq!((last.status().unwrap().as_u16(), last.looked_up().unwrap().as_u16()), (409, 200));
    let look = &sandbox.requests()[2];
    assert_eq!((look.method().as_str(), look.path(), look.key()), ("GET", "/payments/PM000123", None));
    assert_eq!(look.headers()["authorization"], "Bearer token");

    // A look that failed is tried again with the next attempt.
    sandbox.fail_next([conflict(), Fault::status(503), conflict(), original()]);
    let answer = client.post(sandbox.url("/payments")).body("x").send().await.unwrap();
    assert_eq!(answer.attempts().len(), 2);
    // One that is turned away settles nothing.
    sandbox.fail_next([conflict(), Fault::status(404)]);
    let error = client.post(sandbox.url("/payments")).body("x").send().await.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unsettled, Effect::Unknown));
    // Without a key it is no original of this operation.
    sandbox.fail_next([conflict()]);
    let error = client.post(sandbox.url("/payments")).without_key().body("x").send().await.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unsettled, Effect::Unknown));
    // Without a way to it, or without an id, it is unknown, and never sent under a new key.
    let blind = builder().profile(profile).build().unwrap();
    sandbox.fail_next([conflict()]);
    let error = blind.post(sandbox.url("/payments")).body("x").send().await.unwrap_err();
    assert_eq!((error.kind(), error.effect(), error.attempts().len()), (ErrorKind::Unsettled, Effect::Unknown, 1));
}

fn found(
    found: Found,
) -> impl Fn(&Doubtful<'_>) -> Result<Found, Box<dyn std::error::Error + Send + Sync>> + Send + Sync {
    move |doubtful| {
        assert_eq!(doubtful.body(), b"ref-7");
        assert!(doubtful.key().is_some() && doubtful.operation().is_some() && doubtful.url().ends_with("/payments"));
        Ok(found.clone())
    }
}

#[tokio::test]
async fn a_look_up_of_ones_own_settles_what_is_unknown() {
    let sandbox = Sandbox::start().await.unwrap();
    let stored = || Fault::replayed(500);
    for (says, kind, effect) in [
        (Found::Applied("pay_7".into()), ErrorKind::Resolved, Effect::Applied),
        (Found::NotApplied("void_7".into()), ErrorKind::Resolved, Effect::NotApplied),
        (Found::Unknown, ErrorKind::Unsettled, Effect::Unknown),
    ] {
        let client = builder().profile(Profile::stripe()).reconcile_with(found(says)).build().unwrap();
        sandbox.fail_next([stored().header("idempotent-replayed", "true")]);
        let error = client.post(sandbox.url("/payments")).body("ref-7").send().await.unwrap_err();
        assert_eq!((error.kind(), error.effect()), (kind, effect));
        assert_eq!(error.response().unwrap().status(), 500);
    }
    let failing = builder().reconcile_with(|_: &Doubtful<'_>| Err("the books are closed".into())).build().unwrap();
    sandbox.fail_next([Fault::redirect(307, "/elsewhere")]);
    let error = failing.post(sandbox.url("/payments")).body("x").send().await.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unsettled, Effect::Unknown));
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "the books are closed");
    assert!(format!("{error:#}").ends_with(&format!("{error}: the books are closed")), "{error:#}");
    // What is known is not looked up, nor what may be asked for again.
    let never = builder().reconcile_with(|_: &Doubtful<'_>| panic!("asking can tell")).build().unwrap();
    sandbox.fail_next([Fault::answer_lost().times(3)]);
    let error = never.post(sandbox.url("/payments")).body("x").send().await.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Exhausted, Effect::Unknown));
    sandbox.fail_next([Fault::status(422)]);
    assert_eq!(never.post(sandbox.url("/payments")).body("x").send().await.unwrap_err().effect(), Effect::NotApplied);
    assert!(never.post(sandbox.url("/payments")).body("x").send().await.is_ok());
}

struct Books;

impl Reconcile for Books {
    async fn reconcile(&self, _: &Doubtful<'_>) -> Result<Found, Box<dyn std::error::Error + Send + Sync>> {
        std::future::pending().await
    }
}

#[tokio::test]
#[allow(clippy::disallowed_methods)] // what must not be reached
async fn a_look_up_ends_with_the_deadline() {
    let sandbox = Sandbox::start().await.unwrap();
    let client = builder().reconcile_with(Books).build().unwrap();
    sandbox.fail_next([Fault::redirect(307, "/elsewhere")]);
    let request = client.post(sandbox.url("/payments")).body("x").deadline(Duration::from_millis(300));
    let ended = tokio::time::timeout(Duration::from_secs(4), request.send()).await;
    let error = ended.expect("5 s is the attempt's timeout, and the deadline comes long before").unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unsettled, Effect::Unknown));
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("did not end in its time"));
}

#[tokio::test]
async fn a_documented_shortest_delay_is_kept() {
    let sandbox = Sandbox::start().await.unwrap();
    let profile = Profile::builder("slow").min_delay(Duration::from_millis(120)).build().unwrap();
    let client = builder().profile(profile).build().unwrap();
    sandbox.fail_next([Fault::status(503)]);
    let answer = client.post(sandbox.url("/payments")).body("x").send().await.unwrap();
    assert!(answer.attempts()[0].wait() >= Duration::from_millis(120), "{:?}", answer.attempts()[0].wait());
}
