//! A payment API that breaks on purpose and keeps the true ledger.
//!
//! [`Sandbox`] is a real server on the loopback interface, of HTTP/1.1 and, with the feature `http2`,
//! of HTTP/2, for integration tests of code that must not pay twice. Left alone it does what a good provider does: it stores the answer of
//! each idempotency key and replays it word for word, uses the key as a lock, tells a key that is
//! still in progress from one that was reused, and forgets keys after a day. A [`Fault`] makes it
//! fail for one request in one particular way. [`Sandbox::executions`] is what really happened,
//! whatever the client was told.
//!
//! ```
//! use oncekey::sandbox::{Fault, Sandbox};
//! use std::time::Duration;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let sandbox = Sandbox::start().await?;
//! sandbox.fail_next([
//!     Fault::answer_lost(),                                // it is paid, and nobody is told
//!     Fault::status(503).times(2).retry_after("0.05"),     // a gateway turns two away
//! ]);
//!
//! // The code under test, which sends a POST until it knows.
//! oncekey::Client::new().post(sandbox.url("/v1/payments")).send().await?;
//!
//! assert_eq!(sandbox.executions(), 1);
//! for request in sandbox.requests() {
//!     println!("{} {} -> {:?}", request.method(), request.path(), request.status());
//! }
//! assert_eq!(sandbox.requests().len(), 4);
//! sandbox.advance(Duration::from_secs(24 * 60 * 60));      // every key is forgotten now
//! # Ok(())
//! # }
//! ```
//!
//! # What it serves
//!
//! | request | answer | in the ledger |
//! |---|---|---|
//! | POST, PATCH, any path | 201 `{"id":"pay_1","status":"captured","amount":..}`, needs a key | yes |
//! | the same with `"amount"` of 0 or less | 400 `{"code":"INVALID_AMOUNT"}` | no |
//! | PUT | 200 | yes |
//! | DELETE | 204, then 404 until a PUT | the 204 |
//! | GET, HEAD, OPTIONS | 200 | no |
//! | anything else | 405 | no |
//!
//! # The path of a request
//!
//! ```text
//!  client -- network -- gateway -- key store -- handler -- ledger
//!                         |            |           |
//!                         |            |           executes, its answer is stored or releases the key
//!                         |            replay, in progress, reused
//!                         Fault::status, html, redirect: no key is looked at, nothing is executed
//! ```
//!
//! A canned answer can come from three places, and the difference decides what a retry meets:
//! - `Fault::status(503)`: the gateway's, before the key is looked at. Nothing was executed and the
//!   key store knows nothing.
//! - `Fault::status(503).executing()`: the gateway's, on the way back. The handler executed, the key
//!   store holds the handler's own answer and replays *that* to a retry.
//! - `Fault::status(503).from_handler()`: the handler's. It executed and said so, and the key store
//!   treats the canned answer as the real one: a success is replayed, an error releases the key (a
//!   retry executes again, the server's own [double](Execution::is_double)) or, under
//!   [`SandboxBuilder::store_errors`], is replayed with the mark.
//!
//! # HTTP/2
//!
//! With the feature `http2` a connection that begins with the preface of HTTP/2 is served in it (prior
//! knowledge; there is no TLS to negotiate it in). Gateway, key store and handler are the same, and a
//! fault does to its stream what it would do to a connection of HTTP/1. Only what is said to close or
//! to reset a connection does so, and takes along all other streams that are on it.
//!
//! | over HTTP/1 | over HTTP/2 |
//! |---|---|
//! | [`answer_lost`](Fault::answer_lost), [`head_cut`](Fault::head_cut), [crashes](Fault::crash_before_executing) | RST_STREAM(INTERNAL_ERROR) without HEADERS |
//! | [`body_cut`](Fault::body_cut) | HEADERS with `content-length`, `n` bytes of DATA, 30 ms later RST_STREAM(NO_ERROR): the length alone tells |
//! | the same, [`chunked`](Fault::chunked) | no `content-length`; RST_STREAM(INTERNAL_ERROR): the reset tells |
//! | [`unframed_cut`](Fault::unframed_cut) | no `content-length`; RST_STREAM(NO_ERROR): nothing tells |
//! | [`chunked`](Fault::chunked), [`unframed`](Fault::unframed), uncut | no `content-length`; ended by END_STREAM |
//! | [`drip`](Fault::drip) | HEADERS at once, DATA by ticks |
//! | stalls | the stream hangs, the others go on |
//! | [`garbled_head`](Fault::garbled_head) | bytes that are no frame, then the connection closes |
//! | [`closed_before_reading`](Fault::closed_before_reading), [`closed_without_executing`](Fault::closed_without_executing), [`closed_after_answer`](Fault::closed_after_answer) | the connection closes (FIN, no GOAWAY), the latter after the whole answer |
//! | [`with_reset`](Fault::with_reset), [`reset_before_reading`](Fault::reset_before_reading), [`reset_without_executing`](Fault::reset_without_executing) | the TCP connection is reset |
//! | a canned status below 200 | RST_STREAM(INTERNAL_ERROR) without HEADERS |
//! | `Connection`, `Transfer-Encoding`, `Upgrade` in an answer | left out |
//! | [`refused_stream`](Fault::refused_stream), [`goaway`](Fault::goaway), [`black_hole`](Fault::black_hole) | are of HTTP/2 alone, and over HTTP/1 the nearest thing |
//!
//! # Time
//!
//! The sandbox has a clock of its own, which starts at the wall clock's time, runs with it and is
//! moved by [`Sandbox::advance`]. Everything that waits here (work, stalls that end, drips, reclaims)
//! waits on that clock, so a test of a 24-hour rule takes no time.
#![allow(
    clippy::disallowed_methods,
    reason = "the sandbox is a server with a clock of its own and shares nothing with what it tests"
)]

