//! What is SQLite's own: locks, owners, durability, faults, secrets.
#![allow(clippy::disallowed_methods)] // how long a call waits is what is looked at

use std::sync::{Arc, Mutex};
use std::time::Duration;

use oncekey::engine::{Entry, KeyOrigin, MethodKind, Time};
use oncekey::journal::{
    Append, Durability, Fingerprint, Identity, Journal, JournalErrorKind, NewOperation, Scope, Seal, Sqlite, Status,
    StoredBody, StoredRequest,
};
use oncekey::sandbox::{Fault, Sandbox};
use oncekey::{Effect, ErrorKind, OperationId, Retry};
use sha2::{Digest, Sha256};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqlitePool, SqlitePoolOptions};
use sqlx::{Connection, Executor, Row};

use crate::support::{Folder, Watched, builder, client, pay};

/// A connection of somebody else's.
async fn number(connection: &mut SqliteConnection, sql: &'static str) -> i64 {
    connection.fetch_one(sql).await.unwrap().get(0)
}

pub(crate) fn operation(id: &str) -> NewOperation {
    let identity = Identity::new(OperationId::from(id), Scope::new("verifika", ""), Fingerprint::from_bytes([1; 32]))
        .with_key(Some(id.into()), Duration::from_secs(60));
    let url = "https://api.example/pay".parse().unwrap();
    let request = StoredRequest::new(http::Method::POST, url, Vec::new(), StoredBody::None);
    let created = Entry::Created {
        at: Time::from_millis(1),
        key: KeyOrigin::Drawn,
        method: MethodKind::Other,
        gone_is_done: false,
    };
    NewOperation::new(identity, request, vec![created], Status::Open)
}

fn resumed(journal: &Sqlite, id: &str, position: usize) -> Append {
    let entry = Entry::Resumed { owner: journal.owner(), at: Time::from_millis(2) };
    Append::new(OperationId::from(id), position, vec![entry], Status::Open)
}

const PATIENCE: Duration = Duration::from_secs(10);

#[tokio::test]
async fn every_process_sees_at_once_what_was_written() {
    let folder = Folder::new();
    let (one, other) = (folder.journal().await, folder.journal().await);
    assert_ne!(one.owner(), other.owner());
    assert_eq!(one.fingerprint_key(), other.fingerprint_key());
    one.insert(operation("a"), PATIENCE).await.unwrap();
    for position in 1..50 {
        let writer = if position % 2 == 0 { &one } else { &other };
        let append = resumed(writer, "a", position).with_durability(Durability::Visible);
        writer.append(append, PATIENCE).await.unwrap();
        let reader = if position % 3 == 0 { &one } else { &other };
        assert_eq!(reader.load(&OperationId::from("a")).await.unwrap().unwrap().entries().len(), position + 1);
    }
}

