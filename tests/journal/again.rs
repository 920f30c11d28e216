//! What asking again does, row by row.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use oncekey::journal::Memory;
use oncekey::sandbox::{Fault, Sandbox};
use oncekey::{Client, Effect, ErrorKind, IdempotencyKey, Parts, Profile, RecordState, Retry};

use crate::reports::age;
use crate::support::{Folder, builder, client, pay};

/// One try and no more.
fn hasty() -> Retry {
    Retry::default().max_attempts(1).base_delay(Duration::ZERO)
}

async fn ids(client: &Client) -> (Vec<String>, Vec<String>) {
    let names = |records: Vec<oncekey::OperationRecord>| records.iter().map(|r| r.id().as_str().to_owned()).collect();
    (names(client.unfinished().await.unwrap()), names(client.in_doubt().await.unwrap()))
}

fn none() -> (Vec<String>, Vec<String>) {
    (Vec::new(), Vec::new())
}

#[tokio::test]
async fn never_seen_starts_it_and_an_answer_on_record_is_given_without_a_request() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    for client in [client(&folder).await, builder().journal(Memory::new()).build().unwrap()] {
        let before = (sandbox.executions(), sandbox.requests().len());
        let first = pay(&client, &sandbox, "order-1", 100).send().await.unwrap();
        assert!(first.recorded().is_ok());
        let again = pay(&client, &sandbox, "order-1", 100).send().await.unwrap();
        assert_eq!((again.status(), again.bytes(), again.key()), (first.status(), first.bytes(), first.key()));
        assert!(again.attempts().is_empty(), "no request");
        let misread = again.json::<bool>().unwrap_err();
        assert!(misread.to_string().starts_with("the operation took effect, but"), "{misread}");
        let resumed = client.resume("order-1").send().await.unwrap();
        assert_eq!(resumed.bytes(), first.bytes());
        assert_eq!((sandbox.executions(), sandbox.requests().len()), (before.0 + 1, before.1 + 1));
        assert_eq!(ids(&client).await, none());
        let record = client.lookup("order-1").await.unwrap().unwrap();
        assert_eq!((record.state(), record.effect(), record.attempts()), (RecordState::Settled, Effect::Applied, 1));
        assert_eq!(record.last_answer().unwrap().body(), first.bytes());
    }
}

#[tokio::test]
async fn an_answer_that_was_lost_is_asked_for_under_the_same_key() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let client = builder().retry(hasty()).journal(folder.journal().await).build().unwrap();
    sandbox.fail_next([Fault::body_cut(3)]);
    let error = pay(&client, &sandbox, "order-1", 100).send().await.unwrap_err();
    assert_eq!((error.effect(), error.kind()), (Effect::Applied, ErrorKind::Exhausted));
    assert_eq!(ids(&client).await, (vec!["order-1".to_owned()], vec![]));
    let answer = pay(&client, &sandbox, "order-1", 100).send().await.unwrap();
    assert!(answer.is_replay());
    assert_eq!((sandbox.executions(), sandbox.requests().len()), (1, 2));
    assert_eq!(ids(&client).await, none());
}

#[tokio::test]
async fn what_is_unknown_and_may_be_sent_goes_on_and_resume_all_takes_it() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let client = builder().retry(hasty()).journal(folder.journal().await).build().unwrap();
    sandbox.fail_next([Fault::answer_lost(), Fault::answer_lost()]);
    for id in ["order-1", "order-2"] {
        let error = pay(&client, &sandbox, id, 100).send().await.unwrap_err();
        assert_eq!(error.effect(), Effect::Unknown);
    }
    assert_eq!(ids(&client).await.0, ["order-1", "order-2"]);
    let answer = pay(&client, &sandbox, "order-1", 100).send().await.unwrap();
    assert!(answer.is_replay());
    assert_eq!(answer.attempts()[0].number(), 2, "attempts are counted over all runs");
    let mut ends = client.resume_all().start().await.unwrap();
    let (id, end) = ends.next().await.unwrap();
    assert_eq!((id.as_str(), end.unwrap().is_replay()), ("order-2", true));
    assert!(ends.next().await.is_none());
    assert_eq!((sandbox.executions(), ids(&client).await), (2, none()));
    let seen = sandbox.requests();
    assert_eq!(seen[1].body(), seen[3].body());
}

