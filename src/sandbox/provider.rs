//! What the API does with a request that reaches it: who may come in, keys, and the work.

use super::answer::Answer;
use super::config::Config;
use super::execution::Execution;
use super::gateway::path;
use super::json::Json;
use super::plan::{Phase, Plan, Route, in_progress, marked};
use super::shared::{Shared, State};
use super::store::{Claim, Ticket};
use bytes::Bytes;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};
use std::sync::Arc;
use std::time::Duration;

/// The longest key, as most providers have it.
const LONGEST_KEY: usize = 255;

/// A request, read whole.
#[derive(Clone)]
pub(super) struct Call {
    number: usize,
    /// When its head arrived, since the start.
    arrived: Duration,
    method: Method,
    path: String,
    /// All lines of the key's header; what no key can be is `None`.
    keys: Vec<Option<String>>,
    authorization: Option<HeaderValue>,
    body: Bytes,
}

/// Whether a call may go to the handler.
enum Admission {
    Answered(Answer),
    /// Under a lock, where the route is keyed.
    Run(Option<Ticket>),
    /// Another one runs under this key, whose lock goes stale after this.
    Busy(Duration),
}

/// What the handler does.
enum Conduct {
    Honest,
    Says { answer: Answer, executes: bool },
    Dies { executes: bool },
}

impl Call {
    pub(super) fn new(number: usize, arrived: Duration, parts: Parts, body: Bytes, config: &Config) -> Self {
        let keys = parts.headers.get_all(&config.key_header);
        Self {
            number,
            arrived,
            path: path(&parts),
            keys: keys.iter().map(valid_key).collect(),
            authorization: parts.headers.get(AUTHORIZATION).cloned(),
            method: parts.method,
            body,
        }
    }

    fn key(&self) -> Option<&str> {
        self.keys.iter().flatten().next().map(String::as_str)
    }

    /// Method, path and canonical body. Compared whole: there's no need to save space here, and
    /// nothing to collide.
    fn fingerprint(&self) -> Vec<u8> {
        let mut print = format!("{} {}\n", self.method, self.path).into_bytes();
        match Json::parse(&self.body) {
            Some(json) => {
                print.extend_from_slice(b"json\n");
                print.extend_from_slice(json.canonical().as_bytes());
            }
            None => {
                print.extend_from_slice(b"raw\n");
                print.extend_from_slice(&self.body);
            }
        }
        print
    }
}

fn valid_key(value: &HeaderValue) -> Option<String> {
    let key = value.to_str().ok()?;
    let fits = !key.is_empty() && key.len() <= LONGEST_KEY;
    fits.then(|| key.to_owned())
}

impl Shared {
    /// The answer that leaves the gateway; `None` if the handler never gives one.
    pub(super) async fn respond(self: Arc<Self>, call: Call, plan: &Plan) -> Option<Answer> {
        if plan.stall == Some(Phase::BeforeExecuting) {
            // Without an end it has not come here.
            let lasting = plan.lasting.unwrap_or_default();
            let end = call.arrived.saturating_add(lasting);
            self.clock.sleep_until(end).await;
        }
        let said = |fallback| plan.said.canned(fallback, &self.config, self.clock.now());
        let real = match plan.route {
            Route::Shut(_) | Route::Gateway => return Some(said(StatusCode::BAD_GATEWAY)),
            Route::Behind => {
                let admission = self.admit(&call);
                self.settle(call, admission, Conduct::Honest, plan).await;
                return Some(said(StatusCode::BAD_GATEWAY));
            }
            Route::Through => {
                let admission = self.admit(&call);
                let hangs = plan.stall == Some(Phase::WhileExecuting) && plan.lasting.is_none();
                let conduct = if hangs { Conduct::Dies { executes: false } } else { Conduct::Honest };
                self.settle(call, admission, conduct, plan).await
            }
            Route::Handler { executes } => {
                let answer = said(StatusCode::OK);
                let admission = self.admit(&call);
                let conduct = Conduct::Says { answer, executes };
                return self.settle(call, admission, conduct, plan).await;
            }
            Route::Crash { executes } => {
                let admission = self.admit(&call);
                let conduct = Conduct::Dies { executes };
                self.settle(call, admission, conduct, plan).await
            }
            Route::Twice => {
                let mut copy = call.clone();
                copy.number = self.arrive_again(call.number);
                // Both come in before either works, so that which is first is no matter of luck.
                let (first, second) = (self.admit(&call), self.admit(&copy));
                let server = Arc::clone(&self);
                self.spawn(async move {
                    let plan = Plan::default();
                    server.settle(call, first, Conduct::Honest, &plan).await;
                });
                self.settle(copy, second, Conduct::Honest, plan).await
            }
        };
        real.map(|real| plan.said.onto(real, &self.config, self.clock.now()))
    }

