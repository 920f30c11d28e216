//! A program that pays is killed again and again, at any moment, and every
//! payment is made once.
//!
//! `cargo run --example crash --features sandbox,sqlite -- --operations 200 --seed 7`
//!
//! The parent runs the sandbox, which keeps the true ledger, and kills the child
//! with SIGKILL. The child has nothing but the journal: each time it starts, it
//! goes on with what is unfinished and then with what was never begun. Exits 1
//! unless there are as many executions, and as many keys, as operations.
#![allow(clippy::disallowed_methods, reason = "the clock of a test, not of an operation")]

use std::collections::BTreeSet;
use std::error::Error;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use oncekey::engine::Entry;
use oncekey::journal::Sqlite;
use oncekey::sandbox::Sandbox;
use oncekey::{Client, Effect, Poll, Profile, RequestBuilder, Retry};
use tokio::time::{sleep, timeout};

type Outcome<T> = Result<T, Box<dyn Error>>;

const USAGE: &str = "usage: crash [--operations N] [--seed S]";

/// Of a thousand requests so many meet a fault: a lost or a cut answer, a 503, a 409, ...
const FAULTS: u16 = 100;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [hidden, url, journal, operations] = arguments.as_slice()
        && hidden == "--child"
    {
        return child(url, Path::new(journal), operations.parse().unwrap_or_default());
    }
    let (operations, seed) = match settings(arguments.into_iter()) {
        Ok(settings) => settings,
        Err(problem) => {
            eprintln!("{problem}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(operations, seed) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("crash: {error} (seed {seed})");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(operations: usize, seed: u64) -> Outcome<bool> {
    let most = Duration::from_secs(60).saturating_add(Duration::from_secs(1).saturating_mul(bounded(operations)));
    tokio::select! {
        ended = timeout(most, parent(operations, seed)) => {
            ended.unwrap_or_else(|_| Err(format!("not done after {} s", most.as_secs()).into()))
        }
        _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
    }
}

/// Whatever ends it, dropped or done, the child is killed and the folder removed.
async fn parent(operations: usize, seed: u64) -> Outcome<bool> {
    let folder = tempfile::tempdir()?;
    let journal = folder.path().join("payments.db");
    // Once, here. Whoever comes after a crash must find it, and never make a new one.
    Sqlite::create(&journal).await?;
    let sandbox = Sandbox::builder().work(Duration::from_millis(4)).chaos(seed, FAULTS).start().await?;

    let mut dice = Dice(seed);
    let mut kills = 0;
    loop {
        let mut child = Running::start(&sandbox.url("/v1/payments"), &journal, operations)?;
        let ended = tokio::select! {
            ended = child.ended() => Some(ended?),
            () = a_moment(&sandbox, &mut dice) => None,
        };
        match ended {
            Some(status) if status.success() => break,
            Some(status) => return Err(format!("the child gave up: {status}").into()),
            None => {
                child.kill()?;
                kills += 1;
                progress(&sandbox, kills, operations);
                // The last ones are left for the parent.
                if sandbox.executions() >= operations {
                    break;
                }
            }
        }
    }
    done_with_progress();

    let client = client(&journal).await?;
    resume_all(&client).await?;
    let mut applied = 0;
    let mut cut = 0;
    for number in 0..operations {
        let Some(record) = client.lookup(id(number)).await? else {
            continue;
        };
        applied += usize::from(record.effect() == Effect::Applied);
        cut += record.entries().iter().filter(|entry| matches!(entry, Entry::Interrupted { .. })).count();
    }
    let requests = sandbox.requests();
    let keys: BTreeSet<&str> = requests.iter().flat_map(|request| request.keys()).map(String::as_str).collect();
    let executions = sandbox.executions();
    println!("{operations} operations, {kills} kills, {executions} executions");
    println!("{} requests, {} keys, {cut} attempts cut in the middle (seed {seed})", requests.len(), keys.len());
    if applied < operations {
        println!("on record {applied} are applied, and {} are not", operations - applied);
    }
    for key in keys.iter().filter(|key| sandbox.executions_of(key) != 1) {
        println!("the key {key} was executed {} times", sandbox.executions_of(key));
    }
    Ok(applied == operations && executions == operations && keys.len() == operations)
}

/// When the child is killed: some requests on, and a little later, so that it
/// makes headway; now and then at any time, while it starts or recovers.
async fn a_moment(sandbox: &Sandbox, dice: &mut Dice) {
    if dice.below(5) == 0 {
        return sleep(Duration::from_millis(dice.below(300))).await;
    }
    let (more, later) = (dice.below(6), dice.below(12_000));
    let seen = sandbox.requests().len() as u64;
    sandbox.until(|sandbox| sandbox.requests().len() as u64 > seen + more).await;
    sleep(Duration::from_micros(later)).await;
}

/// A child that does not outlive this value.
struct Running(Child);

impl Running {
    fn start(url: &str, journal: &Path, operations: usize) -> Outcome<Self> {
        let child = Command::new(std::env::current_exe()?)
            .arg("--child")
            .arg(url)
            .arg(journal)
            .arg(operations.to_string())
            // It reads this to its end: it notices should the parent die.
            .stdin(Stdio::piped())
            .spawn()?;
        Ok(Self(child))
    }

    async fn ended(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status);
            }
            sleep(Duration::from_millis(5)).await;
        }
    }

    fn kill(&mut self) -> io::Result<()> {
        self.0.kill()?;
        self.0.wait().map(|_| ())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// The program that dies. It knows of its own past what the journal tells.
#[tokio::main]
async fn child(url: &str, journal: &Path, operations: usize) -> ExitCode {
    std::thread::spawn(|| {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(1);
    });
    match pay_all(url, journal, operations).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("child: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn pay_all(url: &str, journal: &Path, operations: usize) -> Outcome<()> {
    let client = client(journal).await?;
    resume_all(&client).await?;
    for number in 0..operations {
        // What is paid already is answered from the record, without a request.
        let _answer = pay(&client, url, number).send().await?;
    }
    Ok(())
}

fn pay(client: &Client, url: &str, number: usize) -> RequestBuilder {
    client.post(url).operation(id(number)).json(&serde_json::json!({ "amount": 100 + number, "reference": id(number) }))
}

fn id(number: usize) -> String {
    format!("payment-{number}")
}

async fn client(journal: &Path) -> Outcome<Client> {
    let ms = Duration::from_millis;
    let client = Client::builder()
        .profile(Profile::verifika())
        .http(|http| http.no_proxy())
        .retry(Retry::default().max_attempts(30).base_delay(ms(2)).max_delay(ms(20)))
        .poll(Poll::default().interval(ms(5)).max_interval(ms(10)))
        .attempt_timeout(Duration::from_secs(10))
        .journal(Sqlite::open(journal).await?)
        .build()?;
    Ok(client)
}

async fn resume_all(client: &Client) -> Outcome<()> {
    let mut ends = client.resume_all().start().await?;
    while let Some((_, end)) = ends.next().await {
        let _answer = end?;
    }
    Ok(())
}

fn progress(sandbox: &Sandbox, kills: usize, operations: usize) {
    if io::stderr().is_terminal() {
        eprint!("\r{kills} kills, {} of {operations} paid ", sandbox.executions());
        let _ = io::stderr().flush();
    }
}

fn done_with_progress() {
    if io::stderr().is_terminal() {
        eprint!("\r\x1b[K");
    }
}

/// `SplitMix64`.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}

fn bounded(operations: usize) -> u32 {
    u32::try_from(operations).unwrap_or(u32::MAX)
}

fn settings(mut arguments: impl Iterator<Item = String>) -> Result<(usize, u64), String> {
    let mut settings = (200, RandomState::new().hash_one(0) % 1_000_000);
    while let Some(name) = arguments.next() {
        let value = arguments.next();
        let number = |most: u64| {
            value
                .as_deref()
                .and_then(|value| value.parse::<u64>().ok())
                .filter(|number| *number <= most)
                .ok_or_else(|| format!("{name} needs a number from 0 to {most}"))
        };
        match name.as_str() {
            "--operations" => settings.0 = usize::try_from(number(100_000)?).unwrap_or(usize::MAX),
            "--seed" => settings.1 = number(u64::MAX)?,
            _ => return Err(format!("{name} is not known")),
        }
    }
    Ok(settings)
}
