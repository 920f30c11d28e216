//! One operation on its way: what the driver's loop acts on.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "journal")]
use http::header::SET_COOKIE;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Body, Request};

use crate::attempt::{Attempt, DateText, Failure, WaitReason};
use crate::authorize::Parts;
use crate::client::Inner;
use crate::driver::{self, World};
#[cfg(feature = "journal")]
use crate::engine::MethodKind;
use crate::engine::{
    Advice, Budget, Draw, Effect, Entry, History, Outcome, Policy, Reach, StopReason, Time, Verdict, Why,
};
#[cfg(feature = "journal")]
use crate::error::ErrorKind;
use crate::error::{Error, Record};
use crate::event::{About, AttemptEnded, AttemptStarted, Ended, Event, Hook, Waiting};
#[cfg(feature = "journal")]
#[cfg(feature = "journal")]
use crate::journal::{Durability, JournalError, JournalErrorKind, StoredAnswer};
#[cfg(feature = "journal")]
use crate::logbook::Logbook;
use crate::look;
use crate::policy::Schedule;
#[cfg(feature = "journal")]
use crate::profile::method_kind;
use crate::profile::{Asked, Glance};
use crate::reconcile::Doubtful;
use crate::response::Response;
use crate::runtime::{self, Moment};
#[cfg(feature = "journal")]
use crate::submission::is_credential;
use crate::submission::{IdempotencyKey, OperationId, Submission};
use crate::trace::Trace;
use crate::transport::{self, Head, Progress};

/// What the hook must leave of an attempt's time.
const SHORTEST_SEND: Duration = Duration::from_millis(50);

/// One operation: its state and what it needs. In memory of its own, since the
/// future that carries it out is moved often and so must stay small.
pub(crate) struct Operation {
    call: Call,
    history: History,
    policy: Policy,
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
    /// What the hook brought for the attempt that is about to be sent, and how long it took.
    authorized: Vec<(HeaderName, HeaderValue)>,
    authorizing: Duration,
    progress: Progress,
    /// What is sent in the place of the operation itself: a look at its status resource.
    look: Option<Box<Submission>>,
    /// The last answer named that resource, so that it is enough to go on by.
    names_it: bool,
    /// The last complete head, and the verdict on it.
    last: Option<(Head, Verdict)>,
    /// Why the run stopped, where the engine cannot know.
    problem: Option<Cow<'static, str>>,
    /// The request's own, after the client's.
    hook: Option<Hook>,
    /// What hooks are told that it is called.
    name: Option<OperationId>,
    trace: Trace,
    /// How far the entries on record are ahead of the clock: the operation's
    /// own time goes on from there.
    #[cfg(feature = "journal")]
    ahead: Duration,
    #[cfg(feature = "journal")]
    logbook: Option<Box<Logbook>>,
}

/// Why nothing more can be recorded.
#[cfg(feature = "journal")]
#[derive(Debug)]
pub(crate) enum Broken {
    /// Somebody else writes to the operation's record.
    Displaced,
    /// What must be on record cannot be written.
    Failed(JournalError),
}

#[cfg(not(feature = "journal"))]
type Broken = std::convert::Infallible;

/// An operation that is taken up on record.
#[cfg(feature = "journal")]
pub(crate) struct OnRecord {
    pub(crate) history: History,
    pub(crate) logbook: Logbook,
    pub(crate) ahead: Duration,
    /// The status resource that it is asked after at.
    pub(crate) look: Option<url::Url>,
}

impl Operation {
    pub(crate) fn begin(client: Arc<Inner>, submission: Submission, policy: Policy) -> Box<Self> {
        let now = runtime::now();
        let created = submission.created(now.time());
        let history = History::replay(std::slice::from_ref(&created)).expect("a creation alone is a history");
        let call = Call::new(client, submission, &policy, now);
        Box::new(Self { call, history, policy })
    }

    /// The same of an operation on record.
    #[cfg(feature = "journal")]
    pub(crate) fn on_record(client: Arc<Inner>, submission: Submission, policy: Policy, record: OnRecord) -> Box<Self> {
        let mut call = Call::new(client, submission, &policy, runtime::now());
        call.ahead = record.ahead;
        call.look = record.look.map(|url| Box::new(look::asking(&call.submission, url, &call.client.profile)));
        call.logbook = Some(Box::new(record.logbook));
        Box::new(Self { call, history: record.history, policy })
    }

