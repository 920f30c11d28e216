//! The ways to fail.

use super::builder::{header_value, status_code};
use super::plan::{At, Cut, Ending, Mangle, Phase, Plan, Route};
use bytes::Bytes;
use http::HeaderValue;
use http::header::LOCATION;
use std::fmt;
use std::time::Duration;

/// One way in which one request goes wrong, for [`Sandbox::fail_next`](super::Sandbox::fail_next).
///
/// Each constructor says what the client sees and what the ledger holds afterwards. "Served" means
/// that the request goes the whole way, key store included, and only its answer suffers: a new key
/// is executed, a known one replayed, one in progress refused. What a fault leaves open (status,
/// headers, body, where it is cut, how long it lasts, how often) is set by the methods below the
/// constructors; they can be combined.
///
/// They are told in the words of HTTP/1. What each of them is over HTTP/2 is told in the
/// [module's documentation](super#http2).
///
/// ```no_run
/// use oncekey::sandbox::Fault;
/// use std::time::Duration;
///
/// // A gateway's 503 with a date three seconds ahead, its body cut after five bytes by a reset.
/// let fault = Fault::status(503)
///     .retry_after_date(Duration::from_secs(3))
///     .with_body_cut(5)
///     .with_reset();
/// ```
#[derive(Clone, PartialEq, Eq)]
#[must_use = "a fault does nothing until it is handed to `Sandbox::fail_next`"]
pub struct Fault {
    name: &'static str,
    pub(super) times: usize,
    pub(super) plan: Plan,
}

/// Served, but the answer gets lost or damaged.
impl Fault {
    /// Nothing goes wrong. To place faults at later requests.
    pub fn none() -> Self {
        Self::new("none", Plan::default())
    }

    /// The client sees the connection close (FIN) without a byte. Served, so a new key is executed
    /// and its answer stored. With [`with_reset`](Self::with_reset): RST.
    pub fn answer_lost() -> Self {
        Self::cut("answer_lost", At::Start, Ending::Broken)
    }

    /// The client sees the first `n` bytes of the head (at most all but one), then FIN. Served.
    pub fn head_cut(n: usize) -> Self {
        Self::cut("head_cut", At::Head(n), Ending::Broken)
    }

    /// The client sees the head with the body's length, `n` bytes of the body (at most all but
    /// one), then FIN. Served. With [`chunked`](Self::chunked): `n` bytes out of the only chunk, or
    /// all of them without the chunk that ends a body. An answer that has no body arrives whole.
    pub fn body_cut(n: usize) -> Self {
        Self::cut("body_cut", At::Body(n), Ending::Broken)
    }

    /// The client sees a head without any length, `n` bytes of the body (at most all), then FIN:
    /// nothing tells it that bytes are missing. Served.
    pub fn unframed_cut(n: usize) -> Self {
        Self::cut("unframed_cut", At::Body(n), Ending::Broken).unframed()
    }

    /// The client sees bytes that are not HTTP, then FIN. Served.
    pub fn garbled_head() -> Self {
        Self::new("garbled_head", Plan::default()).garbled()
    }

    /// The client sees the whole answer, `bytes` of it per `tick` of the sandbox's clock, then FIN
    /// (announced). Served.
    pub fn drip(bytes: usize, tick: Duration) -> Self {
        Self::new("drip", Plan::default()).dripping(bytes, tick)
    }

    /// The client sees the answer's body filled up with blanks to `n` bytes, its length announced.
    /// It is still the same JSON. Served.
    pub fn oversized(n: usize) -> Self {
        Self::mangled("oversized", Mangle::Pad(n))
    }

    /// The client sees the first `n` bytes of the answer's body (at most all but one) and a
    /// `Content-Length` of just that: whole by its framing, cut by its content. Served.
    pub fn truncated_json(n: usize) -> Self {
        Self::mangled("truncated_json", Mangle::Truncate(n))
    }

    /// The client sees a body that begins and ends as JSON does and isn't any in between, its
    /// length right. Served.
    pub fn invalid_json() -> Self {
        Self::mangled("invalid_json", Mangle::Garble)
    }

    /// The client sees the whole answer, with no word of closing, and then FIN: the next request
    /// on this connection races with it. Served.
    pub fn closed_after_answer() -> Self {
        Self::cut("closed_after_answer", At::End, Ending::Fin)
    }
}

