//! One operation on its way: what the driver's loop acts on.

use std::borrow::Cow;
use std::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Body, Request};

use crate::attempt::{Attempt, WaitReason};
use crate::authorize::Parts;
use crate::client::Inner;
use crate::driver::{self, World};
use crate::engine::{Budget, Draw, Entry, History, Outcome, Policy, StopReason, Time, Verdict};
use crate::error::{Cause, Error, Record};
use crate::policy::Schedule;
use crate::profile::{self, Asked};
use crate::response::Response;
use crate::runtime::{self, Moment};
use crate::submission::Submission;
use crate::transport::{self, Head};

/// Less than this is not worth the attempt that the hook left it to.
const SHORTEST_SEND: Duration = Duration::from_millis(50);

/// The operation, carried to its final answer or to where it must stop.
pub(crate) async fn carry_out(client: &Inner, submission: Submission, policy: Policy) -> Result<Response, Error> {
    let read = runtime::now();
    let created = submission.created(read.time());
    let mut history = History::replay(std::slice::from_ref(&created)).expect("a creation alone is a history");
    let mut call = Call::new(client, submission, read);
    let outcome = driver::run(&mut call, &mut history, &policy).await;
    call.finish(outcome, &history)
}

struct Call<'a> {
    client: &'a Inner,
    submission: Submission,
    schedule: Schedule,
    /// The last reading of the clock.
    read: Moment,
    started: Moment,
    log: Vec<Attempt>,
    /// The request of the attempt that is about to be sent, and how long its hook took.
    ready: Option<(Request, Duration)>,
    /// The last complete head, and the verdict on it.
    last: Option<(Head, Verdict)>,
    /// What the last attempt failed on, or what stopped the run.
    cause: Option<Cause>,
    problem: Option<Cow<'static, str>>,
}

impl<'a> Call<'a> {
    fn new(client: &'a Inner, submission: Submission, read: Moment) -> Self {
        Self {
            client,
            submission,
            schedule: client.schedule(),
            read,
            started: read,
            log: Vec::with_capacity(1),
            ready: None,
            last: None,
            cause: None,
            problem: None,
        }
    }

    fn request(&self, extra: Vec<(HeaderName, HeaderValue)>) -> Request {
        let submission = &self.submission;
        let mut request = Request::new(submission.method.clone(), submission.url.clone());
        *request.headers_mut() = submission.headers.clone();
        for (name, value) in extra {
            request.headers_mut().insert(name, value);
        }
        *request.body_mut() = submission.body.clone().map(Body::from);
        request
    }

    /// The headers that the hook brings for this attempt.
    async fn authorized(
        &mut self,
        attempt: u32,
        limit: Duration,
    ) -> Result<Vec<(HeaderName, HeaderValue)>, StopReason> {
        let Some(hook) = &self.client.authorize else {
            return Ok(Vec::new());
        };
        let previous = self.log.last().and_then(|attempt| attempt.status);
        let mut parts = Parts::new(&self.submission, self.client.profile.key_header(), attempt, previous);
        match runtime::within(limit, hook.authorize(&mut parts)).await {
            Some(Ok(())) => Ok(parts.into_headers()),
            Some(Err(error)) => {
                self.cause = Some(error);
                Err(StopReason::Authorize)
            }
            None => {
                self.cause = None;
                self.problem = Some("the `authorize` hook did not end within the attempt's timeout".into());
                Err(StopReason::Authorize)
            }
        }
    }

    fn finish(mut self, outcome: Outcome, history: &History) -> Result<Response, Error> {
        let used = history.attempts() > 0;
        if !used && let Some(key) = &self.submission.key {
            key.release();
        }
        let operation = self.submission.operation();
        let key = self.submission.key.take().map(|key| key.used(history.key_since()));
        let attempts = std::mem::take(&mut self.log);
        let profile = &self.client.profile;
        let response = |(head, verdict): (Head, Verdict), key, attempts| Response {
            status: head.status,
            headers: head.headers,
            body: head.body,
            replay: profile.replay(&verdict),
            key,
            attempts,
            applied: outcome == Outcome::Applied,
        };
        match self.last.take() {
            Some(last) if outcome == Outcome::Applied => Ok(response(last, key, attempts)),
            last => {
                let record = Record {
                    effect: history.effect(),
                    operation,
                    response: last.map(|last| response(last, key.clone(), attempts.clone())),
                    key,
                    attempts,
                    resume_at: history.next_at().map(runtime::system_time),
                    source: self.cause.take(),
                };
                Err(Error::ended(outcome, self.problem.take(), record))
            }
        }
    }
}

impl World for Call<'_> {
    fn now(&mut self) -> Time {
        self.read = runtime::now();
        self.read.time()
    }

    async fn sleep(&mut self, wait: Duration) {
        if let Some((head, _)) = &mut self.last {
            // What waits must not hold on to the connection's read buffer.
            head.headers = unshared(&head.headers);
        }
        let began = self.read;
        runtime::sleep(wait).await;
        let slept = runtime::now().since(began);
        if let Some(attempt) = self.log.last_mut() {
            attempt.wait = attempt.wait.saturating_add(slept);
            attempt.wait_reason = attempt.verdict.map(WaitReason::of);
        }
    }

    async fn prepare(&mut self, attempt: u32, limit: Duration) -> Result<(), StopReason> {
        let began = self.read;
        let extra = self.authorized(attempt, limit).await?;
        let took = if self.client.authorize.is_some() { runtime::now().since(began) } else { Duration::ZERO };
        self.ready = Some((self.request(extra), took));
        Ok(())
    }

    async fn send(&mut self, timeout: Duration) -> Verdict {
        let (request, took) = match self.ready.take() {
            Some(ready) => ready,
            None => (self.request(Vec::new()), Duration::ZERO),
        };
        let client = self.client;
        let submission = &self.submission;
        let asked = Asked::new(&submission.method, &submission.headers)
            .with_key(submission.key.as_ref().map(|key| key.as_str()))
            .gone_is_done(submission.gone_is_done);
        let timeout = timeout.saturating_sub(took).max(SHORTEST_SEND.min(timeout));
        let limit = client.max_response_bytes;
        let came = transport::exchange(&client.http, request, timeout, limit, &client.profile, &asked).await;
        if let Some(attempt) = self.log.last_mut() {
            attempt.failure = came.failure;
            if let Some(head) = &came.head {
                attempt.status = Some(head.status);
                attempt.date = profile::date(&head.headers);
                attempt.request_id = request_id(&head.headers);
            }
        }
        self.cause = came.cause;
        if let Some(head) = came.head {
            self.last = Some((head, came.verdict));
        }
        came.verdict
    }

    fn draw(&mut self, budget: Option<Budget>) -> Draw {
        self.schedule.draw(budget, &self.client.dice)
    }

    fn record(&mut self, entry: &Entry) {
        match entry {
            Entry::Started { attempt, kind, .. } => {
                self.started = self.read;
                self.log.push(Attempt::started(*attempt, *kind, self.read.system_time()));
            }
            Entry::Ended { verdict, .. } => {
                if let Some(attempt) = self.log.last_mut() {
                    attempt.duration = self.read.since(self.started);
                    attempt.verdict = Some(*verdict);
                }
            }
            _ => {}
        }
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

/// Where servers put the id that their support can look a request up by.
const REQUEST_IDS: [HeaderName; 3] = [
    HeaderName::from_static("request-id"),
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("x-correlation-id"),
];

fn request_id(headers: &HeaderMap) -> Option<Box<str>> {
    REQUEST_IDS.iter().find_map(|name| headers.get(name)?.to_str().ok()).map(Into::into)
}
