use super::Sim;
use super::answers::{Answer, Says, Shape, json};
use super::assumptions::Assumption;
use super::dialects::Stores;
use super::faults::Fault;
use super::network::What;
use super::plan::{Before, Busy, Call, Key, Pending};

/// The model server: one route, one key, one resource.
#[derive(Clone, Debug, Default)]
pub(super) struct Server {
    held: Option<Held>,
    handlers: Vec<Handler>,
    /// Requests that wait for a handler's answer.
    waiting: Vec<(usize, u32)>,
    /// The resource that a DELETE is about is gone.
    pub(super) gone: bool,
}

/// What it keeps under the key.
#[derive(Clone, Copy, Debug)]
struct Held {
    holder: u32,
    until: u64,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Running {
        handler: usize,
        since: u64,
    },
    /// Whoever had the lock is dead.
    Dead {
        since: u64,
    },
    Stored(Shape),
}

#[derive(Clone, Copy, Debug)]
struct Handler {
    send: u32,
    deed: Deed,
    /// It was answered before it was done.
    pending: bool,
}

/// What comes of a request that is worked on.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Apply,
    Refuse(Shape),
    FailFirst,
    ApplyThenFail,
    DieFirst,
    ApplyThenDie,
    /// A DELETE of what is not there.
    NothingThere,
}

impl Deed {
    const fn applies(self) -> bool {
        matches!(self, Self::Apply | Self::ApplyThenFail | Self::ApplyThenDie)
    }
}

