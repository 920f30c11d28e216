//! The ways to fail.

mod answer;
mod refusal;
mod stall;

mod handler;
mod http2;

mod author;
mod content;
mod delivery;

use super::plan::{At, Cut, Ending, Mangle, Phase, Plan, Route};
use std::fmt;

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
/// ```
/// use oncekey::sandbox::Fault;
/// use std::time::Duration;
///
/// // A gateway's 503 with a date three seconds ahead, its body cut after five bytes by a reset.
/// let fault = Fault::status(503)
///     .retry_after_date(Duration::from_secs(3))
///     .with_body_cut(5)
///     .with_reset();
/// assert_eq!(fault.name(), "status");
/// ```
#[derive(Clone, PartialEq, Eq)]
#[must_use = "a fault does nothing until it is handed to `Sandbox::fail_next`"]
pub struct Fault {
    name: &'static str,
    pub(super) times: usize,
    pub(super) plan: Plan,
}

impl Fault {
    /// The name of the constructor it was made by.
    ///
    /// ```
    /// # use oncekey::sandbox::Fault;
    /// assert_eq!(Fault::answer_lost().with_reset().name(), "answer_lost");
    /// assert_eq!(Fault::html(502).times(3).name(), "html");
    /// ```
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

    fn with_cut(mut self, at: At, then: Ending) -> Self {
        self.plan.cut = Some(Cut { at, then });
        self
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