#[tokio::test]
async fn what_must_not_be_sent_gives_the_same_error_and_is_listed_in_doubt() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let client = builder().retry(hasty()).journal(folder.journal().await).build().unwrap();
    sandbox.fail_next([Fault::redirect(307, "/elsewhere"), Fault::status(409)]);
    for id in ["redirect", "conflict"] {
        let first = pay(&client, &sandbox, id, 100).send().await.unwrap_err();
        let again = pay(&client, &sandbox, id, 100).send().await.unwrap_err();
        let resumed = client.resume(id).send().await.unwrap_err();
        for error in [&again, &resumed] {
            assert_eq!((error.kind(), error.effect()), (first.kind(), first.effect()), "{id}");
            assert_eq!(error.response().unwrap().status(), first.response().unwrap().status());
            assert!(error.attempts().is_empty());
        }
        assert_eq!(first.effect(), Effect::Unknown);
    }
    let keyless = |id: &'static str| pay(&client, &sandbox, id, 100).without_key();
    sandbox.fail_next([Fault::answer_lost()]);
    let first = keyless("keyless").send().await.unwrap_err();
    let again = keyless("keyless").send().await.unwrap_err();
    assert_eq!((first.kind(), again.kind()), (ErrorKind::Unsettled, ErrorKind::Unsettled));
    assert_eq!(sandbox.requests().len(), 3);
    let mut ends = client.resume_all().start().await.unwrap();
    assert!(ends.next().await.is_none(), "resume_all skips them");
    let doubtful = client.in_doubt().await.unwrap();
    assert_eq!(ids(&client).await, (vec![], ["redirect", "conflict", "keyless"].map(str::to_owned).to_vec()));
    assert_eq!(doubtful[0].last_answer().unwrap().status(), 307);
    let life = doubtful[0].key_expires_at().unwrap().duration_since(doubtful[0].created_at()).unwrap();
    assert!(life > Duration::from_secs(84_000) && life < Duration::from_secs(86_400), "{life:?}");
    assert!(doubtful[0].age() < Duration::from_secs(60));
}

#[tokio::test]
async fn what_was_refused_is_reopened_under_the_same_key() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let client = client(&folder).await;
    sandbox.fail_next([Fault::status(401)]);
    let refused = pay(&client, &sandbox, "order-1", 100).send().await.unwrap_err();
    assert_eq!((refused.kind(), refused.effect()), (ErrorKind::Refused, Effect::NotApplied));
    assert_eq!(ids(&client).await, none());
    assert!(client.resume_all().start().await.unwrap().next().await.is_none());
    let paid = pay(&client, &sandbox, "order-1", 100).send().await.unwrap();
    assert_eq!(paid.key(), refused.key());
    assert_eq!(sandbox.executions(), 1);
}

#[tokio::test]
async fn what_was_never_sent_is_reopened_under_the_same_key() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let client = builder().retry(hasty()).journal(folder.journal().await).build().unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nowhere = || client.post(format!("http://127.0.0.1:{port}/payments")).operation("order-1").body("x");
    let first = nowhere().send().await.unwrap_err();
    assert_eq!((first.kind(), first.effect()), (ErrorKind::Exhausted, Effect::NotApplied));
    let second = nowhere().send().await.unwrap_err();
    assert_eq!((second.effect(), second.key()), (Effect::NotApplied, first.key()));
    assert_eq!(second.attempts()[0].number(), 2);
    let other = pay(&client, &sandbox, "order-1", 100).send().await.unwrap_err();
    assert_eq!((other.kind(), other.effect()), (ErrorKind::Mismatch, Effect::NotApplied));
}

