//! The sandbox's own clock: wall time at the start, plus what has passed, plus what was skipped.

use super::shared::lock;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};
use tokio::sync::Notify;
use tokio::time::Instant;

/// The furthest the clock can be moved: HTTP dates end with the year 9999.
const FURTHEST: Duration = Duration::from_secs(1000 * 365 * 24 * 60 * 60);

pub(super) struct Clock {
    base: SystemTime,
    started: Instant,
    skipped: Mutex<Duration>,
    moved: Notify,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self {
            base: SystemTime::now(),
            started: Instant::now(),
            skipped: Mutex::new(Duration::ZERO),
            moved: Notify::new(),
        }
    }

    pub(super) fn advance(&self, by: Duration) {
        let mut skipped = lock(&self.skipped);
        *skipped = skipped.saturating_add(by).min(FURTHEST);
        drop(skipped);
        self.moved.notify_waiters();
    }

    /// Time since the start. Unlike the wall clock it never steps back.
    pub(super) fn elapsed(&self) -> Duration {
        let skipped = *lock(&self.skipped);
        self.started.elapsed().saturating_add(skipped)
    }

    pub(super) fn now(&self) -> SystemTime {
        ahead(self.base, self.elapsed())
    }

    /// Waits on this clock, so that [`Clock::advance`] ends the wait too.
    pub(super) async fn sleep(&self, duration: Duration) {
        self.sleep_until(self.elapsed().saturating_add(duration)).await;
    }

    pub(super) async fn sleep_until(&self, end: Duration) {
        loop {
            let moved = self.moved.notified();
            let left = end.saturating_sub(self.elapsed());
            if left.is_zero() {
                return;
            }
            tokio::select! {
                () = moved => {}
                () = tokio::time::sleep(left) => {}
            }
        }
    }
}

/// `time` and a while, within what an HTTP date can say.
pub(super) fn ahead(time: SystemTime, by: Duration) -> SystemTime {
    time.checked_add(by.min(FURTHEST)).unwrap_or(time)
}