const ERRORS: &[Shape] =
    &[json(500, r#"{"code":"INTERNAL"}"#, Says::Error), json(503, r#"{"code":"UNAVAILABLE"}"#, Says::Error)];
const NOT_THERE: &[Shape] =
    &[json(404, r#"{"code":"NOT_FOUND"}"#, Says::Refusal), json(410, r#"{"code":"GONE"}"#, Says::Refusal)];

impl Server {
    pub(super) fn reset(&mut self) {
        self.held = None;
        self.handlers.clear();
        self.waiting.clear();
        self.gone = false;
    }

    /// A caller's key counts from our first send, where the caller does not say from when.
    pub(super) fn remembers_until(&mut self, until: u64) {
        if let Some(held) = &mut self.held {
            held.until = held.until.max(until);
        }
    }
}

impl Sim<'_> {
    /// What the caller's own earlier request under the key left behind.
    pub(super) fn serve_before(&mut self) {
        self.server.gone = !self.plan.habits.exists;
        let Key::Given { ago, told, came_to } = self.plan.key else {
            return;
        };
        let sent = super::START - ago;
        let until = if told { sent + self.plan.habits.remembers } else { super::START };
        let dialect = self.dialect();
        let state = match came_to {
            Before::Nothing => return,
            Before::Done => State::Stored(dialect.done[0]),
            Before::Refused if self.plan.habits.stores == Stores::Successes => return,
            Before::Refused => State::Stored(dialect.refusals[0]),
            Before::Dead => State::Dead { since: super::START },
            Before::StillRuns => {
                self.server.handlers.push(Handler { send: 0, deed: Deed::Apply, pending: false });
                let takes = self.rng.span(10, 20_000);
                self.at(takes, What::Execute { handler: 0 });
                self.at(takes + 1, What::Finish { handler: 0 });
                State::Running { handler: 0, since: super::START }
            }
        };
        if matches!(came_to, Before::Done) {
            self.executed(0);
        }
        self.server.held = Some(Held { holder: 0, until, state });
    }

    pub(super) fn serve(&mut self, send: u32) {
        if self.plan.is_keyed() && self.broken != Some(Assumption::KeyHonoured) {
            self.look_up(send);
        } else {
            self.begin(send);
        }
    }

    /// The idempotency layer.
    fn look_up(&mut self, send: u32) {
        // Not while the key's first request still runs.
        let runs = |state| matches!(state, State::Running { .. });
        if self.server.held.is_some_and(|held| self.time >= held.until && !runs(held.state)) {
            self.note(|_| "the server forgets the key".to_owned());
            self.server.held = None;
        }
        let Some(held) = self.server.held else {
            return self.begin(send);
        };
        if self.plan.habits.volatile
            && held.holder != send
            && let Some(shape) = self.dialect().reused
        {
            return self.respond(send, Answer::whole(shape));
        }
        match held.state {
            State::Stored(shape) => self.replay(send, shape),
            State::Dead { since } if self.time >= since + self.plan.habits.reclaim => {
                self.note(|_| "a dead lock is reclaimed".to_owned());
                self.begin(send);
            }
            State::Running { since, .. }
                if self.broken == Some(Assumption::NoLiveReclaim) && self.time >= since + 500 =>
            {
                self.note(|_| "a living lock is reclaimed".to_owned());
                self.begin(send);
            }
            State::Running { handler, .. } => self.still_runs(send, Some(handler)),
            State::Dead { .. } => self.still_runs(send, None),
        }
    }

    fn replay(&mut self, send: u32, shape: Shape) {
        let already = self.dialect().already.filter(|_| shape.says == Says::Done && self.plan.habits.says_already);
        let replayed = Answer::whole(shape).marked(self.plan.habits.mark);
        self.respond(send, already.map_or(replayed, Answer::whole));
    }

    fn still_runs(&mut self, send: u32, handler: Option<usize>) {
        let is_pending = handler.is_some_and(|handler| self.server.handlers[handler].pending);
        if is_pending && self.rng.percent(50) {
            let shape = self.rng.pick(self.dialect().pending);
            return self.respond(send, Answer::whole(shape).marked(self.plan.habits.mark));
        }
        match (self.plan.habits.busy, handler) {
            (Busy::Waits, Some(handler)) => self.server.waiting.push((handler, send)),
            (Busy::Waits, None) => {}
            (Busy::Told, _) => {
                let shape = self.rng.pick(self.dialect().in_progress);
                self.respond(send, Answer::whole(shape));
            }
            (Busy::Vaguely, _) => {
                let shape = self.rng.pick(super::dialects::VAGUE);
                self.respond(send, Answer::whole(shape));
            }
        }
    }

    /// Work begins; whether it is done, and when, is settled here.
    fn begin(&mut self, send: u32) {
        let sent = self.sent(send);
        let deed = if let Some(shape) = sent.refused {
            Deed::Refuse(shape)
        } else if self.fault(Fault::ServerDies) {
            if self.rng.percent(50) { Deed::DieFirst } else { Deed::ApplyThenDie }
        } else if self.fault(Fault::ErrorBefore) {
            Deed::FailFirst
        } else if self.fault(Fault::ErrorAfter) {
            Deed::ApplyThenFail
        } else {
            Deed::Apply
        };
        let handler = self.server.handlers.len();
        let pending = self.plan.call.is_post() && self.plan.habits.pending != Pending::Never;
        self.server.handlers.push(Handler { send, deed, pending });
        let takes = match pending {
            true => self.rng.span(200, 60_000),
            false if self.fault(Fault::SlowHandler) => self.rng.span(sent.timeout / 2, 3 * sent.timeout),
            false => self.rng.between(1, 150),
        };
        if deed.applies() {
            let after = self.rng.between(0, takes);
            self.at(after, What::Execute { handler });
        }
        self.at(takes, What::Finish { handler });
        if self.plan.is_keyed() {
            let until = self.server.held.map_or(self.time + self.plan.habits.remembers, |held| held.until);
            let state = State::Running { handler, since: self.time };
            self.server.held = Some(Held { holder: send, until, state });
        }
        if pending {
            let shape = self.rng.pick(self.dialect().pending);
            self.respond(send, Answer::whole(shape));
        }
    }

    pub(super) fn execute(&mut self, handler: usize) {
        let Handler { send, deed, .. } = self.server.handlers[handler];
        if let Call::Delete { .. } = self.plan.call {
            if self.server.gone {
                // A second copy is answered like the first, where refusals are true.
                let is_copy = self.sent(send).executed && self.broken != Some(Assumption::RefusalsAreTrue);
                if !is_copy {
                    self.server.handlers[handler].deed = Deed::NothingThere;
                }
                return;
            }
            self.server.gone = true;
        }
        self.executed(send);
        if matches!(deed, Deed::ApplyThenDie) && self.broken != Some(Assumption::KeptWithTheDeed) {
            self.store(handler, Some(State::Stored(self.dialect().done[0])));
        }
    }

    pub(super) fn finish(&mut self, handler: usize) {
        let Handler { send, deed, pending } = self.server.handlers[handler];
        let done = self.rng.pick(self.dialect().done);
        let error = self.rng.pick(ERRORS);
        let stores = self.plan.habits.stores;
        let kept =
            if pending && self.plan.habits.pending == Pending::Forever { self.dialect().pending[0] } else { done };
        let (answer, state) = match deed {
            Deed::Apply => (Some(done), Some(State::Stored(kept))),
            Deed::Refuse(shape) => (Some(shape), (stores != Stores::Successes).then_some(State::Stored(shape))),
            Deed::FailFirst => (Some(error), (stores == Stores::Everything).then_some(State::Stored(error))),
            Deed::ApplyThenFail if self.broken == Some(Assumption::KeptWithTheDeed) => (Some(error), None),
            Deed::ApplyThenFail if stores == Stores::Everything => (Some(error), Some(State::Stored(error))),
            Deed::ApplyThenFail => (Some(error), Some(State::Stored(kept))),
            Deed::DieFirst => (None, Some(State::Dead { since: self.time })),
            Deed::ApplyThenDie if self.broken == Some(Assumption::KeptWithTheDeed) => {
                (None, Some(State::Dead { since: self.time }))
            }
            Deed::ApplyThenDie => (None, Some(State::Stored(kept))),
            Deed::NothingThere => (Some(self.rng.pick(NOT_THERE)), None),
        };
        self.note(|_| format!("the server ends send {send}: {deed:?}"));
        self.store(handler, state);
        match answer {
            _ if pending => {}
            Some(shape) => self.respond(send, Answer::whole(shape)),
            None => self.fall_silent(send),
        }
        self.wake(handler, state);
    }

    /// Only who has the lock may write.
    fn store(&mut self, handler: usize, state: Option<State>) {
        let Some(held) = &mut self.server.held else {
            return;
        };
        if matches!(held.state, State::Running { handler: running, .. } if running == handler) {
            match state {
                Some(state) => held.state = state,
                None => self.server.held = None,
            }
        }
    }

    /// Who waited gets the stored answer, or its turn.
    fn wake(&mut self, handler: usize, state: Option<State>) {
        while let Some(index) = self.server.waiting.iter().position(|(waits_for, _)| *waits_for == handler) {
            let (_, send) = self.server.waiting.swap_remove(index);
            match state {
                Some(State::Stored(shape)) => self.replay(send, shape),
                Some(State::Running { .. } | State::Dead { .. }) | None => self.look_up(send),
            }
        }
    }

    /// The server died under a request: its connection breaks, a gateway says so, or nothing comes.
    fn fall_silent(&mut self, send: u32) {
        match self.rng.below(3) {
            0 => self.at(1, What::Reply { send, got: super::network::Got::NoHead }),
            1 => self.respond(send, Answer::whole(super::answers::page(502))),
            _ => {}
        }
    }
}