#[tokio::test]
async fn a_corrected_body_goes_under_the_same_key_where_errors_release_it() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let client = client(&folder).await;
    sandbox.fail_next([Fault::status(422)]);
    let refused = pay(&client, &sandbox, "order-1", 1).send().await.unwrap_err();
    assert_eq!(refused.effect(), Effect::NotApplied);
    let paid = pay(&client, &sandbox, "order-1", 2).send().await.unwrap();
    assert_eq!(paid.key(), refused.key());
    let seen = sandbox.requests();
    assert_eq!(seen.iter().map(|r| r.body().len()).collect::<Vec<_>>(), [12, 12]);
    assert_ne!(seen[0].body(), seen[1].body());
    // From here on the corrected request is the operation's.
    let old = pay(&client, &sandbox, "order-1", 1).send().await.unwrap_err();
    assert_eq!((old.kind(), old.effect()), (ErrorKind::Mismatch, Effect::Applied));
    assert_eq!(pay(&client, &sandbox, "order-1", 2).send().await.unwrap().bytes(), paid.bytes());
    assert_eq!(sandbox.executions(), 1);
    assert_eq!(client.lookup("order-1").await.unwrap().unwrap().entries().len(), 8);
}

#[tokio::test]
async fn a_corrected_body_is_refused_in_doubt_and_where_errors_are_stored() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let journal = folder.journal().await;
    let client = builder().journal(journal.clone()).build().unwrap();
    sandbox.fail_next([Fault::answer_lost(), Fault::status(422)]);
    let doubtful = pay(&client, &sandbox, "order-1", 1).send().await.unwrap_err();
    assert_eq!((doubtful.kind(), doubtful.effect()), (ErrorKind::Refused, Effect::Unknown));
    let corrected = pay(&client, &sandbox, "order-1", 2).send().await.unwrap_err();
    assert_eq!((corrected.kind(), corrected.effect()), (ErrorKind::Mismatch, Effect::Unknown));
    assert_eq!(sandbox.requests().len(), 2);

    let stripe = builder().profile(Profile::stripe()).journal(journal).build().unwrap();
    sandbox.fail_next([Fault::status(402)]);
    let declined = pay(&stripe, &sandbox, "order-2", 1).send().await.unwrap_err();
    assert_eq!(declined.effect(), Effect::NotApplied);
    let corrected = pay(&stripe, &sandbox, "order-2", 2).send().await.unwrap_err();
    assert_eq!((corrected.kind(), corrected.effect()), (ErrorKind::Mismatch, Effect::NotApplied));
}

#[tokio::test]
async fn what_is_corrected_goes_to_the_same_place_by_the_same_method() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let client = client(&folder).await;
    sandbox.fail_next([Fault::status(422)]);
    let _ = pay(&client, &sandbox, "order-1", 1).send().await.unwrap_err();
    let body = serde_json::json!({"amount": 2});
    for request in [client.post(sandbox.url("/refunds")), client.put(sandbox.url("/payments"))] {
        let error = request.operation("order-1").json(&body).send().await.unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Mismatch, Effect::NotApplied));
    }
    assert_eq!(sandbox.requests().len(), 1);
}

#[tokio::test]
async fn what_is_to_have_no_key_has_none_on_record_either() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let client = client(&folder).await;
    let payment = client.post(sandbox.url("/payments")).json(&serde_json::json!({"amount": 1})).without_key();
    let refused = payment.send().await.unwrap_err();
    assert_eq!((refused.key(), refused.effect()), (None, Effect::NotApplied), "this server wants a key");
    let deletion = client.delete(sandbox.url("/payments/1")).send().await.unwrap();
    assert_eq!(deletion.key(), None, "the profile keys no DELETE");
    for request in sandbox.requests() {
        assert!(!request.headers().contains_key("idempotency-key"), "{request:?}");
    }
}

#[tokio::test]
async fn a_rejection_is_given_from_the_record() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let client = builder().profile(Profile::stripe()).journal(folder.journal().await).build().unwrap();
    sandbox.fail_next([Fault::status(402).header("idempotent-replayed", "true")]);
    let first = pay(&client, &sandbox, "order-1", 100).send().await.unwrap_err();
    assert_eq!((first.kind(), first.effect()), (ErrorKind::Rejected, Effect::NotApplied));
    let again = pay(&client, &sandbox, "order-1", 100).send().await.unwrap_err();
    assert_eq!((again.kind(), again.effect()), (ErrorKind::Rejected, Effect::NotApplied));
    assert_eq!(again.response().unwrap().status(), 402);
    assert_eq!((sandbox.requests().len(), ids(&client).await), (1, none()));
}

