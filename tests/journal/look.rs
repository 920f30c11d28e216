//! Status resources and look-ups of operations on record.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use oncekey::engine::Entry;
use oncekey::journal::{Memory, Sqlite};
use oncekey::profile::Answer;
use oncekey::sandbox::{Fault, Sandbox};
use oncekey::{Client, Doubtful, Effect, ErrorKind, Found, Profile, Reconcile, RecordState};

use crate::support::{Folder, builder, pay};

fn location(answer: &Answer<'_>) -> Option<String> {
    Some(answer.headers().get("location")?.to_str().ok()?.to_owned())
}

async fn following(folder: &Folder) -> Client {
    builder().poll_with(location).journal(folder.journal().await).build().unwrap()
}

fn accepted() -> Fault {
    Fault::status(202).executing().header("location", "/status/7")
}

/// Still running, and without the URL.
fn running() -> Fault {
    Fault::status(202).json("{}")
}

fn done() -> Fault {
    Fault::status(200).json("\"done\"")
}

fn posts(sandbox: &Sandbox) -> usize {
    sandbox.requests().iter().filter(|seen| *seen.method() == http::Method::POST).count()
}

#[tokio::test]
async fn a_resumed_operation_goes_on_polling_its_status_resource() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    sandbox.fail_next([accepted(), running(), Fault::status(503), running().times(1000)]);
    let client = following(&folder).await;
    let request = pay(&client, &sandbox, "order-1", 1).deadline(Duration::from_millis(800));
    let error = request.send().await.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Exhausted, Effect::Unknown));
    drop(client);
    sandbox.clear_faults();
    sandbox.fail_next([running(), done()]);
    let client = following(&folder).await;
    assert_eq!(client.unfinished().await.unwrap().len(), 1);
    let answer = client.resume("order-1").send().await.unwrap();
    assert_eq!(answer.text(), "\"done\"");
    assert_eq!((posts(&sandbox), sandbox.executions()), (1, 1), "never sent again");
    assert_eq!(client.resume("order-1").send().await.unwrap().text(), "\"done\"");
}

/// A URL relative to the status resource's own would, after a restart, be read
/// against the operation's, and lead elsewhere.
#[tokio::test]
async fn a_resumed_operation_is_asked_after_where_it_is() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let at = |url: &str| Fault::status(202).executing().header("location", url);
    sandbox.fail_next([at("status/7"), at("8"), running().times(1000)]);
    let client = following(&folder).await;
    let request = pay(&client, &sandbox, "order-1", 1).deadline(Duration::from_millis(500));
    assert_eq!(request.send().await.unwrap_err().effect(), Effect::Unknown);
    let paths = |from: usize| sandbox.requests()[from..].iter().map(|seen| seen.path().to_owned()).collect::<Vec<_>>();
    assert_eq!(paths(1)[..2], ["/status/7", "/status/8"]);
    sandbox.clear_faults();
    sandbox.fail_next([at("8"), done()]);
    let before = sandbox.requests().len();
    assert_eq!(client.resume("order-1").send().await.unwrap().text(), "\"done\"");
    assert_eq!(paths(before), ["/status/7", "/status/8"]);
    assert_eq!(posts(&sandbox), 1);
}

#[tokio::test]
async fn a_look_that_was_cut_short_is_no_order() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    sandbox.fail_next([accepted(), Fault::stall_before_reading()]);
    let client = following(&folder).await;
    let mut sending = Box::pin(pay(&client, &sandbox, "order-1", 1).without_key().send());
    let mut looks = tokio::time::interval(Duration::from_millis(2));
    while sandbox.requests().len() < 2 {
        tokio::select! {
            sent = &mut sending => panic!("{sent:?}"),
            _ = looks.tick() => {}
        }
    }
    drop(sending);
    sandbox.clear_faults();
    sandbox.fail_next([done()]);
    let answer = client.resume("order-1").send().await.unwrap();
    assert_eq!(answer.text(), "\"done\"");
    assert_eq!(posts(&sandbox), 1, "the key, or none, is not sent a second time");
}

#[tokio::test]
async fn where_the_resource_is_not_on_record_nothing_is_sent() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    sandbox.fail_next([accepted(), running().times(1000)]);
    let journal = Sqlite::builder().store_bodies(false).create(folder.file()).await.unwrap();
    let client = builder().poll_with(location).journal(journal).build().unwrap();
    let request = || pay(&client, &sandbox, "order-1", 1).deadline(Duration::from_millis(600));
    assert_eq!(request().send().await.unwrap_err().effect(), Effect::Unknown);
    let error = request().send().await.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Pending, Effect::Unknown));
    assert_eq!(posts(&sandbox), 1);
}

