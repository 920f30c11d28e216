//! What is known of an operation whose request and answer are no longer kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use oncekey::journal::{Journal, Memory, Sqlite};
use oncekey::sandbox::{Fault, Sandbox};
use oncekey::{Client, ClientBuilder, Effect, ErrorKind, Parts, RecordState};

use crate::support::{Folder, builder, pay};

/// Its client and the journal itself, in a file and in memory.
async fn journals(folder: &Folder) -> [(Client, Box<dyn Journal>); 2] {
    let (file, memory) = (folder.journal().await, Memory::new());
    let client = |builder: ClientBuilder| builder.build().unwrap();
    [
        (client(builder().journal(file.clone())), Box::new(file)),
        (client(builder().journal(memory.clone())), Box::new(memory)),
    ]
}

#[tokio::test]
async fn it_may_be_asked_for_any_number_of_times() {
    let folder = Folder::new();
    for (client, journal) in journals(&folder).await {
        let sandbox = Sandbox::start().await.unwrap();
        let paid = pay(&client, &sandbox, "order-1", 1).send().await.unwrap();
        journal.prune(Duration::ZERO).await.unwrap();
        // Asked for again, the server does not give its answer at once.
        sandbox.fail_next([Fault::status(503).times(3)]);
        let error = pay(&client, &sandbox, "order-1", 1).send().await.unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Exhausted, Effect::Applied));
        let record = client.lookup("order-1").await.unwrap().unwrap();
        assert_eq!((record.state(), record.effect()), (RecordState::Unfinished, Effect::Applied));
        assert_eq!(client.unfinished().await.unwrap().len(), 1);
        let replay = pay(&client, &sandbox, "order-1", 1).send().await.unwrap();
        assert_eq!((replay.is_replay(), replay.bytes()), (true, paid.bytes()));
        // And now it is kept again.
        let kept = pay(&client, &sandbox, "order-1", 1).send().await.unwrap();
        assert_eq!((kept.attempts().len(), kept.bytes()), (0, paid.bytes()));
        assert_eq!(client.lookup("order-1").await.unwrap().unwrap().state(), RecordState::Settled);
        assert_eq!((sandbox.executions(), sandbox.requests().len()), (1, 5));
    }
}

#[tokio::test]
async fn it_may_be_taken_up_in_vain_and_then_decided_by_hand() {
    let folder = Folder::new();
    let (file, memory) = (folder.journal().await, Memory::new());
    let journals: [(ClientBuilder, &dyn Journal); 2] =
        [(builder().journal(file.clone()), &file), (builder().journal(memory.clone()), &memory)];
    for (builder, journal) in journals {
        let sandbox = Sandbox::start().await.unwrap();
        let has_token = Arc::new(AtomicBool::new(true));
        let token = Arc::clone(&has_token);
        let authorize = move |_: &mut Parts<'_>| -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
            if token.load(Ordering::Relaxed) { Ok(()) } else { Err("no token".into()) }
        };
        let client = builder.authorize(authorize).build().unwrap();
        let _ = pay(&client, &sandbox, "order-1", 1).send().await.unwrap();
        journal.prune(Duration::ZERO).await.unwrap();
        has_token.store(false, Ordering::Relaxed);
        let error = pay(&client, &sandbox, "order-1", 1).send().await.unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Authorize, Effect::Applied));
        client.resolve("order-1", Effect::Applied, "ana", "pay_1 in the statement").await.unwrap();
        let record = client.lookup("order-1").await.unwrap().unwrap();
        assert_eq!((record.state(), record.effect()), (RecordState::Settled, Effect::Applied));
        let again = pay(&client, &sandbox, "order-1", 1).send().await.unwrap_err();
        assert_eq!((again.kind(), again.effect()), (ErrorKind::Resolved, Effect::Applied));
    }
}

#[tokio::test]
async fn without_answers_it_may_be_looked_up_however_often_it_was_asked_for() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let journal = Sqlite::builder().store_bodies(false).create(folder.file()).await.unwrap();
    let client = builder().journal(journal).build().unwrap();
    for _ in 0..3 {
        let _ = pay(&client, &sandbox, "order-1", 1).send().await.unwrap();
        let record = client.lookup("order-1").await.unwrap().unwrap();
        assert_eq!((record.state(), record.effect()), (RecordState::Settled, Effect::Applied));
    }
    assert_eq!(sandbox.executions(), 1);
}

#[tokio::test]
async fn a_corrected_request_stays_the_operations() {
    let folder = Folder::new();
    for (client, journal) in journals(&folder).await {
        let sandbox = Sandbox::start().await.unwrap();
        sandbox.fail_next([Fault::status(422)]);
        let refused = pay(&client, &sandbox, "order-1", 1).send().await.unwrap_err();
        assert_eq!(refused.effect(), Effect::NotApplied);
        let paid = pay(&client, &sandbox, "order-1", 2).send().await.unwrap();
        journal.prune(Duration::ZERO).await.unwrap();
        let old = pay(&client, &sandbox, "order-1", 1).send().await.unwrap_err();
        assert_eq!((old.kind(), old.effect()), (ErrorKind::Mismatch, Effect::Applied));
        let again = pay(&client, &sandbox, "order-1", 2).send().await.unwrap();
        assert_eq!((again.is_replay(), again.bytes(), sandbox.requests().len()), (true, paid.bytes(), 3));
    }
}

/// Two programs may open one file, one that keeps answers and one that does not.
#[tokio::test]
async fn an_answer_that_is_not_kept_leaves_no_older_one_in_its_place() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let keeps = builder().journal(folder.journal().await).build().unwrap();
    let bare = Sqlite::builder().store_bodies(false).open(folder.file()).await.unwrap();
    let keeps_none = builder().journal(bare).build().unwrap();
    sandbox.fail_next([Fault::status(503).times(3)]);
    let error = pay(&keeps, &sandbox, "order-1", 1).send().await.unwrap_err();
    assert_eq!(error.effect(), Effect::Unknown);
    let paid = pay(&keeps_none, &sandbox, "order-1", 1).send().await.unwrap();
    let again = pay(&keeps, &sandbox, "order-1", 1).send().await.unwrap();
    assert_eq!((again.status(), again.bytes()), (paid.status(), paid.bytes()));
}
