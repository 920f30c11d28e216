//! The way of one request: off the wire, to the provider or not, and back, with what goes wrong.

use super::answer::Answer;
use super::delivery::{Delivery, Outgoing};
use super::fault::Fault;
use super::plan::{Ending, Phase, Plan, Route, settle_body};
use super::provider::Call;
use super::retry_after::{DateForm, date};
use super::seen::SeenRequest;
use super::shared::Shared;
use bytes::{Bytes, BytesMut};
use http::header::DATE;
use http::request::Parts;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Body;
use std::sync::Arc;
use tokio::sync::oneshot;

pub(super) async fn serve<B>(shared: Arc<Shared>, connection: usize, request: Request<B>) -> Delivery
where
    B: Body<Data = Bytes> + Unpin,
{
    let (parts, body) = request.into_parts();
    // Read before it shows in `requests`: who has seen it there can end its stall by the clock.
    let arrived = shared.clock.elapsed();
    let (number, plan) = shared.arrive(connection, &parts);
    if let Route::Shut(ending) = plan.route {
        return Delivery::End(ending);
    }
    if plan.stall == Some(Phase::BeforeReading) {
        let Some(duration) = plan.lasting else {
            return Delivery::Frozen;
        };
        let end = arrived.saturating_add(duration);
        shared.clock.sleep_until(end).await;
    }

    let mut intake = Intake::new(&shared, number);
    let body = match intake.read(body).await {
        Read::Whole(body) => Ok(body),
        Read::TooLarge => Err(Answer::code(StatusCode::PAYLOAD_TOO_LARGE, "BODY_TOO_LARGE")),
        Read::Broken => Err(Answer::code(StatusCode::BAD_REQUEST, "BODY_BROKEN")),
    };
    drop(intake);
    let body = match body {
        Ok(body) => body,
        Err(answer) => {
            shared.answering(number, answer.status);
            let plan = Arc::new(Plan::default());
            return Delivery::Answer(Outgoing { answer, plan, method: parts.method, unread: true, at: arrived });
        }
    };
    if plan.stall == Some(Phase::BeforeExecuting) && plan.lasting.is_none() {
        return Delivery::End(Ending::Stall);
    }

    // From here on the server works by itself: this future is dropped if the client goes away.
    let method = parts.method.clone();
    let call = Call::new(number, arrived, parts, body, &shared.config);
    let plan = Arc::new(plan);
    let (done, answer) = oneshot::channel();
    {
        let (server, plan) = (Arc::clone(&shared), Arc::clone(&plan));
        shared.spawn(async move {
            let _ = done.send(server.respond(call, &plan).await);
        });
    }
    match answer.await {
        Ok(Some(answer)) => Delivery::Answer(ready(&shared, number, answer, plan, method)),
        Ok(None) if plan.stall == Some(Phase::WhileExecuting) => Delivery::End(Ending::Stall),
        // The handler died; or the sandbox stopped, and this connection with it.
        Ok(None) | Err(_) => Delivery::End(Ending::Broken),
    }
}

fn ready(shared: &Shared, number: usize, mut answer: Answer, plan: Arc<Plan>, method: Method) -> Outgoing {
    if !plan.said.undated && !answer.headers.contains_key(DATE) {
        answer.headers.insert(DATE, date(DateForm::Imf, shared.clock.now()));
    }
    if let Some(mangle) = plan.mangle {
        answer.body = mangle.apply(answer.body);
    }
    settle_body(&mut answer, &method);
    // Read before the status shows: who has seen it there can end a stall by the clock.
    let at = shared.clock.elapsed();
    if plan.head_arrives() {
        shared.answering(number, answer.status);
    }
    Outgoing { answer, plan, method, unread: false, at }
}

impl Shared {
    /// Writes the request down and takes its fault, in one step: faults go by order of arrival.
    fn arrive(&self, connection: usize, parts: &Parts) -> (usize, Plan) {
        let at = self.clock.now();
        let mut state = self.state();
        let number = state.seen.len() + 1;
        let drawn = || self.config.chaos.and_then(|chaos| chaos.draw(number));
        let fault = state.faults.pop_front().or_else(drawn);
        let plan = fault.as_ref().map(|fault| fault.plan.clone());
        let keys = parts.headers.get_all(&self.config.key_header);
        state.seen.push(SeenRequest {
            number,
            connection,
            version: parts.version,
            method: parts.method.clone(),
            path: path(parts),
            keys: keys.iter().map(|key| String::from_utf8_lossy(key.as_bytes()).into_owned()).collect(),
            headers: parts.headers.clone(),
            body: Bytes::new(),
            complete: false,
            at,
            fault: fault.filter(|fault| *fault != Fault::none()),
            copy: false,
            status: None,
        });
        drop(state);
        self.changed.notify_waiters();
        (number, plan.unwrap_or_default())
    }

    /// A second arrival of the same request; its number.
    pub(super) fn arrive_again(&self, number: usize) -> usize {
        let mut state = self.state();
        let copied = state.seen.len() + 1;
        let original = state.seen.get(number.saturating_sub(1)).cloned();
        state.seen.extend(original.map(|seen| SeenRequest { number: copied, copy: true, ..seen }));
        copied
    }

    fn answering(&self, number: usize, status: StatusCode) {
        self.amend(number, |seen| seen.status = Some(status));
    }

    fn amend(&self, number: usize, change: impl FnOnce(&mut SeenRequest)) {
        if let Some(seen) = self.state().seen.get_mut(number.saturating_sub(1)) {
            change(seen);
        }
        self.changed.notify_waiters();
    }
}

pub(super) fn path(parts: &Parts) -> String {
    match parts.uri.path_and_query() {
        Some(path) => path.as_str().to_owned(),
        None => parts.uri.to_string(),
    }
}

enum Read {
    Whole(Bytes),
    TooLarge,
    Broken,
}

/// Reads a body. What was read of it is written down however this ends.
struct Intake<'a> {
    shared: &'a Shared,
    number: usize,
    read: BytesMut,
    whole: Option<Bytes>,
}

impl<'a> Intake<'a> {
    fn new(shared: &'a Shared, number: usize) -> Self {
        Self { shared, number, read: BytesMut::new(), whole: None }
    }

    async fn read(&mut self, mut body: impl Body<Data = Bytes> + Unpin) -> Read {
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else {
                return Read::Broken;
            };
            // Trailers are of no interest.
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if self.read.len().saturating_add(data.len()) > self.shared.config.max_body {
                return Read::TooLarge;
            }
            self.read.extend_from_slice(&data);
        }
        let whole = self.read.split().freeze();
        self.whole = Some(whole.clone());
        Read::Whole(whole)
    }
}

impl Drop for Intake<'_> {
    fn drop(&mut self) {
        let complete = self.whole.is_some();
        let part = || self.read.split().freeze();
        let body = self.whole.take().unwrap_or_else(part);
        self.shared.amend(self.number, |seen| {
            seen.body = body;
            seen.complete = complete;
        });
    }
}
