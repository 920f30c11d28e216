//! Many processes on one file, killed at random.
#![allow(clippy::disallowed_methods)] // how long a run takes is printed

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use oncekey::journal::Sqlite;
use oncekey::sandbox::Sandbox;
use oncekey::{Client, Effect, Profile, RecordState};

use crate::support::{Folder, builder, client, pay};

/// What a child is told, in its environment: how many operations, and a seed.
const WORK: &str = "ONCEKEY_TEST_WORK";
const FILE: &str = "ONCEKEY_TEST_WORK_JOURNAL";
const URL: &str = "ONCEKEY_TEST_WORK_URL";

/// A generator of SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}

/// Not a test of its own: pays every operation, in an order of its own, until
/// all of them are paid. What is not paid is told in a line.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn worker() {
    let (Ok(work), Ok(file), Ok(url)) = (std::env::var(WORK), std::env::var(FILE), std::env::var(URL)) else {
        return;
    };
    let (count, seed) = work.split_once(' ').unwrap();
    let mut left: Vec<u32> = (0..count.parse().unwrap()).collect();
    let mut dice = Dice(seed.parse().unwrap());
    let client = builder().journal(Sqlite::open(file).await.unwrap()).build().unwrap();
    while !left.is_empty() {
        let mut order = std::mem::take(&mut left);
        while !order.is_empty() {
            let mut sending = tokio::task::JoinSet::new();
            for _ in 0..order.len().min(8) {
                let number = order.swap_remove(usize::try_from(dice.below(order.len() as u64)).unwrap());
                let (client, url) = (client.clone(), url.clone());
                sending.spawn(async move { (number, order_of(&client, &url, number).await) });
            }
            for (number, failed) in sending.join_all().await {
                if let Some(failed) = failed {
                    println!("\nfailed: {failed}");
                    left.push(number);
                }
            }
        }
    }
    println!("\nall are paid");
}

async fn order_of(client: &Client, url: &str, number: u32) -> Option<String> {
    let request = client.post(url).operation(format!("order-{number}")).body(format!("amount={number}"));
    let error = request.send().await.err()?;
    let mut told = format!("{:?} {}: {error}", error.kind(), error.effect());
    let mut cause = std::error::Error::source(&error);
    while let Some(source) = cause {
        told.push_str(&format!(": {source}"));
        cause = source.source();
    }
    Some(told)
}

