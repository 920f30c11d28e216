//! Public fault reports that need a journal, on a real file. The others are
//! played in `tests/cases`, from where the reports come.
#![allow(clippy::disallowed_methods)] // a caller's own timeout drops the future

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use oncekey::engine::{Entry, Time};
use oncekey::journal::{Append, JournalError, JournalErrorKind, codec};
use oncekey::sandbox::{Fault, Sandbox};
use oncekey::{Client, Effect, Error, ErrorKind, IdempotencyKey, RecordState, Retry};
use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Executor, Row};

use crate::support::{Folder, Watched, builder, client, pay};

fn one_attempt() -> Retry {
    Retry::default().max_attempts(1).base_delay(Duration::ZERO)
}

async fn hasty(folder: &Folder) -> Client {
    builder().retry(one_attempt()).journal(folder.journal().await).build().unwrap()
}

#[tokio::test]
async fn key_03_one_id_with_another_body() {
    for variant in ["a: first operation already ended 201", "b: first still unknown", "c: after a restart"] {
        let folder = Folder::new();
        let sandbox = Sandbox::start().await.unwrap();
        let mut client = hasty(&folder).await;
        if !variant.starts_with('a') {
            sandbox.fail_next([Fault::answer_lost()]);
        }
        let first = pay(&client, &sandbox, "op-7", 100).send().await;
        let effect = first.as_ref().map_or_else(Error::effect, |_| Effect::Applied);
        assert_eq!(effect, if first.is_ok() { Effect::Applied } else { Effect::Unknown });
        if variant.starts_with('c') {
            drop(client);
            client = hasty(&folder).await;
        }
        let error = pay(&client, &sandbox, "op-7", 250).send().await.unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Mismatch, effect), "{variant}");
        assert_eq!(error.operation().unwrap().as_str(), "op-7");
        assert_eq!((sandbox.executions(), sandbox.requests().len()), (1, 1), "{variant}: nothing left");
    }
}

// CRASH-01 is in `kills`; its PostgreSQL variant, and CRASH-03's, have no back end yet.

#[tokio::test]
async fn crash_02_an_abandoned_operation_is_never_resumed() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let client = hasty(&folder).await;
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nowhere = client.post(format!("http://127.0.0.1:{port}/payments")).operation("A").body("x");
    assert_eq!(nowhere.send().await.unwrap_err().effect(), Effect::NotApplied);
    client.abandon("A").await.unwrap();
    assert_eq!(pay(&client, &sandbox, "B", 100).send().await.unwrap().status(), 201);
    sandbox.fail_next([Fault::answer_lost()]);
    pay(&client, &sandbox, "C", 100).send().await.unwrap_err();
    assert_eq!(client.abandon("C").await.unwrap_err().effect(), Effect::Unknown, "it may have been carried out");
    drop(client);
    let client = hasty(&folder).await;
    let mut ends = client.resume_all().start().await.unwrap();
    assert_eq!(ends.next().await.unwrap().0.as_str(), "C");
    assert!(ends.next().await.is_none(), "nothing is sent for A");
    assert_eq!(client.resume("A").send().await.unwrap_err().kind(), ErrorKind::Resolved);
    assert_eq!(sandbox.executions(), 2);
}

/// Writes that have to do with the end of an attempt fail, as on a file system
/// that was remounted read-only; the disk that is full is a real one, in `files`.
fn cause(error: &Error) -> Option<JournalErrorKind> {
    error.source().and_then(|cause| cause.downcast_ref::<JournalError>()).map(JournalError::kind)
}

fn read_only(_: &Append) -> Result<(), JournalError> {
    Err(JournalError::new(JournalErrorKind::ReadOnly, "the file became read-only"))
}

