//! What the journal in SQLite costs, each figure measured side by side in one
//! run on one disk: `cargo bench --bench journal --features sqlite` (needs
//! strace for the flushes; `TMPDIR` chooses the disk).
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // a program for its own authors, which measures time

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http::{HeaderMap, Method, StatusCode};
use oncekey::engine::{Advice, AttemptKind, Entry, KeyOrigin, MethodKind, Reach, Time, Verdict, Why};
use oncekey::journal::{
    Append, Durability, Fingerprint, Identity, Journal, NewOperation, Scope, Sqlite, Status, StoredAnswer, StoredBody,
    StoredRequest, codec,
};
use oncekey::{Client, IdempotencyKey, OperationId};
use sha2::{Digest, Sha256};

const PATIENCE: Duration = Duration::from_secs(30);
const BODY: &str = r#"{"amount":4999,"currency":"usd","reference":"M1A2B3C4","description":"forty-two of something"}"#;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["work", file, operations, at_once] => {
            let (operations, at_once) = (operations.parse().unwrap(), at_once.parse().unwrap());
            println!("{}", block_on(ours(Path::new(file), operations, at_once)).as_nanos());
        }
        ["settle", file, operations] => settled(Path::new(file), operations.parse().unwrap()),
        ["contend", file, seconds] => block_on(contend(Path::new(file), seconds.parse().unwrap())),
        [] => return compare(),
        _ => panic!("usage: journal [work FILE OPERATIONS AT_ONCE | settle FILE OPERATIONS | contend FILE SECONDS]"),
    }
    ExitCode::SUCCESS
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(work)
}

