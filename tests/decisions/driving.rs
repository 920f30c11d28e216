//! The driver's loop over a world that watches it: what is done is what was
//! recorded, in that order.

use std::convert::Infallible;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use oncekey::driver::{World, run};
use oncekey::engine::{
    Budget, Draw, Effect, Entry, History, KeyOrigin, MethodKind, Outcome, Policy, StopReason, Time, Verdict,
};

use crate::trace::*;

/// A network that answers at once, and a diary.
struct Watched {
    now: Time,
    verdicts: Vec<Verdict>,
    diary: Vec<String>,
    /// Preparing the attempt of this number fails.
    refuse: u32,
    /// Preparing takes this long.
    preparing: Duration,
}

impl World for Watched {
    type Broken = Infallible;

    fn now(&mut self) -> Time {
        self.now
    }

    async fn sleep(&mut self, wait: Duration) {
        self.now = self.now.after(wait);
        self.diary.push(format!("sleep {}", wait.as_millis()));
    }

    async fn prepare(&mut self, attempt: u32, _: Duration) -> Result<(), StopReason> {
        self.now = self.now.after(self.preparing);
        self.diary.push(format!("prepare {attempt}"));
        if attempt == self.refuse { Err(StopReason::Authorize) } else { Ok(()) }
    }

    async fn send(&mut self, _: Duration) -> Verdict {
        self.diary.push("send".to_owned());
        self.verdicts.remove(0)
    }

    fn draw(&mut self, budget: Option<Budget>) -> Draw {
        self.diary.push(format!("draw {budget:?}"));
        Draw::Delay(ms(100))
    }

    async fn record(&mut self, entry: &Entry, _: &History, _: &Policy) -> Result<(), Infallible> {
        self.diary.push(match entry {
            Entry::Started { attempt, .. } => format!("started {attempt}"),
            Entry::Ended { attempt, .. } => format!("ended {attempt}"),
            Entry::Stopped { reason, .. } => format!("stopped {reason:?}"),
            other => format!("{other:?}"),
        });
        Ok(())
    }
}

fn watched(verdicts: &[Verdict]) -> Watched {
    Watched { now: START, verdicts: verdicts.to_vec(), diary: Vec::new(), refuse: 0, preparing: Duration::ZERO }
}

#[track_caller]
fn drive(mut world: Watched, policy: &Policy, diary: &str, end: (Outcome, Effect)) {
    let mut history = History::replay(&[created(KeyOrigin::Drawn, MethodKind::Other)]).unwrap();
    let Poll::Ready(Ok(outcome)) =
        pin!(run(&mut world, &mut history, policy)).poll(&mut Context::from_waker(Waker::noop()))
    else {
        panic!("this world never waits");
    };
    assert_eq!(world.diary.join(", "), diary);
    assert_eq!((outcome, history.effect()), end);
}

#[test]
fn nothing_is_sent_before_it_is_recorded_and_nothing_decided_before_that() {
    let attempt = "prepare 1, started 1, send, draw None, ended 1";
    drive(watched(&[DONE]), &policy(), attempt, (Outcome::Applied, Effect::Applied));
    let two = "prepare 1, started 1, send, draw Some(Failures), ended 1, sleep 100, \
               prepare 2, started 2, send, draw Some(Polls), ended 2, sleep 1000, \
               prepare 3, started 3, send, draw None, ended 3";
    drive(watched(&[TIMEOUT, RUNNING, DONE]), &policy(), two, (Outcome::Applied, Effect::Applied));
}

#[test]
fn what_cannot_be_prepared_is_not_started() {
    let mut world = watched(&[TIMEOUT]);
    world.refuse = 2;
    let diary = "prepare 1, started 1, send, draw Some(Failures), ended 1, sleep 100, prepare 2, stopped Authorize";
    drive(world, &policy(), diary, (Outcome::Stopped(StopReason::Authorize), Effect::Unknown));
}

#[test]
fn the_engine_is_asked_anew_after_preparing() {
    let mut world = watched(&[]);
    world.preparing = ms(2000);
    let outcome = (Outcome::Stopped(StopReason::Deadline), Effect::NotApplied);
    drive(world, &policy().deadline(ms(2000)), "prepare 1, stopped Deadline", outcome);
}