#[tokio::test]
async fn what_only_has_to_be_visible_is_flushed_soon_and_on_close() {
    let folder = Folder::new();
    let journal = folder.journal().await;
    journal.insert(operation("a"), PATIENCE).await.unwrap();
    let mut other = folder.raw().await;
    let flushes = "SELECT value FROM meta WHERE name = 'flush'";
    let before = number(&mut other, flushes).await;
    let soon = |position| resumed(&journal, "a", position).with_durability(Durability::Visible);
    journal.append(soon(1), PATIENCE).await.unwrap();
    let mut looks = tokio::time::interval(Duration::from_millis(10));
    let soon_enough = async {
        while number(&mut other, flushes).await == before {
            looks.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, soon_enough).await.expect("it is flushed after 100 ms");
    journal.append(soon(2), PATIENCE).await.unwrap();
    journal.flush(PATIENCE).await.unwrap();
    assert_eq!(number(&mut other, flushes).await, before + 2);
    journal.flush(PATIENCE).await.unwrap();
    journal.append(resumed(&journal, "a", 3), PATIENCE).await.unwrap();
    assert_eq!(number(&mut other, flushes).await, before + 2, "there was nothing left to flush");
    journal.append(soon(4), PATIENCE).await.unwrap();
    journal.close().await.unwrap();
    assert_eq!(number(&mut other, flushes).await, before + 3);
}

#[tokio::test]
async fn a_locked_file_is_waited_for_and_what_was_given_up_is_never_written() {
    let folder = Folder::new();
    let journal = folder.journal().await;
    let mut other = folder.raw().await;
    other.execute("BEGIN IMMEDIATE").await.unwrap();
    let error = journal.insert(operation("given up"), Duration::from_millis(50)).await.unwrap_err();
    assert_eq!((error.kind(), error.is_certain()), (JournalErrorKind::Locked, true));
    let dropped = journal.insert(operation("dropped"), PATIENCE);
    assert!(tokio::time::timeout(Duration::from_millis(50), dropped).await.is_err());
    let (waited, ()) = tokio::join!(journal.insert(operation("waited for"), PATIENCE), async {
        tokio::task::yield_now().await;
        other.execute("COMMIT").await.unwrap();
    });
    waited.unwrap();
    journal.flush(PATIENCE).await.unwrap();
    let ids: Vec<String> =
        other.fetch_all("SELECT id FROM op ORDER BY seq").await.unwrap().iter().map(|row| row.get(0)).collect();
    assert_eq!(ids, ["waited for"]);
}

#[tokio::test]
async fn an_owner_lives_as_long_as_its_journal_is_open() {
    let folder = Folder::new();
    let (one, other) = (folder.journal().await, folder.journal().await);
    let owner = other.owner();
    assert!(one.is_alive(owner).await.unwrap());
    let clone = other.clone();
    drop(other);
    assert!(one.is_alive(owner).await.unwrap(), "a clone is open");
    clone.close().await.unwrap();
    assert!(!one.is_alive(owner).await.unwrap());
    let third = folder.journal().await;
    let owner = third.owner();
    drop(third);
    assert!(!one.is_alive(owner).await.unwrap());
    assert_eq!(std::fs::read_dir(folder.path().join("payments.db.owners")).unwrap().count(), 1, "its own");
}

#[tokio::test]
async fn nobody_gives_up_what_is_anothers() {
    let folder = Folder::new();
    let (one, other) = (folder.journal().await, folder.journal().await);
    let mut running = operation("a");
    running = NewOperation::new(
        running.identity().clone(),
        running.request().clone(),
        running.entries().to_vec(),
        Status::Running(one.owner()),
    );
    one.insert(running, PATIENCE).await.unwrap();
    other.release(&OperationId::from("a"));
    other.append(resumed(&other, "a", 7), PATIENCE).await.unwrap_err();
    assert_eq!(other.load(&OperationId::from("a")).await.unwrap().unwrap().status(), Status::Running(one.owner()));
    one.release(&OperationId::from("a"));
    one.append(resumed(&one, "a", 7), PATIENCE).await.unwrap_err();
    assert_eq!(other.load(&OperationId::from("a")).await.unwrap().unwrap().status(), Status::Open);
}

#[tokio::test]
async fn a_second_caller_waits_for_the_first_ones_answer() {
    let folder = Folder::new();
    let sandbox = Sandbox::builder().work(Duration::from_millis(100)).start().await.unwrap();
    let (one, other) = (client(&folder).await, client(&folder).await);
    // In one process by its registry, between two open journals by the owner's lock.
    let calls = [&one, &one, &other, &other].map(|client| pay(client, &sandbox, "order-1", 100).send());
    let [a, b, c, d] = calls;
    let answers = tokio::join!(a, b, c, d);
    let answers = [answers.0, answers.1, answers.2, answers.3].map(Result::unwrap);
    assert!(answers.iter().all(|answer| answer.bytes() == answers[0].bytes() && answer.key() == answers[0].key()));
    assert_eq!((sandbox.executions(), sandbox.requests().len()), (1, 1));
}

#[tokio::test]
async fn busy_comes_only_at_the_deadline() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let (one, other) = (client(&folder).await, client(&folder).await);
    sandbox.fail_next([Fault::stall_after_executing()]);
    let mut stalled = Box::pin(pay(&one, &sandbox, "order-1", 100).send());
    let mut looks = tokio::time::interval(Duration::from_millis(2));
    while sandbox.executions() == 0 {
        tokio::select! {
            sent = &mut stalled => panic!("{sent:?}"),
            _ = looks.tick() => {}
        }
    }
    for client in [&one, &other] {
        let brief = pay(client, &sandbox, "order-1", 100).deadline(Duration::from_millis(200));
        let error = brief.send().await.unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Busy, Effect::Unknown));
        assert!(error.key().is_some());
        assert!(client.unfinished().await.unwrap().is_empty(), "somebody works on it");
        let decided = client.resolve("order-1", Effect::NotApplied, "ana", "");
        // Its own deadline is long.
        assert!(tokio::time::timeout(Duration::from_millis(100), decided).await.is_err());
    }
    drop(stalled);
    let answer = pay(&other, &sandbox, "order-1", 100).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), sandbox.executions()), (201, 1), "a dropped future frees it at once");
}