fn compare() -> ExitCode {
    let folder = tempfile::tempdir().unwrap();
    let mut held = true;
    let mut says = |what: &str, found: f64, goal: &str, holds: bool| {
        held &= holds;
        println!("{what:<72} {found:>9.3}  goal {goal:<14} {}", if holds { "ok" } else { "NOT REACHED" });
    };
    let file = |name: &str| folder.path().join(name);

    let one = flushes(&file("one.db"), 2_000, 1);
    says("flushes per durable operation, one after another", one, "<= 1.05", one <= 1.05);
    let many = 1.0 / flushes(&file("many.db"), 40_000, 64);
    says("durable operations per flush, 64 at once", many, ">= 40", many >= 40.0);

    // Turn by turn, so that the machine's moods fall on both.
    let (mut own, mut plain) = (Vec::new(), Vec::new());
    for round in 0..5 {
        plain.push(rate(20_000, baseline(&file(&format!("plain{round}.db")), 20_000)));
        own.push(rate(20_000, block_on(ours(&file(&format!("own{round}.db")), 20_000, 64))));
    }
    let ratio = median(&mut own) / median(&mut plain);
    println!("  {:.0} a second, plain rusqlite with one commit per 64: {:.0}", median(&mut own), median(&mut plain));
    says("durable operations a second, 64 at once, against plain rusqlite", ratio, ">= 0.4x", ratio >= 0.4);

    let full = file("full.db");
    settled(&full, 300_000);
    let (mut on_full, mut on_empty) = (Vec::new(), Vec::new());
    for round in 0..5 {
        on_empty.push(rate(10_000, block_on(ours(&file(&format!("empty{round}.db")), 10_000, 64))));
        on_full.push(rate(10_000, block_on(ours(&full, 10_000, 64))));
    }
    let ratio = median(&mut on_full) / median(&mut on_empty);
    println!(
        "  {:.0} a second with 300,000 settled rows, {:.0} with none",
        median(&mut on_full),
        median(&mut on_empty)
    );
    says("the same with 300,000 settled rows against an empty file", ratio, ">= 0.8x", ratio >= 0.8);

    let (few, lots) = (file("few.db"), file("lots.db"));
    settled(&few, 1_000);
    settled(&lots, 1_000_000);
    let ratio = block_on(listing(&lots, &few));
    says("unfinished() with 1,000,000 settled rows against 1,000", ratio, "<= 1.5x", ratio <= 1.5);

    let worst = contention(&file("contended.db"), 4);
    says("longest wait for a write in s, 4 processes on one file", worst, "< 0.5", worst < 0.5);
    if held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn rate(operations: u32, took: Duration) -> f64 {
    f64::from(operations) / took.as_secs_f64()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What one operation brings, from its creation to its answer.
struct Operation {
    id: String,
    request: StoredRequest,
    first: Vec<Entry>,
    ended: Entry,
    answer: StoredAnswer,
}

fn operation(owner: oncekey::engine::Owner) -> Operation {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let at = Time::from_millis(u64::try_from(now.as_millis()).unwrap());
    let verdict = Verdict::new(Reach::Applied, Advice::Stop, Why::Success);
    Operation {
        id: IdempotencyKey::random().as_str().to_owned(),
        request: StoredRequest::new(
            Method::POST,
            "https://api.example/v1/payments".parse().unwrap(),
            vec![(http::header::CONTENT_TYPE, "application/json".parse().unwrap())],
            StoredBody::Kept(BODY.into()),
        ),
        first: vec![
            Entry::Created { at, key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false },
            Entry::Resumed { owner, at },
            Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at },
        ],
        ended: Entry::Ended { attempt: 1, verdict, at, next_at: None },
        answer: StoredAnswer::new(
            StatusCode::CREATED,
            HeaderMap::from_iter([(http::header::CONTENT_TYPE, "application/json".parse().unwrap())]),
            BODY.as_bytes().to_vec(),
        ),
    }
}

/// One operation as a call writes it: flushed before it is sent, visible at its end.
async fn write(journal: &Sqlite) {
    let owner = journal.owner();
    let Operation { id, request, first, ended, answer } = operation(owner);
    let id = OperationId::from(id);
    let identity = Identity::new(id.clone(), Scope::new("generic", ""), Fingerprint::from_bytes([7; 32]))
        .with_key(Some(id.as_str().into()), Duration::from_secs(86_400));
    journal.insert(NewOperation::new(identity, request, first, Status::Running(owner)), PATIENCE).await.unwrap();
    let append =
        Append::new(id, 3, vec![ended], Status::Closed).with_answer(Some(answer)).with_durability(Durability::Visible);
    journal.append(append, PATIENCE).await.unwrap();
}

async fn ours(file: &Path, operations: u32, at_once: u32) -> Duration {
    let journal = Sqlite::open_or_create(file).await.unwrap();
    let began = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..at_once {
        let journal = journal.clone();
        tasks.spawn(async move {
            for _ in 0..operations / at_once {
                write(&journal).await;
            }
        });
    }
    tasks.join_all().await;
    let took = began.elapsed();
    journal.close().await.unwrap();
    took
}

const TABLES: [&str; 5] = [
    "INSERT INTO op VALUES (?, ?, ?, 'generic', 1, '', 2, NULL, 86400000, x'07', 1790000000000)",
    "INSERT INTO request VALUES (?, 0, ?)",
    "INSERT INTO entry VALUES (?, ?, ?)",
    "INSERT INTO live VALUES (?, x'07')",
    "INSERT INTO answer VALUES (?, 0, ?)",
];

/// The same rows by the shortest way: one connection, one commit for 64.
fn baseline(file: &Path, operations: u32) -> Duration {
    block_on(async { Sqlite::create(file).await.unwrap().close().await.unwrap() });
    let connection = rusqlite::Connection::open(file).unwrap();
    connection.pragma_update(None, "synchronous", "FULL").unwrap();
    connection.pragma_update(None, "secure_delete", "ON").unwrap();
    connection.pragma_update(None, "cache_size", -65_536).unwrap();
    connection.pragma_update(None, "wal_autocheckpoint", 10_000).unwrap();
    let began = Instant::now();
    fill(&connection, operations, 64);
    began.elapsed()
}

fn fill(connection: &rusqlite::Connection, operations: u32, per_commit: u32) {
    let last: i64 = connection.query_row("SELECT coalesce(max(seq), 0) FROM op", [], |row| row.get(0)).unwrap();
    let [mut op, mut request, mut entry, mut live, mut answer] = TABLES.map(|sql| connection.prepare(sql).unwrap());
    let mut close = connection.prepare("DELETE FROM live WHERE op = ?").unwrap();
    for number in 0..operations {
        if number % per_commit == 0 {
            connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        }
        let seq = last + 1 + i64::from(number);
        let own = operation(oncekey::engine::Owner::new(7));
        let name = Sha256::digest(&own.id);
        op.execute((seq, own.id, &name[..16])).unwrap();
        request.execute((seq, codec::encode_request(&own.request))).unwrap();
        for (pos, fact) in own.first.iter().chain([&own.ended]).enumerate() {
            entry.execute((seq, i64::try_from(pos).unwrap(), codec::encode_entry(fact))).unwrap();
        }
        live.execute([seq]).unwrap();
        answer.execute((seq, codec::encode_answer(&own.answer))).unwrap();
        close.execute([seq]).unwrap();
        if number % per_commit == per_commit - 1 || number == operations - 1 {
            connection.execute_batch("COMMIT").unwrap();
        }
    }
}

/// A file with this many operations that have their end.
fn settled(file: &Path, operations: u32) {
    block_on(async { Sqlite::create(file).await.unwrap().close().await.unwrap() });
    let connection = rusqlite::Connection::open(file).unwrap();
    connection.pragma_update(None, "synchronous", "OFF").unwrap();
    connection.pragma_update(None, "cache_size", -400_000).unwrap();
    fill(&connection, operations, 50_000);
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
}

/// Flushes per operation, counted by strace in a process of its own.
fn flushes(file: &Path, operations: u32, at_once: u32) -> f64 {
    let log = file.with_extension("strace");
    let traced = |operations: u32, file: PathBuf| {
        let done = Command::new("strace")
            .args(["-f", "--seccomp-bpf", "-c", "-e", "trace=fsync,fdatasync", "-o"])
            .arg(&log)
            .arg(std::env::current_exe().unwrap())
            .args(["work", file.to_str().unwrap(), &operations.to_string(), &at_once.to_string()])
            .output()
            .expect("strace is needed for this figure");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let table = std::fs::read_to_string(&log).unwrap();
        let calls = |line: &str| line.split_whitespace().nth(3).and_then(|calls| calls.parse::<f64>().ok());
        table.lines().filter(|line| line.ends_with("sync")).filter_map(calls).sum::<f64>()
    };
    // What opening and closing cost drops out.
    let few = traced(0, file.with_extension("few"));
    (traced(operations, file.to_owned()) - few) / f64::from(operations)
}

/// How many operations are open beside those that have their end.
const LISTED: usize = 20;

/// How much longer a list takes on one file than on another.
async fn listing(lots: &Path, few: &Path) -> f64 {
    let mut clients = Vec::new();
    for file in [lots, few] {
        let journal = Sqlite::open(file).await.unwrap();
        for _ in 0..LISTED {
            let owner = journal.owner();
            let Operation { id, request, first, .. } = operation(owner);
            let id = OperationId::from(id);
            let identity = Identity::new(id.clone(), Scope::new("generic", ""), Fingerprint::from_bytes([7; 32]))
                .with_key(Some(id.as_str().into()), Duration::from_secs(86_400));
            journal.insert(NewOperation::new(identity, request, first, Status::Open), PATIENCE).await.unwrap();
        }
        clients.push(Client::builder().journal(journal).build().unwrap());
    }
    let mut took = [Vec::new(), Vec::new()];
    for _ in 0..200 {
        for (client, took) in clients.iter().zip(&mut took) {
            let began = Instant::now();
            assert_eq!(client.unfinished().await.unwrap().len(), LISTED);
            took.push(began.elapsed().as_secs_f64());
        }
    }
    let [mut lots, mut few] = took;
    median(&mut lots) / median(&mut few)
}

/// Writes as fast as it can, and prints the longest that one took.
async fn contend(file: &Path, seconds: u64) {
    let journal = Sqlite::open(file).await.unwrap();
    let (end, worst) = (Instant::now() + Duration::from_secs(seconds), Arc::new(AtomicU64::new(0)));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let (journal, worst) = (journal.clone(), Arc::clone(&worst));
        tasks.spawn(async move {
            let mut done = 0_u64;
            while Instant::now() < end {
                let began = Instant::now();
                write(&journal).await;
                // Two writes, and the flush of one.
                worst.fetch_max(u64::try_from(began.elapsed().as_micros()).unwrap(), Ordering::Relaxed);
                done += 1;
            }
            done
        });
    }
    let done: u64 = tasks.join_all().await.iter().sum();
    println!("{done} {}", worst.load(Ordering::Relaxed));
}

fn contention(file: &Path, processes: usize) -> f64 {
    block_on(async { Sqlite::create(file).await.unwrap().close().await.unwrap() });
    let start = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["contend", file.to_str().unwrap(), "8"]).stdout(std::process::Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..processes).map(|_| start()).collect();
    let (mut total, mut worst) = (0, 0);
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "a caller was told that the database is locked");
        let text = String::from_utf8(output.stdout).unwrap();
        let (done, longest) = text.trim().split_once(' ').unwrap();
        total += done.parse::<u64>().unwrap();
        worst = worst.max(longest.parse::<u64>().unwrap());
    }
    println!("  {total} operations by {processes} processes of 16 callers each in 8 s");
    Duration::from_micros(worst).as_secs_f64()
}