    /// With a hook of the request's own.
    pub(crate) fn watched(mut self: Box<Self>, hook: Option<Hook>) -> Box<Self> {
        self.call.hook = hook;
        if self.call.is_watched() {
            self.call.name = self.call.submission.operation();
        }
        self
    }

    /// Carries it to its final answer, or to where it must stop.
    pub(crate) async fn carry_out(mut self: Box<Self>) -> Result<Response, Error> {
        match self.run().await {
            Ok(outcome) => {
                let outcome = self.reconciled(outcome).await;
                self.finish(outcome)
            }
            #[cfg(feature = "journal")]
            Err(broken) => Err(self.broken(broken)),
            #[cfg(not(feature = "journal"))]
            Err(never) => match never {},
        }
    }

    /// What a look-up by the caller's own reference makes of an end in doubt.
    pub(crate) async fn reconciled(&mut self, outcome: Outcome) -> Outcome {
        let client = Arc::clone(&self.call.client);
        let Some(hook) = client.reconcile_with.as_ref().filter(|_| self.history.effect() == Effect::Unknown) else {
            return outcome;
        };
        let doubtful = Doubtful { submission: &self.call.submission, id: self.call.submission.operation() };
        let found = runtime::within(self.policy.attempt_time(), hook.reconcile(&doubtful)).await;
        self.call.now = runtime::now();
        let Some(Ok(found)) = found else {
            return outcome;
        };
        let at = self.call.now().max(self.history.latest());
        let by = format!("reconcile: {}", found.evidence()).into();
        let entry = Entry::Resolved { effect: found.effect(), by, at };
        let mut after = self.history.clone();
        if after.apply(&entry).is_err() {
            return outcome;
        }
        // What is not on record is not settled.
        if self.call.record(&entry, &after, self.policy.attempt_time()).await.is_err() {
            return outcome;
        }
        self.history = after;
        Outcome::Resolved(self.history.effect())
    }

    /// Carries it to its end, by which it can be finished.
    pub(crate) async fn run(&mut self) -> Result<Outcome, Broken> {
        let scope = self.call.trace.operation();
        scope.around(driver::run(&mut self.call, &mut self.history, &self.policy)).await
    }

    /// Whether this run has sent something, or was about to.
    #[cfg(feature = "journal")]
    pub(crate) fn has_begun(&self) -> bool {
        !self.call.log.is_empty()
    }

    /// Gives up what was never begun.
    #[cfg(feature = "journal")]
    pub(crate) fn give_back(self: Box<Self>) {
        if let Some(key) = &self.call.submission.key {
            key.release();
        }
    }

    /// What an end that must be durable waits for, and then the end.
    #[cfg(feature = "journal")]
    pub(crate) async fn settle(mut self: Box<Self>, outcome: Outcome) -> Result<Response, Error> {
        let effect = self.history.effect();
        let Some(book) = &mut self.call.logbook else {
            return self.finish(outcome);
        };
        let is_safe = effect == Effect::NotApplied && method_kind(&self.call.submission.method) == MethodKind::Safe;
        let replays = self.call.submission.key.is_some() && self.call.client.profile.replays();
        if (effect == Effect::NotApplied && !is_safe) || !replays {
            // A failure is kept in the book.
            let _ = book.flush().await;
        }
        if let Some(failure) = book.failure()
            && effect == Effect::NotApplied
            && !is_safe
            && book.is_on_record()
        {
            let what = "it ended without effect, but that could not be written down";
            return Err(self.failed(ErrorKind::Journal, what, Effect::Unknown, failure));
        }
        self.finish(outcome)
    }

