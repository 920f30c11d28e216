//! What a fault leaves open.

use super::builder::{header_name, header_value};
use super::fault::Fault;
use super::plan::{At, Cut, Ending, Framing, Route};
use super::retry_after::{DateForm, RetryAfter};
use bytes::Bytes;
use std::time::Duration;

/// How often, and where a canned answer comes from.
impl Fault {
    /// For `k` requests in a row. Default: one.
    pub fn times(mut self, k: usize) -> Self {
        self.times = k;
        self
    }

    /// A gateway's answer that comes *after* the request was served: the ledger and the key store
    /// hold what really happened, the client sees this instead. For the faults that replace the
    /// answer, and those that cut it off after the request was read; the others are served anyway or
    /// can't be.
    pub fn executing(mut self) -> Self {
        match self.plan.route {
            Route::Gateway => self.plan.route = Route::Behind,
            Route::Handler { .. } => self.plan.route = Route::Handler { executes: true },
            Route::Shut(_) | Route::Through | Route::Behind | Route::Crash { .. } | Route::Twice => {}
        }
        self
    }

    /// The handler's own answer: it executes, says this, and the key store takes it for the real
    /// answer. A success is stored and replayed. An error releases the key, so that a retry executes
    /// again, or is stored and replayed with the mark
    /// ([`store_errors`](super::SandboxBuilder::store_errors)).
    pub fn from_handler(mut self) -> Self {
        self.plan.route = Route::Handler { executes: true };
        self
    }

    /// The handler's own answer to something that it refused: as
    /// [`from_handler`](Self::from_handler), but nothing is executed. A declined card, say.
    pub fn from_handler_without_executing(mut self) -> Self {
        self.plan.route = Route::Handler { executes: false };
        self
    }
}

/// What the answer says. These work on a canned answer as on the real one.
impl Fault {
    /// Adds a header; in place of the answer's own of that name. A `Content-Length`,
    /// `Transfer-Encoding` or `Connection` is written as it is, true or not.
    ///
    /// # Panics
    ///
    /// When they can't be the name and the value of a header.
    pub fn header(mut self, name: &str, value: impl AsRef<str>) -> Self {
        let (name, value) = (header_name(name), header_value(value.as_ref()));
        self.plan.said.headers.append(name, value);
        self
    }

    /// Replaces the body.
    ///
    /// # Panics
    ///
    /// When `content_type` can't be the value of a header.
    pub fn body(mut self, content_type: &str, body: impl Into<Bytes>) -> Self {
        self.plan.said.body = Some((header_value(content_type), body.into()));
        self
    }

    /// Replaces the body by this text, as `application/json`; it need not be JSON.
    pub fn json(self, body: impl Into<Bytes>) -> Self {
        self.body("application/json", body)
    }

    /// Adds a `Retry-After` with this text: `"3"`, `"0.5"`, `"soon"`, `""`.
    ///
    /// # Panics
    ///
    /// When `value` can't be the value of a header.
    pub fn retry_after(mut self, value: impl AsRef<str>) -> Self {
        self.plan.said.retry_after = Some(RetryAfter::Text(header_value(value.as_ref())));
        self
    }

    /// Adds a `Retry-After` with a date that far ahead of the answer's own `Date`, in today's form:
    /// `Sun, 06 Nov 1994 08:49:37 GMT`. In whole seconds.
    pub fn retry_after_date(mut self, ahead: Duration) -> Self {
        self.plan.said.retry_after = Some(RetryAfter::Date(DateForm::Imf, ahead));
        self
    }

    /// The same in the form of RFC 850: `Sunday, 06-Nov-94 08:49:37 GMT`.
    pub fn retry_after_rfc850(mut self, ahead: Duration) -> Self {
        self.plan.said.retry_after = Some(RetryAfter::Date(DateForm::Rfc850, ahead));
        self
    }

    /// The same in the form of C's `asctime`: `Sun Nov  6 08:49:37 1994`.
    pub fn retry_after_asctime(mut self, ahead: Duration) -> Self {
        self.plan.said.retry_after = Some(RetryAfter::Date(DateForm::Asctime, ahead));
        self
    }

    /// Leaves out the answer's `Date`.
    pub fn undated(mut self) -> Self {
        self.plan.said.undated = true;
        self
    }

    /// Adds the mark of a replay, true or not.
    pub fn with_replay_mark(mut self) -> Self {
        self.plan.said.marked = true;
        self
    }
}

/// How it is delivered.
impl Fault {
    /// The body in one chunk, without a `Content-Length`. Then FIN, announced.
    pub fn chunked(mut self) -> Self {
        self.plan.framing = Framing::Chunked;
        self
    }

    /// The body without any length, ended by FIN.
    pub fn unframed(mut self) -> Self {
        self.plan.framing = Framing::Unframed;
        self
    }

    /// Cut as by [`head_cut`](Self::head_cut).
    pub fn with_head_cut(self, n: usize) -> Self {
        self.with_cut(At::Head(n), Ending::Broken)
    }

    /// Cut as by [`body_cut`](Self::body_cut).
    pub fn with_body_cut(self, n: usize) -> Self {
        self.with_cut(At::Body(n), Ending::Broken)
    }

    /// Stalled as by [`stall_after_executing`](Self::stall_after_executing).
    pub fn with_stall_before_head(self) -> Self {
        self.with_cut(At::Start, Ending::Stall)
    }

    /// Stalled as by [`stall_in_head`](Self::stall_in_head).
    pub fn with_stall_in_head(self, n: usize) -> Self {
        self.with_cut(At::Head(n), Ending::Stall)
    }

    /// Stalled as by [`stall_in_body`](Self::stall_in_body).
    pub fn with_stall_in_body(self, n: usize) -> Self {
        self.with_cut(At::Body(n), Ending::Stall)
    }

    /// Ends the connection by RST in place of FIN or of a stall; an answer that wasn't cut is
    /// followed by it.
    pub fn with_reset(mut self) -> Self {
        if matches!(self.plan.route, Route::Shut(_)) {
            self.plan.route = Route::Shut(Ending::Reset);
        }
        let at = self.plan.cut.map_or(At::End, |cut| cut.at);
        self.with_cut(at, Ending::Reset)
    }

    /// Ends a stall after this time on the sandbox's clock, and goes on. Default: never. It counts
    /// from the moment in which [`requests`](super::Sandbox::requests) shows the request (stalls
    /// before executing), [`at_work`](super::Sandbox::at_work) its handler, or its
    /// [`status`](super::SeenRequest::status) the answer: [`advance`](super::Sandbox::advance) from
    /// then on ends it.
    pub fn lasting(mut self, duration: Duration) -> Self {
        self.plan.lasting = Some(duration);
        self
    }

    /// Written `bytes` at a time (at least one), with a `tick` of the sandbox's clock in between.
    pub fn dripping(mut self, bytes: usize, tick: Duration) -> Self {
        self.plan.drip = Some((bytes.max(1), tick));
        self
    }

    /// Bytes that are not HTTP in place of the whole answer.
    pub fn garbled(mut self) -> Self {
        self.plan.garbled = true;
        self
    }

    fn with_cut(mut self, at: At, then: Ending) -> Self {
        self.plan.cut = Some(Cut { at, then });
        self
    }
}
