//! The loop: ask the engine, do what it says, record it. It decides nothing.
//!
//! Hidden from the documentation: it is public so that the simulation can run
//! the very loop that the client runs, and no part of the stable interface.

use std::time::Duration;

use crate::engine::{Action, Budget, Draw, Entry, History, Outcome, Policy, StopReason, Time, Verdict};

/// What the loop acts on: a network, a clock, dice, and a record.
pub trait World {
    /// The time, as the operation may know it.
    fn now(&mut self) -> Time;

    /// Waits.
    fn sleep(&mut self, wait: Duration) -> impl Future<Output = ()> + Send;

    /// Makes the attempt's request ready, before it is recorded as started.
    /// Time may pass meanwhile, so the engine is asked anew after it.
    fn prepare(&mut self, attempt: u32, limit: Duration) -> impl Future<Output = Result<(), StopReason>> + Send;

    /// Sends what was made ready. The only way to the network.
    fn send(&mut self, timeout: Duration) -> impl Future<Output = Verdict> + Send;

    /// What the wait after this is drawn from.
    fn draw(&mut self, budget: Option<Budget>) -> Draw;

    /// Why nothing can be recorded any more.
    type Broken;

    /// Writes the entry down, before it counts: `after` is the history with it.
    /// What may not happen unless it is on record must fail here.
    fn record(
        &mut self,
        entry: &Entry,
        after: &History,
        policy: &Policy,
    ) -> impl Future<Output = Result<(), Self::Broken>> + Send;
}

/// Runs the operation to an end.
///
/// ```
/// use std::time::Duration;
/// use oncekey::driver::{World, run};
/// use oncekey::engine::*;
///
/// # struct Paper(Vec<Entry>);
/// # impl World for Paper {
/// #     type Broken = std::convert::Infallible;
/// #     fn now(&mut self) -> Time { Time::from_millis(0) }
/// #     async fn sleep(&mut self, _: Duration) {}
/// #     async fn prepare(&mut self, _: u32, _: Duration) -> Result<(), StopReason> { Ok(()) }
/// #     async fn send(&mut self, _: Duration) -> Verdict { Verdict::new(Reach::Applied, Advice::Stop, Why::Success) }
/// #     fn draw(&mut self, _: Option<Budget>) -> Draw { Draw::Entropy(0) }
/// #     async fn record(&mut self, entry: &Entry, _: &History, _: &Policy) -> Result<(), Self::Broken> {
/// #         self.0.push(entry.clone());
/// #         Ok(())
/// #     }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), IllegalEntry> {
/// # let at = Time::from_millis(0);
/// # let created = Entry::Created { at, key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
/// let mut world = Paper(vec![created.clone()]); // a `World` that pays at once, and keeps what it records
/// let mut history = History::replay(&[created])?;
/// let Ok(outcome) = run(&mut world, &mut history, &Policy::new()).await;
/// assert_eq!(outcome, Outcome::Applied);
/// assert_eq!(History::replay(&world.0)?, history);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`World::Broken`] where an entry could not be recorded that must be.
pub async fn run<W: World>(world: &mut W, history: &mut History, policy: &Policy) -> Result<Outcome, W::Broken> {
    let mut ready = false;
    loop {
        let entry = match history.next(policy, world.now()) {
            Action::Record(Entry::Started { attempt, timeout, .. }) if !ready => {
                match world.prepare(attempt, timeout).await {
                    Ok(()) => {
                        ready = true;
                        continue;
                    }
                    Err(reason) => Entry::Stopped { reason, at: world.now() },
                }
            }
            Action::Record(entry) => {
                ready &= matches!(entry, Entry::Started { .. });
                entry
            }
            Action::Send { timeout, .. } => {
                ready = false;
                let verdict = world.send(timeout).await;
                let draw = world.draw(history.budget(verdict, policy));
                history.ended(verdict, policy, world.now(), draw)
            }
            Action::Sleep(wait) => {
                world.sleep(wait).await;
                continue;
            }
            Action::Finish(outcome) => return Ok(outcome),
        };
        let mut after = history.clone();
        after.apply(&entry).expect("what the engine asks to record is legal");
        world.record(&entry, &after, policy).await?;
        *history = after;
    }
}