#[tokio::test]
async fn another_request_key_profile_or_account_is_a_mismatch() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let journal = folder.journal().await;
    let client = builder().journal(journal.clone()).build().unwrap();
    let paid = pay(&client, &sandbox, "order-1", 100).send().await.unwrap();
    let key = paid.key().unwrap().clone();
    let other_key = IdempotencyKey::random();
    let other_account = builder().account("acct_2").journal(journal.clone()).build().unwrap();
    let other_profile = builder().profile(Profile::toss()).journal(journal).build().unwrap();
    let seen = sandbox.requests().len();
    for (what, request) in [
        ("body", pay(&client, &sandbox, "order-1", 250)),
        ("header", pay(&client, &sandbox, "order-1", 100).header("x-tenant", "b")),
        ("url", client.post(sandbox.url("/refunds")).operation("order-1").json(&serde_json::json!({"amount": 100}))),
        ("key", pay(&client, &sandbox, "order-1", 100).idempotency_key(&other_key)),
        ("no key", pay(&client, &sandbox, "order-1", 100).without_key()),
        ("account", pay(&other_account, &sandbox, "order-1", 100)),
        ("account of the request", pay(&client, &sandbox, "order-1", 100).account("acct_2")),
        ("profile", pay(&other_profile, &sandbox, "order-1", 100)),
    ] {
        let error = request.send().await.unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Mismatch, Effect::Applied), "{what}");
        assert_eq!(error.operation().unwrap().as_str(), "order-1");
        assert!(error.response().is_none(), "it is another request's answer");
    }
    for client in [&other_account, &other_profile] {
        assert!(client.lookup("order-1").await.unwrap().is_none());
        assert_eq!(client.resume("order-1").send().await.unwrap_err().kind(), ErrorKind::Mismatch);
    }
    // The key under another id.
    let error = pay(&client, &sandbox, "order-2", 100).idempotency_key(&key).send().await.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Mismatch, Effect::Unknown));
    let error = client
        .post(sandbox.url("/payments"))
        .idempotency_key(&key)
        .json(&serde_json::json!({"amount": 100}))
        .send()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Mismatch, "it would be its own id");
    assert_eq!(sandbox.requests().len(), seen, "nothing was sent");
    // Another order of the same members is the same request.
    let reordered = client
        .post(sandbox.url("/payments"))
        .operation("order-1")
        .header("content-type", "application/json")
        .body("{ \"amount\": 100 }");
    assert_eq!(reordered.send().await.unwrap().bytes(), paid.bytes());
}

#[tokio::test]
async fn without_an_id_the_key_is_the_id() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let client = builder().retry(hasty()).journal(folder.journal().await).build().unwrap();
    sandbox.fail_next([Fault::answer_lost()]);
    let unnamed = || client.post(sandbox.url("/payments")).body("x");
    let error = unnamed().send().await.unwrap_err();
    let id = error.operation().unwrap().clone();
    assert_eq!(id.as_str(), error.key().unwrap().as_str());
    assert_eq!(id.to_string(), format!("{}…", &id.as_str()[..8]), "printed short");
    assert_eq!(client.unfinished().await.unwrap()[0].id().to_string(), id.to_string());
    let answer = unnamed().idempotency_key(error.key().unwrap()).send().await.unwrap();
    assert!(answer.is_replay());
    let from_record = client.resume(id.as_str()).send().await.unwrap();
    assert_eq!(from_record.bytes(), answer.bytes());
    assert_eq!((sandbox.executions(), sandbox.requests().len()), (1, 2));
}

