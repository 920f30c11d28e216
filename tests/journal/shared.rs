//! One open journal and many who use it: callers that give up, others that
//! hold the lock, prunes, and a close that nobody waits for.

#![allow(clippy::disallowed_methods)] // how long a call waits is what is looked at

use std::task::Poll;
use std::time::Duration;

use oncekey::OperationId;
use oncekey::engine::Owner;
use oncekey::journal::{Journal, JournalErrorKind, Status};
use oncekey::sandbox::{Fault, Sandbox};
use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Executor, Row};

use crate::support::{Folder, builder, client, pay};

const SOON: Duration = Duration::from_millis(100);

#[tokio::test]
async fn what_one_gave_up_is_not_taken_from_the_next() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let (client, elsewhere) = (client(&folder).await, folder.journal().await);
    sandbox.fail_next([Fault::stall_after_executing()]);
    let mut other = folder.raw().await;
    other.execute("BEGIN IMMEDIATE").await.unwrap();
    let given_up = pay(&client, &sandbox, "order-1", 1).send();
    assert!(tokio::time::timeout(SOON, given_up).await.is_err());
    let mut sending = Box::pin(pay(&client, &sandbox, "order-1", 1).send());
    assert!(tokio::time::timeout(SOON, &mut sending).await.is_err());
    // Now the end of the one and the begin of the other share a transaction.
    other.execute("ROLLBACK").await.unwrap();
    let mut looks = tokio::time::interval(Duration::from_millis(2));
    while sandbox.executions() == 0 {
        tokio::select! {
            sent = &mut sending => panic!("{sent:?}"),
            _ = looks.tick() => {}
        }
    }
    let stored = elsewhere.load(&OperationId::from("order-1")).await.unwrap().unwrap();
    assert!(matches!(stored.status(), Status::Running(_)), "{:?}", stored.status());
}

#[tokio::test]
async fn a_lock_that_is_never_given_back_holds_up_no_end() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let (journal, other) = (folder.journal().await, &mut folder.raw().await);
    let client = builder().journal(journal.clone()).build().unwrap();
    sandbox.fail_next([Fault::stall_after_executing()]);
    let mut sending = Box::pin(pay(&client, &sandbox, "order-1", 1).send());
    while sandbox.executions() == 0 {
        assert!(tokio::time::timeout(Duration::from_millis(2), &mut sending).await.is_err());
    }
    journal.flush(Duration::from_secs(10)).await.unwrap();
    other.execute("BEGIN IMMEDIATE").await.unwrap();
    let given_up = journal.insert(crate::files::operation("given up"), Duration::ZERO).await.unwrap_err();
    assert_eq!(given_up.kind(), JournalErrorKind::Locked);
    drop(sending);
    let (done, is_done) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        drop((client, journal));
        let _ = done.send(());
    });
    let ended = tokio::time::timeout(Duration::from_secs(5), is_done).await;
    other.execute("ROLLBACK").await.unwrap();
    ended.expect("it hangs").unwrap();
    // Its owner is gone, and so what it worked on is free.
    let elsewhere = builder().journal(folder.journal().await).build().unwrap();
    assert_eq!(elsewhere.unfinished().await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_is_given_up_while_the_file_is_locked_is_free_afterwards() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let (client, elsewhere) = (client(&folder).await, client(&folder).await);
    sandbox.fail_next([Fault::stall_after_executing()]);
    let mut sending = Box::pin(pay(&client, &sandbox, "order-1", 1).send());
    while sandbox.executions() == 0 {
        assert!(tokio::time::timeout(Duration::from_millis(2), &mut sending).await.is_err());
    }
    let mut other = folder.raw().await;
    other.execute("BEGIN IMMEDIATE").await.unwrap();
    drop(sending);
    tokio::time::sleep(SOON).await;
    assert!(elsewhere.unfinished().await.unwrap().is_empty());
    other.execute("ROLLBACK").await.unwrap();
    let again = pay(&elsewhere, &sandbox, "order-1", 1).send().await.unwrap();
    assert_eq!((again.is_replay(), sandbox.executions()), (true, 1));
}

#[tokio::test]
async fn a_close_that_nobody_waits_for_gives_up_its_owner() {
    let folder = Folder::new();
    let (journal, elsewhere) = (folder.journal().await, folder.journal().await);
    let mut closing = Box::pin(journal.close());
    let begun = std::future::poll_fn(|context| Poll::Ready(closing.as_mut().poll(context).is_pending())).await;
    assert!(begun);
    drop(closing);
    let gone = async {
        while elsewhere.is_alive(journal.owner()).await.unwrap() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone).await.expect("it is closed, and seems to be alive");
    let id = OperationId::from("order-1");
    for error in [journal.load(&id).await.unwrap_err(), journal.is_alive(journal.owner()).await.unwrap_err()] {
        assert_eq!(error.kind(), JournalErrorKind::Closed);
    }
}

#[tokio::test]
async fn two_who_look_at_once_find_the_dead_dead() {
    let folder = Folder::new();
    let journals = [folder.journal().await, folder.journal().await];
    let dead = Owner::new(7);
    // As one leaves it that is killed.
    std::fs::write(folder.path().join(format!("payments.db.owners/{:032x}", dead.id())), "").unwrap();
    let looking = journals.map(|journal| {
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                for _ in 0..10_000 {
                    assert!(!journal.is_alive(dead).await.unwrap());
                }
            });
        })
    });
    for looking in looking {
        looking.join().unwrap();
    }
}

#[tokio::test]
async fn the_wait_for_a_lock_counts_once_against_the_deadline() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let client = client(&folder).await;
    sandbox.fail_next([Fault::status(503).times(3)]);
    assert!(pay(&client, &sandbox, "order-1", 1).send().await.is_err());
    let mut other = folder.raw().await;
    other.execute("BEGIN IMMEDIATE").await.unwrap();
    let again = pay(&client, &sandbox, "order-1", 1).deadline(Duration::from_millis(1500)).send();
    let (paid, ()) = tokio::join!(again, async {
        tokio::time::sleep(Duration::from_millis(800)).await;
        other.execute("ROLLBACK").await.unwrap();
    });
    assert_eq!((paid.unwrap().attempts().len(), sandbox.executions()), (1, 1));
}

#[tokio::test]
async fn a_payment_does_not_wait_for_a_prune() {
    const ROWS: i64 = 60_000;
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let journal = folder.journal().await;
    let client = builder().journal(journal.clone()).build().unwrap();
    let mut other = folder.raw().await;
    let settled = "
        BEGIN;
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
        INSERT INTO op SELECT i, 'old' || i, randomblob(16), 'verifika', 1, '', 1, 'key' || i, 1, zeroblob(32), 0 FROM n;
        INSERT INTO request SELECT seq, 0, zeroblob(500) FROM op;
        COMMIT;
    ";
    other.execute(settled).await.unwrap();
    let pruning = tokio::spawn(async move { journal.prune(Duration::from_secs(60)).await });
    let left = async |other: &mut SqliteConnection| -> i64 {
        other.fetch_one("SELECT count(*) FROM request").await.unwrap().get(0)
    };
    while left(&mut other).await == ROWS {
        tokio::task::yield_now().await;
    }
    for number in 0..3 {
        let _ = pay(&client, &sandbox, &format!("order-{number}"), 1).send().await.unwrap();
    }
    assert!(!pruning.is_finished(), "they waited");
    assert_eq!(pruning.await.unwrap().unwrap(), 60_000);
    other.close().await.unwrap();
}