#[tokio::test]
async fn what_is_busy_tells_when_the_server_wants_to_be_asked_again() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let (one, other) = (client(&folder).await, client(&folder).await);
    sandbox.fail_next([Fault::status(503).retry_after("10")]);
    let mut waiting = Box::pin(pay(&one, &sandbox, "order-1", 100).send());
    let answered = async {
        while other.lookup("order-1").await.unwrap().is_none_or(|record| record.last_answer().is_none()) {
            tokio::task::yield_now().await;
        }
        pay(&other, &sandbox, "order-1", 100).deadline(Duration::from_millis(200)).send().await.unwrap_err()
    };
    let error = tokio::select! {
        sent = &mut waiting => panic!("{sent:?}"),
        error = answered => error,
    };
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Busy, Effect::Unknown));
    assert!(error.resume_at().unwrap() > other.lookup("order-1").await.unwrap().unwrap().created_at());
}

/// Before each attempt its `Started` is on the disk, one flush an attempt; what
/// came of the one before shares it.
#[tokio::test]
async fn send_only_after_started_is_durable() {
    let folder = Folder::new();
    let sandbox = Arc::new(Sandbox::start().await.unwrap());
    sandbox.fail_next([Fault::status(503), Fault::answer_lost()]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let watched = Watched(folder.journal().await, {
        let (seen, sandbox) = (Arc::clone(&seen), Arc::clone(&sandbox));
        move |append: &Append| {
            let starts = append.entries().iter().any(|entry| matches!(entry, Entry::Started { .. }));
            seen.lock().unwrap().push((starts, append.durability(), sandbox.requests().len()));
            Ok(())
        }
    });
    let client = builder().journal(watched).build().unwrap();
    assert!(pay(&client, &sandbox, "order-1", 1).send().await.unwrap().is_replay());
    // The first `Started` comes with the creation, which is always flushed.
    let (started, ended) = ((true, Durability::Flushed), (false, Durability::Visible));
    let expected = [(ended, 1), (started, 1), (ended, 2), (started, 2), (ended, 3)];
    let expected: Vec<_> = expected.iter().map(|((starts, durability), sent)| (*starts, *durability, *sent)).collect();
    assert_eq!(*seen.lock().unwrap(), expected);
}

/// What ends without effect is on the disk before the caller is told.
#[tokio::test]
async fn without_effect_is_flushed_before_it_is_told() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let client = client(&folder).await;
    let mut other = folder.raw().await;
    let flushes = "SELECT value FROM meta WHERE name = 'flush'";
    sandbox.fail_next([Fault::status(422)]);
    let before = number(&mut other, flushes).await;
    pay(&client, &sandbox, "refused", 1).send().await.unwrap_err();
    let after = number(&mut other, flushes).await;
    assert_eq!(after, before + 1, "at once, and not within the 100 ms that a success may take");
}