#[tokio::test]
async fn a_key_on_record_is_no_other_operations() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    for builder in [builder().journal(folder.journal().await), builder().journal(Memory::new())] {
        let is_first = AtomicBool::new(true);
        let late = move |_: &mut Parts<'_>| -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
            if is_first.swap(false, Ordering::Relaxed) { Err("no token yet".into()) } else { Ok(()) }
        };
        let client = builder.authorize(late).build().unwrap();
        let key = IdempotencyKey::random();
        let payment = || client.post(sandbox.url("/payments")).body("x").idempotency_key(&key);
        // Nothing was sent under it, and yet it may be resumed.
        assert_eq!(payment().send().await.unwrap_err().kind(), ErrorKind::Authorize);
        assert_eq!(payment().operation("order-1").send().await.unwrap_err().kind(), ErrorKind::Mismatch);
        assert_eq!(payment().send().await.unwrap().key(), Some(&key));
    }
    assert_eq!((sandbox.executions(), sandbox.requests().len()), (2, 2));
}

#[tokio::test]
async fn resolved_by_hand_is_what_was_decided() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let client = builder().retry(hasty()).journal(folder.journal().await).build().unwrap();
    sandbox.fail_next([Fault::answer_lost(), Fault::answer_lost(), Fault::status(401)]);
    for id in ["paid", "unpaid", "refused"] {
        pay(&client, &sandbox, id, 100).send().await.unwrap_err();
    }
    let refused = client.abandon("paid").await.unwrap_err();
    assert_eq!((refused.kind(), refused.effect()), (ErrorKind::Request, Effect::Unknown), "it may have been");
    client.resolve("paid", Effect::Applied, "ana", "seen at the provider, pay_7").await.unwrap();
    client.resolve("unpaid", Effect::NotApplied, "ana", "not in the statement").await.unwrap();
    client.abandon("refused").await.unwrap();
    for (id, effect) in [("paid", Effect::Applied), ("unpaid", Effect::NotApplied), ("refused", Effect::NotApplied)] {
        let error = pay(&client, &sandbox, id, 100).send().await.unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Resolved, effect), "{id}");
        let record = client.lookup(id).await.unwrap().unwrap();
        assert_eq!((record.state(), record.effect()), (RecordState::Settled, effect));
    }
    let record = client.lookup("paid").await.unwrap().unwrap();
    let Some(oncekey::engine::Entry::Resolved { by, at, .. }) = record.entries().last() else { panic!("{record:?}") };
    assert_eq!(&**by, "ana: seen at the provider, pay_7");
    assert!(at.as_millis() > 0);
    assert_eq!(ids(&client).await, none());
    assert_eq!(sandbox.requests().len(), 3);
}

#[tokio::test]
async fn a_resolution_is_refused_where_the_record_knows_better() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let client = builder().profile(Profile::stripe()).journal(folder.journal().await).build().unwrap();
    sandbox.fail_next([Fault::status(402).header("idempotent-replayed", "true")]);
    pay(&client, &sandbox, "rejected", 1).send().await.unwrap_err();
    assert_eq!(pay(&client, &sandbox, "paid", 1).send().await.unwrap().status(), 201);
    for (id, effect) in [("rejected", Effect::NotApplied), ("paid", Effect::Applied)] {
        for decided in [Effect::Applied, Effect::NotApplied, Effect::Unknown] {
            let error = client.resolve(id, decided, "ana", "").await.unwrap_err();
            assert_eq!((error.kind(), error.effect()), (ErrorKind::Request, effect), "{id} {decided}");
        }
    }
    assert_eq!(client.abandon("paid").await.unwrap_err().effect(), Effect::Applied);
    let unknown = client.resolve("nobody", Effect::Applied, "ana", "").await.unwrap_err();
    assert_eq!((unknown.kind(), unknown.effect()), (ErrorKind::Journal, Effect::Unknown));
    assert_eq!(client.resume("nobody").send().await.unwrap_err().effect(), Effect::Unknown);
}