#[tokio::test]
async fn what_a_look_up_found_is_on_record_with_its_evidence() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let journal = folder.journal().await;
    let looks = Arc::new(AtomicUsize::new(0));
    let reconciling = |says: Option<Found>| {
        let looks = Arc::clone(&looks);
        builder()
            .profile(Profile::stripe())
            .reconcile_with(move |_: &Doubtful<'_>| {
                looks.fetch_add(1, Ordering::Relaxed);
                says.clone().ok_or_else(|| "the books are closed".into())
            })
            .journal(journal.clone())
            .build()
            .unwrap()
    };
    let unknowing = reconciling(None);
    sandbox.fail_next([Fault::replayed(500).header("idempotent-replayed", "true")]);
    let first = pay(&unknowing, &sandbox, "order-1", 1).send().await.unwrap_err();
    assert_eq!((first.kind(), first.effect()), (ErrorKind::Unsettled, Effect::Unknown));
    let again = pay(&unknowing, &sandbox, "order-1", 1).send().await.unwrap_err();
    for error in [&first, &again] {
        assert_eq!(std::error::Error::source(error).unwrap().to_string(), "the books are closed");
    }
    assert_eq!(unknowing.in_doubt().await.unwrap().len(), 1);
    assert_eq!(again.effect(), Effect::Unknown);
    assert_eq!(looks.load(Ordering::Relaxed), 2, "looked up again when it is asked for again");
    let knowing = reconciling(Some(Found::Applied("pay_7 by metadata".into())));
    let settled = knowing.resume("order-1").send().await.unwrap_err();
    assert_eq!((settled.kind(), settled.effect()), (ErrorKind::Resolved, Effect::Applied));
    let record = knowing.lookup("order-1").await.unwrap().unwrap();
    assert_eq!((record.state(), record.effect()), (RecordState::Settled, Effect::Applied));
    let Some(Entry::Resolved { by, .. }) = record.entries().last() else { panic!("{record:?}") };
    assert_eq!(&**by, "reconcile: pay_7 by metadata");
    assert_eq!(knowing.resume("order-1").send().await.unwrap_err().kind(), ErrorKind::Resolved);
    assert_eq!(looks.load(Ordering::Relaxed), 3, "what is settled is not looked up");
    // At the end of a first run, too.
    sandbox.fail_next([Fault::replayed(500).header("idempotent-replayed", "true")]);
    let settled = pay(&knowing, &sandbox, "order-2", 1).send().await.unwrap_err();
    assert_eq!((settled.kind(), settled.effect()), (ErrorKind::Resolved, Effect::Applied));
    assert_eq!(knowing.lookup("order-2").await.unwrap().unwrap().state(), RecordState::Settled);
    assert!(knowing.unfinished().await.unwrap().is_empty() && knowing.in_doubt().await.unwrap().is_empty());
    assert_eq!(sandbox.requests().len(), 2);
}

/// Its books say one thing to the first who asks, and the other to the next.
struct Fickle(AtomicUsize);

impl Reconcile for Fickle {
    async fn reconcile(&self, _: &Doubtful<'_>) -> Result<Found, Box<dyn std::error::Error + Send + Sync>> {
        let first = self.0.fetch_add(1, Ordering::Relaxed) == 0;
        tokio::task::yield_now().await;
        Ok(if first { Found::Applied("pay_7".into()) } else { Found::NotApplied("none".into()) })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_one_look_up_settled_no_other_changes() {
    let sandbox = Sandbox::start().await.unwrap();
    for _ in 0..15 {
        let journal = Memory::new();
        let blind = builder().profile(Profile::stripe()).journal(journal.clone()).build().unwrap();
        sandbox.fail_next([Fault::replayed(500).header("idempotent-replayed", "true")]);
        assert_eq!(pay(&blind, &sandbox, "order-1", 1).send().await.unwrap_err().effect(), Effect::Unknown);
        let hook = Fickle(AtomicUsize::new(0));
        let client = builder().profile(Profile::stripe()).reconcile_with(hook).journal(journal).build().unwrap();
        let asked: Vec<_> = (0..8).map(|_| tokio::spawn(client.resume("order-1").send())).collect();
        for asked in asked {
            let error = asked.await.unwrap().unwrap_err();
            assert_eq!((error.kind(), error.effect()), (ErrorKind::Resolved, Effect::Applied));
        }
        let record = client.lookup("order-1").await.unwrap().unwrap();
        let settled = record.entries().iter().filter(|entry| matches!(entry, Entry::Resolved { .. })).count();
        assert_eq!(settled, 1, "{:?}", record.entries());
    }
}

/// A key of which nobody saw the end of the first attempt has an age all the same.
#[tokio::test]
async fn a_key_on_its_way_has_a_first_use() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let client = builder().journal(folder.journal().await).build().unwrap();
    sandbox.fail_next([Fault::stall_after_executing()]);
    let mut sending = Box::pin(pay(&client, &sandbox, "order-1", 1).send());
    let mut looks = tokio::time::interval(Duration::from_millis(2));
    while sandbox.executions() == 0 {
        tokio::select! {
            sent = &mut sending => panic!("{sent:?}"),
            _ = looks.tick() => {}
        }
    }
    drop(sending);
    let record = client.lookup("order-1").await.unwrap().unwrap();
    assert_eq!((record.attempts(), record.effect()), (1, Effect::Unknown));
    assert!(record.key_expires_at().is_some());
    // Past its life it is not sent, by a client that has no record of it either.
    let brief = Client::builder()
        .attempt_timeout(Duration::from_millis(10))
        .key_lifetime(Duration::from_millis(20))
        .build()
        .unwrap();
    while record.age() < Duration::from_millis(30) {
        looks.tick().await;
    }
    let sent = brief.post(sandbox.url("/payments")).idempotency_key(record.key().unwrap()).body("x").send().await;
    let error = sent.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::KeyExpired, Effect::Unknown));
    assert_eq!(sandbox.requests().len(), 1);
}
