//! Assertions for tests against a [`Sandbox`]: what the client was told, beside
//! what the server did.
//!
//! A failure prints the attempts and, below them, what the server saw of them:
//! each request with its key, its body, the fault it met, the status it was
//! answered with and the line that it left in the ledger. Keys are cut, equal
//! keys and equal bodies bear the same letter, and nothing of a body, a header or
//! a query is shown.
//!
//! ```
//! use oncekey::sandbox::{Fault, Sandbox};
//! use oncekey::{Client, testing};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let sandbox = Sandbox::start().await?;
//! sandbox.fail_next([Fault::answer_lost(), Fault::status(503)]);
//! let sent = Client::new().post(sandbox.url("/v1/payments")).body("amount=4999").send().await;
//! testing::assert_once(&sandbox, &sent);
//! # Ok(())
//! # }
//! ```
//!
//! | for | use |
//! |---|---|
//! | one operation that must be carried out, in a sandbox of its own | [`assert_once`] |
//! | one that must not be, or more than one | [`assert_executions`] |
//! | any operation, also among others in one sandbox | [`assert_truthful`] |
//! | what went over the wire, whatever the end | [`assert_one_key`], [`assert_same_bytes`] |
//! | a message of your own | [`report`] |

use std::fmt;

use http::Method;

use crate::attempt::Attempt;
use crate::engine::Effect;
use crate::error::Error;
use crate::response::Response;
use crate::sandbox::{Execution, Sandbox, SeenRequest};
use crate::submission::{IdempotencyKey, abbreviated};

/// What `send` returned.
type Sent = Result<Response, Error>;

/// The sandbox carried out one operation, once; all of its requests had one key
/// and the same bytes; and the caller was told nothing else than that.
///
/// `Ok` and an error whose effect is not `NotApplied` agree with an execution. For
/// a sandbox that serves this operation alone.
///
/// ```
/// # use oncekey::sandbox::{Fault, Sandbox};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let ms = std::time::Duration::from_millis;
/// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
/// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
/// # use oncekey::testing;
/// # let sandbox = Sandbox::start().await?;
/// sandbox.fail_next([Fault::answer_lost(), Fault::status(503), Fault::in_progress()]);
/// let sent = client.post(sandbox.url("/payments")).body("{}").send().await;
/// testing::assert_once(&sandbox, &sent);
/// # Ok(())
/// # }
/// ```
///
/// # Panics
///
/// When one of these is not so.
#[track_caller]
pub fn assert_once(sandbox: &Sandbox, sent: &Sent) {
    assert_executions(sandbox, 1, sent);
    assert_one_key(sandbox, sent);
    assert_same_bytes(sandbox, sent);
    assert_truthful(sandbox, sent);
}

/// The sandbox carried out exactly `n` operations, whoever asked for them.
///
/// ```
/// # use oncekey::sandbox::{Fault, Sandbox};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let ms = std::time::Duration::from_millis;
/// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
/// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
/// # use oncekey::testing;
/// # let sandbox = Sandbox::start().await?;
/// // A declined card: tried, and nothing carried out.
/// sandbox.fail_next(Fault::status(402).from_handler_without_executing());
/// let sent = client.post(sandbox.url("/payments")).body("{}").send().await;
/// testing::assert_executions(&sandbox, 0, &sent);
/// # Ok(())
/// # }
/// ```
///
/// # Panics
///
/// When its ledger is longer or shorter.
#[track_caller]
pub fn assert_executions(sandbox: &Sandbox, n: usize, sent: &Sent) {
    let found = sandbox.executions();
    if found != n {
        let what = format!("the ledger must hold {}, and holds {found}", count(n, "execution"));
        fail(&what, &report(sandbox, sent));
    }
}

/// Every request that the sandbox saw had one key, and all had the same. For a
/// sandbox that serves one operation alone.
///
/// ```
/// # use oncekey::sandbox::{Fault, Sandbox};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let ms = std::time::Duration::from_millis;
/// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
/// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
/// # use oncekey::testing;
/// # let sandbox = Sandbox::start().await?;
/// sandbox.fail_next(Fault::reset_without_executing().times(3));
/// let sent = client.post(sandbox.url("/payments")).body("{}").send().await;
/// testing::assert_one_key(&sandbox, &sent);
/// assert_eq!(sandbox.requests().len(), 4);
/// # Ok(())
/// # }
/// ```
///
/// # Panics
///
/// When two keys were seen, or a request without one or with more than one.
#[track_caller]
pub fn assert_one_key(sandbox: &Sandbox, sent: &Sent) {
    let requests = sandbox.requests();
    let mut keys = Letters::default();
    for request in &requests {
        keys.of(request.keys());
        if request.keys().len() != 1 {
            let what = format!("request {} has {}", request.number(), count(request.keys().len(), "key"));
            fail(&what, &report(sandbox, sent));
        }
    }
    if keys.0.len() > 1 {
        let what = format!("one operation has one key, and {} were seen", keys.0.len());
        fail(&what, &report(sandbox, sent));
    }
}

