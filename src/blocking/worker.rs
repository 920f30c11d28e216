use std::fmt;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle, Thread};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::engine::Effect;
use crate::error::Error;
#[cfg(feature = "journal")]
use crate::journal::{JournalError, JournalErrorKind};

/// The thread on which a client's requests are sent. It ends when this is dropped.
pub(super) struct Worker {
    pub(super) handle: Handle,
    /// The thread ends when it is dropped.
    pub(super) stop: Option<oneshot::Sender<()>>,
    pub(super) thread: Option<JoinHandle<()>>,
}

/// Why a call has no outcome of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// It was made inside a runtime, and not begun.
    Inside,
    /// The thread is gone.
    Gone { begun: bool },
}

pub(super) const INSIDE: &str = "a blocking call inside a tokio runtime, whose other tasks it would hold up: use the async \
     `oncekey::Client` there, or a thread of its own that is none of `spawn_blocking`'s";

const GONE: &str = "the blocking client's thread is gone: build another client";

pub(super) fn is_inside_a_runtime() -> bool {
    Handle::try_current().is_ok()
}

impl Worker {
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("oncekey-blocking".to_owned()).spawn(move || {
            // The only end is that the sender is dropped.
            let _ = runtime.block_on(stopped);
            // A look-up of a name that nobody waits for any more cannot be called off.
            runtime.shutdown_background();
        })?;
        Ok(Self { handle, stop: Some(stop), thread: Some(thread) })
    }

    /// What `work` gives, carried out there; this thread waits.
    pub(super) fn run<F>(&self, work: F) -> Result<F::Output, Lost>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        if is_inside_a_runtime() {
            return Err(Lost::Inside);
        }
        let begun = Arc::new(AtomicBool::new(false));
        let beginning = Arc::clone(&begun);
        let task = self.handle.spawn(async move {
            beginning.store(true, Ordering::Release);
            work.await
        });
        match wait(task) {
            Ok(outcome) => Ok(outcome),
            // A panic of the caller's own hook goes on to the caller, as it does without a thread between.
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(Lost::Gone { begun: begun.load(Ordering::Acquire) }),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            // Its own thread, which ends right after this, would wait for itself.
            && thread.thread().id() != thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}

impl Lost {
    /// With `before`, what was known of the effect before the call, and `safe`,
    /// whether it could have none.
    pub(super) fn error(self, before: Effect, safe: bool) -> Error {
        match self {
            Self::Inside => Error::request(INSIDE, before, None),
            Self::Gone { begun: false } => Error::request(GONE, before, None),
            Self::Gone { begun: true } => Error::cut_off(GONE, if safe { Effect::NotApplied } else { Effect::Unknown }),
        }
    }

    #[cfg(feature = "journal")]
    pub(super) fn journal_error(self) -> JournalError {
        match self {
            Self::Inside => JournalError::new(JournalErrorKind::Setting, INSIDE),
            Self::Gone { .. } => JournalError::new(JournalErrorKind::Io, GONE),
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// What `work`, which needs no runtime, gives; this thread sleeps meanwhile.
fn wait<F: Future>(work: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut work = pin!(work);
    loop {
        match work.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => return outcome,
            Poll::Pending => thread::park(),
        }
    }
}