#[tokio::test]
async fn crash_03_the_charge_succeeds_and_cannot_be_written_down() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let failing = Watched(folder.journal().await, read_only);
    let client = builder().retry(one_attempt()).journal(failing).build().unwrap();
    let first = pay(&client, &sandbox, "order-1", 100).send().await.unwrap();
    assert_eq!(first.recorded().unwrap_err().kind(), JournalErrorKind::ReadOnly);
    let second = pay(&client, &sandbox, "order-1", 100).send().await.unwrap_err();
    assert_eq!((second.kind(), second.effect()), (ErrorKind::Journal, Effect::Unknown), "never a plain failure");
    assert_eq!(sandbox.requests().len(), 1, "and nothing is sent that is not on record");
    // What ends without effect must not be called so for certain, if that is not on record.
    sandbox.fail_next([Fault::status(422)]);
    let refused = pay(&client, &sandbox, "order-2", 100).send().await.unwrap_err();
    assert_eq!((refused.kind(), refused.effect()), (ErrorKind::Journal, Effect::Unknown));
    drop(client);
    let mended = hasty(&folder).await;
    let replay = mended.resume("order-1").send().await.unwrap();
    assert_eq!((replay.is_replay(), replay.bytes(), replay.key()), (true, first.bytes(), first.key()));
    assert_eq!(sandbox.executions(), 1);
}

#[tokio::test]
async fn crash_04_another_connection_holds_the_lock() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let client = client(&folder).await;
    let mut other = folder.raw().await;
    other.execute("BEGIN IMMEDIATE").await.unwrap();
    let began = std::time::Instant::now();
    let brief = pay(&client, &sandbox, "brief", 1).deadline(Duration::from_secs(1)).send().await.unwrap_err();
    assert_eq!((brief.kind(), brief.effect()), (ErrorKind::Journal, Effect::NotApplied));
    assert!(std::error::Error::source(&brief).unwrap().to_string().contains("locked"));
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    let (patient, ()) =
        tokio::join!(pay(&client, &sandbox, "patient", 1).deadline(Duration::from_secs(10)).send(), async {
            tokio::time::sleep(Duration::from_millis(700)).await;
            assert!(sandbox.requests().is_empty(), "never a request without a row");
            other.execute("COMMIT").await.unwrap();
        });
    assert_eq!(patient.unwrap().status(), 201);
    assert_eq!(sandbox.requests().len(), 1);
    assert!(client.lookup("brief").await.unwrap().is_none(), "nothing of it is on record");
}

// CRASH-06 is `processes`.

#[tokio::test]
async fn cancel_01_the_future_is_dropped_after_the_request_left() {
    let folder = Folder::new();
    let sandbox = Sandbox::builder().work(Duration::from_millis(100)).start().await.unwrap();
    let client = client(&folder).await;
    let mut sending = Box::pin(pay(&client, &sandbox, "order-1", 1).send());
    let mut looks = tokio::time::interval(Duration::from_millis(2));
    while sandbox.at_work() == 0 {
        tokio::select! {
            sent = &mut sending => panic!("{sent:?}"),
            _ = looks.tick() => {}
        }
    }
    drop(sending);
    let open = client.unfinished().await.unwrap();
    assert_eq!((open.len(), open[0].effect()), (1, Effect::Unknown));
    let answer = pay(&client, &sandbox, "order-1", 1).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), sandbox.executions()), (201, 1));
    let seen = sandbox.requests();
    assert!(seen.iter().all(|request| request.key() == seen[0].key() && request.body() == seen[0].body()));
}

