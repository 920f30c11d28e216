//! A bot that charges a table of subscriptions for a month, and may die, run
//! twice or meet a server that breaks: each is charged once.
//!
//! `cargo run --example subscriptions --features sandbox,sqlite`
//!
//! By itself it runs twice against a sandbox of its own, which breaks on
//! purpose, and exits 1 unless the ledger agrees with what it was told. With
//! `--url` and `--journal` it charges there, once, with the token and the secret
//! in `SUBSCRIPTIONS_TOKEN` and `SUBSCRIPTIONS_SECRET`, and exits 3 if the end
//! of any is not known yet; `--create FILE` makes that journal, once.
//! `docs/bots.md` is about it.
#![allow(clippy::disallowed_methods, reason = "the time that is signed, not an operation's")]

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as StdError;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hmac::{Hmac, Mac};
use oncekey::journal::Sqlite;
use oncekey::sandbox::{Execution, Fault, Sandbox, SeenRequest};
use oncekey::{
    Authorize, Client, ClientBuilder, Doubtful, Effect, Error, ErrorKind, Found, Parts, Poll, Profile, Response, Retry,
};
use sha2::Sha256;

type Cause = Box<dyn StdError + Send + Sync>;
type Outcome<T> = Result<T, Cause>;

const USAGE: &str =
    "usage: subscriptions [--table FILE] [--month YYYY-MM] [--seed S] [--url URL --journal FILE | --create FILE]";

/// Of a thousand requests so many meet a fault that is not in the script.
const FAULTS: u16 = 150;

/// Attempts that one run of the demonstration makes before it leaves the rest to the next.
const ATTEMPTS: u32 = 4;

// [table]
struct Subscription {
    id: String,
    customer: String,
    cents: u64,
    currency: String,
}

impl Subscription {
    /// One charge a month: the same id tonight, after a crash, from another machine.
    fn operation(&self, month: &str) -> String {
        format!("{}:{month}", self.id)
    }
}
// [/table]

fn table(text: &str) -> Outcome<Vec<Subscription>> {
    let mut table = Vec::new();
    for (number, line) in text.lines().enumerate().skip(1).filter(|(_, line)| !line.trim().is_empty()) {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let [id, customer, cents, currency] = fields[..] else {
            return Err(format!("line {} has {} fields, not 4", number + 1, fields.len()).into());
        };
        let cents = cents.parse().map_err(|_| format!("line {}: {cents} is no amount in cents", number + 1))?;
        table.push(Subscription { id: id.into(), customer: customer.into(), cents, currency: currency.into() });
    }
    Ok(table)
}

// [credentials]
/// A token that is fetched again when the server turns it down, and a signature
/// over what is sent and when. Both are made anew for each attempt.
struct Credentials {
    token: Mutex<String>,
    secret: Vec<u8>,
    fetch: Box<dyn Fn() -> String + Send + Sync>, // your identity provider
}

impl Authorize for Credentials {
    async fn authorize(&self, parts: &mut Parts<'_>) -> Result<(), Cause> {
        let token = {
            let mut token = self.token.lock().map_err(|_| "another call died with the token")?;
            if parts.previous_status().is_some_and(|status| status == 401) {
                *token = (self.fetch)();
            }
            token.clone()
        };
        let time = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs().to_string();
        let signature = sign(&self.secret, parts.method().as_str(), parts.url().path(), &time, parts.body())?;
        parts.set_header("authorization", format!("Bearer {token}"))?;
        parts.set_header("x-timestamp", time)?;
        parts.set_header("x-signature", signature)?;
        Ok(())
    }
}

/// HMAC-SHA-256 over method, path, time and body, a line each.
fn sign(secret: &[u8], method: &str, path: &str, time: &str, body: &[u8]) -> Result<String, Cause> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).map_err(|error| error.to_string())?;
    mac.update(format!("{method}\n{path}\n{time}\n").as_bytes());
    mac.update(body);
    Ok(mac.finalize().into_bytes().iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}")))
}
// [/credentials]

// [reconcile]
/// What the provider's webhooks told: its payment by our reference.
#[derive(Clone, Default)]
struct Webhooks(Arc<Mutex<BTreeMap<String, String>>>);

