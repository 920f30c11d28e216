//! What becomes of a request, in the terms of no version of HTTP.

use super::answer::Answer;
use super::plan::{Ending, Plan};
use http::Method;
use std::sync::Arc;
use std::time::Duration;

pub(super) enum Delivery {
    /// An answer, whole or as its plan has it.
    Answer(Outgoing),
    /// None.
    End(Ending),
    /// None, and not a byte more is read.
    Frozen,
}

pub(super) struct Outgoing {
    pub(super) answer: Answer,
    pub(super) plan: Arc<Plan>,
    /// Of the request.
    pub(super) method: Method,
    /// Part of the request's body was left unread.
    pub(super) unread: bool,
    /// When its delivery begins, since the start of the sandbox's clock.
    pub(super) at: Duration,
}

impl Outgoing {
    /// Whether hyper can write it. One that leaves bytes unread it cannot: it would close on them,
    /// and the client see RST in place of the answer.
    pub(super) fn is_for_hyper(&self) -> bool {
        !self.unread && !self.plan.needs_script(&self.answer)
    }
}