    /// The run could not go on for want of a record.
    #[cfg(feature = "journal")]
    pub(crate) fn broken(self: Box<Self>, broken: Broken) -> Error {
        match broken {
            Broken::Displaced => {
                let effect = self.history.effect();
                let failure = JournalError::new(JournalErrorKind::Conflict, "somebody else wrote to the record");
                self.failed(ErrorKind::Journal, "somebody else went on with it", effect, failure)
            }
            Broken::Failed(failure) if failure.kind() == JournalErrorKind::KeyTaken => {
                // What that one's effect is, its own id tells.
                self.failed(
                    ErrorKind::Mismatch,
                    "the key is on record for an operation of another id",
                    Effect::Unknown,
                    failure,
                )
            }
            Broken::Failed(failure) => {
                let effect = match self.history.effect() {
                    // It may be on record as sent, and so be taken up.
                    Effect::NotApplied if !failure.is_certain() => Effect::Unknown,
                    effect => effect,
                };
                self.failed(ErrorKind::Journal, "the journal failed, so that nothing more was sent", effect, failure)
            }
        }
    }

    #[cfg(feature = "journal")]
    fn failed(
        mut self: Box<Self>,
        kind: ErrorKind,
        what: &'static str,
        effect: Effect,
        failure: JournalError,
    ) -> Error {
        let call = &mut self.call;
        let key = call.submission.key.take();
        if self.history.attempts() == 0
            && let Some(key) = &key
        {
            key.release();
        }
        let record = Record {
            effect,
            operation: call.submission.id.take().or_else(|| key.as_ref().map(OperationId::of_key)),
            key: key.map(|key| key.used(self.history.key_since())),
            attempts: std::mem::take(&mut call.log),
            response: None,
            resume_at: None,
            source: Some(Box::new(failure)),
        };
        let error = Error::on_record(kind, what, record);
        self.tell_end(Err(&error));
        error
    }

    fn finish(mut self: Box<Self>, outcome: Outcome) -> Result<Response, Error> {
        let end = self.end(outcome);
        self.tell_end(end.as_ref());
        end
    }

    /// Whatever comes back is told, once.
    pub(crate) fn tell_end(&mut self, end: Result<&Response, &Error>) {
        let (effect, attempts) = match end {
            Ok(response) => (self.history.effect(), response.attempts()),
            Err(error) => (error.effect(), error.attempts()),
        };
        self.call.trace.ended(effect, end.err().map(Error::kind), attempts.len());
        self.call.tell(|about, _| Event::Ended(Ended::new(about, end, effect)));
    }