/// Not served: nothing is executed, and the key store never hears of it.
impl Fault {
    /// The client sees FIN without a byte. The head was taken off the wire, so that
    /// [`requests`](super::Sandbox::requests) can show it; the body was not read.
    pub fn closed_before_reading() -> Self {
        Self::route("closed_before_reading", Route::Shut(Ending::Fin))
    }

    /// The same with RST, which may already strike while the client is writing.
    pub fn reset_before_reading() -> Self {
        Self::route("reset_before_reading", Route::Shut(Ending::Reset))
    }

    /// The client sees FIN without a byte. The request was read whole.
    pub fn closed_without_executing() -> Self {
        Self::gateway_cut("closed_without_executing", Ending::Fin)
    }

    /// The client sees RST without a byte. The request was read whole.
    pub fn reset_without_executing() -> Self {
        Self::gateway_cut("reset_without_executing", Ending::Reset)
    }

    /// The client sees this status from a gateway, before its key is looked at. The body is
    /// `{"message":".."}` for an error and `{}` for a success unless set. See
    /// [`executing`](Self::executing) and [`from_handler`](Self::from_handler) for one that comes
    /// after the execution.
    ///
    /// # Panics
    ///
    /// When `status` is not within 100 to 999.
    pub fn status(status: u16) -> Self {
        let mut fault = Self::route("status", Route::Gateway);
        fault.plan.said.status = Some(status_code(status));
        fault
    }

    /// The client sees 409 `{"code":"IDEMPOTENCY_IN_PROGRESS"}`, true or not.
    pub fn in_progress() -> Self {
        let mut fault = Self::route("in_progress", Route::Gateway);
        fault.plan.said.in_progress = true;
        fault
    }

    /// The client sees this status with the mark of a replay, true or not: a stored error, say.
    ///
    /// # Panics
    ///
    /// When `status` is not within 100 to 999.
    pub fn replayed(status: u16) -> Self {
        Self::status(status).named("replayed").with_replay_mark()
    }

    /// The client sees this status with a page of HTML, as from a portal or a gateway.
    ///
    /// # Panics
    ///
    /// When `status` is not within 100 to 999.
    pub fn html(status: u16) -> Self {
        let mut fault = Self::status(status).named("html");
        let html = HeaderValue::from_static("text/html; charset=utf-8");
        let page = "<!DOCTYPE html><html><body><h1>Please sign in</h1></body></html>";
        fault.plan.said.body = Some((html, Bytes::from_static(page.as_bytes())));
        fault
    }

    /// The client sees this status, a `Location` and no body.
    ///
    /// # Panics
    ///
    /// When `status` is not within 100 to 999 or `location` can't be the value of a header.
    pub fn redirect(status: u16, location: &str) -> Self {
        let mut fault = Self::status(status).named("redirect");
        let said = &mut fault.plan.said;
        said.headers.insert(LOCATION, header_value(location));
        said.body = Some((HeaderValue::from_static("text/plain"), Bytes::new()));
        fault
    }
}

/// Stalls: the client sees nothing more until it gives up, or until
/// [`lasting`](Self::lasting) is over and the request goes on as if nothing had been.
impl Fault {
    /// Stalls with the body not read. Nothing is executed.
    pub fn stall_before_reading() -> Self {
        Self::stall("stall_before_reading", Phase::BeforeReading)
    }

    /// Stalls with the request read and its key not looked at: it waits in some queue. Nothing is
    /// executed; with [`lasting`](Self::lasting) it is served afterwards even if the client has
    /// gone, which is how a request arrives later than its own retry.
    pub fn stall_before_executing() -> Self {
        Self::stall("stall_before_executing", Phase::BeforeExecuting)
    }

    /// Stalls with the key locked: a handler that hangs. Nothing is executed, and the key is in
    /// progress until it is reclaimed; with [`lasting`](Self::lasting) the handler works on after
    /// that, client or no client, reclaimed or not. A request that reaches no handler (replayed,
    /// refused) is answered.
    pub fn stall_while_executing() -> Self {
        Self::stall("stall_while_executing", Phase::WhileExecuting)
    }

    /// Stalls before the first byte of the answer. Served.
    pub fn stall_after_executing() -> Self {
        Self::cut("stall_after_executing", At::Start, Ending::Stall)
    }

    /// Stalls after `n` bytes of the head (at most all but one). Served.
    pub fn stall_in_head(n: usize) -> Self {
        Self::cut("stall_in_head", At::Head(n), Ending::Stall)
    }