/// Every request that the sandbox read to its end was the same: method, path,
/// query and body. For a sandbox that serves one operation alone.
///
/// ```
/// # use oncekey::sandbox::{Fault, Sandbox};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let ms = std::time::Duration::from_millis;
/// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
/// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
/// # use oncekey::testing;
/// # let sandbox = Sandbox::start().await?;
/// sandbox.fail_next([Fault::closed_before_reading(), Fault::status(502)]);
/// let sent = client.post(sandbox.url("/payments?dry=no")).body(r#"{"amount":4999}"#).send().await;
/// testing::assert_same_bytes(&sandbox, &sent);
/// # Ok(())
/// # }
/// ```
///
/// # Panics
///
/// When two differ.
#[track_caller]
pub fn assert_same_bytes(sandbox: &Sandbox, sent: &Sent) {
    let requests = sandbox.requests();
    let mut whole = requests.iter().filter(|request| request.is_complete());
    let Some(first) = whole.next() else { return };
    let same = |other: &&SeenRequest| {
        (first.method(), first.path(), first.body()) == (other.method(), other.path(), other.body())
    };
    if let Some(other) = whole.find(|other| !same(other)) {
        let what = format!("requests {} and {} are not the same", first.number(), other.number());
        fail(&what, &report(sandbox, sent));
    }
}

/// What the caller was told agrees with the ledger: after `Ok` and
/// [`Effect::Applied`] it holds this operation, after [`Effect::NotApplied`] it
/// does not. [`Effect::Unknown`] agrees with both.
///
/// The operation is found by its key, so that a sandbox may serve many at once.
/// One without a key is taken for all that came without.
///
/// ```
/// # use oncekey::sandbox::{Fault, Sandbox};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let ms = std::time::Duration::from_millis;
/// # let (retry, poll) = (oncekey::Retry::default().max_attempts(1).base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
/// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
/// # use oncekey::testing;
/// # let sandbox = Sandbox::start().await?;
/// // A client with `max_attempts(1)`: paid and not told, turned away, paid.
/// sandbox.fail_next([Fault::answer_lost(), Fault::status(422), Fault::none()]);
/// for effect in ["unknown", "not applied", "applied"] {
///     let sent = client.post(sandbox.url("/payments")).body("{}").send().await;
///     testing::assert_truthful(&sandbox, &sent);
///     assert_eq!(sent.map_or_else(|error| error.effect().to_string(), |_| "applied".into()), effect);
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Panics
///
/// When the caller was told what is not so.
#[track_caller]
pub fn assert_truthful(sandbox: &Sandbox, sent: &Sent) {
    let key = key_of(sent);
    let done = sandbox.ledger().iter().filter(|execution| is_under(execution.key(), key)).count();
    let effect = effect_of(sent);
    let agrees = match effect {
        // A GET is carried out without a line in the ledger.
        Effect::Applied => done > 0 || (key.is_none() && !sandbox.requests().iter().any(is_written_down)),
        Effect::NotApplied => done == 0,
        Effect::Unknown => true,
    };
    if !agrees {
        let told = if effect == Effect::Applied { "was carried out" } else { "was not carried out" };
        let what = format!("the caller is told that it {told}, and the ledger holds {}", count(done, "execution"));
        fail(&what, &report_of(sandbox, sent, Scope::Key));
    }
}

/// The attempts, what the caller was told, and what the sandbox saw and did: the
/// text that a failed assertion prints.
///
/// ```
/// # use oncekey::sandbox::{Fault, Sandbox};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let ms = std::time::Duration::from_millis;
/// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
/// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
/// # use oncekey::testing;
/// # let sandbox = Sandbox::start().await?;
/// sandbox.fail_next(Fault::answer_lost());
/// let sent = client.post(sandbox.url("/payments")).body("{}").send().await;
/// let report = testing::report(&sandbox, &sent).to_string();
/// assert!(report.contains("told: carried out, 201"));
/// assert!(report.ends_with("the server's ledger: 1 execution\n"), "{report}");
/// # Ok(())
/// # }
/// ```
pub fn report(sandbox: &Sandbox, sent: &Sent) -> Report {
    report_of(sandbox, sent, Scope::All)
}