#[tokio::test]
async fn a_path_that_cannot_be_a_journal_is_named() {
    let folder = Folder::new();
    let file = folder.file();
    let missing = Sqlite::open(&file).await.unwrap_err();
    assert_eq!(missing.kind(), JournalErrorKind::Missing);
    assert!(missing.to_string().contains("payments.db") && missing.to_string().contains("create"), "{missing}");
    let no_folder = Sqlite::open_or_create(folder.path().join("nowhere/payments.db")).await.unwrap_err();
    assert_eq!(no_folder.kind(), JournalErrorKind::Missing);
    assert!(no_folder.to_string().contains("nowhere"), "{no_folder}");
    assert_eq!(Sqlite::open(folder.path()).await.unwrap_err().kind(), JournalErrorKind::Setting);
    assert_eq!(Sqlite::create(folder.path()).await.unwrap_err().kind(), JournalErrorKind::Setting);
    Sqlite::create(&file).await.unwrap();
    assert_eq!(Sqlite::create(&file).await.unwrap_err().kind(), JournalErrorKind::Exists);
    assert!(Sqlite::open(&file).await.is_ok() && Sqlite::open_or_create(&file).await.is_ok());
}

/// SQLite's locks on the file are POSIX's, which a process loses when it opens and closes the file
/// beside it. Without them the next program that closes it (an old `sqlite3`, a backup) removes the
/// log that is still written to, and nobody sees what comes after.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn opening_a_journal_again_takes_no_lock_from_the_first() {
    use std::os::unix::fs::MetadataExt;
    for way in ["open", "open_or_create", "create", "from_pool"] {
        let folder = Folder::new();
        let _first = folder.journal().await;
        let inode = format!(":{} ", std::fs::metadata(folder.file()).unwrap().ino());
        let is_locked = || std::fs::read_to_string("/proc/locks").unwrap().contains(&inode);
        assert!(is_locked());
        let _again = match way {
            "open" => Sqlite::open(folder.file()).await,
            "open_or_create" => Sqlite::open_or_create(folder.file()).await,
            "create" => Sqlite::create(folder.file()).await,
            _ => Sqlite::from_pool(&pool(&folder, "cache_size", "100").await).await,
        };
        assert!(is_locked(), "{way}");
    }
}

#[tokio::test]
async fn what_is_no_journal_a_newer_one_or_a_damaged_one_is_refused() {
    for (what, content) in [("text", "x".repeat(10_000)), ("almost", format!("SQLite format 3\0{}", "y".repeat(9_000)))]
    {
        let folder = Folder::new();
        std::fs::write(folder.file(), content).unwrap();
        assert_eq!(Sqlite::open(folder.file()).await.unwrap_err().kind(), JournalErrorKind::Corrupt, "{what}");
    }
    let folder = Folder::new();
    std::fs::write(folder.file(), "").unwrap();
    for _ in 0..2 {
        let empty = Sqlite::open(folder.file()).await.unwrap_err();
        assert_eq!(empty.kind(), JournalErrorKind::Corrupt);
        assert!(empty.to_string().contains("empty") && empty.to_string().contains("`create`"), "{empty}");
    }
    folder.raw().await.execute("CREATE TABLE customers (id)").await.unwrap();
    let other = Sqlite::open(folder.file()).await.unwrap_err();
    assert_eq!(other.kind(), JournalErrorKind::Corrupt);
    assert!(other.to_string().contains("something else"), "{other}");

    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let client = client(&folder).await;
    pay(&client, &sandbox, "a", 1).send().await.map(drop).unwrap();
    let mut other = folder.raw().await;
    other.execute("UPDATE entry SET data = replace(data, '\"v\":1', '\"v\":2') WHERE pos = 1").await.unwrap();
    let newer = pay(&client, &sandbox, "a", 1).send().await.unwrap_err();
    assert_eq!((newer.kind(), newer.effect()), (ErrorKind::Journal, Effect::Unknown));
    let source = std::error::Error::source(&newer).unwrap().to_string();
    assert!(source.contains("version 2"), "{source}");
    other.execute("UPDATE entry SET data = '{\"v\":1}' WHERE pos = 1").await.unwrap();
    let damaged = pay(&client, &sandbox, "a", 1).send().await.unwrap_err();
    assert_eq!((damaged.kind(), damaged.effect()), (ErrorKind::Journal, Effect::Unknown));
    other.execute("DELETE FROM entry WHERE pos = 0").await.unwrap();
    assert_eq!(pay(&client, &sandbox, "a", 1).send().await.unwrap_err().effect(), Effect::Unknown);
    assert_eq!(sandbox.requests().len(), 1);
    drop(client);
    other.execute("PRAGMA user_version = 99").await.unwrap();
    let newer = Sqlite::open(folder.file()).await.unwrap_err();
    assert_eq!(newer.kind(), JournalErrorKind::Newer);
    assert!(newer.to_string().contains("99") && newer.to_string().contains("upgrade"), "{newer}");
}

