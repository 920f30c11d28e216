//! Every rule by which answers are read, twice: as a first attempt, and after
//! an attempt in doubt. What the caller is told stands beside what the
//! server's ledger says. Exits 1 if any row is not as it must be.
//!
//! `cargo run --example certainty --features sandbox`

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use oncekey::profile::{Answer, Judgement, Matcher, Meaning};
use oncekey::sandbox::{Fault, Sandbox};
use oncekey::{Client, ClientBuilder, Effect, ErrorKind, Parts, Poll, Profile, RequestBuilder, Retry};

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

/// What the caller is told, and how many executions the ledger must hold.
type Expected = (Told, usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Done,
    Not(ErrorKind, Effect),
}

struct Row {
    rule: &'static str,
    what: &'static str,
    /// What the server does at the attempt that the row is about.
    fault: Fault,
    /// What it does at the attempt before it, which leaves the doubt.
    doubt: Fault,
    first: Expected,
    after_doubt: Expected,
    /// Attempts that the row itself takes.
    attempts: u32,
    client: fn(ClientBuilder) -> ClientBuilder,
    request: fn(RequestBuilder) -> RequestBuilder,
    delete: bool,
    /// The server is gone by then.
    gone: bool,
}

fn row(rule: &'static str, what: &'static str, fault: Fault, first: Expected, after_doubt: Expected) -> Row {
    Row {
        rule,
        what,
        fault,
        doubt: Fault::answer_lost(),
        first,
        after_doubt,
        attempts: 1,
        client: |builder| builder,
        request: |request| request,
        delete: false,
        gone: false,
    }
}

impl Row {
    /// The doubt is about an attempt that was not carried out.
    fn doubt_unfounded(mut self) -> Self {
        self.doubt = Fault::closed_without_executing();
        self
    }
    fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }
    fn client(mut self, client: fn(ClientBuilder) -> ClientBuilder) -> Self {
        self.client = client;
        self
    }
    fn delete(mut self, request: fn(RequestBuilder) -> RequestBuilder) -> Self {
        (self.delete, self.request) = (true, request);
        self
    }
    fn gone(mut self) -> Self {
        self.gone = true;
        self
    }
}

const fn not(kind: ErrorKind, effect: Effect) -> Told {
    Told::Not(kind, effect)
}

use Effect::{Applied, NotApplied, Unknown};
use ErrorKind::{Authorize, Exhausted, Pending, Refused, Rejected, TooLarge, Unsettled};

