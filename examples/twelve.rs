//! The usual retry loop beside this crate, in the twelve commonest failures,
//! each run for both against a server of its own.
//!
//! `cargo run --example twelve --features sandbox,sqlite`, in Spanish with
//! `-- --lang es`
//!
//! `done` is what the server's ledger holds. `!` marks what is wrong: done more
//! than once, or not what the caller was told. Exits 1 if our half has one.
//! `docs/bots.md` has this table.
#![allow(clippy::disallowed_methods, reason = "a loop that sleeps is what is looked at")]

use std::error::Error as StdError;
use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, SystemTime};

use oncekey::journal::Sqlite;
use oncekey::sandbox::{Fault, Sandbox, SandboxBuilder};
use oncekey::{Client, ClientBuilder, Effect, Error, ErrorKind, IdempotencyKey, Parts, Poll, Profile, Response, Retry};
use tokio::time::sleep;

type Cause = Box<dyn StdError + Send + Sync>;
type Outcome<T> = Result<T, Cause>;

const MS: Duration = Duration::from_millis(1);
/// 500 ms in life. Our own waits are cut shorter still: only the loop's patience is looked at.
const LOOP_UNIT: Duration = Duration::from_millis(400);
/// The same for both.
const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(500);
/// Stands for the 24 hours that a key is remembered.
const KEY_LIFETIME: Duration = Duration::from_secs(3);
const OPERATION: &str = "sub_42:2026-12";

// [loop]
/// One key for all attempts, three of them, 1 s and 2 s apart, after whatever
/// may pass by itself: no answer, 429, 5xx, 409 in progress.
async fn pay_in_a_loop(url: &str, key: &str, body: &serde_json::Value) -> Result<serde_json::Value, String> {
    // Redirects are followed, as `fetch` and reqwest do unless told otherwise.
    let http = reqwest::Client::builder().no_proxy().timeout(ATTEMPT_TIMEOUT).build().map_err(|e| e.to_string())?;
    for attempt in 1..=3 {
        let request = http.post(url).bearer_auth("vk_test").header("idempotency-key", key);
        let request = request.header("content-type", "application/json").body(body.to_string());
        if let Ok(answer) = request.send().await {
            let status = answer.status();
            if status.is_success() {
                let receipt = answer.bytes().await.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
                return receipt.ok_or_else(|| "no JSON".to_owned());
            }
            let said = answer.text().await.unwrap_or_default();
            let in_progress = status == 409 && said.contains("IN_PROGRESS");
            if !in_progress && status != 429 && !status.is_server_error() {
                return Err(status.as_u16().to_string());
            }
        }
        if attempt < 3 {
            sleep(LOOP_UNIT * 2_u32.pow(attempt)).await;
        }
    }
    Err("gave up".to_owned())
}
// [/loop]

fn charge() -> serde_json::Value {
    serde_json::json!({ "amount": 4900, "reference": OPERATION })
}

fn new_key() -> Outcome<String> {
    Ok(IdempotencyKey::random().as_str().to_owned())
}