/// A pool whose connections have this setting.
async fn pool(folder: &Folder, pragma: &'static str, value: &'static str) -> SqlitePool {
    let options = SqliteConnectOptions::new().filename(folder.file()).pragma(pragma, value);
    SqlitePoolOptions::new().max_connections(2).connect_with(options).await.unwrap()
}

#[tokio::test]
async fn nothing_is_sent_that_cannot_be_written() {
    let sandbox = Sandbox::start().await.unwrap();
    let folder = Folder::new();
    folder.journal().await.close().await.unwrap();
    let read_only = Sqlite::from_pool(&pool(&folder, "query_only", "ON").await).await.unwrap_err();
    assert_eq!(
        (read_only.kind(), read_only.is_certain()),
        (JournalErrorKind::ReadOnly, true),
        "found when it is opened"
    );
    let options = SqliteConnectOptions::new().filename(folder.file()).read_only(true);
    let pool_of_readers = SqlitePoolOptions::new().max_connections(2).connect_with(options).await.unwrap();
    let read_only = Sqlite::from_pool(&pool_of_readers).await.unwrap_err();
    assert_eq!(read_only.kind(), JournalErrorKind::ReadOnly, "as where the file is another user's: {read_only}");
    let journal = Sqlite::from_pool(&pool(&folder, "max_page_count", "1").await).await.unwrap();
    let client = builder().journal(journal).build().unwrap();
    let long = client.post(sandbox.url("/payments")).operation("a").body("x".repeat(200_000));
    let error = long.send().await.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Journal, Effect::NotApplied));
    let source = std::error::Error::source(&error).unwrap();
    let source = source.downcast_ref::<oncekey::journal::JournalError>().unwrap();
    assert_eq!((source.kind(), source.is_certain()), (JournalErrorKind::Full, true), "{source}");
    assert!(client.lookup("a").await.unwrap().is_none(), "and nothing of it is on record");
    assert!(sandbox.requests().is_empty());
}

/// An answer that does not fit the disk is given to the caller all the same.
#[tokio::test]
async fn an_answer_that_cannot_be_written_is_given_out_and_its_replay_is_had_later() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    folder.journal().await.close().await.unwrap();
    let journal = Sqlite::from_pool(&pool(&folder, "max_page_count", "40").await).await.unwrap();
    let client = builder().journal(journal.clone()).build().unwrap();
    sandbox.fail_next([Fault::status(201).from_handler().json(format!("\"{}\"", "x".repeat(400_000)))]);
    let answer = pay(&client, &sandbox, "a", 1).send().await.unwrap();
    assert_eq!(answer.recorded().unwrap_err().kind(), JournalErrorKind::Full);
    assert_eq!(client.lookup("a").await.unwrap().unwrap().effect(), Effect::Unknown, "as if it had died");
    // Refused for certain, and that does not fit either: it may not be called certain.
    sandbox.fail_next([Fault::status(422).json(format!("\"{}\"", "x".repeat(200_000)))]);
    let refused = pay(&client, &sandbox, "b", 1).send().await.unwrap_err();
    assert_eq!((refused.kind(), refused.effect()), (ErrorKind::Journal, Effect::Unknown));
    drop(client);
    journal.close().await.unwrap();
    let mended = crate::support::client(&folder).await;
    let replay = mended.resume("a").send().await.unwrap();
    assert_eq!((replay.is_replay(), replay.bytes()), (true, answer.bytes()));
    assert_eq!(sandbox.executions(), 1);
}

const CARD: &str = "4000001234567899";
const TOKEN: &str = "sk_live_planted_token";

