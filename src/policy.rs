use std::sync::Arc;
use std::time::Duration;

use crate::engine::{Budget, Draw, Policy};
use crate::runtime::Dice;

/// How often, and how far apart, an operation is tried again after failures.
///
/// Default: 12 attempts, the first included; delays drawn evenly from 0 to
/// 0.5 s, doubled after each failure, up to 30 s ("full jitter"). With these,
/// 99 of 100 operations ride out an outage of 30 s; `docs/defaults.md` in the
/// repository has the measurements.
///
/// ```
/// use std::time::Duration;
/// use oncekey::Retry;
///
/// let retry = Retry::default().max_attempts(8).base_delay(Duration::from_millis(200)).max_delay(Duration::from_secs(10));
/// assert!(oncekey::Client::builder().retry(retry).build().is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Retry {
    pub(crate) max_attempts: u32,
    pub(crate) base_delay: Duration,
    pub(crate) max_delay: Duration,
}

impl Retry {
    /// How many attempts may fail, the first included; at least 1. Polls do not count.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::{Client, Retry};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let retry = Retry::default().max_attempts(3);
    /// let client = Client::builder().retry(retry)
    /// # .http(|http| http.no_proxy()).retry(retry.base_delay(Duration::ZERO))
    ///     .build()?;
    /// # let url = "http://127.0.0.1:1/payments";
    /// let error = client.post(url).send().await.expect_err("nobody listens there");
    /// assert_eq!(error.attempts().len(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = attempts;
        self
    }

    /// The longest delay after the first failure; doubled after each further
    /// one. Zero means no delay.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::{Client, Retry};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let retry = Retry::default().max_attempts(2).base_delay(Duration::ZERO);
    /// let client = Client::builder().retry(retry)
    /// # .http(|http| http.no_proxy())
    ///     .build()?;
    /// # let url = "http://127.0.0.1:1/payments";
    /// let error = client.post(url).send().await.expect_err("nobody listens there");
    /// assert_eq!(error.attempts()[0].wait(), Duration::ZERO);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn base_delay(mut self, delay: Duration) -> Self {
        self.base_delay = delay;
        self
    }

    /// The longest delay of all; not below the base delay.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::{Client, Retry};
    ///
    /// let retry = Retry::default().base_delay(Duration::from_secs(2)).max_delay(Duration::from_secs(1));
    /// let error = Client::builder().retry(retry).build().expect_err("it starts above its end");
    /// assert_eq!(error.to_string(), "base_delay is longer than max_delay");
    /// ```
    pub const fn max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = delay;
        self
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self { max_attempts: 12, base_delay: Duration::from_millis(500), max_delay: Duration::from_secs(30) }
    }
}

/// How an operation that the server says is still running is asked for again.
///
/// Default: after 1 s, then half as long again each time, up to 5 s apart, for
/// at most 2 minutes from the first such answer. A `Retry-After` lengthens a
/// wait, never shortens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Poll {
    pub(crate) interval: Duration,
    pub(crate) max_interval: Duration,
    pub(crate) limit: Duration,
}

impl Poll {
    /// The wait before the first poll, a tenth more or less.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::{Client, Poll};
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # sandbox.fail_next([oncekey::sandbox::Fault::in_progress()]);
    /// let poll = Poll::default().interval(Duration::from_millis(20));
    /// let client = Client::builder().poll(poll)
    /// # .http(|http| http.no_proxy())
    ///     .build()?;
    /// # let url = sandbox.url("/payments");
    /// let answer = client.post(url).body("amount=4999").send().await?; // first it is "in progress"
    /// assert!(answer.attempts()[0].wait() >= Duration::from_millis(18));
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub const fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// The longest wait between polls; not below the first one.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::{Client, Poll};
    ///
    /// let poll = Poll::default().interval(Duration::from_secs(10)); // and the longest is 5 s
    /// assert!(Client::builder().poll(poll).build().is_err());
    /// assert!(Client::builder().poll(poll.max_interval(Duration::from_secs(60))).build().is_ok());
    /// ```
    pub const fn max_interval(mut self, interval: Duration) -> Self {
        self.max_interval = interval;
        self
    }

    /// For how long to poll, from the first answer that calls for it. Zero
    /// means not at all.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::{Client, Effect, ErrorKind, Poll};
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # sandbox.fail_next([oncekey::sandbox::Fault::in_progress()]);
    /// let poll = Poll::default().limit(Duration::ZERO);
    /// let client = Client::builder().poll(poll)
    /// # .http(|http| http.no_proxy())
    ///     .build()?;
    /// # let url = sandbox.url("/payments");
    /// let error = client.post(url).body("amount=4999").send().await.expect_err("it is in progress");
    /// assert_eq!((error.kind(), error.effect()), (ErrorKind::Exhausted, Effect::Unknown));
    /// assert_eq!(error.attempts().len(), 1);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub const fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }
}

impl Default for Poll {
    fn default() -> Self {
        Self { interval: Duration::from_secs(1), max_interval: Duration::from_secs(5), limit: Duration::from_secs(120) }
    }
}

/// The engine's limits from the caller's.
pub(crate) const fn limits(retry: &Retry, poll: &Poll) -> Policy {
    Policy::new().max_attempts(retry.max_attempts).delays(retry.base_delay, retry.max_delay).polls(
        poll.interval,
        poll.max_interval,
        poll.limit,
    )
}

/// The client's limits with those of one request in their place.
pub(crate) fn limited(
    policy: &Arc<Policy>,
    attempt_timeout: Option<Duration>,
    deadline: Option<Duration>,
) -> Arc<Policy> {
    if attempt_timeout.is_none() && deadline.is_none() {
        return Arc::clone(policy);
    }
    let policy = attempt_timeout.map_or(**policy, |timeout| policy.attempt_timeout(timeout));
    Arc::new(deadline.map_or(policy, |deadline| policy.deadline(deadline)))
}

/// What one operation's delays are drawn from.
pub(crate) enum Schedule {
    Own,
    #[cfg(feature = "backoff")]
    Callers(Box<dyn backoff::backoff::Backoff + Send>),
}

impl Schedule {
    pub(crate) fn draw(&mut self, budget: Option<Budget>, dice: &Dice) -> Draw {
        match (self, budget) {
            (_, None) => Draw::Entropy(0),
            #[cfg(feature = "backoff")]
            (Self::Callers(schedule), Some(Budget::Failures)) => {
                schedule.next_backoff().map_or(Draw::GiveUp, Draw::Delay)
            }
            (_, Some(_)) => Draw::Entropy(dice.roll()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_the_engines() {
        assert_eq!(limits(&Retry::default(), &Poll::default()), Policy::new());
    }
}
