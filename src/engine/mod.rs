//! The decisions: what was learnt about an operation so far, and what to do next.
//!
//! No I/O, no clock, no async, no randomness: entries, limits, the time and a
//! few random bits go in, one [`Action`] comes out. An operation's state is the
//! fold of its entries and nothing else, so that taking it up again after a
//! crash is the same path as going on.
//!
//! ```text
//!             Created ──────────────┐
//!                                   v
//!              ┌──────────> next(policy, now) <──── Resumed ──── (after a stop or a crash)
//!              │             │    │    │    │
//!              │      Record │    │    │    │ Finish
//!              │ ┌───────────┘    │    │    └──────> Applied | Ended(verdict) | Stopped(reason) | Contradicted
//!              │ │           Send │    │ Sleep
//!              │ v                v    └──────> wait, ask again
//!              │ Started       one exchange
//!              │ Stopped          │ verdict
//!              │ Interrupted      v
//!              └────────────── Ended { verdict settled, next_at drawn }
//! ```
//!
//! # The fold
//!
//! | event | clean | doubt | applied | bound |
//! |---|---|---|---|---|
//! | `Unsent`, `Refused` | clean | doubt | applied | bound |
//! | `Ambiguous`, `Accepted`, `Interrupted`, a `Started` not yet ended | doubt | doubt | applied | bound |
//! | `AppliedUnread`, `Applied` | applied | applied | applied | contradicted |
//! | `Rejected` | bound | bound | contradicted | bound |
//!
//! Clean and bound read [`Effect::NotApplied`], applied reads
//! [`Effect::Applied`], doubt and contradicted read [`Effect::Unknown`].
//! Contradicted stays so, unless a person or a look-up settles it: `Resolved`
//! decides the effect of whatever is not certain. A key that the caller brings starts in doubt: it may
//! have been sent before. GET, HEAD and OPTIONS read `NotApplied` always.
//!
//! # Budgets
//!
//! The verdict picks the budget: an answer which shows that the server knows
//! the key spends polls, bounded by time; everything else spends attempts,
//! counted. Neither is refilled during a run. Both count from the latest
//! `Resumed`; the key's lifetime never starts anew.
//!
//! # A driver
//!
//! ```
//! use oncekey::engine::*;
//!
//! let (policy, mut now) = (Policy::new(), Time::from_millis(0));
//! let created = Entry::Created { at: now, key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
//! let mut history = History::replay(&[created])?;
//! // What the server says to one attempt after the other: nothing, then a 201.
//! let lost = Verdict::new(Reach::Ambiguous, Advice::Retry, Why::NoHead);
//! let mut verdicts = [lost, Verdict::new(Reach::Applied, Advice::Stop, Why::Success)].into_iter();
//! let outcome = loop {
//!     match history.next(&policy, now) {
//!         Action::Record(entry) => history.apply(&entry)?, // and write it down
//!         Action::Send { .. } => {
//!             let verdict = verdicts.next().expect("two attempts are enough");
//!             history.apply(&history.ended(verdict, &policy, now, Draw::Entropy(7)))?;
//!         }
//!         Action::Sleep(wait) => now = now.after(wait),
//!         Action::Finish(outcome) => break outcome,
//!     }
//! };
//! assert_eq!((outcome, history.attempts(), history.effect()), (Outcome::Applied, 2, Effect::Applied));
//! # Ok::<(), IllegalEntry>(())
//! ```

mod delay;
mod effect;
mod entry;
mod history;
mod next;
mod policy;
mod questions;
mod time;
mod verdict;

pub use delay::{Budget, Draw};
pub use effect::Effect;
pub use entry::{AttemptKind, Entry, KeyOrigin, MethodKind, Owner, StopReason};
pub use history::{History, IllegalEntry};
pub use next::{Action, Again, Outcome, SHORTEST_ATTEMPT};
pub use policy::Policy;
pub use time::Time;
pub use verdict::{Advice, Reach, Verdict, Why};
