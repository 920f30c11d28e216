//! One operation on its way: what the driver's loop acts on.

mod looks;
#[cfg(feature = "journal")]
mod on_record;

use std::sync::Arc;
use std::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Body, Request};

use crate::attempt::{Attempt, DateText, Failure, WaitReason};
use crate::authorize::Parts;
use crate::client::Inner;
use crate::driver::{self, World};
use crate::engine::{
    Budget, Draw, Effect, Entry, History, MethodKind, Outcome, Policy, SHORTEST_ATTEMPT, StopReason, Time, Verdict, Why,
};
use crate::error::{Cause, Error, Record};
use crate::event::{About, AttemptEnded, AttemptStarted, Ended, Event, Hook, Waiting};
#[cfg(feature = "journal")]
use crate::logbook::Logbook;
use crate::policy::Schedule;
use crate::profile::{Asked, Glance, method_kind};
use crate::response::Response;
use crate::runtime::{self, Moment};
use crate::submission::{IdempotencyKey, OperationId, Submission};
use crate::trace::Trace;
use crate::transport::{self, Head, Progress};

#[cfg(feature = "journal")]
pub(crate) use on_record::{Broken, OnRecord};

/// One operation: its state and what it needs. In memory of its own, since the
/// future that carries it out is moved often and so must stay small.
pub(crate) struct Operation {
    call: Call,
    history: History,
    policy: Arc<Policy>,
}

struct Call {
    client: Arc<Inner>,
    submission: Submission,
    schedule: Schedule,
    /// The clock as last read; it is read again whenever time may have passed.
    now: Moment,
    started: Moment,
    log: Vec<Attempt>,
    attempt_timeout: Duration,
    authorized: Option<Box<Authorized>>,
    /// Why the last attempt failed, in the words of the layer below.
    cause: Option<Cause>,
    /// What is sent in the place of the operation itself: a look at its status resource.
    look: Option<Box<Submission>>,
    /// The last answer named that resource, so that it is enough to go on by.
    names_it: bool,
    /// The last complete head, and the verdict on it.
    last: Option<(Head, Verdict)>,
    /// Why the run stopped, where the engine cannot know.
    problem: Option<&'static str>,
    /// The request's own, after the client's.
    hook: Option<Hook>,
    /// What hooks are told that it is called.
    name: Option<Box<OperationId>>,
    trace: Trace,
    /// How far the entries on record are ahead of the clock: the operation's
    /// own time goes on from there.
    #[cfg(feature = "journal")]
    ahead: Duration,
    #[cfg(feature = "journal")]
    logbook: Option<Box<Logbook>>,
}

/// What the hook brought for the attempt that is about to be sent, and how long it took.
struct Authorized {
    headers: Vec<(HeaderName, HeaderValue)>,
    took: Duration,
}

#[cfg(not(feature = "journal"))]
type Broken = std::convert::Infallible;

impl Operation {
    pub(crate) fn begin(client: Arc<Inner>, submission: Submission, policy: Arc<Policy>) -> Box<Self> {
        let now = runtime::now();
        let created = submission.created(now.time());
        let history = History::replay(std::slice::from_ref(&created)).expect("a creation alone is a history");
        let call = Call::new(client, submission, &policy, now);
        Box::new(Self { call, history, policy })
    }

    /// With a hook of the request's own.
    pub(crate) fn watched(mut self: Box<Self>, hook: Option<Hook>) -> Box<Self> {
        self.call.hook = hook;
        if self.call.is_watched() {
            self.call.name = self.call.submission.operation().map(Box::new);
        }
        self
    }

    /// Carries it to its final answer, or to where it must stop.
    pub(crate) async fn carry_out(mut self: Box<Self>) -> Result<Response, Error> {
        match self.run().await {
            Ok(outcome) => {
                let outcome = self.looked_up(outcome).await;
                self.finish(outcome)
            }
            #[cfg(feature = "journal")]
            Err(broken) => Err(self.broken(broken)),
            #[cfg(not(feature = "journal"))]
            Err(never) => match never {},
        }
    }

    /// Carries it to its end, by which it can be finished.
    pub(crate) fn run(&mut self) -> impl Future<Output = Result<Outcome, Broken>> + Send {
        let scope = self.call.trace.operation();
        scope.around(driver::run(&mut self.call, &mut self.history, &self.policy))
    }