impl Webhooks {
    /// Where a charge must not be asked for again, the webhooks may know. That
    /// they know nothing is no proof that it was not carried out.
    fn look_up(&self, doubtful: &Doubtful<'_>) -> Result<Found, Cause> {
        let told = self.0.lock().map_err(|_| "another call died with the webhooks")?;
        let payment = doubtful.operation().and_then(|operation| told.get(operation.as_str()));
        Ok(payment.map_or(Found::Unknown, |payment| Found::Applied(format!("webhook: {payment}"))))
    }
}
// [/reconcile]

/// The bot: it knows of its past what the journal tells, and of the server its URL.
struct Bot {
    client: Client,
    url: String,
    month: String,
}

impl Bot {
    async fn start(
        builder: ClientBuilder,
        journal: &Path,
        url: &str,
        month: &str,
        credentials: Credentials,
        hooks: Webhooks,
    ) -> Outcome<Self> {
        // [client]
        let client = builder // `Client::builder()`, or one with short waits
            .profile(Profile::verifika())
            .journal(Sqlite::open(journal).await?) // never `create` here: a lost file is an alarm
            .authorize(credentials)
            .reconcile_with(move |doubtful: &Doubtful<'_>| hooks.look_up(doubtful))
            .build()?;
        // [/client]
        Ok(Self { client, url: url.to_owned(), month: month.to_owned() })
    }

    /// Whatever the last run left in the middle goes on first.
    async fn resume(&self) -> Outcome<()> {
        // [resume]
        let mut ends = self.client.resume_all().start().await?;
        while let Some((operation, end)) = ends.next().await {
            println!("resumed {operation}: {}", told(&end));
        }
        // [/resume]
        Ok(())
    }

    // [charge]
    async fn charge(&self, subscription: &Subscription) -> Result<Response, Error> {
        let operation = subscription.operation(&self.month);
        let charge = serde_json::json!({
            "amount": subscription.cents,
            "currency": subscription.currency,
            "reference": operation, // what the webhooks and the provider's books call it
        });
        self.client.post(&self.url).operation(operation).json(&charge).send().await
    }
    // [/charge]

    /// What a person must look up.
    async fn report(&self) -> Outcome<()> {
        // [report]
        for record in self.client.in_doubt().await? {
            println!("look up {}, {} s old: then `resolve` it", record.id(), record.age().as_secs());
        }
        // [/report]
        Ok(())
    }
}

// [effects]
fn told(end: &Result<Response, Error>) -> String {
    let error = match end {
        Ok(response) if response.attempts().is_empty() => return "paid, from the record".to_owned(),
        Ok(response) if response.is_replay() => return "paid, as a replay tells".to_owned(),
        Ok(_) => return "paid".to_owned(),
        // The id is another charge's, and so is the effect: this one was not sent.
        Err(error) if error.kind() == ErrorKind::Mismatch => return format!("NOT SENT: {error}"),
        Err(error) => error,
    };
    match error.effect() {
        // Nothing happened: correct the table or ask the customer. The same id is
        // tried again in the next run.
        Effect::NotApplied => {
            let reason = error.response().map_or_else(|| error.to_string(), Response::text);
            format!("NOT PAID: {reason}")
        }
        // It is paid: deliver. Only the receipt is missing.
        Effect::Applied => format!("paid, without a receipt ({})", error.kind().code()),
        // Neither deliver nor dun, and never another id: the next run goes on
        // with it, or a person looks it up.
        Effect::Unknown => format!("UNKNOWN ({}), left for the next run", error.kind().code()),
    }
}
// [/effects]

/// The ends of one run, by operation.
type Ends = BTreeMap<String, Option<Effect>>;

/// Charges all. `before` is the sandbox's script: a real bot has none.
async fn run(bot: &Bot, table: &[Subscription], before: impl Fn(&Subscription)) -> Outcome<Ends> {
    bot.resume().await?;
    let mut ends = Ends::new();
    for subscription in table {
        before(subscription);
        let end = bot.charge(subscription).await;
        println!(
            "{:<7} {:<18} {:>5} {}: {}",
            subscription.id,
            subscription.customer,
            subscription.cents,
            subscription.currency,
            told(&end)
        );
        let effect = |error: Error| match error.kind() {
            ErrorKind::Mismatch => Effect::NotApplied,
            _ => error.effect(),
        };
        ends.insert(subscription.operation(&bot.month), end.err().map(effect));
    }
    bot.report().await?;
    let count = |what: &[Option<Effect>]| ends.values().filter(|end| what.contains(end)).count();
    println!(
        "{} subscriptions: {} paid, {} not paid, {} unknown",
        ends.len(),
        count(&[None, Some(Effect::Applied)]),
        count(&[Some(Effect::NotApplied)]),
        count(&[Some(Effect::Unknown)])
    );
    Ok(ends)
}

struct Settings {
    table: Option<PathBuf>,
    month: String,
    seed: u64,
    url: Option<String>,
    journal: Option<PathBuf>,
    create: Option<PathBuf>,
}

fn settings(mut arguments: impl Iterator<Item = String>) -> Result<Settings, String> {
    let month = "2026-12".to_owned();
    let mut settings = Settings { table: None, month, seed: 2, url: None, journal: None, create: None };
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value, or is not known"))?;
        match name.as_str() {
            "--table" => settings.table = Some(value.into()),
            "--month" => settings.month = value,
            "--seed" => settings.seed = value.parse().map_err(|_| "--seed needs a number".to_owned())?,
            "--url" => settings.url = Some(value),
            "--journal" => settings.journal = Some(value.into()),
            "--create" => settings.create = Some(value.into()),
            _ => return Err(format!("{name} is not known")),
        }
    }
    // The sandbox is gone with this process: nobody could go on with such a record.
    if settings.url.is_some() != settings.journal.is_some() {
        return Err("--url and --journal go together".to_owned());
    }
    Ok(settings)
}