mod answer;
mod builder;
mod chaos;
mod clock;
mod config;
mod connection;
mod delivery;
mod execution;
mod fault;
mod gateway;
#[cfg(feature = "http2")]
mod http2;
mod json;
mod plan;
mod provider;
mod redact;
mod retry_after;
mod script;
mod seen;
mod shared;
mod store;
#[cfg(test)]
mod tests;

use self::shared::Shared;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::net::TcpListener;

pub use self::builder::SandboxBuilder;
pub use self::execution::Execution;
pub use self::fault::Fault;
pub use self::seen::SeenRequest;

/// A running sandbox. Dropping it stops the server: new connections are refused, open ones are
/// closed, stalled ones and handlers still at work included.
#[must_use = "the server stops when this is dropped"]
pub struct Sandbox {
    shared: Arc<Shared>,
    listener: Arc<TcpListener>,
    addr: SocketAddr,
}

impl Sandbox {
    /// Starts a sandbox with the defaults of [`SandboxBuilder`] on a free port of 127.0.0.1.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// let sandbox = Sandbox::start().await?;
    /// let paid = client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// assert_eq!(paid.text(), r#"{"id":"pay_1","status":"captured"}"#);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When no port can be bound.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub async fn start() -> std::io::Result<Self> {
        Self::builder().start().await
    }

    /// How to start one with other rules.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// // A provider that answers a reused key with 422 and holds duplicates back.
    /// let sandbox = Sandbox::builder().reuse_status(422).wait_while_in_progress(true).start().await?;
    /// let paid = client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// assert_eq!(paid.status(), 201);
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder() -> SandboxBuilder {
        SandboxBuilder::new()
    }

    fn run(shared: Arc<Shared>, listener: TcpListener) -> std::io::Result<Self> {
        let addr = listener.local_addr()?;
        let listener = Arc::new(listener);
        let accepting = connection::accept(Arc::clone(&listener), Arc::clone(&shared));
        shared.spawn(accepting);
        Ok(Self { shared, listener, addr })
    }

    /// The address it listens on.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let sandbox = Sandbox::start().await?;
    /// assert!(sandbox.addr().ip().is_loopback());
    /// // For code that takes a host and a port in place of a URL.
    /// let connected = std::net::TcpStream::connect(sandbox.addr())?;
    /// assert_eq!(connected.peer_addr()?, sandbox.addr());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://127.0.0.1:PORT` followed by `path`, whose first slash may be left out.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let sandbox = Sandbox::start().await?;
    /// let port = sandbox.addr().port();
    /// assert_eq!(sandbox.url("/v1/payments?limit=1"), format!("http://127.0.0.1:{port}/v1/payments?limit=1"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn url(&self, path: impl AsRef<str>) -> String {
        let path = path.as_ref();
        let slash = if path.is_empty() || path.starts_with('/') { "" } else { "/" };
        format!("http://{}{slash}{path}", self.addr)
    }

    /// Scripts what goes wrong next: each fault is used up by one request, in the order in which
    /// their heads arrive. Appended to what is still queued; takes a single [`Fault`] too.
    ///
    /// A fault is taken by *any* request, a GET as well: place [`Fault::none`] where one is to be
    /// served well.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next([Fault::none(), Fault::status(503).times(2)]);
    /// client.get(sandbox.url("/balance")).send().await?; // takes `none`
    /// client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// let faults = sandbox.requests().iter().map(|seen| seen.fault().map(Fault::name)).collect::<Vec<_>>();
    /// assert_eq!(faults, [None, Some("status"), Some("status"), None]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn fail_next(&self, faults: impl IntoIterator<Item = Fault>) {
        let faults = faults.into_iter().flat_map(Fault::expand);
        self.shared.state().faults.extend(faults);
    }

    /// How many scripted faults no request has taken yet.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next([Fault::answer_lost(), Fault::status(503)]);
    /// assert_eq!(sandbox.faults_left(), 2);
    /// client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// assert_eq!(sandbox.faults_left(), 0, "the test met all that it was meant to");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn faults_left(&self) -> usize {
        self.shared.state().faults.len()
    }

    /// Drops the scripted faults that no request has taken yet.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::status(503).times(1000));
    /// assert_eq!(http.get(sandbox.url("/")).send().await?.status(), 503);
    /// sandbox.clear_faults(); // the outage is over
    /// assert_eq!(http.get(sandbox.url("/")).send().await?.status(), 200);
    /// # Ok(())
    /// # }
    /// ```
    pub fn clear_faults(&self) {
        self.shared.state().faults.clear();
    }

    /// Moves the sandbox's clock forward. What waited for the new time goes on at once.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// let pay = || http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send();
    /// pay().await?;
    /// pay().await?;
    /// assert_eq!(sandbox.executions(), 1);
    /// sandbox.advance(Duration::from_secs(24 * 60 * 60)); // now the key is forgotten
    /// pay().await?;
    /// assert_eq!(sandbox.executions(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn advance(&self, by: Duration) {
        self.shared.clock.advance(by);
        self.shared.changed.notify_waiters();
    }

    /// The time on the sandbox's clock, which is also what its `Date` headers say.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// let before = sandbox.now();
    /// sandbox.advance(Duration::from_secs(3600));
    /// assert!(sandbox.now() >= before + Duration::from_secs(3600));
    ///
    /// let answer = http.get(sandbox.url("/")).send().await?;
    /// let date = httpdate::parse_http_date(answer.headers()["date"].to_str()?)?;
    /// assert!(date >= before + Duration::from_secs(3599), "a date is in whole seconds");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn now(&self) -> SystemTime {
        self.shared.clock.now()
    }

    /// From now on only requests with this `Authorization` are let in, others get
    /// 401 `{"code":"UNAUTHORIZED"}`. Keys in the store are not touched.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// let balance = |token| http.get(sandbox.url("/balance")).bearer_auth(token).send();
    /// sandbox.set_authorization("Bearer first");
    /// assert_eq!(balance("first").await?.status(), 200);
    /// sandbox.set_authorization("Bearer second"); // the token was rotated
    /// assert_eq!(balance("first").await?.status(), 401);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_authorization(&self, value: impl Into<String>) {
        self.shared.state().authorization = Some(value.into());
    }

    /// How many operations were carried out, doubles included.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::answer_lost());
    /// let sent = http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send().await;
    /// assert!(sent.is_err());
    /// assert_eq!(sandbox.executions(), 1, "paid, whatever the client was told");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn executions(&self) -> usize {
        self.shared.state().ledger.len()
    }

    /// How many operations were carried out under this key, over all of its lifetimes.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// for order in ["order-17", "order-18", "order-17"] {
    ///     http.post(sandbox.url("/payments")).header("Idempotency-Key", order).send().await?;
    /// }
    /// assert_eq!(sandbox.executions_of("order-17"), 1);
    /// assert_eq!(sandbox.executions_of("order-19"), 0);
    /// assert_eq!(sandbox.executions(), 2);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn executions_of(&self, key: impl AsRef<str>) -> usize {
        let key = Some(key.as_ref());
        let state = self.shared.state();
        state.ledger.iter().filter(|e| e.key() == key).count()
    }

    /// How many handlers are at work now: their key is locked, their line in the ledger not written.
    /// Handlers that died or hang for good are not counted, nor are duplicates that wait.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # use std::time::Duration;
    /// let sandbox = Sandbox::builder().work(Duration::from_secs(60)).start().await?;
    /// let call = tokio::spawn(http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send());
    /// sandbox.until(|s| s.at_work() == 1).await;
    /// assert_eq!(sandbox.executions(), 0, "the ledger is written at the end");
    /// sandbox.advance(Duration::from_secs(60));
    /// assert_eq!(call.await??.status(), 201);
    /// assert_eq!((sandbox.at_work(), sandbox.executions()), (0, 1));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn at_work(&self) -> usize {
        self.shared.state().at_work
    }

    /// Everything that was carried out, in that order.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// for path in ["/payments", "/refunds"] {
    ///     client.post(sandbox.url(path)).body("{}").send().await?;
    /// }
    /// let ledger = sandbox.ledger();
    /// let lines = ledger.iter().map(|done| (done.id(), done.path())).collect::<Vec<_>>();
    /// assert_eq!(lines, [("pay_1", "/payments"), ("pay_2", "/refunds")]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn ledger(&self) -> Vec<Execution> {
        self.shared.state().ledger.clone()
    }

    /// Every request whose head arrived, in that order, those that met a fault included.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next([Fault::status(503), Fault::answer_lost()]);
    /// client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// let said = sandbox.requests().iter().map(|seen| seen.status().map(|s| s.as_u16())).collect::<Vec<_>>();
    /// assert_eq!(said, [Some(503), None, Some(201)]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn requests(&self) -> Vec<SeenRequest> {
        self.shared.state().seen.clone()
    }

    /// Waits until `condition` holds; it is asked again after each change in the sandbox.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::stall_before_executing().lasting(Duration::from_millis(50)));
    /// let call = http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17");
    /// assert!(call.timeout(Duration::from_millis(20)).send().await.is_err()); // the client has given up
    /// sandbox.until(|s| s.executions() == 1).await; // the handler is done, client or no client
    /// # Ok(())
    /// # }
    /// ```
    pub async fn until(&self, mut condition: impl FnMut(&Self) -> bool) {
        loop {
            let changed = self.shared.changed.notified();
            if condition(self) {
                return;
            }
            changed.await;
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.shared.close();
        // Aborted tasks are dropped only when the runtime gets to them: until then the kernel would
        // go on accepting connections that nobody serves. Where a listening socket can't be shut
        // down, it closes with its task.
        let listener = socket2::SockRef::from(&*self.listener);
        let _ = listener.shutdown(std::net::Shutdown::Both);
    }
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state();
        f.debug_struct("Sandbox")
            .field("addr", &self.addr)
            .field("requests", &state.seen.len())
            .field("executions", &state.ledger.len())
            .field("faults_left", &state.faults.len())
            .finish_non_exhaustive()
    }
}