    fn finish(mut self: Box<Self>, outcome: Outcome) -> Result<Response, Error> {
        let end = self.end(outcome);
        self.tell_end(end.as_ref());
        end
    }

    /// Whatever comes back is told, once.
    pub(crate) fn tell_end(&mut self, end: Result<&Response, &Error>) {
        let (effect, attempts) = match end {
            Ok(response) if self.is_safe() => (Effect::NotApplied, response.attempts()),
            Ok(response) => (Effect::Applied, response.attempts()),
            Err(error) => (error.effect(), error.attempts()),
        };
        self.call.trace.ended(effect, end.err().map(Error::kind), attempts.len());
        self.call.tell(|about, _| Event::Ended(Ended::new(about, end, effect)));
    }

    fn is_safe(&self) -> bool {
        method_kind(&self.call.submission.method) == MethodKind::Safe
    }

    /// Gives its key back if nothing was sent under it, nor will be: what is on record may go on.
    fn release_key(&self) {
        #[cfg(feature = "journal")]
        if self.call.logbook.as_ref().is_some_and(|book| book.is_on_record()) {
            return;
        }
        if self.history.attempts() == 0
            && let Some(key) = &self.call.submission.key
        {
            key.release();
        }
    }

    fn end(&mut self, outcome: Outcome) -> Result<Response, Error> {
        self.release_key();
        let call = &mut self.call;
        let history = &self.history;
        // Another operation began under a clone of this key: what that one sent is not known here.
        let contested = call.submission.key.as_ref().is_some_and(IdempotencyKey::is_contested);
        let effect = history.effect_with(contested);
        let unbuilt = call.log.last().is_some_and(|attempt| attempt.failure == Some(Failure::Request));
        let profile = &call.client.profile;
        let response = |(head, verdict): (Head, Verdict), key, attempts| Response {
            status: head.status,
            headers: head.headers,
            body: head.body,
            replay: profile.replay(&verdict),
            key,
            attempts,
            #[cfg(feature = "json")]
            applied: outcome == Outcome::Applied,
            #[cfg(feature = "journal")]
            unrecorded: None,
        };
        #[cfg(feature = "journal")]
        let unrecorded = call.logbook.as_ref().and_then(|book| book.failure()).map(Box::new);
        let operation = call.submission.operation();
        let key = call.submission.key.take().map(|key| key.used(history.key_since()));
        let attempts = std::mem::take(&mut call.log);
        match call.last.take() {
            Some(last) if outcome == Outcome::Applied => Ok(Response {
                #[cfg(feature = "journal")]
                unrecorded,
                ..response(last, key, attempts)
            }),
            last => {
                let record = Record {
                    effect,
                    operation,
                    response: last.map(|last| response(last, key.clone(), attempts.clone())),
                    key,
                    attempts,
                    resume_at: history.resume_at(&self.policy).filter(|_| may_go_on(outcome)).map(runtime::system_time),
                    source: call.cause.take(),
                };
                if unbuilt {
                    return Err(Error::unbuilt(record));
                }
                Err(Error::ended(outcome, call.problem.take(), record))
            }
        }
    }
}

impl Call {
    fn new(client: Arc<Inner>, submission: Submission, policy: &Policy, now: Moment) -> Self {
        Self {
            schedule: client.schedule(),
            trace: Trace::of(&submission, client.profile.id()),
            client,
            submission,
            now,
            started: now,
            log: Vec::with_capacity(1),
            attempt_timeout: policy.attempt_time(),
            authorized: None,
            cause: None,
            look: None,
            names_it: false,
            last: None,
            problem: None,
            hook: None,
            name: None,
            #[cfg(feature = "journal")]
            ahead: Duration::ZERO,
            #[cfg(feature = "journal")]
            logbook: None,
        }
    }

    fn is_watched(&self) -> bool {
        self.hook.is_some() || self.client.on_event.is_some()
    }