    /// Stalls after the head and `n` bytes of the body (at most all but one). Served.
    pub fn stall_in_body(n: usize) -> Self {
        Self::cut("stall_in_body", At::Body(n), Ending::Stall)
    }
}

/// Around the handler.
impl Fault {
    /// A proxy delivers the request twice at once; the client sees the second copy's answer. Both
    /// are served: the first is executed, the second finds it in progress (or waits for it). A
    /// server that ignores keys executes both. [`requests`](super::Sandbox::requests) shows both.
    pub fn duplicate() -> Self {
        Self::route("duplicate", Route::Twice)
    }

    /// The handler dies with the key locked, before it executed. The client sees FIN without a
    /// byte; the key stays in progress until it is reclaimed, and is executed then.
    pub fn crash_before_executing() -> Self {
        let route = Route::Crash { executes: false };
        Self::route("crash_before_executing", route)
    }

    /// The handler dies with the key locked, after it executed and before its answer was stored.
    /// The client sees FIN without a byte; the key stays in progress until it is reclaimed, and is
    /// executed again then: the server's own [double](super::Execution::is_double).
    pub fn crash_after_executing() -> Self {
        let route = Route::Crash { executes: true };
        Self::route("crash_after_executing", route)
    }
}

/// What only HTTP/2 can do. Nothing is executed; with [`executing`](Self::executing) the request is
/// served first, key store included, and only then does this happen in place of the answer.
impl Fault {
    /// The client sees its stream refused: RST_STREAM(REFUSED_STREAM). The other streams go on.
    ///
    /// By RFC 9113 it may take that for a promise that nothing was done; with
    /// [`executing`](Self::executing) it is a proxy's, and false. Over HTTP/1: FIN without a byte.
    pub fn refused_stream() -> Self {
        Self::gateway_cut("refused_stream", Ending::Refused)
    }

    /// The client sees GOAWAY with this error code (RFC 9113, section 7: 0 is NO_ERROR, 11
    /// ENHANCE_YOUR_CALM), then FIN. The last stream that it names is 0, none; with
    /// [`executing`](Self::executing) this request's own. All other streams of the connection end
    /// with it, their requests served or not. Over HTTP/1: FIN without a byte.
    pub fn goaway(code: u32) -> Self {
        Self::gateway_cut("goaway", Ending::GoAway(code))
    }

    /// The client sees nothing any more, on the whole connection: what it sends there from now on,
    /// requests and PINGs alike, is read and dropped, and is in no record of the sandbox. As when a
    /// machine on the way forgets a connection that both ends think alive. Over HTTP/1: a stall
    /// until the client goes away.
    pub fn black_hole() -> Self {
        Self::gateway_cut("black_hole", Ending::BlackHole)
    }
}

impl Fault {
    /// The name of the constructor it was made by.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// One fault for each request that it is meant for.
    pub(super) fn expand(self) -> impl Iterator<Item = Self> {
        let times = self.times;
        std::iter::repeat_n(Self { times: 1, ..self }, times)
    }

    fn new(name: &'static str, plan: Plan) -> Self {
        Self { name, times: 1, plan }
    }

    fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    fn route(name: &'static str, route: Route) -> Self {
        let plan = Plan { route, ..Plan::default() };
        Self::new(name, plan)
    }

    fn cut(name: &'static str, at: At, then: Ending) -> Self {
        let plan = Plan { cut: Some(Cut { at, then }), ..Plan::default() };
        Self::new(name, plan)
    }

    /// Ended by a gateway before it says anything.
    fn gateway_cut(name: &'static str, then: Ending) -> Self {
        let mut fault = Self::cut(name, At::Start, then);
        fault.plan.route = Route::Gateway;
        fault
    }

    fn stall(name: &'static str, phase: Phase) -> Self {
        let plan = Plan { stall: Some(phase), ..Plan::default() };
        Self::new(name, plan)
    }

    fn mangled(name: &'static str, mangle: Mangle) -> Self {
        let plan = Plan { mangle: Some(mangle), ..Plan::default() };
        Self::new(name, plan)
    }
}

/// A single fault where several are taken.
impl IntoIterator for Fault {
    type Item = Self;
    type IntoIter = std::iter::Once<Self>;

    fn into_iter(self) -> Self::IntoIter {
        std::iter::once(self)
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fault")
            .field("name", &self.name)
            .field("status", &self.plan.said.status.map(|s| s.as_u16()))
            .field("times", &self.times)
            .finish_non_exhaustive()
    }
}