fn worker_process(file: &Path, url: &str, count: u32, seed: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::worker", "--nocapture"])
        .env(WORK, format!("{count} {seed}"))
        .env(FILE, file)
        .env(URL, url)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Whatever the child has said, once it has ended.
fn said(child: &mut Child) -> String {
    let mut text = String::new();
    child.stdout.as_mut().unwrap().read_to_string(&mut text).unwrap();
    child.wait().unwrap();
    text
}

fn setting(name: &str, otherwise: u32) -> u32 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// `ONCEKEY_PROCESS_OPERATIONS=2000 ONCEKEY_PROCESS_KILLS=200` for the long run.
#[tokio::test(flavor = "multi_thread")]
async fn four_processes_on_one_file_with_random_kills() {
    let (operations, kills) = (setting("ONCEKEY_PROCESS_OPERATIONS", 120), setting("ONCEKEY_PROCESS_KILLS", 12));
    let folder = Folder::new();
    folder.journal().await.close().await.unwrap();
    let sandbox = Sandbox::builder().work(Duration::from_millis(5)).chaos(7, 100).start().await.unwrap();
    let url = sandbox.url("/payments");
    let began = Instant::now();
    let (told, killed) = tokio::task::spawn_blocking({
        let (folder, url) = (folder.file(), url.clone());
        move || drive(&folder, &url, operations, kills)
    })
    .await
    .unwrap();

    let keys: BTreeSet<String> = sandbox.requests().iter().filter_map(|r| r.key().map(str::to_owned)).collect();
    println!(
        "{operations} operations, 4 processes, {killed} kills: {} executions, {} requests, {} keys, {} failed calls, {:?}",
        sandbox.executions(),
        sandbox.requests().len(),
        keys.len(),
        told.lines().filter(|line| line.starts_with("failed")).count(),
        began.elapsed()
    );
    let doubles = sandbox.ledger().iter().filter(|execution| execution.is_double()).count();
    assert_eq!(
        sandbox.executions() - doubles,
        operations as usize,
        "no double, none lost; {doubles} of the server's own"
    );
    assert_eq!(keys.len(), operations as usize);
    assert!(!told.contains("locked"), "{told}");
    let client = client(&folder).await;
    for number in 0..operations {
        let record = client.lookup(format!("order-{number}")).await.unwrap().unwrap();
        assert_eq!((record.state(), record.effect()), (RecordState::Settled, Effect::Applied), "{number}");
    }
    assert!(client.unfinished().await.unwrap().is_empty());
}

/// Four processes, of which one is killed and started anew again and again.
fn drive(file: &Path, url: &str, operations: u32, kills: u32) -> (String, u32) {
    let start = |seed: u64| worker_process(file, url, operations, seed);
    let mut dice = Dice(42);
    let mut children: Vec<Child> = (0..4).map(start).collect();
    let (mut told, mut killed) = (String::new(), 0);
    for round in 0..kills {
        std::thread::sleep(Duration::from_millis(20 + dice.below(150)));
        let at = usize::try_from(dice.below(4)).unwrap();
        let alive = children[at].try_wait().unwrap().is_none();
        children[at].kill().unwrap();
        killed += u32::from(alive);
        told.push_str(&said(&mut children[at]));
        children[at] = start(100 + u64::from(round));
    }
    for child in &mut children {
        let last = said(child);
        assert!(last.contains("all are paid"), "{last}");
        told.push_str(&last);
    }
    (told, killed)
}

/// Two processes that ask for one open operation in the same instant.
#[tokio::test(flavor = "multi_thread")]
async fn crash_06_two_processes_resume_one_operation() {
    let folder = Folder::new();
    let sandbox = Sandbox::builder().work(Duration::from_millis(200)).start().await.unwrap();
    folder.journal().await.close().await.unwrap();
    let url = sandbox.url("/payments");
    let mut children = [1, 2].map(|seed| worker_process(&folder.file(), &url, 1, seed));
    let told = tokio::task::spawn_blocking(move || children.each_mut().map(said)).await.unwrap();
    assert!(told.iter().all(|told| told.contains("all are paid") && !told.contains("failed:")), "{told:?}");
    assert_eq!((sandbox.executions(), sandbox.requests().len()), (1, 1), "no overlap: the other had the answer");
}

/// The owner is killed while its request is at work, on a server whose
/// requests under one key must not overlap.
#[tokio::test(flavor = "multi_thread")]
async fn crash_06_the_owner_is_killed_and_overlap_is_unsafe() {
    let folder = Folder::new();
    let sandbox = Sandbox::builder().work(Duration::from_millis(400)).start().await.unwrap();
    // Open before the owner dies: it is not told, but sees that the lock is free.
    let journal = folder.journal().await;
    let mut child = worker_process(&folder.file(), &sandbox.url("/payments"), 1, 1);
    let mut looks = tokio::time::interval(Duration::from_millis(5));
    while sandbox.at_work() == 0 {
        looks.tick().await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // It was begun with another profile of the same id, whose requests may overlap.
    let careful = Profile::builder("verifika")
        .rule(oncekey::profile::Matcher::new().status(409), oncekey::profile::Meaning::InProgress)
        .replay_mark("idempotent-replay", "true")
        .overlap_is_safe(false)
        .build()
        .unwrap();
    let patient = builder().profile(careful).journal(journal);
    let client = patient.deadline(Duration::from_secs(30)).build().unwrap();
    let brief = client.resume("order-0").deadline(Duration::from_secs(1)).send().await.unwrap_err();
    assert_eq!((brief.effect(), sandbox.requests().len()), (Effect::Unknown, 1));
    let started = sandbox.requests()[0].at();
    let asked_for = brief.resume_at().unwrap();
    assert!(asked_for >= started + Duration::from_secs(9), "its attempt timeout is 10 s: {asked_for:?}");
    let answer = client.resume("order-0").send().await.unwrap();
    assert!(answer.is_replay());
    let seen = sandbox.requests();
    assert!(seen[1].at() >= started + Duration::from_secs(9), "not before the timeout of the first is over");
    assert_eq!((sandbox.executions(), seen.len()), (1, 2));
}

/// A process that is stopped is alive: it goes on with what it began.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_owner_keeps_its_operation() {
    let folder = Folder::new();
    let sandbox = Sandbox::builder().work(Duration::from_millis(300)).start().await.unwrap();
    folder.journal().await.close().await.unwrap();
    let mut child = worker_process(&folder.file(), &sandbox.url("/payments"), 1, 1);
    let mut looks = tokio::time::interval(Duration::from_millis(5));
    while sandbox.at_work() == 0 {
        looks.tick().await;
    }
    let signal = |name: &str| Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(signal("-STOP").success());
    let client = client(&folder).await;
    let error = pay_order_0(&client, &sandbox).await.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (oncekey::ErrorKind::Busy, Effect::Unknown));
    assert!(signal("-CONT").success());
    let told = tokio::task::spawn_blocking(move || said(&mut child)).await.unwrap();
    assert!(told.contains("all are paid"), "{told}");
    assert!(pay_order_0(&client, &sandbox).await.is_ok());
    assert_eq!((sandbox.executions(), sandbox.requests().len()), (1, 1));
    let _ = pay;
}

async fn pay_order_0(client: &Client, sandbox: &Sandbox) -> Result<oncekey::Response, oncekey::Error> {
    let request = client.post(sandbox.url("/payments")).operation("order-0").body("amount=0");
    request.deadline(Duration::from_millis(300)).send().await
}