/// The journal's files, as bytes.
fn holds(folder: &Folder, needle: &str) -> bool {
    let files = std::fs::read_dir(folder.path()).unwrap().flatten().filter(|entry| entry.path().is_file());
    let mut found = false;
    for file in files {
        found |= std::fs::read(file.path()).unwrap().windows(needle.len()).any(|bytes| bytes == needle.as_bytes());
    }
    found
}

async fn paid_by_card(journal: Sqlite, sandbox: &Sandbox) -> oncekey::Client {
    let client = builder().journal(journal).build().unwrap();
    let mut signature = http::HeaderValue::from_str(TOKEN).unwrap();
    signature.set_sensitive(true);
    let request = client
        .post(sandbox.url("/payments"))
        .operation("order-1")
        .bearer_auth(TOKEN)
        .header("cookie", TOKEN)
        .header("proxy-authorization", TOKEN)
        .header("x-signature", signature)
        .json(&serde_json::json!({ "card": CARD }));
    sandbox.fail_next([Fault::status(201)
        .from_handler()
        .header("set-cookie", TOKEN)
        .json(format!("{{\"card\":\"{CARD}\"}}"))]);
    request.send().await.map(drop).unwrap();
    client
}

#[tokio::test]
async fn no_secret_is_in_the_file() {
    let sandbox = Sandbox::start().await.unwrap();
    for (what, setup, card) in [
        ("as it is", Sqlite::builder(), true),
        ("left out", Sqlite::builder().store_bodies(false), false),
        ("sealed", Sqlite::builder().seal(Shifted), false),
    ] {
        let folder = Folder::new();
        let journal = setup.create(folder.file()).await.unwrap();
        let client = paid_by_card(journal.clone(), &sandbox).await;
        assert_eq!((holds(&folder, TOKEN), holds(&folder, CARD)), (false, card), "{what}");
        assert!(holds(&folder, "order-1"), "the search finds what is there");
        journal.prune(Duration::ZERO).await.unwrap();
        assert!(!holds(&folder, CARD), "{what}: what was pruned is gone");
        drop(client);
        journal.close().await.unwrap();
        assert!(!holds(&folder, TOKEN), "{what}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn the_files_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let _client = paid_by_card(folder.journal().await, &sandbox).await;
    let mut seen = 0;
    for entry in std::fs::read_dir(folder.path()).unwrap().flatten() {
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, if entry.path().is_dir() { 0o700 } else { 0o600 }, "{:?}", entry.path());
        seen += 1;
    }
    assert_eq!(seen, 4, "the file, its log, its index, its owners");
}

/// No encryption at all, but enough to see that nothing goes by it.
struct Shifted;

impl Seal for Shifted {
    fn seal(&self, context: &str, plain: &[u8]) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
        Ok([context.as_bytes(), b"\0", plain].concat().iter().map(|byte| byte.wrapping_add(1)).collect())
    }

    fn open(&self, context: &str, sealed: &[u8]) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
        let plain: Vec<u8> = sealed.iter().map(|byte| byte.wrapping_sub(1)).collect();
        let head = [context.as_bytes(), b"\0"].concat();
        plain.strip_prefix(&head[..]).map(<[u8]>::to_vec).ok_or_else(|| "another row's".into())
    }
}

#[tokio::test]
async fn what_is_sealed_is_opened_by_its_own_seal_alone() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let journal = Sqlite::builder().seal(Shifted).create(folder.file()).await.unwrap();
    let client = paid_by_card(journal.clone(), &sandbox).await;
    let answer = client.resume("order-1").send().await.unwrap();
    assert_eq!(answer.text(), format!("{{\"card\":\"{CARD}\"}}"));
    drop(client);
    journal.close().await.unwrap();
    let unsealed = crate::support::client(&folder).await;
    let error = unsealed.resume("order-1").send().await.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Journal, Effect::Unknown));
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("sealed"));
    // A row in another's place is found out.
    let mut raw = folder.raw().await;
    raw.execute("UPDATE op SET id = 'order-2'").await.unwrap();
    let journal = Sqlite::builder().seal(Shifted).open(folder.file()).await.unwrap();
    let client = builder().journal(journal).build().unwrap();
    let error = client.resume("order-1").send().await.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Journal, Effect::Unknown));
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("id is damaged"));
    let name = &Sha256::digest("order-2")[..16];
    sqlx::query("UPDATE op SET name = ?").bind(name).execute(&mut raw).await.unwrap();
    let error = client.resume("order-2").send().await.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Journal, Effect::Unknown));
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("could not open"));
    raw.close().await.unwrap();
}