async fn client(journal: &Path) -> Outcome<ClientBuilder> {
    Ok(Client::builder()
        .profile(Profile::verifika())
        .http(|http| http.no_proxy())
        .retry(Retry::default().base_delay(MS * 2).max_delay(MS * 20))
        .poll(Poll::default().interval(MS * 600).max_interval(MS * 600))
        .attempt_timeout(ATTEMPT_TIMEOUT)
        .authorize(|parts: &mut Parts<'_>| -> Outcome<()> { Ok(parts.set_header("authorization", "Bearer vk_test")?) })
        .journal(Sqlite::open_or_create(journal).await?))
}

async fn pay(client: &Client, url: &str) -> Result<Response, Error> {
    client.post(url).operation(OPERATION).json(&charge()).send().await
}

/// What a caller believes, or is told.
enum Told {
    Paid,
    Replay,
    Failed(String),
    NotApplied,
    NoAnswer,
    LookUp,
    /// In so many hours.
    AskAgain(u64),
}

impl Told {
    fn by_the_loop(end: Result<serde_json::Value, String>) -> Self {
        end.map_or_else(Self::Failed, |_| Self::Paid)
    }

    fn by_us(end: &Result<Response, Error>) -> Self {
        let error = match end {
            Ok(response) if response.is_replay() => return Self::Replay,
            Ok(_) => return Self::Paid,
            Err(error) => error,
        };
        match error.effect() {
            Effect::NotApplied => Self::NotApplied,
            Effect::Applied => Self::NoAnswer,
            Effect::Unknown if error.kind() == ErrorKind::Exhausted => {
                let wait = error.resume_at().and_then(|at| at.duration_since(SystemTime::now()).ok());
                Self::AskAgain((wait.unwrap_or_default().as_secs() + 1800) / 3600)
            }
            Effect::Unknown => Self::LookUp,
        }
    }

    fn is_wrong(&self, executions: usize) -> bool {
        match self {
            Self::Paid | Self::Replay | Self::NoAnswer => executions != 1,
            Self::Failed(_) | Self::NotApplied => executions != 0,
            Self::LookUp | Self::AskAgain(_) => executions > 1,
        }
    }

    fn said(&self, spanish: bool) -> String {
        let (english, in_spanish) = match self {
            Self::Paid => ("paid".to_owned(), "pagado".to_owned()),
            Self::Replay => ("paid, a replay".to_owned(), "pagado, repetición".to_owned()),
            Self::Failed(why) => {
                let razon = why.replace("gave up", "se rindió").replace("no JSON", "no es JSON");
                (format!("failed: {why}"), format!("falló: {razon}"))
            }
            Self::NotApplied => ("not paid".to_owned(), "no pagado".to_owned()),
            Self::NoAnswer => ("paid, no receipt".to_owned(), "pagado, sin recibo".to_owned()),
            Self::LookUp => ("unknown: look it up".to_owned(), "incierto: consultar".to_owned()),
            Self::AskAgain(0) => ("unknown: ask again".to_owned(), "incierto: reintentar".to_owned()),
            Self::AskAgain(hours) => (format!("unknown: in {hours} h"), format!("incierto: en {hours} h")),
        };
        if spanish { in_spanish } else { english }
    }
}

struct Half {
    executions: usize,
    requests: usize,
    told: Told,
}

impl Half {
    fn of(sandbox: &Sandbox, told: Told) -> Self {
        Self { executions: sandbox.executions(), requests: sandbox.requests().len(), told }
    }

    fn is_wrong(&self) -> bool {
        self.told.is_wrong(self.executions)
    }

    fn shown(&self, spanish: bool) -> String {
        let mark = if self.is_wrong() { " !" } else { "" };
        format!("{:>4}{:>5}  {}{mark}", self.executions, self.requests, self.told.said(spanish))
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Story {
    /// One call.
    Call,
    /// One call, and a second after the key was forgotten.
    NextDay,
    /// A process that is killed after the execution, and started again.
    Killed,
}

#[derive(Clone)]
struct Failure {
    english: &'static str,
    spanish: &'static str,
    faults: Vec<Fault>,
    story: Story,
    server: fn(SandboxBuilder) -> SandboxBuilder,
    client: fn(ClientBuilder) -> ClientBuilder,
}

fn failures() -> Vec<Failure> {
    let row = |english, spanish, faults: Vec<Fault>| Failure {
        english,
        spanish,
        faults,
        story: Story::Call,
        server: |server| server,
        client: |client| client,
    };
    vec![
        row("answer lost after execution", "respuesta perdida tras ejecutar", vec![Fault::answer_lost()]),
        row("503 after execution", "503 tras ejecutar", vec![Fault::status(503).executing()]),
        row(
            "timeout while executing",
            "tiempo agotado al ejecutar",
            vec![Fault::stall_while_executing().lasting(MS * 850)],
        ),
        row(
            "lost, then 409 in progress, 4 times",
            "perdida, y 409 en proceso, 4 veces",
            vec![Fault::answer_lost(), Fault::in_progress().times(4)],
        ),
        Failure {
            server: |server| server.store_errors(true),
            // Verifika stores no errors; others do.
            client: |client| client.profile(Profile::generic()),
            ..row(
                "executed, its 500 is replayed",
                "ejecutado, su 500 se repite",
                vec![Fault::status(500).from_handler().executing()],
            )
        },
        row(
            "lost, then 401: expired token",
            "perdida, y 401: token vencido",
            vec![Fault::answer_lost(), Fault::status(401)],
        ),
        row("301 to another address", "301 a otra dirección", vec![Fault::redirect(301, "/v2/incomes")]),
        row("HTML page with 200", "página HTML con 200", vec![Fault::html(200)]),
        row("body cut after execution", "cuerpo cortado tras ejecutar", vec![Fault::body_cut(9)]),
        row(
            "503, Retry-After of an hour",
            "503, Retry-After de una hora",
            vec![Fault::status(503).retry_after("3600").times(12)],
        ),
        Failure {
            story: Story::NextDay,
            // As patient as the loop, so that both have given up by then.
            client: |client| client.key_lifetime(KEY_LIFETIME).retry(Retry::default().max_attempts(3).base_delay(MS)),
            ..row(
                "no answer; again with a forgotten key",
                "sin respuesta; luego, llave olvidada",
                vec![Fault::answer_lost().times(12)],
            )
        },
        Failure {
            story: Story::Killed,
            ..row(
                "killed after execution, and restarted",
                "matado tras ejecutar, y reiniciado",
                vec![Fault::stall_after_executing()],
            )
        },
    ]
}

impl Failure {
    async fn sandbox(&self) -> Outcome<Sandbox> {
        let sandbox = (self.server)(Sandbox::builder()).start().await?;
        sandbox.fail_next(self.faults.clone());
        Ok(sandbox)
    }

    async fn for_the_loop(&self) -> Outcome<Half> {
        let sandbox = self.sandbox().await?;
        let url = sandbox.url("/v1/incomes");
        if self.story == Story::Killed {
            let told = killed(&sandbox, ["loop".to_owned(), url, String::new()]).await?;
            return Ok(Half::of(&sandbox, told));
        }
        let key = new_key()?;
        let mut end = pay_in_a_loop(&url, &key, &charge()).await;
        if self.story == Story::NextDay {
            next_day(&sandbox);
            // It kept the key, which is more than most do.
            end = pay_in_a_loop(&url, &key, &charge()).await;
        }
        Ok(Half::of(&sandbox, Told::by_the_loop(end)))
    }

    async fn for_us(&self) -> Outcome<Half> {
        let sandbox = self.sandbox().await?;
        let url = sandbox.url("/v1/incomes");
        let folder = tempfile::tempdir()?;
        let journal = folder.path().join("payments.db");
        if self.story == Story::Killed {
            Sqlite::create(&journal).await?;
            let told = killed(&sandbox, ["oncekey".to_owned(), url, journal.to_string_lossy().into_owned()]).await?;
            return Ok(Half::of(&sandbox, told));
        }
        let client = (self.client)(client(&journal).await?).build()?;
        let mut end = pay(&client, &url).await;
        if self.story == Story::NextDay {
            next_day(&sandbox);
            sleep(KEY_LIFETIME).await; // our own clock cannot be moved
            end = pay(&client, &url).await;
        }
        Ok(Half::of(&sandbox, Told::by_us(&end)))
    }
}

fn next_day(sandbox: &Sandbox) {
    sandbox.clear_faults();
    sandbox.advance(Duration::from_secs(25 * 60 * 60));
}

/// Starts a process that pays, kills it once it is executed, and starts it again.
async fn killed(sandbox: &Sandbox, arguments: [String; 3]) -> Outcome<Told> {
    let first = Running::start(&arguments)?;
    tokio::time::timeout(Duration::from_secs(60), sandbox.until(|sandbox| sandbox.executions() == 1)).await?;
    drop(first);
    let mut second = Running::start(&arguments)?;
    let told = tokio::task::spawn_blocking(move || second.line()).await??;
    Ok(match told.as_str() {
        "paid" => Told::Paid,
        "replay" => Told::Replay,
        "look up" => Told::LookUp,
        other => Told::Failed(other.to_owned()),
    })
}

/// A child that does not outlive this value.
struct Running(Child);

impl Running {
    fn start(arguments: &[String; 3]) -> Outcome<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        Ok(Self(command.arg("--child").args(arguments).stdout(Stdio::piped()).spawn()?))
    }

    fn line(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        if let Some(stdout) = self.0.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        Ok(line.trim().to_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What is killed. Our half knows of its past what the journal tells; the loop's
/// has nothing to know it from.
async fn child(who: &str, url: &str, journal: &str) -> Outcome<()> {
    let told = if who == "loop" {
        Told::by_the_loop(pay_in_a_loop(url, &new_key()?, &charge()).await)
    } else {
        // The one that is killed must not give up before.
        let client = client(Path::new(journal)).await?.attempt_timeout(Duration::from_secs(60)).build()?;
        let mut ends = client.resume_all().start().await?;
        let resumed = ends.next().await;
        // As a bot does, which knows nothing of what it resumed.
        let end = pay(&client, url).await;
        Told::by_us(&resumed.map_or(end, |(_, resumed)| resumed))
    };
    match told {
        Told::Paid => println!("paid"),
        Told::Replay => println!("replay"),
        Told::LookUp => println!("look up"),
        Told::Failed(why) => println!("{why}"),
        Told::NotApplied | Told::NoAnswer | Told::AskAgain(_) => println!("{}", told.said(false)),
    }
    Ok(())
}

struct Row {
    number: usize,
    failure: Failure,
    naive: Half,
    ours: Half,
}

struct Comparison {
    rows: Vec<Row>,
    spanish: bool,
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, second) = if self.spanish {
            (["", "el bucle", "oncekey"], ["qué falla", "hechas env.  cree", "hechas env.  se le dice"])
        } else {
            (["", "the loop", "oncekey"], ["what goes wrong", "done sent  believes", "done sent  is told"])
        };
        for [what, naive, ours] in [first, second] {
            let number = if what.is_empty() { " " } else { "#" };
            writeln!(f, "{number:>2} {what:<37}{naive:<30}{ours}")?;
        }
        for row in &self.rows {
            let what = if self.spanish { row.failure.spanish } else { row.failure.english };
            let (naive, ours) = (row.naive.shown(self.spanish), row.ours.shown(self.spanish));
            writeln!(f, "{:>2} {what:<37}{naive:<30}{ours}", row.number)?;
        }
        Ok(())
    }
}

async fn compare(spanish: bool) -> Outcome<Comparison> {
    let mut running = tokio::task::JoinSet::new();
    for (index, failure) in failures().into_iter().enumerate() {
        running.spawn_local(async move {
            let (naive, ours) = tokio::try_join!(failure.for_the_loop(), failure.for_us())?;
            Ok::<_, Cause>(Row { number: index + 1, failure, naive, ours })
        });
    }
    let mut rows = Vec::new();
    while let Some(row) = running.join_next().await {
        rows.push(row??);
    }
    rows.sort_by_key(|row| row.number);
    Ok(Comparison { rows, spanish })
}

#[tokio::main]
async fn main() -> Outcome<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let spanish = match arguments[..] {
        ["--child", who, url, journal] => {
            child(who, url, journal).await?;
            return Ok(ExitCode::SUCCESS);
        }
        [] | ["--lang", "en"] => false,
        ["--lang", "es"] => true,
        _ => {
            eprintln!("usage: twelve [--lang en|es]");
            return Ok(ExitCode::from(2));
        }
    };
    let comparison = tokio::task::LocalSet::new().run_until(compare(spanish)).await?;
    print!("{comparison}");
    let is_wrong = comparison.rows.iter().any(|row| row.ours.is_wrong());
    Ok(if is_wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
