//! One operation on its way: what the driver's loop acts on.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Body, Request};

use crate::attempt::{Attempt, DateText, Failure, WaitReason};
use crate::authorize::Parts;
use crate::client::Inner;
use crate::driver::{self, World};
use crate::engine::{Budget, Draw, Entry, History, Outcome, Policy, StopReason, Time, Verdict};
use crate::error::{Error, Record};
use crate::policy::Schedule;
use crate::profile::{Asked, Glance};
use crate::response::Response;
use crate::runtime::{self, Moment};
use crate::submission::{IdempotencyKey, Submission};
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
    /// The last complete head, and the verdict on it.
    last: Option<(Head, Verdict)>,
    /// Why the run stopped, where the engine cannot know.
    problem: Option<Cow<'static, str>>,
}

impl Operation {
    pub(crate) fn begin(client: Arc<Inner>, submission: Submission, policy: Policy) -> Box<Self> {
        let now = runtime::now();
        let created = submission.created(now.time());
        let call = Call {
            schedule: client.schedule(),
            client,
            submission,
            now,
            started: now,
            log: Vec::with_capacity(1),
            attempt_timeout: policy.attempt_time(),
            authorized: Vec::new(),
            authorizing: Duration::ZERO,
            progress: Progress::default(),
            last: None,
            problem: None,
        };
        let history = History::replay(std::slice::from_ref(&created)).expect("a creation alone is a history");
        Box::new(Self { call, history, policy })
    }

    /// Carries it to its final answer, or to where it must stop.
    pub(crate) async fn carry_out(mut self: Box<Self>) -> Result<Response, Error> {
        let Self { call, history, policy } = &mut *self;
        let outcome = driver::run(call, history, policy).await;
        self.finish(outcome)
    }

    fn finish(mut self: Box<Self>, outcome: Outcome) -> Result<Response, Error> {
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
        };
        let operation = call.submission.operation();
        let key = call.submission.key.take().map(|key| key.used(history.key_since()));
        let attempts = std::mem::take(&mut call.log);
        match call.last.take() {
            Some(last) if outcome == Outcome::Applied => Ok(response(last, key, attempts)),
            last => {
                let record = Record {
                    effect,
                    operation,
                    response: last.map(|last| response(last, key.clone(), attempts.clone())),
                    key,
                    attempts,
                    resume_at: history.next_at().filter(|_| may_go_on(outcome)).map(runtime::system_time),
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
    fn request(&mut self) -> Request {
        let submission = &self.submission;
        let mut request = Request::new(submission.method.clone(), submission.url.clone());
        let mut headers = HeaderMap::with_capacity(submission.headers.len() + self.authorized.len());
        for (name, value) in &submission.headers {
            headers.append(name.clone(), value.clone());
        }
        for (name, value) in self.authorized.drain(..) {
            headers.insert(name, value);
        }
        *request.headers_mut() = headers;
        *request.body_mut() = submission.body.clone().map(Body::from);
        request
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
    fn now(&mut self) -> Time {
        self.now.time()
    }

    async fn sleep(&mut self, wait: Duration) {
        if let Some((head, _)) = &mut self.last {
            // What waits must not hold on to the connection's read buffer.
            head.headers = unshared(&head.headers);
        }
        runtime::sleep(wait).await;
        let awake = runtime::now();
        if let Some(attempt) = self.log.last_mut() {
            attempt.wait = attempt.wait.saturating_add(awake.since(self.now));
            attempt.wait_reason = attempt.verdict.map(WaitReason::of);
        }
        self.now = awake;
    }

    async fn prepare(&mut self, attempt: u32, limit: Duration) -> Result<(), StopReason> {
        let Some(hook) = &self.client.authorize else {
            return Ok(());
        };
        let previous = self.log.last().and_then(|attempt| attempt.status);
        let mut parts = Parts::new(&self.submission, self.client.profile.key_header(), attempt, previous);
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
        let request = self.request();
        // The hook ran inside the attempt's time; the deadline's is counted from now already.
        let timeout = timeout.min(self.attempt_timeout.saturating_sub(std::mem::take(&mut self.authorizing)));
        self.progress = Progress::default();
        let client = &*self.client;
        transport::exchange(&client.http, request, timeout, client.max_response_bytes, &mut self.progress).await;
        self.now = runtime::now();
        let submission = &self.submission;
        let asked = Asked::listed(&submission.method, &submission.headers)
            .with_key(submission.key.as_ref().map(|key| key.as_str()))
            .gone_is_done(submission.gone_is_done);
        let verdict = self.progress.verdict(&self.client.profile, &asked, self.now.time());
        self.note_answer();
        if let Some(head) = self.progress.head.take() {
            self.last = Some((head, verdict));
        }
        verdict
    }

    fn draw(&mut self, budget: Option<Budget>) -> Draw {
        self.schedule.draw(budget, &self.client.dice)
    }

    fn record(&mut self, entry: &Entry) {
        match entry {
            Entry::Started { attempt, kind, .. } => {
                self.started = self.now;
                if let Some(key) = &self.submission.key {
                    key.note_sent(self.now.time());
                }
                self.log.push(Attempt::started(*attempt, *kind, self.now.system_time()));
            }
            Entry::Ended { verdict, .. } => {
                if let Some(attempt) = self.log.last_mut() {
                    attempt.duration = self.now.since(self.started);
                    attempt.verdict = Some(*verdict);
                }
            }
            Entry::Created { .. }
            | Entry::Resumed { .. }
            | Entry::Interrupted { .. }
            | Entry::Stopped { .. }
            | Entry::Amended { .. }
            | Entry::Resolved { .. } => {}
        }
    }
}

/// Whether another try, later, is what the end leaves open.
fn may_go_on(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Stopped(reason) => reason.leaves_a_later_try(),
        Outcome::Applied | Outcome::Ended(_) | Outcome::Contradicted => false,
    }
}

/// The headers in memory of their own.
fn unshared(headers: &HeaderMap) -> HeaderMap {
    let copy = |value: &HeaderValue| HeaderValue::from_bytes(value.as_bytes()).unwrap_or_else(|_| value.clone());
    let mut own = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        own.append(name, copy(value));
    }
    own
}