#[tokio::main]
async fn main() -> ExitCode {
    let settings = match settings(std::env::args().skip(1)) {
        Ok(settings) => settings,
        Err(problem) => {
            eprintln!("{problem}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match bot(&settings).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("subscriptions: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn bot(settings: &Settings) -> Outcome<ExitCode> {
    if let Some(journal) = &settings.create {
        Sqlite::create(journal).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let text = match &settings.table {
        Some(path) => std::fs::read_to_string(path)?,
        None => include_str!("subscriptions.csv").to_owned(),
    };
    let table = table(&text)?;
    let (Some(url), Some(journal)) = (&settings.url, &settings.journal) else {
        return twice(&table, settings).await;
    };
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let credentials = Credentials {
        token: Mutex::new(variable("SUBSCRIPTIONS_TOKEN")),
        secret: variable("SUBSCRIPTIONS_SECRET").into_bytes(),
        fetch: Box::new(move || variable("SUBSCRIPTIONS_TOKEN")),
    };
    let bot = Bot::start(Client::builder(), journal, url, &settings.month, credentials, Webhooks::default()).await?;
    let ends = run(&bot, &table, |_| ()).await?;
    let is_open = ends.values().any(|end| *end == Some(Effect::Unknown));
    Ok(if is_open { ExitCode::from(3) } else { ExitCode::SUCCESS })
}

const SECRET: &[u8] = b"the bot's own";

fn short_waits() -> ClientBuilder {
    let ms = Duration::from_millis;
    Client::builder()
        .http(|http| http.no_proxy())
        .retry(Retry::default().max_attempts(ATTEMPTS).base_delay(ms(5)).max_delay(ms(20)))
        .poll(Poll::default().interval(ms(10)).max_interval(ms(20)))
}

/// Two runs, a process's worth of each, and what the ledger says of them.
async fn twice(table: &[Subscription], settings: &Settings) -> Outcome<ExitCode> {
    let folder = tempfile::tempdir()?;
    let journal = folder.path().join("subscriptions.db");
    Sqlite::create(&journal).await?; // once, when the bot is installed
    let sandbox = Sandbox::builder().chaos(settings.seed, FAULTS).require_authorization("Bearer 1").start().await?;
    let webhooks = Webhooks::default();

    let mut runs = Vec::new();
    for number in 1..=2 {
        println!("{}run {number}", if number == 1 { "" } else { "\n" });
        let seen = sandbox.requests().len();
        let credentials = Credentials {
            token: Mutex::new(number.to_string()),
            secret: SECRET.to_vec(),
            fetch: Box::new(|| "2".to_owned()),
        };
        let url = sandbox.url("/v1/incomes");
        let bot = Bot::start(short_waits(), &journal, &url, &settings.month, credentials, webhooks.clone()).await?;
        let before = |subscription: &Subscription| {
            deliver(&sandbox, &webhooks);
            if number == 1 {
                break_for(&sandbox, subscription);
            }
        };
        let ends = run(&bot, table, before).await?;
        let requests = sandbox.requests().split_off(seen);
        println!("{} requests", requests.len());
        runs.push(Run { ends, requests, ledger: sandbox.ledger() });
    }
    let problems = problems(table, &settings.month, &runs)?;
    for problem in &problems {
        println!("WRONG: {problem}");
    }
    println!("\nledger: {} executions, {} wrong", sandbox.executions(), problems.len());
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Run {
    ends: Ends,
    requests: Vec<SeenRequest>,
    /// As it is when the run is over: what it says is of that time.
    ledger: Vec<Execution>,
}

/// What goes wrong in the first run, for whom.
fn break_for(sandbox: &Sandbox, subscription: &Subscription) {
    let all = usize::try_from(ATTEMPTS).unwrap_or(usize::MAX);
    match subscription.id.as_str() {
        "sub_42" => sandbox.fail_next(Fault::answer_lost()),
        "sub_43" => sandbox.set_authorization("Bearer 2"), // the token has expired
        "sub_45" => sandbox.fail_next([Fault::status(503).executing(), Fault::in_progress()]),
        "sub_46" => sandbox.fail_next(Fault::answer_lost().times(all)),
        "sub_47" => sandbox.fail_next(Fault::body_cut(9).times(all)),
        "sub_48" => sandbox.fail_next(Fault::redirect(302, "/login").executing()),
        _ => {}
    }
}

/// The provider's webhooks: each charge in the ledger is told by its reference.
fn deliver(sandbox: &Sandbox, webhooks: &Webhooks) {
    if let Ok(mut told) = webhooks.0.lock() {
        for execution in sandbox.ledger() {
            if let Some(reference) = reference(execution.body()) {
                told.insert(reference, execution.id().to_owned());
            }
        }
    }
}

fn reference(body: &[u8]) -> Option<String> {
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    body.get("reference")?.as_str().map(str::to_owned)
}

/// Where what the bot was told is not what the ledger says.
fn problems(table: &[Subscription], month: &str, runs: &[Run]) -> Outcome<Vec<String>> {
    let mut problems = Vec::new();
    let charged = |run: &Run, operation: &str| {
        run.ledger.iter().filter(|execution| reference(execution.body()).as_deref() == Some(operation)).count()
    };
    for operation in table.iter().map(|subscription| subscription.operation(month)) {
        for (number, run) in runs.iter().enumerate() {
            let charged = charged(run, &operation);
            let end = run.ends.get(&operation).copied().flatten();
            let is_true = match end {
                _ if !run.ends.contains_key(&operation) => false,
                None | Some(Effect::Applied) => charged == 1,
                Some(Effect::NotApplied) => charged == 0,
                Some(Effect::Unknown) => charged <= 1,
            };
            if !is_true {
                problems.push(format!("run {}, {operation}: told {end:?}, charged {charged} times", number + 1));
            }
        }
    }
    for pair in runs.windows(2) {
        let sent: BTreeSet<String> = pair[1].requests.iter().filter_map(|request| reference(request.body())).collect();
        for (operation, _) in pair[0].ends.iter().filter(|(_, end)| end.is_none()) {
            if sent.contains(operation) {
                problems.push(format!("{operation} was on record, and sent again"));
            }
        }
    }
    for request in runs.iter().flat_map(|run| &run.requests).filter(|request| request.is_complete()) {
        let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let time = header("x-timestamp");
        let signature = sign(SECRET, request.method().as_str(), request.path(), time, request.body())?;
        if time.is_empty() || header("x-signature") != signature {
            problems.push(format!("request {} is not signed", request.number()));
        }
    }
    Ok(problems)
}
