use oncekey::profile::Extent;

use super::Sim;
use super::answers::{Answer, Kind, Says, Shape, WAITS, json, page};
use super::assumptions::Assumption;
use super::faults::Fault;

/// What one exchange gave the client.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Got {
    Unsent { hopeless: bool },
    NoHead,
    Answer(Answer),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Arrive { send: u32, copy: bool },
    Execute { handler: usize },
    Finish { handler: usize },
    Reply { send: u32, got: Got },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    at: u64,
    /// Of two at the same time the earlier made one comes first.
    number: u32,
    what: What,
}

/// One send, and what is decided of it once for all of its copies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) timeout: u64,
    /// It is turned away before anything is done.
    pub(super) turned: Option<Shape>,
    /// The business turns it down.
    pub(super) refused: Option<Shape>,
    pub(super) executed: bool,
}

impl Sent {
    pub(super) const BEFORE: Self = Self { timeout: 1000, turned: None, refused: None, executed: false };
}

/// Refusals at the door.
pub(super) const TURNED: &[Shape] = &[
    page(401),
    json(403, r#"{"code":"FORBIDDEN"}"#, Says::Refusal),
    json(404, r#"{"message":"no route matches"}"#, Says::Refusal),
    page(404),
    page(405),
    page(413),
    json(407, "{}", Says::Refusal),
    page(431),
    json(409, r#"{"code":"VERSION_OUTDATED"}"#, Says::Refusal),
];
pub(super) const LIMITED: &[Shape] =
    &[json(429, r#"{"code":"RATE_LIMITED"}"#, Says::Later), Shape { says: Says::Later, ..page(429) }];
const BEFORE: &[Shape] = &[
    page(502),
    page(503),
    json(503, r#"{"message":"upstream connect error"}"#, Says::Error),
    page(504),
    page(200),
    page(302),
    page(403),
    json(408, "{}", Says::Later),
    json(425, "{}", Says::Later),
];
const AFTER: &[Shape] = &[
    page(502),
    page(503),
    page(504),
    json(504, r#"{"message":"timeout"}"#, Says::Error),
    json(500, r#"{"code":"INTERNAL"}"#, Says::Error),
    page(403),
    page(409),
    page(200),
    page(302),
    json(408, "{}", Says::Later),
    json(418, "{}", Says::Page),
    json(409, r#"{"message":"conflict"}"#, Says::Vague),
];

impl Sim<'_> {
    pub(super) fn at(&mut self, after: u64, what: What) {
        self.numbered += 1;
        self.events.push(Event { at: self.time.saturating_add(after), number: self.numbered, what });
    }

    /// Lets the world go on until then, or until this send is answered.
    pub(super) fn advance(&mut self, until: u64, listening: Option<u32>) -> Option<Got> {
        while let Some(event) = self.next_event(until) {
            self.time = self.time.max(event.at);
            match event.what {
                What::Arrive { send, copy } => self.arrive(send, copy),
                What::Execute { handler } => self.execute(handler),
                What::Finish { handler } => self.finish(handler),
                What::Reply { send, got } if listening == Some(send) => return Some(got),
                What::Reply { send, .. } => self.note(|_| format!("the answer to send {send} reaches nobody")),
            }
        }
        None
    }

    fn next_event(&mut self, until: u64) -> Option<Event> {
        let mut first: Option<(usize, u64, u32)> = None;
        for (index, event) in self.events.iter().enumerate() {
            if event.at <= until && first.is_none_or(|(_, at, number)| (event.at, event.number) < (at, number)) {
                first = Some((index, event.at, event.number));
            }
        }
        first.map(|(index, ..)| self.events.swap_remove(index))
    }

    /// The bytes leave.
    pub(super) fn launch(&mut self, send: u32, timeout: u64) {
        let latest = match self.broken {
            Some(Assumption::Lateness) => 3 * self.plan.limits.lifetime,
            _ => timeout + self.plan.limits.margin() * (100 - self.plan.clock_share) / 100,
        };
        if self.fault(Fault::RequestLost) {
            self.note(|_| format!("send {send} is lost on the way"));
        } else {
            let late = self.fault(Fault::RequestLate);
            let after = if late { self.rng.span(timeout / 2, latest) } else { self.rng.between(1, 60) };
            self.at(after, What::Arrive { send, copy: false });
        }
        if self.fault(Fault::Duplicate) {
            let after = self.rng.span(1, latest);
            self.at(after, What::Arrive { send, copy: true });
        }
    }

    fn arrive(&mut self, send: u32, copy: bool) {
        let sent = self.sent(send);
        self.note(|_| format!("send {send} arrives{}", if copy { ", a copy" } else { "" }));
        // Where refusals are true they hold for each copy.
        let passes = copy && self.broken == Some(Assumption::RefusalsAreTrue);
        if let Some(shape) = sent.turned.filter(|_| !passes) {
            self.respond(send, Answer::whole(shape));
        } else if let Some(fake) = self.fake() {
            self.respond(send, fake);
        } else if self.fault(Fault::GatewayBefore) {
            let shape = self.rng.pick(BEFORE);
            self.respond(send, Answer::whole(shape));
        } else if !self.dialect().limits_before_work && self.fault(Fault::Limited) {
            let shape = self.rng.pick(LIMITED);
            self.respond(send, Answer::whole(shape));
        } else {
            self.serve(send);
        }
    }

    /// What a gateway says that breaks an assumption.
    fn fake(&mut self) -> Option<Answer> {
        let broken = self.broken?;
        if !self.rng.percent(15) {
            return None;
        }
        let dialect = self.dialect();
        let mark = usize::from(dialect.mark_count > 0);
        match broken {
            Assumption::SuccessesAreTrue => Some(Answer::whole(dialect.done[0])),
            Assumption::GoneIsDone if self.plan.call == (super::plan::Call::Delete { gone_is_done: true }) => {
                Some(Answer::whole(page(404)))
            }
            Assumption::CodesAndMarks => Some(match self.rng.below(3) {
                0 => Answer::whole(dialect.in_progress[0]),
                1 => Answer::whole(dialect.refusals[0]).marked(mark),
                _ => Answer::whole(TURNED[1]).marked(mark),
            }),
            _ => None,
        }
    }

    /// An answer leaves the server, or what stands before it.
    pub(super) fn respond(&mut self, send: u32, answer: Answer) {
        if self.process.listening != Some(send) {
            return;
        }
        let mut answer = self.misreported(send).unwrap_or(answer);
        if self.fault(Fault::GatewayAfter) {
            answer = Answer::whole(self.rng.pick(AFTER));
        }
        if self.fault(Fault::AnswerLost) {
            self.note(|_| format!("the answer to send {send} is lost"));
            if self.rng.percent(50) {
                let after = self.rng.between(1, 60);
                self.at(after, What::Reply { send, got: Got::NoHead });
            }
            return;
        }
        self.adorn(&mut answer);
        self.cut(&mut answer);
        let timeout = self.sent(send).timeout;
        let late = self.fault(Fault::AnswerLate);
        let after = if late { self.rng.span(timeout / 2, 2 * timeout) } else { self.rng.between(1, 60) };
        self.at(after, What::Reply { send, got: Got::Answer(answer) });
    }

    /// An answer that lies about what was done, against an assumption.
    fn misreported(&mut self, send: u32) -> Option<Answer> {
        let broken = self.broken?;
        if !self.sent(send).executed || !self.rng.percent(25) {
            return None;
        }
        match broken {
            Assumption::RefusalsAreTrue => Some(Answer::whole(self.rng.pick(TURNED))),
            Assumption::LimitsBeforeWork if self.dialect().limits_before_work => Some(Answer::whole(LIMITED[0])),
            _ => None,
        }
    }

    fn adorn(&mut self, answer: &mut Answer) {
        answer.to_the_close = self.rng.percent(10);
        if self.fault(Fault::NamedWait) {
            answer.wait = usize::try_from(self.rng.between(1, WAITS.len() as u64 - 1)).unwrap_or(0);
        }
        let is_error = answer.shape.status >= 400 || answer.shape.kind == Kind::Html;
        if is_error && self.dialect().says_again && self.fault(Fault::ShouldRetry) {
            answer.again = usize::try_from(self.rng.between(1, 2)).unwrap_or(0);
        }
    }

    fn cut(&mut self, answer: &mut Answer) {
        let len = answer.shape.body.len() as u64;
        if len == 0 {
            return;
        }
        if self.fault(Fault::BodyCut) {
            answer.extent = if self.rng.percent(10) { Extent::TooLarge } else { Extent::Cut };
            answer.len = usize::try_from(self.rng.below(len)).unwrap_or(0);
        } else if self.fault(Fault::HalfBody) {
            answer.to_the_close = true;
            // A head alone is as likely as any other place to break off at.
            let most = if self.rng.percent(30) { 1 } else { len };
            answer.len = usize::try_from(self.rng.below(most)).unwrap_or(0);
        }
    }
}