fn report_of(sandbox: &Sandbox, sent: &Sent, scope: Scope) -> Report {
    let key = key_of(sent);
    let (mut requests, mut ledger) = (sandbox.requests(), sandbox.ledger());
    let seen = requests.len();
    if scope == Scope::Key {
        requests.retain(|request| is_under(request.key(), key));
        ledger.retain(|execution| is_under(execution.key(), key));
    }
    let attempts = sent.as_ref().map_or_else(Error::attempts, Response::attempts);
    Report {
        attempts: Attempt::table(attempts).to_string(),
        told: match sent {
            Ok(response) => format!("carried out, {}", response.status().as_u16()),
            Err(error) => error.to_string(),
        },
        others: seen.saturating_sub(requests.len()),
        requests,
        ledger,
    }
}

/// What a failed assertion prints; see [`report`].
#[derive(Clone)]
#[must_use = "it is to be printed"]
pub struct Report {
    attempts: String,
    told: String,
    requests: Vec<SeenRequest>,
    ledger: Vec<Execution>,
    others: usize,
}

/// Which requests a report is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    All,
    Key,
}

/// More rows than these are not read in a terminal.
const ROWS: usize = 40;

/// 80 columns wide, but for what the caller was told, which is one line.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.attempts)?;
        writeln!(f, "told: {}\n", self.told)?;
        writeln!(f, " #  what the server saw key          body  fault                    said ledger")?;
        if self.requests.is_empty() {
            writeln!(f, "    nothing arrived")?;
        }
        let (mut keys, mut bodies) = (Letters::default(), Letters::default());
        for request in self.requests.iter().take(ROWS) {
            let path = request.path().split('?').next().unwrap_or_default();
            let key = match request.keys() {
                [] => "-".to_owned(),
                [key] => format!("{} {}", keys.of(request.keys()), abbreviated(key)),
                several => format!("{} lines", several.len()),
            };
            // As far as it was read; a body that was cut is none of the others.
            let body = if request.is_complete() { bodies.of(request.body()).to_string() } else { "cut".to_owned() };
            let line = format!(
                "{:>2}  {:<19.19} {key:<11.11}  {body:<4}  {:<24} {:<4} {}",
                request.number(),
                format!("{} {path}", request.method()),
                request.fault().map_or("", |fault| fault.name()),
                request.status().map_or_else(|| "-".to_owned(), |status| status.as_u16().to_string()),
                self.executed_by(request),
            );
            writeln!(f, "{}", line.trim_end())?;
        }
        if self.requests.len() > ROWS {
            writeln!(f, "    and {} more", self.requests.len() - ROWS)?;
        }
        if self.others > 0 {
            writeln!(f, "    and {} of other operations", count(self.others, "request"))?;
        }
        write!(f, "\nthe server's ledger: {}", count(self.ledger.len(), "execution"))?;
        for double in self.ledger.iter().filter(|execution| execution.is_double()) {
            write!(f, "; {} is the server's own double", double.id())?;
        }
        writeln!(f)
    }
}

impl Report {
    fn executed_by(&self, request: &SeenRequest) -> String {
        let ids = self.ledger.iter().filter(|execution| execution.request() == request.number());
        ids.map(Execution::id).collect::<Vec<_>>().join(" ")
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A letter for each value that differs from those before it.
struct Letters<'a, T: ?Sized>(Vec<&'a T>);

impl<T: ?Sized> Default for Letters<'_, T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'a, T: PartialEq + ?Sized> Letters<'a, T> {
    fn of(&mut self, value: &'a T) -> char {
        let found = self.0.iter().position(|known| *known == value);
        let index = found.unwrap_or_else(|| {
            self.0.push(value);
            self.0.len() - 1
        });
        ('a'..='z').nth(index).unwrap_or('?')
    }
}

#[track_caller]
fn fail(what: &str, report: &Report) -> ! {
    panic!("{what}\n\n{report}")
}

fn key_of(sent: &Sent) -> Option<&IdempotencyKey> {
    sent.as_ref().map_or_else(Error::key, Response::key)
}

fn effect_of(sent: &Sent) -> Effect {
    sent.as_ref().map_or_else(Error::effect, |_| Effect::Applied)
}

/// Whether what the sandbox read in the key's header is this key; some APIs want
/// it in quotes.
fn is_under(seen: Option<&str>, key: Option<&IdempotencyKey>) -> bool {
    let bare = |text: &str| text.trim_matches('"').to_owned();
    seen.map(bare) == key.map(|key| key.as_str().to_owned())
}

fn is_written_down(request: &SeenRequest) -> bool {
    ![Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method())
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