/// Moves all that happened to an operation into the past, as if it had waited
/// there.
pub(crate) async fn age(folder: &Folder, by: Duration) {
    let mut file = folder.raw().await;
    let rows = file.fetch_all("SELECT op, pos, data FROM entry").await.unwrap();
    let earlier = |time: Time| Time::from_millis(time.as_millis() - u64::try_from(by.as_millis()).unwrap());
    for row in rows {
        let entry = match codec::decode_entry(row.get(2)).unwrap() {
            Entry::Created { at, key, method, gone_is_done } => {
                Entry::Created { at: earlier(at), key, method, gone_is_done }
            }
            Entry::Resumed { owner, at } => Entry::Resumed { owner, at: earlier(at) },
            Entry::Started { attempt, kind, timeout, at } => Entry::Started { attempt, kind, timeout, at: earlier(at) },
            Entry::Ended { attempt, verdict, at, next_at } => {
                Entry::Ended { attempt, verdict, at: earlier(at), next_at: next_at.map(earlier) }
            }
            Entry::Interrupted { attempt, at } => Entry::Interrupted { attempt, at: earlier(at) },
            Entry::Stopped { reason, at } => Entry::Stopped { reason, at: earlier(at) },
            other => panic!("{other:?}"),
        };
        sqlx::query("UPDATE entry SET data = ? WHERE op = ? AND pos = ?")
            .bind(codec::encode_entry(&entry))
            .bind(row.get::<i64, _>(0))
            .bind(row.get::<i64, _>(1))
            .execute(&mut file)
            .await
            .unwrap();
    }
    file.close().await.unwrap();
}

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn clock_01_the_servers_memory_is_the_keys_life() {
    for (after, sent) in [(HOUR * 23, true), (HOUR * 24 + Duration::from_secs(1), false)] {
        let folder = Folder::new();
        let sandbox = Sandbox::start().await.unwrap();
        let client = hasty(&folder).await;
        sandbox.fail_next([Fault::answer_lost()]);
        let key = pay(&client, &sandbox, "order-1", 1).send().await.unwrap_err().key().unwrap().clone();
        age(&folder, after).await;
        sandbox.advance(after);
        match client.resume("order-1").send().await {
            Ok(answer) => assert!(sent && answer.is_replay(), "{after:?}"),
            Err(error) => {
                assert!(!sent, "{error}");
                assert_eq!((error.kind(), error.effect()), (ErrorKind::KeyExpired, Effect::Unknown));
                assert_eq!(error.key(), Some(&key), "still on record");
                assert_eq!(client.in_doubt().await.unwrap().len(), 1);
            }
        }
        assert_eq!((sandbox.executions(), sandbox.requests().len()), (1, if sent { 2 } else { 1 }));
    }
}

#[tokio::test]
async fn clock_01_no_request_after_the_window_even_if_the_server_asks_for_it() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let client = hasty(&folder).await;
    sandbox.fail_next([Fault::answer_lost()]);
    pay(&client, &sandbox, "order-1", 1).send().await.unwrap_err();
    // The margin, half an hour, and the attempt's own time are kept free.
    age(&folder, HOUR * 23 + Duration::from_secs(29 * 60)).await;
    sandbox.fail_next([Fault::status(503).retry_after("120")]);
    let patient = builder().deadline(HOUR).journal(folder.journal().await).build().unwrap();
    let began = std::time::Instant::now();
    let error = patient.resume("order-1").send().await.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::KeyExpired, Effect::Unknown));
    assert!(began.elapsed() < Duration::from_secs(5), "it stops now");
    assert_eq!(sandbox.requests().len(), 2);
}

