//! A payment API that breaks on purpose and keeps the true ledger.
//!
//! [`Sandbox`] is a real server on the loopback interface, of HTTP/1.1 and, with the feature `http2`,
//! of HTTP/2, for integration tests of code that must not pay twice. Left alone it does what a good provider does: it stores the answer of
//! each idempotency key and replays it word for word, uses the key as a lock, tells a key that is
//! still in progress from one that was reused, and forgets keys after a day. A [`Fault`] makes it
//! fail for one request in one particular way. [`Sandbox::executions`] is what really happened,
//! whatever the client was told.
//!
//! ```no_run
//! use oncekey::sandbox::{Fault, Sandbox};
//! use std::time::Duration;
//!
//! # async fn example() -> std::io::Result<()> {
//! let sandbox = Sandbox::start().await?;
//! sandbox.fail_next([
//!     Fault::answer_lost(),                                // it is paid, and nobody is told
//!     Fault::status(503).times(2).retry_after("1"),        // a gateway turns two away
//! ]);
//!
//! let url = sandbox.url("/v1/payments");
//! // ... the code under test sends a POST to `url` until it knows ...
//!
//! assert_eq!(sandbox.executions(), 1);
//! for request in sandbox.requests() {
//!     println!("{} {} -> {:?}", request.method(), request.path(), request.status());
//! }
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
mod connection;
mod delivery;
mod execution;
mod fault;
mod fault_modifiers;
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
    /// # Errors
    ///
    /// When no port can be bound.
    pub async fn start() -> std::io::Result<Self> {
        Self::builder().start().await
    }

    /// How to start one with other rules.
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
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://127.0.0.1:PORT` followed by `path`.
    #[must_use]
    pub fn url(&self, path: impl AsRef<str>) -> String {
        format!("http://{}{}", self.addr, path.as_ref())
    }

    /// Scripts what goes wrong next: each fault is used up by one request, in the order in which
    /// their heads arrive. Appended to what is still queued; takes a single [`Fault`] too.
    ///
    /// A fault is taken by *any* request, a GET as well: place [`Fault::none`] where one is to be
    /// served well.
    pub fn fail_next(&self, faults: impl IntoIterator<Item = Fault>) {
        let faults = faults.into_iter().flat_map(Fault::expand);
        self.shared.state().faults.extend(faults);
    }

    /// How many scripted faults no request has taken yet.
    #[must_use]
    pub fn faults_left(&self) -> usize {
        self.shared.state().faults.len()
    }

    /// Drops the scripted faults that no request has taken yet.
    pub fn clear_faults(&self) {
        self.shared.state().faults.clear();
    }

    /// Moves the sandbox's clock forward. What waited for the new time goes on at once.
    pub fn advance(&self, by: Duration) {
        self.shared.clock.advance(by);
        self.shared.changed.notify_waiters();
    }

    /// The time on the sandbox's clock, which is also what its `Date` headers say.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        self.shared.clock.now()
    }

    /// From now on only requests with this `Authorization` are let in, others get
    /// 401 `{"code":"UNAUTHORIZED"}`. Keys in the store are not touched.
    pub fn set_authorization(&self, value: impl Into<String>) {
        self.shared.state().authorization = Some(value.into());
    }

    /// How many operations were carried out, doubles included.
    #[must_use]
    pub fn executions(&self) -> usize {
        self.shared.state().ledger.len()
    }

    /// How many operations were carried out under this key, over all of its lifetimes.
    #[must_use]
    pub fn executions_of(&self, key: impl AsRef<str>) -> usize {
        let key = Some(key.as_ref());
        let state = self.shared.state();
        state.ledger.iter().filter(|e| e.key() == key).count()
    }

    /// How many handlers are at work now: their key is locked, their line in the ledger not written.
    /// Handlers that died or hang for good are not counted, nor are duplicates that wait.
    #[must_use]
    pub fn at_work(&self) -> usize {
        self.shared.state().at_work
    }

    /// Everything that was carried out, in that order.
    #[must_use]
    pub fn ledger(&self) -> Vec<Execution> {
        self.shared.state().ledger.clone()
    }

    /// Every request whose head arrived, in that order, those that met a fault included.
    #[must_use]
    pub fn requests(&self) -> Vec<SeenRequest> {
        self.shared.state().seen.clone()
    }

    /// Waits until `condition` holds; it is asked again after each change in the sandbox.
    ///
    /// ```no_run
    /// # async fn example(sandbox: &oncekey::sandbox::Sandbox) {
    /// sandbox.until(|s| s.executions() == 1).await; // the handler is done, client or no client
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