    fn admit(&self, call: &Call) -> Admission {
        let mut state = self.state();
        if let Some(required) = &state.authorization {
            let given = call.authorization.as_ref().map(HeaderValue::as_bytes);
            if given != Some(required.as_bytes()) {
                let scheme = HeaderValue::from_static("Bearer");
                let answer = Answer::code(StatusCode::UNAUTHORIZED, "UNAUTHORIZED");
                return Admission::Answered(answer.with(WWW_AUTHENTICATE, scheme));
            }
        }
        let route = call.path.split('?').next().unwrap_or_default();
        if self.config.ignore_keys || !(self.config.keyed)(&call.method, route) {
            return Admission::Run(None);
        }
        let refused = |code| Admission::Answered(Answer::code(StatusCode::BAD_REQUEST, code));
        let key = match call.keys.as_slice() {
            [] => return refused("IDEMPOTENCY_KEY_MISSING"),
            [None] => return refused("IDEMPOTENCY_KEY_INVALID"),
            [Some(key)] => key,
            [_, _, ..] => return refused("IDEMPOTENCY_KEY_REPEATED"),
        };
        let now = self.clock.elapsed();
        let rules = self.config.keys;
        let fingerprint = if self.config.compare_requests { call.fingerprint() } else { Vec::new() };
        match state.keys.claim(key, fingerprint, now, rules) {
            Claim::Run(ticket) => Admission::Run(Some(ticket)),
            Claim::Replay(answer) => Admission::Answered(marked(answer, &self.config)),
            Claim::InProgress(left) => Admission::Busy(left),
            Claim::Reused => {
                let status = self.config.reuse_status;
                Admission::Answered(Answer::json(status, self.config.reuse_json.clone()))
            }
        }
    }

    async fn settle(&self, call: Call, mut admission: Admission, conduct: Conduct, plan: &Plan) -> Option<Answer> {
        loop {
            match admission {
                Admission::Answered(answer) => return Some(answer),
                Admission::Run(ticket) => return self.work(&call, ticket, conduct, plan).await,
                Admission::Busy(_) if !self.config.wait_while_in_progress => {
                    return Some(in_progress(&self.config));
                }
                Admission::Busy(_) => {
                    let changed = self.changed.notified();
                    admission = self.admit(&call);
                    if let Admission::Busy(left) = admission {
                        tokio::select! {
                            () = changed => {}
                            () = self.clock.sleep(left) => {}
                        }
                    }
                }
            }
        }
    }

    async fn work(&self, call: &Call, ticket: Option<Ticket>, conduct: Conduct, plan: &Plan) -> Option<Answer> {
        let stalled = match plan.stall {
            Some(Phase::WhileExecuting) => plan.lasting.unwrap_or_default(),
            Some(Phase::BeforeReading | Phase::BeforeExecuting) | None => Duration::ZERO,
        };
        let duration = self.config.work.saturating_add(stalled);
        // Read before it shows, so that moving the clock once it shows moves this work too.
        let end = self.clock.elapsed().saturating_add(duration);
        let at_work = AtWork::begin(self);
        self.clock.sleep_until(end).await;

        let at = self.clock.now();
        let mut state = self.state();
        let ticket = ticket.as_ref();
        let mut execute = || state.execute(call, ticket, at);
        let answer = match conduct {
            Conduct::Honest => Some(execute()),
            Conduct::Says { answer, executes } => {
                if executes {
                    execute();
                }
                Some(answer)
            }
            Conduct::Dies { executes } => {
                if executes {
                    execute();
                }
                None
            }
        };
        if let (Some(ticket), Some(answer)) = (ticket, &answer) {
            let failed = answer.status.is_client_error() || answer.status.is_server_error();
            let store = !failed || self.config.store_errors;
            state.keys.finish(ticket, answer, store);
        }
        drop(state);
        drop(at_work);
        answer
    }
}

/// Counts a handler while it works; told to who waits at both ends.
struct AtWork<'a>(&'a Shared);

impl<'a> AtWork<'a> {
    fn begin(shared: &'a Shared) -> Self {
        shared.state().at_work += 1;
        shared.changed.notify_waiters();
        Self(shared)
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.at_work = state.at_work.saturating_sub(1);
        drop(state);
        self.0.changed.notify_waiters();
    }
}

impl State {
    /// Carries the call out, or refuses it for what it says.
    fn execute(&mut self, call: &Call, ticket: Option<&Ticket>, at: std::time::SystemTime) -> Answer {
        match call.method {
            Method::POST | Method::PATCH => {
                let body = Json::parse(&call.body);
                let amount = body.as_ref().and_then(|body| body.get("amount"));
                if amount.and_then(Json::as_number).is_some_and(|n| n <= 0.0) {
                    return Answer::code(StatusCode::BAD_REQUEST, "INVALID_AMOUNT");
                }
                let id = self.record(call, ticket, at);
                let amount = amount.map(|amount| format!(r#","amount":{}"#, amount.canonical()));
                let amount = amount.unwrap_or_default();
                let body = format!(r#"{{"id":"{id}","status":"captured"{amount}}}"#);
                Answer::json(StatusCode::CREATED, body)
            }
            Method::PUT => {
                self.record(call, ticket, at);
                self.gone.remove(&call.path);
                Answer::json(StatusCode::OK, r#"{"status":"stored"}"#)
            }
            Method::DELETE => {
                if !self.gone.insert(call.path.clone()) {
                    return Answer::code(StatusCode::NOT_FOUND, "NOT_FOUND");
                }
                self.record(call, ticket, at);
                Answer::empty(StatusCode::NO_CONTENT)
            }
            Method::GET | Method::HEAD | Method::OPTIONS => Answer::json(StatusCode::OK, r#"{"status":"ok"}"#),
            _ => Answer::code(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED"),
        }
    }

    fn record(&mut self, call: &Call, ticket: Option<&Ticket>, at: std::time::SystemTime) -> String {
        let double = ticket.is_some_and(|ticket| self.keys.executed(ticket));
        let id = format!("pay_{}", self.ledger.len() + 1);
        self.ledger.push(Execution {
            key: call.key().map(str::to_owned),
            method: call.method.clone(),
            path: call.path.clone(),
            body: call.body.clone(),
            at,
            id: id.clone(),
            request: call.number,
            double,
        });
        id
    }
}