#[tokio::test]
async fn without_bodies_the_same_request_goes_on() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let journal = Sqlite::builder().store_bodies(false).create(folder.file()).await.unwrap();
    let hasty = Retry::default().max_attempts(1).base_delay(Duration::ZERO);
    let client = builder().retry(hasty).journal(journal).build().unwrap();
    sandbox.fail_next([Fault::answer_lost()]);
    pay(&client, &sandbox, "order-1", 1).send().await.unwrap_err();
    let by_id = client.resume("order-1").send().await.unwrap_err();
    assert_eq!((by_id.kind(), by_id.effect()), (ErrorKind::Request, Effect::Unknown));
    assert!(by_id.to_string().contains("not on record"), "{by_id}");
    let spaced = client.post(sandbox.url("/payments")).operation("order-1").header("content-type", "application/json");
    let other_bytes = spaced.body("{ \"amount\": 1 }").send().await.unwrap_err();
    assert_eq!((other_bytes.kind(), other_bytes.effect()), (ErrorKind::Mismatch, Effect::Unknown));
    assert_eq!(pay(&client, &sandbox, "order-1", 2).send().await.unwrap_err().kind(), ErrorKind::Mismatch);
    let paid = pay(&client, &sandbox, "order-1", 1).send().await.unwrap();
    assert!(paid.is_replay());
    // The answer is not kept: it is had from the server again.
    let again = pay(&client, &sandbox, "order-1", 1).send().await.unwrap();
    assert_eq!((again.is_replay(), again.bytes()), (true, paid.bytes()));
    assert_eq!((sandbox.executions(), sandbox.requests().len()), (1, 3));
    assert!(client.unfinished().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_pruned_operation_is_known_for_ever() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let journal = folder.journal().await;
    let client = builder().journal(journal.clone()).build().unwrap();
    let paid = pay(&client, &sandbox, "order-1", 1).send().await.unwrap();
    assert_eq!(journal.prune(Duration::ZERO).await.unwrap(), 1);
    let other = pay(&client, &sandbox, "order-1", 2).send().await.unwrap_err();
    assert_eq!((other.kind(), other.effect()), (ErrorKind::Mismatch, Effect::Applied));
    let by_id = client.resume("order-1").send().await.unwrap_err();
    assert_eq!((by_id.kind(), by_id.effect()), (ErrorKind::Request, Effect::Applied));
    let again = pay(&client, &sandbox, "order-1", 1).send().await.unwrap();
    assert_eq!((again.is_replay(), again.key(), sandbox.executions()), (true, paid.key(), 1));
}

#[tokio::test]
async fn without_a_journal_there_is_nothing_to_resume() {
    let sandbox = Sandbox::start().await.unwrap();
    let client = builder().build().unwrap();
    let refused = pay(&client, &sandbox, "a", 1).send().await.unwrap_err();
    assert_eq!((refused.kind(), refused.effect()), (ErrorKind::Request, Effect::NotApplied));
    assert_eq!(client.unfinished().await.unwrap_err().kind(), JournalErrorKind::Setting);
    assert_eq!(client.resume("a").send().await.unwrap_err().kind(), ErrorKind::Request);
    let with = builder().journal(oncekey::journal::Memory::new()).build().unwrap();
    for id in ["", " a", "a ", "a\nb", &"x".repeat(256)] {
        let error = pay(&with, &sandbox, id, 1).send().await.unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Request, Effect::NotApplied), "{id:?}");
        assert!(error.to_string().contains("operation's id"), "{error}");
    }
    assert!(sandbox.requests().is_empty());
    assert!(pay(&with, &sandbox, "año 7, línea 3", 1).send().await.is_ok());
}
