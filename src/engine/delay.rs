use core::time::Duration;

use super::policy::Policy;

/// What a wait is drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Draw {
    /// 64 even bits; the engine makes the delay.
    Entropy(u64),
    /// The delay itself, from the caller's own schedule.
    Delay(Duration),
    /// The caller's own schedule has ended.
    GiveUp,
}

/// Which budget the wait after a verdict belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums)] // complete by definition
pub enum Budget {
    /// Failures: counted, with exponential delays.
    Failures,
    /// Polls: bounded by time, at their own intervals.
    Polls,
}

/// Below this a wait asked for by a server is a busy loop.
const SHORTEST: Duration = Duration::from_millis(2);

/// The wait after failure number `failure` (from 1): drawn evenly from 0 to
/// `min(max_delay, base_delay * 2^(failure - 1))`, and, where that allows it,
/// no shorter than 2 ms.
pub(super) fn after_failure(policy: &Policy, failure: u32, entropy: u64) -> Duration {
    let factor = 1_u32.checked_shl(failure.saturating_sub(1)).unwrap_or(u32::MAX);
    let ceiling = policy.base_delay.saturating_mul(factor).min(policy.max_delay);
    part(ceiling, entropy).max(SHORTEST.min(ceiling))
}

/// The wait before poll number `poll` (from 1): its interval, a tenth more or less.
pub(super) fn before_poll(policy: &Policy, poll: u32, entropy: u64) -> Duration {
    let mut interval = policy.poll_interval;
    for _ in 1..poll {
        if interval >= policy.poll_max_interval || interval.is_zero() {
            break;
        }
        interval = interval.saturating_add((interval / 2).max(Duration::from_nanos(1)));
    }
    let interval = interval.min(policy.poll_max_interval);
    let tenth = interval / 10;
    (interval - tenth).saturating_add(part(tenth.saturating_mul(2), entropy)).max(SHORTEST)
}

/// The wait where the server named a shortest one: the larger of both, and up
/// to a tenth of the server's on top, so that not all come back at once.
pub(super) fn at_least(named: Duration, own: Duration, entropy: u64) -> Duration {
    named.max(own).saturating_add(part(named / 10, entropy)).max(SHORTEST)
}

/// An even share of `whole`, both ends included.
fn part(whole: Duration, entropy: u64) -> Duration {
    let nanos = u64::try_from(whole.as_nanos()).unwrap_or(u64::MAX);
    let share = (u128::from(entropy) * (u128::from(nanos) + 1)) >> 64;
    Duration::from_nanos(u64::try_from(share).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_delay_stays_between_zero_and_the_cap() {
        let bases = [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(1), Duration::MAX];
        for base in bases {
            for cap in [Duration::ZERO, Duration::from_millis(3), Duration::from_secs(30), Duration::MAX] {
                let policy = Policy::new().delays(base, cap);
                for failure in [0, 1, 31, 32, 63, 64, 65, 1023, 1024, u32::MAX] {
                    for entropy in [0, 1, u64::MAX / 2, u64::MAX] {
                        let delay = after_failure(&policy, failure, entropy);
                        assert!(delay <= cap, "{base:?} {cap:?} {failure} {entropy}: {delay:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn own_delay_doubles_up_to_the_cap() {
        let policy = Policy::new().delays(Duration::from_millis(100), Duration::from_millis(700));
        let most = |failure| after_failure(&policy, failure, u64::MAX).as_millis();
        assert_eq!([most(1), most(2), most(3), most(4), most(40)], [100, 200, 400, 700, 700]);
        assert_eq!(after_failure(&policy, 3, 0), SHORTEST);
        assert_eq!(after_failure(&policy, 3, u64::MAX / 2), Duration::from_millis(200));
    }

    #[test]
    fn polls_grow_by_half_and_vary_by_a_tenth() {
        let policy = Policy::new().polls(Duration::from_secs(1), Duration::from_secs(2), Duration::MAX);
        let span =
            |poll| [before_poll(&policy, poll, 0), before_poll(&policy, poll, u64::MAX)].map(|wait| wait.as_millis());
        assert_eq!(span(1), [900, 1100]);
        assert_eq!(span(2), [1350, 1650]);
        assert_eq!(span(3), [1800, 2200]);
        assert_eq!(span(u32::MAX), [1800, 2200]);
        let idle = Policy::new().polls(Duration::ZERO, Duration::ZERO, Duration::ZERO);
        assert_eq!(before_poll(&idle, u32::MAX, 7), SHORTEST);
        let endless = Policy::new().polls(Duration::MAX, Duration::MAX, Duration::MAX);
        assert!(before_poll(&endless, 3, u64::MAX) > Duration::from_secs(1 << 40));
    }

    #[test]
    fn a_named_wait_is_a_lower_bound() {
        let second = Duration::from_secs(1);
        assert_eq!(at_least(second, Duration::ZERO, 0), second);
        assert_eq!(at_least(second, Duration::ZERO, u64::MAX), second + second / 10);
        assert_eq!(at_least(second, second * 3, 0), second * 3);
        assert_eq!(at_least(Duration::ZERO, Duration::ZERO, u64::MAX), SHORTEST);
        assert_eq!(at_least(Duration::MAX, second, u64::MAX), Duration::MAX);
    }
}