fn rows() -> Vec<Row> {
    let json = |status: u16, code: &str| Fault::status(status).json(format!("{{\"code\":\"{code}\"}}"));
    let refused = |rule, what, fault| row(rule, what, fault, (not(Refused, NotApplied), 0), (not(Refused, Unknown), 1));
    let unsettled =
        |rule, what, fault| row(rule, what, fault, (not(Unsettled, Unknown), 0), (not(Unsettled, Unknown), 1));
    let exhausted =
        |rule, what, fault| row(rule, what, fault, (not(Exhausted, Unknown), 0), (not(Exhausted, Unknown), 1));
    let executed =
        |rule, what, fault: Fault| row(rule, what, fault, (not(Exhausted, Unknown), 1), (not(Exhausted, Unknown), 1));
    let done = |rule, what, fault| row(rule, what, fault, (Told::Done, 1), (Told::Done, 1));
    vec![
        row(
            "1",
            "the authorize hook fails",
            Fault::none(),
            (not(Authorize, NotApplied), 0),
            (not(Authorize, Unknown), 1),
        )
        .client(|builder| builder.authorize(failing_hook())),
        row("2", "connection refused", Fault::none(), (not(Exhausted, NotApplied), 0), (not(Exhausted, Unknown), 1))
            .gone(),
        executed("3", "answer lost", Fault::answer_lost()),
        executed("3", "answer lost, reset", Fault::answer_lost().with_reset()),
        exhausted("3", "closed before reading", Fault::closed_without_executing()),
        executed("3", "head cut", Fault::head_cut(9)),
        executed("3", "not HTTP", Fault::garbled_head()),
        executed("3", "no answer in time", Fault::stall_after_executing()),
        unsettled("4", "302", Fault::redirect(302, "/elsewhere")),
        unsettled("4", "307", Fault::redirect(307, "/elsewhere")),
        unsettled("4", "207", Fault::status(207)),
        exhausted("5", "400, body cut", json(400, "NO").with_body_cut(3)),
        exhausted("5", "503, body stalled", json(503, "NO").with_stall_in_body(3)),
        exhausted("6", "409 in progress, for ever", Fault::in_progress().times(60)),
        done("6", "409 in progress, then done", Fault::in_progress().times(2)).attempts(3),
        unsettled("6b", "409 key reused", json(409, "IDEMPOTENCY_KEY_REUSED")),
        row(
            "6b",
            "409 key reused for certain",
            json(409, "IDEMPOTENCY_KEY_REUSED"),
            (not(Refused, NotApplied), 0),
            (not(Unsettled, Unknown), 1),
        )
        .client(verifika),
        unsettled("6c", "409 already processed", json(409, "SEEN")).client(custom),
        unsettled("6c", "500 stored failure", json(500, "BURNT")).client(custom),
        unsettled("7", "500, should-retry: false", Fault::status(500).header("stripe-should-retry", "false"))
            .client(stripe),
        row(
            "7",
            "400, should-retry: true",
            Fault::status(400).header("stripe-should-retry", "true").times(2),
            (not(Exhausted, NotApplied), 0),
            (not(Exhausted, Unknown), 1),
        )
        .client(stripe)
        .attempts(2),
        exhausted("8", "200 with a page", Fault::html(200)),
        executed("8", "201, a page, carried out", Fault::html(201).executing()),
        row("9", "202", Fault::status(202).executing(), (not(Pending, Unknown), 1), (not(Pending, Unknown), 1)),
        row("9", "201, the judge: pending", Fault::none(), (not(Pending, Unknown), 1), (not(Pending, Unknown), 1))
            .client(|builder| builder.judge(always(Judgement::Pending)))
            .doubt_unfounded(),
        refused("9b", "200, the judge: refused", json(200, "NO"))
            .client(|builder| builder.judge(always(Judgement::Refused))),
        unsettled("9b", "200, the judge: unclear", json(200, "NO"))
            .client(|builder| builder.judge(always(Judgement::Unclear))),
        row("10", "201, body cut", Fault::body_cut(5), (not(Exhausted, Applied), 1), (not(Exhausted, Applied), 1)),
        row(
            "10",
            "201, half the JSON",
            Fault::unframed_cut(9),
            (not(Exhausted, Applied), 1),
            (not(Exhausted, Applied), 1),
        ),
        row("10", "201, stalled", Fault::stall_in_body(5), (not(Exhausted, Applied), 1), (not(Exhausted, Applied), 1)),
        row("10", "201, too long", Fault::oversized(99_999), (not(TooLarge, Applied), 1), (not(TooLarge, Applied), 1)),
        done("10", "201, body cut, then whole", Fault::body_cut(5)).attempts(2),
        done("11", "201", Fault::none()),
        unsettled("12", "500 replayed", Fault::replayed(500)),
        done("12", "500 replayed, never stored", Fault::replayed(500)).client(verifika).attempts(2),
        row("13", "422 replayed", Fault::replayed(422), (not(Rejected, NotApplied), 0), (not(Rejected, NotApplied), 0))
            .doubt_unfounded(),
        row(
            "14",
            "402 that is called final",
            json(402, "FINAL"),
            (not(Rejected, NotApplied), 0),
            (not(Rejected, NotApplied), 0),
        )
        .client(custom)
        .doubt_unfounded(),
        refused("15", "401, no hook", Fault::status(401)),
        done("15", "401, then a fresh token", Fault::status(401))
            .client(|builder| builder.authorize(|_: &mut Parts<'_>| -> Outcome { Ok(()) }))
            .attempts(2),
        refused("15", "401, and again", Fault::status(401).times(2))
            .client(|builder| builder.authorize(|_: &mut Parts<'_>| -> Outcome { Ok(()) }))
            .attempts(2),
        refused("15b", "DELETE: 404", Fault::status(404)).delete(|request| request),
        done("15b", "DELETE: 404, gone is done", Fault::status(404).executing()).delete(RequestBuilder::gone_is_done),
        refused("16", "400", json(400, "INVALID")),
        refused("16", "402", json(402, "DECLINED")),
        refused("16", "404 with a page", Fault::html(404)),
        unsettled("16", "403 with a page", Fault::html(403)),
        refused("17", "409 INSUFFICIENT_FUNDS", json(409, "INSUFFICIENT_FUNDS")),
        unsettled("17", "409 ALREADY_EXISTS", json(409, "ALREADY_EXISTS")),
        unsettled("17", "409 without a code", Fault::status(409)),
        exhausted("18", "408", Fault::status(408)),
        exhausted("18", "429", Fault::status(429)),
        executed("18", "429, carried out", Fault::status(429).executing()),
        row(
            "18",
            "429 promised to be first",
            Fault::status(429),
            (not(Exhausted, NotApplied), 0),
            (not(Exhausted, Unknown), 1),
        )
        .client(custom),
        exhausted("19", "503", Fault::status(503)),
        executed("19", "500, carried out", Fault::status(500).executing()),
        unsettled("20", "418", Fault::status(418)),
    ]
}

/// Fails, but for the attempt that leaves the doubt.
fn failing_hook() -> impl Fn(&mut Parts<'_>) -> Outcome {
    move |parts: &mut Parts<'_>| {
        let spared = parts.headers().contains_key("x-doubt") && parts.attempt() == 1;
        if spared { Ok(()) } else { Err("the vault is sealed".into()) }
    }
}

fn always(judgement: Judgement) -> impl Fn(&Answer<'_>) -> Judgement {
    move |_| judgement
}

fn verifika(builder: ClientBuilder) -> ClientBuilder {
    builder.profile(Profile::verifika())
}

fn stripe(builder: ClientBuilder) -> ClientBuilder {
    builder.profile(Profile::stripe())
}

fn custom(builder: ClientBuilder) -> ClientBuilder {
    let profile = Profile::builder("custom")
        .rule(Matcher::new().status(409).code("SEEN"), Meaning::AlreadyProcessed)
        .rule(Matcher::new().status(500).code("BURNT"), Meaning::StoredFailure)
        .settles(Matcher::new().status(402).code("FINAL"))
        .limits_before_work(true)
        .build();
    builder.profile(profile.expect("the profile is well formed"))
}

/// One row, once. Gives what the caller was told and what the ledger says.
async fn run(row: &Row, doubt: bool) -> Result<Expected, Box<dyn Error>> {
    let sandbox = Sandbox::start().await?;
    if doubt {
        sandbox.fail_next([row.doubt.clone()]);
    }
    sandbox.fail_next([row.fault.clone()]);
    let ms = Duration::from_millis;
    // Where the server goes away, there must be time for it to go.
    let delay = if row.gone && doubt { ms(200) } else { ms(1) };
    let builder = Client::builder()
        .http(|http| http.no_proxy())
        .retry(Retry::default().max_attempts(row.attempts + u32::from(doubt)).base_delay(delay).max_delay(delay))
        .poll(Poll::default().interval(ms(10)).max_interval(ms(10)).limit(ms(300)))
        .attempt_timeout(ms(250))
        .max_response_bytes(10_000);
    let client = (row.client)(builder).build()?;
    let url = if row.gone && !doubt { closed_port()? } else { sandbox.url("/v1/payments") };
    let request = if row.delete { client.delete(url) } else { client.post(url).json(&[1]) };
    let request = if doubt { request.header("x-doubt", "yes") } else { request };
    let call = tokio::spawn((row.request)(request).send());

    let (sent, executions) = if row.gone && doubt {
        sandbox.until(|sandbox| sandbox.executions() == 1).await;
        let executions = sandbox.executions();
        drop(sandbox);
        (call.await?, executions)
    } else {
        (call.await?, sandbox.executions())
    };
    Ok(match sent {
        Ok(_) => (Told::Done, executions),
        Err(error) => (Told::Not(error.kind(), error.effect()), executions),
    })
}

fn closed_port() -> std::io::Result<String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    Ok(format!("http://{}/", listener.local_addr()?))
}

/// Whether what was told can be true, whatever was expected.
fn is_true((told, executions): Expected) -> bool {
    match told {
        Told::Done | Told::Not(_, Applied) => executions == 1,
        Told::Not(_, NotApplied) => executions == 0,
        Told::Not(_, Unknown) => executions <= 1,
    }
}

fn shown((told, executions): Expected) -> String {
    let told = match told {
        Told::Done => "Ok".to_owned(),
        Told::Not(kind, effect) => format!("{}: {effect}", format!("{kind:?}").to_lowercase()),
    };
    format!("{told:<22} {executions}")
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    println!("{:31}{:<25}after doubt", "", "as a first attempt");
    println!("rule {:<26}{:<22} # {:<22} #", "answer", "told", "told");
    let mut wrong = 0;
    let rows = rows();
    for row in &rows {
        let (first, after) = (run(row, false).await?, run(row, true).await?);
        let agrees = (first, after) == (row.first, row.after_doubt) && is_true(first) && is_true(after);
        println!("{:<5}{:<26}{} {}", row.rule, row.what, shown(first), shown(after));
        if !agrees {
            wrong += 1;
            println!("    ^ must be                  {} {}", shown(row.first), shown(row.after_doubt));
        }
    }
    println!("\n#: executions in the ledger. {} rows, each twice: {wrong} disagree.", rows.len());
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