/// A clock that went back further than the margin: the key's age is unknown.
#[tokio::test]
async fn clock_02_a_key_of_unknown_age_is_not_sent() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let client = hasty(&folder).await;
    sandbox.fail_next([Fault::answer_lost(), Fault::answer_lost()]);
    pay(&client, &sandbox, "order-1", 1).send().await.unwrap_err();
    // A little ahead of the clock: its own time goes on from there, and the deadline still ends it.
    let mut file = folder.raw().await;
    let ahead = async |file: &mut SqliteConnection, seconds: u64| {
        let row = file.fetch_one("SELECT data FROM entry WHERE pos = 3").await.unwrap();
        let Entry::Ended { attempt, verdict, at, .. } = codec::decode_entry(row.get(0)).unwrap() else { panic!() };
        let at = at.after(Duration::from_secs(seconds));
        let entry = codec::encode_entry(&Entry::Ended { attempt, verdict, at, next_at: Some(at) });
        sqlx::query("UPDATE entry SET data = ? WHERE pos = 3").bind(entry).execute(file).await.unwrap();
    };
    file.execute("DELETE FROM entry WHERE pos > 3").await.unwrap();
    ahead(&mut file, 600).await;
    sandbox.clear_faults();
    sandbox.fail_next([Fault::status(503).times(10_000)]);
    let often = Retry::default().max_attempts(10_000).base_delay(Duration::ZERO);
    let patient = builder().retry(often).journal(folder.journal().await).build().unwrap();
    let began = std::time::Instant::now();
    let error = patient.resume("order-1").deadline(Duration::from_millis(400)).send().await.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Exhausted, Effect::Unknown));
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert!(error.attempts().len() < 10_000, "the deadline ended it");
    let sent = sandbox.requests().len();
    drop(patient);
    file.execute("DELETE FROM entry WHERE pos > 3").await.unwrap();
    ahead(&mut file, 3600).await;
    let error = client.resume("order-1").send().await.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::KeyExpired, Effect::Unknown));
    assert_eq!(sandbox.requests().len(), sent, "nothing is sent");
}

#[tokio::test]
async fn time_03_the_row_stays_open() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let client = client(&folder).await;
    sandbox.fail_next([Fault::status(503).retry_after("5")]);
    let request = pay(&client, &sandbox, "order-1", 1).deadline(Duration::from_secs(1));
    let error = request.send().await.unwrap_err();
    let record = client.lookup("order-1").await.unwrap().unwrap();
    assert_eq!((record.state(), record.resume_at()), (RecordState::Unfinished, error.resume_at()));
    assert_eq!(record.last_answer().unwrap().status(), 503);
    let mut due = client.resume_all().start().await.unwrap();
    assert!(due.next().await.is_none(), "it is not due yet");
    assert_eq!(sandbox.requests().len(), 1);
}

#[tokio::test]
async fn busy_02_resume_goes_on_polling_under_the_same_key() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let client = client(&folder).await;
    sandbox.fail_next([Fault::answer_lost(), Fault::in_progress().times(3).retry_after("1")]);
    let request = pay(&client, &sandbox, "order-1", 1).deadline(Duration::from_millis(500));
    let error = request.send().await.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Exhausted, Effect::Unknown));
    sandbox.clear_faults();
    let answer = client.resume("order-1").send().await.unwrap();
    assert!(answer.is_replay());
    assert_eq!(answer.key(), error.key());
    assert_eq!(sandbox.executions(), 1);
}

#[tokio::test]
async fn class_02_a_401_in_doubt_is_resumable_and_a_lone_one_re_openable() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let client = client(&folder).await;
    sandbox.fail_next([Fault::answer_lost(), Fault::status(401)]);
    let doubtful = pay(&client, &sandbox, "order-1", 1).bearer_auth("expired").send().await.unwrap_err();
    assert_eq!((doubtful.kind(), doubtful.effect()), (ErrorKind::Refused, Effect::Unknown));
    assert_eq!(client.unfinished().await.unwrap().len(), 1);
    assert!(client.resume("order-1").bearer_auth("fresh").send().await.unwrap().is_replay());
    sandbox.fail_next([Fault::status(401)]);
    let lone = pay(&client, &sandbox, "order-2", 1).bearer_auth("expired").send().await.unwrap_err();
    assert_eq!(lone.effect(), Effect::NotApplied);
    let paid = pay(&client, &sandbox, "order-2", 1).bearer_auth("fresh").send().await.unwrap();
    assert_eq!(paid.key(), lone.key());
    assert_eq!(sandbox.executions(), 2);
}

