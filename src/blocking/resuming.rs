use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::iter::FusedIterator;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread;

use futures_core::Stream;

use super::worker::{Lost, Worker};
use crate::engine::Effect;
use crate::error::Error;
use crate::response::Response;
use crate::submission::OperationId;

/// The ends of operations that are resumed, as they come; `next` waits for one.
/// Dropping it leaves the rest resumable.
///
/// Asked inside a runtime it stops there: what has no end yet comes with an
/// error of kind [`Request`](crate::ErrorKind::Request) and effect `Unknown`,
/// and stays resumable.
#[must_use = "nothing is resumed until the iterator is asked"]
pub struct Resuming {
    ends: Result<crate::Resuming, Lost>,
    /// Those whose ends were not given yet.
    open: VecDeque<OperationId>,
    worker: Arc<Worker>,
}

impl Resuming {
    pub(super) fn new(ends: crate::Resuming, worker: Arc<Worker>) -> Self {
        Self { open: ends.left().cloned().collect(), ends: Ok(ends), worker }
    }
}

impl Iterator for Resuming {
    type Item = (OperationId, Result<Response, Error>);

    fn next(&mut self) -> Option<Self::Item> {
        // It goes over to the client's thread and comes back, even if a hook panics there.
        match std::mem::replace(&mut self.ends, Err(Lost::Gone { begun: true })) {
            Ok(mut ends) => {
                let asked = self.worker.run(async move {
                    let end = poll_fn(|context| caught(|| Pin::new(&mut ends).poll_next(context))).await;
                    (ends, end)
                });
                match asked {
                    Ok((ends, end)) => {
                        self.ends = Ok(ends);
                        let end = end.unwrap_or_else(|panic| resume_unwind(panic))?;
                        self.open.retain(|id| id.as_str() != end.0.as_str());
                        return Some(end);
                    }
                    Err(lost) => self.ends = Err(lost),
                }
            }
            Err(lost) => self.ends = Err(lost),
        }
        let lost = self.ends.as_ref().err()?;
        self.open.pop_front().map(|id| (id, Err(lost.error(Effect::Unknown, false))))
    }
}

/// A panic of a caller's own hook ends one operation, and not the rest.
fn caught<T>(poll: impl FnOnce() -> Poll<T>) -> Poll<thread::Result<T>> {
    match catch_unwind(AssertUnwindSafe(poll)) {
        Ok(polled) => polled.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    }
}

impl FusedIterator for Resuming {}

impl fmt::Debug for Resuming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resuming").field("open", &self.open.len()).finish_non_exhaustive()
    }
}
