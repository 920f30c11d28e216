//! What the handle, the connections and the handlers share.

use super::clock::Clock;
use super::config::Config;
use super::execution::Execution;
use super::fault::Fault;
use super::seen::SeenRequest;
use super::store::KeyStore;
use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// All that can change, under one lock: a key is claimed and its execution written down together.
pub(super) struct State {
    pub(super) keys: KeyStore,
    pub(super) ledger: Vec<Execution>,
    pub(super) seen: Vec<SeenRequest>,
    pub(super) faults: VecDeque<Fault>,
    pub(super) authorization: Option<String>,
    /// How many handlers are at work.
    pub(super) at_work: usize,
    /// Paths that were deleted and not put since.
    pub(super) gone: HashSet<String>,
}

pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) clock: Clock,
    /// Told after each change of the state.
    pub(super) changed: Notify,
    state: Mutex<State>,
    /// `None` once the sandbox has stopped.
    tasks: Mutex<Option<JoinSet<()>>>,
    panics: AtomicUsize,
}

impl Shared {
    pub(super) fn new(config: Config) -> Arc<Self> {
        let state = State {
            keys: KeyStore::default(),
            ledger: Vec::new(),
            seen: Vec::new(),
            faults: VecDeque::new(),
            authorization: config.authorization.clone(),
            at_work: 0,
            gone: HashSet::new(),
        };
        Arc::new(Self {
            config,
            clock: Clock::start(),
            changed: Notify::new(),
            state: Mutex::new(state),
            tasks: Mutex::new(Some(JoinSet::new())),
            panics: AtomicUsize::new(0),
        })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Runs a task that ends with the sandbox at the latest, even if it is stalled for good.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(tasks) = lock(&self.tasks).as_mut() {
            self.reap(tasks);
            tasks.spawn(task);
        }
    }

    pub(super) fn close(&self) {
        // The set is dropped after the lock is let go: a task's own drop may need it.
        let tasks = lock(&self.tasks).take();
        drop(tasks);
    }

    pub(super) fn is_closed(&self) -> bool {
        lock(&self.tasks).is_none()
    }

    /// How many tasks run, and how many have panicked.
    #[cfg(test)]
    pub(super) fn tasks(&self) -> (usize, usize) {
        let mut tasks = lock(&self.tasks);
        let running = tasks.as_mut().map_or(0, |tasks| {
            self.reap(tasks);
            tasks.len()
        });
        (running, self.panics.load(Ordering::Relaxed))
    }

    fn reap(&self, tasks: &mut JoinSet<()>) {
        while let Some(ended) = tasks.try_join_next() {
            if ended.is_err_and(|error| error.is_panic()) {
                self.panics.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// A panic in a test must not hide what the ledger says.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