/// What the log of a resumed operation counts, and what it does not.
#[tokio::test]
async fn a_key_of_the_callers_own_is_resumed_in_doubt() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let client = client(&folder).await;
    let key = IdempotencyKey::parse("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506").unwrap();
    sandbox.fail_next([Fault::status(401)]);
    let refused = pay(&client, &sandbox, "order-1", 1).idempotency_key(&key).send().await.unwrap_err();
    assert_eq!(refused.effect(), Effect::Unknown, "it may have been sent before");
    let paid = pay(&client, &sandbox, "order-1", 1).idempotency_key(&key).send().await.unwrap();
    assert_eq!(paid.key(), Some(&key));
}

/// The retry of what was never sent cannot be written down: it is on record as
/// open, and whoever resumes it pays.
/// What asks again finds something on record, and cannot take it up.
#[tokio::test]
async fn what_cannot_be_taken_up_has_the_effect_on_record_if_that_is_certain() {
    use Effect::{Applied, NotApplied, Unknown};
    let sandbox = Sandbox::start().await.unwrap();
    for (first, is_unclear, effect) in [
        (Fault::status(422), false, NotApplied),
        (Fault::status(422), true, Unknown),
        (Fault::answer_lost(), false, Unknown),
        (Fault::answer_lost(), true, Unknown),
        (Fault::status(201), true, Applied),
    ] {
        let folder = Folder::new();
        let is_broken = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_broken);
        let journal = folder.journal().await;
        let watched = Watched(journal.clone(), move |_: &Append| match (flag.load(Ordering::Relaxed), is_unclear) {
            (false, _) => Ok(()),
            (true, false) => Err(JournalError::new(JournalErrorKind::Full, "no room")),
            (true, true) => Err(JournalError::new(JournalErrorKind::Full, "no room").unclear()),
        });
        let client = builder().retry(one_attempt()).journal(watched).build().unwrap();
        sandbox.fail_next([first]);
        let _ = pay(&client, &sandbox, "order-1", 100).send().await;
        // Its answer is no longer there, so that it is asked for again.
        journal.prune(Duration::ZERO).await.unwrap();
        let seen = sandbox.requests().len();
        is_broken.store(true, Ordering::Relaxed);
        let error = pay(&client, &sandbox, "order-1", 100).send().await.unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Journal, effect), "{error}");
        assert_eq!((cause(&error), sandbox.requests().len()), (Some(JournalErrorKind::Full), seen));
    }
}

#[tokio::test]
async fn what_somebody_else_took_up_meanwhile_is_looked_at_anew() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let is_late = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_late);
    let watched = Watched(folder.journal().await, move |_: &Append| match flag.swap(false, Ordering::Relaxed) {
        false => Ok(()),
        true => Err(JournalError::new(JournalErrorKind::Conflict, "somebody else was faster")),
    });
    let client = builder().retry(one_attempt()).journal(watched).build().unwrap();
    sandbox.fail_next([Fault::answer_lost()]);
    let _ = pay(&client, &sandbox, "order-1", 100).send().await.unwrap_err();
    is_late.store(true, Ordering::Relaxed);
    assert!(client.resume("order-1").send().await.unwrap().is_replay());
    assert!(!is_late.load(Ordering::Relaxed));
    assert_eq!((sandbox.executions(), sandbox.requests().len()), (1, 2));
}

#[tokio::test]
async fn what_is_open_on_record_is_not_called_off() {
    let folder = Folder::new();
    let failing = Watched(folder.journal().await, read_only);
    let client = builder().journal(failing).build().unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nowhere = client.post(format!("http://127.0.0.1:{port}/payments")).operation("order-1").body("x");
    let error = nowhere.send().await.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Journal, Effect::Unknown));
    assert_eq!(client.unfinished().await.unwrap().len(), 1, "it may be resumed");
    let undecided = client.resolve("order-1", Effect::NotApplied, "ana", "no such payment").await.unwrap_err();
    assert_eq!((undecided.kind(), cause(&undecided)), (ErrorKind::Journal, Some(JournalErrorKind::ReadOnly)));
}