#[tokio::test]
async fn a_key_that_is_too_old_is_not_sent_and_the_operation_is_in_doubt() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let journal = folder.journal().await;
    let lasting = builder().retry(hasty()).journal(journal.clone()).build().unwrap();
    sandbox.fail_next([Fault::status(503).retry_after("1000")]);
    pay(&lasting, &sandbox, "order-1", 1).send().await.unwrap_err();
    let brief = builder()
        .attempt_timeout(Duration::from_millis(100))
        .key_lifetime(Duration::from_millis(200))
        .journal(journal)
        .build()
        .unwrap();
    while brief.in_doubt().await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let error = pay(&brief, &sandbox, "order-1", 1).send().await.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::KeyExpired, Effect::Unknown));
    assert!(error.resume_at().is_some(), "what the server asked for");
    assert_eq!(error.key().unwrap().as_str(), brief.in_doubt().await.unwrap()[0].key().unwrap().as_str());
    assert_eq!(sandbox.requests().len(), 1);
    brief.resolve("order-1", Effect::Applied, "reconcile", "statement").await.unwrap();
}

#[tokio::test]
async fn credentials_are_brought_anew_and_nothing_else() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let client = builder().retry(hasty()).journal(folder.journal().await).build().unwrap();
    sandbox.fail_next([Fault::answer_lost(), Fault::answer_lost()]);
    let request = |token: &str| pay(&client, &sandbox, "order-1", 1).bearer_auth(token).header("x-tenant", "t1");
    request("first-token").send().await.unwrap_err();
    request("second-token").send().await.unwrap_err();
    let refused = client.resume("order-1").header("x-tenant", "t2").send().await.unwrap_err();
    assert_eq!((refused.kind(), refused.effect()), (ErrorKind::Request, Effect::Unknown));
    assert!(client.resume("order-1").bearer_auth("third-token").send().await.unwrap().is_replay());
    let seen = sandbox.requests();
    let header = |at: usize, name: &str| seen[at].headers().get(name).map(|v| v.to_str().unwrap().to_owned());
    let tokens = [0, 1, 2].map(|at| header(at, "authorization").unwrap());
    assert_eq!(tokens, ["Bearer first-token", "Bearer second-token", "Bearer third-token"]);
    for at in [1, 2] {
        assert_eq!(header(at, "x-tenant").as_deref(), Some("t1"));
        assert_eq!(header(at, "content-type"), header(0, "content-type"));
        assert_eq!(header(at, "idempotency-key"), header(0, "idempotency-key"));
        assert_eq!(seen[at].body(), seen[0].body());
    }
    assert_eq!(seen.len(), 3);
}

#[tokio::test]
async fn a_request_that_cannot_be_made_has_the_effect_on_record() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let client = builder().retry(hasty()).journal(folder.journal().await).build().unwrap();
    let bad = |id: &str| pay(&client, &sandbox, id, 1).header("x-bad", "a\nb");
    let unknown = bad("order-1").send().await.unwrap_err();
    assert_eq!((unknown.kind(), unknown.effect()), (ErrorKind::Request, Effect::NotApplied), "it was never seen");
    sandbox.fail_next([Fault::answer_lost()]);
    pay(&client, &sandbox, "order-1", 1).send().await.unwrap_err();
    let doubtful = bad("order-1").send().await.unwrap_err();
    assert_eq!((doubtful.kind(), doubtful.effect()), (ErrorKind::Request, Effect::Unknown));
    assert_eq!(doubtful.operation().unwrap().as_str(), "order-1");
    assert!(pay(&client, &sandbox, "order-1", 1).send().await.is_ok());
    assert_eq!(bad("order-1").send().await.unwrap_err().effect(), Effect::Applied);
}

/// A key lives no longer than was believed when it was drawn.
#[tokio::test]
async fn a_client_that_believes_in_longer_lives_does_not_lengthen_one() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let hour = Duration::from_secs(3600);
    let brief = builder().retry(hasty()).key_lifetime(hour).journal(folder.journal().await).build().unwrap();
    sandbox.fail_next([Fault::answer_lost()]);
    pay(&brief, &sandbox, "order-1", 1).send().await.unwrap_err();
    age(&folder, 2 * hour).await;
    let long = client(&folder).await;
    let error = long.resume("order-1").send().await.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::KeyExpired, Effect::Unknown));
    assert_eq!((sandbox.requests().len(), long.in_doubt().await.unwrap().len()), (1, 1));
}