    /// Tells the hooks. Time may pass meanwhile.
    fn tell<'a>(&'a mut self, event: impl FnOnce(About<'a>, Option<&'a Attempt>) -> Event<'a>) {
        if !self.is_watched() {
            return;
        }
        let about = About { operation: self.name.as_deref(), submission: &self.submission };
        let event = event(about, self.log.last());
        for hook in [&self.client.on_event, &self.hook].into_iter().flatten() {
            hook(&event);
        }
        self.now = runtime::now();
    }

    /// The last attempt ended: spans and hooks are told.
    fn tell_ended(&mut self, after: &History, wait: Option<Duration>) {
        let contested = self.submission.key.as_ref().is_some_and(IdempotencyKey::is_contested);
        let effect = after.effect_with(contested);
        if let Some(attempt) = self.log.last() {
            self.trace.attempt_ended(attempt, effect, wait);
        }
        self.tell(|about, attempt| {
            Event::AttemptEnded(AttemptEnded::new(about, attempt.expect("what ended was started"), effect))
        });
    }

    fn note_answer(&mut self, progress: &Progress) {
        let Some(attempt) = self.log.last_mut() else {
            return;
        };
        attempt.failure = progress.failure;
        if let Some(head) = &progress.head {
            let glance = Glance::over(&head.headers);
            attempt.status = Some(head.status);
            attempt.date = glance.date.and_then(|date| DateText::new(date.as_bytes()));
            let key = self.submission.key.as_ref().map_or("", |key| key.as_str());
            // Some servers echo the key there.
            let discreet = |id: &&str| key.is_empty() || !id.contains(key);
            attempt.request_id = glance.request_id.and_then(|id| id.to_str().ok()).filter(discreet).map(Into::into);
        }
    }
}

impl World for Call {
    type Broken = Broken;

    fn now(&mut self) -> Time {
        #[cfg(feature = "journal")]
        if !self.ahead.is_zero() {
            return self.now.time().after(self.ahead);
        }
        self.now.time()
    }

    async fn sleep(&mut self, wait: Duration) {
        let began = self.now;
        let last = self.log.last().and_then(|attempt| attempt.verdict);
        self.tell(|about, _| {
            let reason = last.map_or(WaitReason::Earlier, WaitReason::of);
            let until = began.system_time().checked_add(wait).unwrap_or_else(|| began.system_time());
            let waiting = Waiting::new(about, wait, until, reason);
            if last.is_some_and(|verdict| verdict.is_polled()) {
                Event::Polling(waiting)
            } else {
                Event::Waiting(waiting)
            }
        });
        // What waits holds little, and nothing of the connection's read buffer.
        self.submission.headers.shrink_to_fit();
        let packed = self.last.as_mut().map(|(head, _)| head.pack());
        runtime::sleep(wait.saturating_sub(self.now.since(began))).await;
        if let (Some((head, _)), Some(packed)) = (&mut self.last, packed) {
            head.unpack(&packed);
        }
        let awake = runtime::now();
        if let Some(attempt) = self.log.last_mut() {
            attempt.wait = attempt.wait.saturating_add(awake.since(began));
            attempt.wait_reason = attempt.verdict.map(WaitReason::of);
        }
        self.now = awake;
    }

    async fn prepare(&mut self, attempt: u32, limit: Duration) -> Result<(), StopReason> {
        let Some(hook) = &self.client.authorize else {
            return Ok(());
        };
        let outgoing = self.look.as_deref().unwrap_or(&self.submission);
        // Another origin gets no credentials.
        if outgoing.url.origin() != self.submission.url.origin() {
            return Ok(());
        }
        let previous = self.log.last().and_then(|attempt| attempt.status);
        let mut parts = Parts::new(outgoing, self.client.profile.key_header(), attempt, previous);
        // Something must be left for the sending.
        let allowed = limit.saturating_sub(SHORTEST_ATTEMPT.min(limit / 2));
        let outcome = runtime::within(allowed, hook.authorize(&mut parts)).await;
        let headers = parts.into_headers();
        let done = runtime::now();
        let took = done.since(self.now);
        self.now = done;
        match outcome {
            // One that blocks its thread is not cut short: it ends late, and well.
            Ok(Ok(())) if took <= allowed => {
                self.authorized = Some(Box::new(Authorized { headers, took }));
                Ok(())
            }
            Ok(Err(error)) => {
                self.cause = Some(error);
                Err(StopReason::Authorize)
            }
            Ok(Ok(())) | Err(_) if limit < self.attempt_timeout => {
                self.cause = None;
                Err(StopReason::Deadline)
            }
            Ok(Ok(())) | Err(_) => {
                self.cause = None;
                self.problem = Some("the `authorize` hook did not end within the attempt's timeout");
                Err(StopReason::Authorize)
            }
        }
    }