    fn end(&mut self, outcome: Outcome) -> Result<Response, Error> {
        let call = &mut self.call;
        let history = &self.history;
        if history.attempts() == 0
            && let Some(key) = &call.submission.key
        {
            key.release();
        }
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
                    source: call.progress.cause.take(),
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
            authorized: Vec::new(),
            authorizing: Duration::ZERO,
            progress: Progress::default(),
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
        let about = About { operation: self.name.as_ref(), submission: &self.submission };
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

    /// Writes it into the record. Time passes meanwhile.
    #[cfg(feature = "journal")]
    async fn write_down(&mut self, entry: &Entry, after: &History, left: Duration) -> Result<(), Broken> {
        let answer = self.answer_of(entry);
        let Some(book) = &mut self.logbook else {
            return Ok(());
        };
        let written = match entry {
            Entry::Started { .. } | Entry::Resolved { .. } => {
                book.announce(entry, after, Durability::Flushed, left).await
            }
            Entry::Interrupted { .. } => book.announce(entry, after, Durability::Visible, left).await,
            _ => book.note(entry, after, answer, left).await,
        };
        self.now = runtime::now();
        let Err(failure) = written else {
            return Ok(());
        };
        let displaced = matches!(failure.kind(), JournalErrorKind::Conflict | JournalErrorKind::IdTaken);
        match entry {
            // An answer is given out even if it cannot be written down.
            Entry::Ended { verdict, .. } if verdict.reach() == Reach::Applied => Ok(()),
            _ if displaced => Err(Broken::Displaced),
            Entry::Ended { .. } | Entry::Stopped { .. } => Ok(()),
            _ => Err(Broken::Failed(failure)),
        }
    }

    /// The answer that goes on record with the end of its attempt.
    #[cfg(feature = "journal")]
    fn answer_of(&self, entry: &Entry) -> Option<StoredAnswer> {
        let came =
            matches!(entry, Entry::Ended { .. }) && self.log.last().is_some_and(|attempt| attempt.status.is_some());
        let (head, verdict) = self.last.as_ref().filter(|_| came && self.logbook.is_some())?;
        // What names the status resource is kept until the end.
        let ends = matches!(verdict.reach(), Reach::Applied | Reach::Rejected);
        if self.look.is_some() && !self.names_it && !ends {
            return None;
        }
        let mut headers = HeaderMap::with_capacity(head.headers.len());
        let kept = head.headers.iter().filter(|(name, value)| !is_credential(name, value) && **name != SET_COOKIE);
        for (name, value) in kept {
            headers.append(name.clone(), unshared_value(value));
        }
        Some(StoredAnswer::new(head.status, headers, head.body.clone()))
    }

    /// What goes out next.
    fn outgoing(&self) -> &Submission {
        self.look.as_deref().unwrap_or(&self.submission)
    }

    /// What a status resource says of the operation, and where it is asked next.
    fn followed(&mut self, read: Verdict) -> Verdict {
        self.names_it = false;
        let is_look = self.look.is_some();
        let Some(head) = &self.progress.head else {
            return if is_look { look::of_status(read, None) } else { read };
        };
        let verdict = if is_look { look::of_status(read, Some(head.status)) } else { read };
        let Some(find) = &self.client.poll_with else {
            return verdict;
        };
        let base = &self.outgoing().url;
        let is_pending = matches!(verdict.reach(), Reach::Accepted { .. }) && verdict.why() == Why::Pending;
        let named = || find(&head.answer(self.now.time())).and_then(|url| base.join(&url).ok());
        let moved = is_look.then(|| look::see_other(head.status, &head.headers, base)).flatten();
        let next = match moved {
            Some(url) => Some(url),
            None if is_pending || (is_look && verdict.reach() == Reach::Applied) => {
                let url = named().filter(|url| url.has_host());
                self.names_it = url.is_some();
                url
            }
            None => None,
        };
        let Some(url) = next else {
            return verdict;
        };
        self.look = Some(Box::new(look::asking(&self.submission, url, &self.client.profile)));
        look::pending(verdict)
    }

    /// The original in the place of the answer that says that there is one.
    async fn recovered(&mut self, verdict: Verdict, left: Duration) -> Verdict {
        if verdict.why() != Why::AlreadyProcessed {
            return verdict;
        }
        let client = Arc::clone(&self.client);
        let url = self.progress.head.as_ref().zip(client.recover_with.as_ref()).and_then(|(head, find)| {
            let id = client.profile.original_id(&head.answer(self.now.time()))?;
            self.submission.url.join(&find(&id)?).ok()
        });
        let Some(url) = url else {
            return verdict;
        };
        let look = look::asking(&self.submission, url, &client.profile);
        let again = verdict.with_reach(Reach::Ambiguous).with_advice(Advice::Retry);
        let began = runtime::now();
        let attempt = self.log.last().map_or(1, Attempt::number);
        let mut headers = Vec::new();
        if let Some(hook) = client.authorize.as_ref().filter(|_| look.url.origin() == self.submission.url.origin()) {
            let mut parts = Parts::new(&look, client.profile.key_header(), attempt, None);
            match runtime::within(left, hook.authorize(&mut parts)).await {
                Some(Ok(())) => headers = parts.into_headers(),
                Some(Err(_)) | None => return again,
            }
        }
        let left = left.saturating_sub(runtime::now().since(began));
        let mut progress = Progress::default();
        let request = request(&look, headers);
        transport::exchange(&client.http, request, left, client.max_response_bytes, &mut progress).await;
        self.now = runtime::now();
        let read = progress.verdict(&client.profile, &Asked::listed(&look.method, &look.headers), self.now.time());
        if let (Some(attempt), Some(head)) = (self.log.last_mut(), &progress.head) {
            attempt.looked_up = Some(head.status);
        }
        match (read.reach(), read.advice()) {
            (Reach::Applied, _) => {
                self.progress.head = progress.head;
                verdict.with_reach(Reach::Applied).with_advice(Advice::Stop)
            }
            // Turned away for good: the server's first word stands, and settles nothing.
            (_, Advice::Stop) => verdict,
            (_, Advice::Retry | Advice::RetryAfter(_)) => again,
        }
    }

    fn note_answer(&mut self) {
        let Some(attempt) = self.log.last_mut() else {
            return;
        };
        attempt.failure = self.progress.failure;
        if let Some(head) = &self.progress.head {
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
        return self.now.time().after(self.ahead);
        #[cfg(not(feature = "journal"))]
        self.now.time()
    }

    async fn sleep(&mut self, wait: Duration) {
        if let Some((head, _)) = &mut self.last {
            // What waits must not hold on to the connection's read buffer.
            head.headers = unshared(&head.headers);
        }
        let began = self.now;
        let last = self.log.last().and_then(|attempt| attempt.verdict);
        self.tell(|about, _| {
            let reason = last.map_or(WaitReason::Earlier, WaitReason::of);
            let until = began.system_time().checked_add(wait).unwrap_or_else(|| began.system_time());
            let waiting = Waiting::new(about, wait, until, reason);
            match last.map(|verdict| verdict.reach()) {
                Some(Reach::Accepted { knows_key: true }) => Event::Polling(waiting),
                Some(_) | None => Event::Waiting(waiting),
            }
        });
        runtime::sleep(wait.saturating_sub(self.now.since(began))).await;
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
        let allowed = limit.saturating_sub(SHORTEST_SEND.min(limit / 2));
        let outcome = runtime::within(allowed, hook.authorize(&mut parts)).await;
        let headers = parts.into_headers();
        let done = runtime::now();
        self.authorizing = done.since(self.now);
        self.now = done;
        match outcome {
            Some(Ok(())) => {
                self.authorized = headers;
                Ok(())
            }
            Some(Err(error)) => {
                self.progress.cause = Some(error);
                Err(StopReason::Authorize)
            }
            None if limit < self.attempt_timeout => {
                self.progress.cause = None;
                Err(StopReason::Deadline)
            }
            None => {
                self.progress.cause = None;
                self.problem = Some("the `authorize` hook did not end within the attempt's timeout".into());
                Err(StopReason::Authorize)
            }
        }
    }

    async fn send(&mut self, timeout: Duration) -> Verdict {
        let authorized = std::mem::take(&mut self.authorized);
        let request = request(self.outgoing(), authorized);
        // The hook ran inside the attempt's time; the deadline's is counted from now already.
        let timeout = timeout.min(self.attempt_timeout.saturating_sub(std::mem::take(&mut self.authorizing)));
        self.progress = Progress::default();
        let scope = self.trace.attempt(&self.submission, self.log.last());
        let client = &*self.client;
        let exchange =
            transport::exchange(&client.http, request, timeout, client.max_response_bytes, &mut self.progress);
        scope.around(exchange).await;
        let sent = self.now;
        self.now = runtime::now();
        let outgoing = self.outgoing();
        let asked = Asked::listed(&outgoing.method, &outgoing.headers)
            .with_key(outgoing.key.as_ref().map(|key| key.as_str()))
            .gone_is_done(outgoing.gone_is_done);
        let verdict = self.progress.verdict(&self.client.profile, &asked, self.now.time());
        self.note_answer();
        let verdict = self.followed(verdict);
        let verdict = self.recovered(verdict, timeout.saturating_sub(self.now.since(sent))).await;
        if let Some(head) = self.progress.head.take() {
            self.last = Some((head, verdict));
        }
        verdict
    }

    fn draw(&mut self, budget: Option<Budget>) -> Draw {
        self.schedule.draw(budget, &self.client.dice)
    }

    async fn record(&mut self, entry: &Entry, after: &History, left: Duration) -> Result<(), Broken> {
        if let Entry::Ended { verdict, .. } = entry
            && let Some(attempt) = self.log.last_mut()
        {
            attempt.duration = self.now.since(self.started);
            attempt.verdict = Some(*verdict);
        }
        #[cfg(feature = "journal")]
        let written = if self.logbook.is_some() { self.write_down(entry, after, left).await } else { Ok(()) };
        #[cfg(not(feature = "journal"))]
        let (written, _) = (Ok(()), left);
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

/// The headers in memory of their own.
fn unshared(headers: &HeaderMap) -> HeaderMap {
    let mut own = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        own.append(name, unshared_value(value));
    }
    own
}

fn unshared_value(value: &HeaderValue) -> HeaderValue {
    HeaderValue::from_bytes(value.as_bytes()).unwrap_or_else(|_| value.clone())
}