    async fn send(&mut self, timeout: Duration) -> Verdict {
        let (headers, took) = self.authorized.take().map(|it| (it.headers, it.took)).unwrap_or_default();
        let request = request(self.outgoing(), headers);
        // The hook ran inside the attempt's time; the deadline's is counted from now already.
        let timeout = timeout.min(self.attempt_timeout.saturating_sub(took));
        self.cause = None;
        let scope = self.trace.attempt(&self.submission, self.log.last());
        let exchange = transport::exchange(&self.client.http, request, timeout, self.client.max_response_bytes);
        // In memory of its own, which a wait does not hold on to.
        let mut progress = scope.around(Box::pin(exchange)).await;
        let sent = self.now;
        self.now = runtime::now();
        let outgoing = self.outgoing();
        let asked = Asked::listed(&outgoing.method, &outgoing.headers)
            .with_key(outgoing.key.as_ref().map(|key| key.as_str()))
            .gone_is_done(outgoing.gone_is_done);
        let verdict = progress.verdict(&self.client.profile, &asked, self.now.time());
        self.note_answer(&progress);
        let mut verdict = self.followed(verdict, progress.head.as_ref());
        // Without a key what was processed before may be anybody's.
        let has_key = self.submission.key.is_some();
        if verdict.why() == Why::AlreadyProcessed && has_key && self.client.recover_with.is_some() {
            let left = timeout.saturating_sub(self.now.since(sent));
            // In memory of its own: it comes seldom, and is large.
            verdict = Box::pin(self.recovered(verdict, &mut progress.head, left)).await;
        }
        self.cause = progress.cause;
        if let Some(head) = progress.head {
            self.last = Some((head, verdict));
        }
        verdict
    }

    fn draw(&mut self, budget: Option<Budget>) -> Draw {
        self.schedule.draw(budget, &self.client.dice)
    }

    async fn record(&mut self, entry: &Entry, after: &History, policy: &Policy) -> Result<(), Broken> {
        if let Entry::Ended { verdict, .. } = entry
            && let Some(attempt) = self.log.last_mut()
        {
            attempt.duration = self.now.since(self.started);
            attempt.verdict = Some(*verdict);
        }
        #[cfg(feature = "journal")]
        let written = if self.logbook.is_some() {
            // In memory of its own: next to a flush that is nothing.
            Box::pin(self.write_down(entry, after, policy)).await
        } else {
            Ok(())
        };
        #[cfg(not(feature = "journal"))]
        let (written, _) = (Ok(()), policy);
        match entry {
            Entry::Started { attempt, kind, .. } if written.is_ok() => {
                if let Some(key) = &self.submission.key {
                    key.note_sent(self.now.time());
                }
                self.log.push(Attempt::started(*attempt, *kind, self.now.system_time()));
                self.tell(|about, attempt| {
                    let attempt = attempt.expect("it was just started");
                    Event::AttemptStarted(AttemptStarted::new(about, attempt))
                });
                self.started = self.now;
            }
            // It ended, on record or not.
            Entry::Ended { at, next_at, .. } => self.tell_ended(after, next_at.map(|next| next.since(*at))),
            _ => {}
        }
        written
    }
}

fn request(of: &Submission, authorized: impl IntoIterator<Item = (HeaderName, HeaderValue)>) -> Request {
    let mut request = Request::new(of.method.clone(), of.url.clone());
    let mut headers = HeaderMap::with_capacity(of.headers.len() + 2);
    for (name, value) in &of.headers {
        headers.append(name.clone(), value.clone());
    }
    for (name, value) in authorized {
        headers.insert(name, value);
    }
    *request.headers_mut() = headers;
    *request.body_mut() = of.body.clone().map(Body::from);
    request
}

/// Whether another try, later, is what the end leaves open.
pub(crate) fn may_go_on(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Stopped(reason) => reason.leaves_a_later_try(),
        Outcome::Applied | Outcome::Ended(_) | Outcome::Contradicted | Outcome::Resolved(_) => false,
    }
}

/// The value in memory of its own.
#[cfg(feature = "journal")]
fn unshared_value(value: &HeaderValue) -> HeaderValue {
    HeaderValue::from_bytes(value.as_bytes()).unwrap_or_else(|_| value.clone())
}
