//! What `tracing` is told: the names, the fields, and none of the secrets.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use oncekey::IdempotencyKey;
use oncekey::reqwest::Url;
use oncekey::sandbox::Fault;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::events::{steady, troubles};
use crate::*;

/// Keeps all that it is told, by anybody.
#[derive(Clone, Default)]
struct Capture(Arc<Mutex<Captured>>);

#[derive(Default)]
struct Captured {
    spans: Vec<Span>,
    entered: Vec<u64>,
    text: String,
}

struct Span {
    name: &'static str,
    target: String,
    parent: Option<u64>,
    fields: BTreeMap<String, String>,
    handles: usize,
}

struct Fields<'a>(&'a mut BTreeMap<String, String>, &'a mut String);

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        let _ = writeln!(self.1, "{}={value}", field.name());
        self.0.insert(field.name().to_owned(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

impl Captured {
    fn of(&mut self, id: &Id) -> &mut Span {
        &mut self.spans[usize::try_from(id.into_u64()).unwrap() - 1]
    }
}

impl Subscriber for Capture {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let captured = &mut *self.0.lock().unwrap();
        let parent = match span.parent() {
            Some(parent) => Some(parent.into_u64()),
            None => captured.entered.last().copied().filter(|_| span.is_contextual()),
        };
        let mut fields = BTreeMap::new();
        let metadata = span.metadata();
        let _ = writeln!(captured.text, "{} {}", metadata.target(), metadata.name());
        span.record(&mut Fields(&mut fields, &mut captured.text));
        let target = metadata.target().to_owned();
        captured.spans.push(Span { name: metadata.name(), target, parent, fields, handles: 1 });
        Id::from_u64(captured.spans.len() as u64)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        let captured = &mut *self.0.lock().unwrap();
        let mut fields = std::mem::take(&mut captured.of(id).fields);
        values.record(&mut Fields(&mut fields, &mut captured.text));
        captured.of(id).fields = fields;
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let captured = &mut *self.0.lock().unwrap();
        let _ = writeln!(captured.text, "{} {}", event.metadata().target(), event.metadata().name());
        event.record(&mut Fields(&mut BTreeMap::new(), &mut captured.text));
    }

    fn enter(&self, id: &Id) {
        self.0.lock().unwrap().entered.push(id.into_u64());
    }

    fn exit(&self, id: &Id) {
        let left = self.0.lock().unwrap().entered.pop();
        assert_eq!(left, Some(id.into_u64()), "spans are left in order");
    }

    fn clone_span(&self, id: &Id) -> Id {
        self.0.lock().unwrap().of(id).handles += 1;
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let captured = &mut *self.0.lock().unwrap();
        captured.of(&id).handles -= 1;
        captured.of(&id).handles == 0
    }
}

impl Capture {
    /// Our own spans: their name, parent and fields in order.
    fn spans(&self) -> Vec<(&'static str, Option<u64>, String)> {
        let captured = self.0.lock().unwrap();
        assert!(captured.entered.is_empty());
        let ours = captured.spans.iter().filter(|span| span.target == "oncekey");
        ours.map(|span| {
            assert_eq!(span.handles, 0, "{} is still open", span.name);
            let fields: Vec<_> = span.fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
            (span.name, span.parent, fields.join(" "))
        })
        .collect()
    }

    fn number_of(&self, name: &str) -> u64 {
        let captured = self.0.lock().unwrap();
        captured.spans.iter().position(|span| span.name == name).unwrap() as u64 + 1
    }
}

const CARD: &str = "4242424242424242";
const TOKEN: &str = "sk_live_t0ken";

#[tokio::test]
async fn one_span_for_the_operation_and_one_for_each_attempt_without_a_secret() {
    let (capture, sandbox) = (Capture::default(), sandbox(troubles()).await);
    let client = steady().build().unwrap();
    let key = IdempotencyKey::random();
    let url = sandbox.url(format!("/pay/{}?card={CARD}", key.as_str()));
    let port = Url::parse(&url).unwrap().port().unwrap();
    let guard = tracing::subscriber::set_default(capture.clone());
    let request = client.post(url).bearer_auth(TOKEN).header("x-secret", "secret-header");
    let response = request.body(format!("{{\"card\":\"{CARD}\"}}")).idempotency_key(&key).send().await.unwrap();
    drop(guard);

    let place = format!("server.address=127.0.0.1 server.port={port}");
    let short = format!("{}…", &key.as_str()[..8]);
    let own = capture.number_of("oncekey.operation");
    let wait = |number: usize| response.attempts()[number - 1].wait().as_millis();
    let spans = capture.spans();
    let waits: Vec<u128> = spans
        .iter()
        .filter_map(|(_, _, fields)| fields.split("oncekey.wait_ms=").nth(1))
        .map(|rest| rest.split(' ').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(waits.len(), 3);
    assert!(waits.iter().zip(1..).all(|(told, number)| *told > 0 && *told <= wait(number)), "{waits:?}");
    let attempt = |fields: String| ("oncekey.attempt", Some(own), fields);
    let expected = vec![
        (
            "oncekey.operation",
            None,
            format!(
                "http.request.method=POST oncekey.attempts=4 oncekey.effect=applied oncekey.operation.id={short} \
                 oncekey.profile=verifika otel.kind=internal {place} url.path=/pay/{short}"
            ),
        ),
        attempt(format!(
            "error.type=broken http.request.method=POST http.request.resend_count=0 oncekey.attempt.kind=first \
             oncekey.effect=unknown oncekey.verdict=in doubt, no answer oncekey.wait_ms={} otel.kind=client {place}",
            waits[0]
        )),
        attempt(format!(
            "error.type=503 http.request.method=POST http.request.resend_count=1 http.response.status_code=503 \
             oncekey.attempt.kind=retry oncekey.effect=unknown oncekey.verdict=in doubt, server error \
             oncekey.wait_ms={} otel.kind=client {place}",
            waits[1]
        )),
        attempt(format!(
            "error.type=409 http.request.method=POST http.request.resend_count=2 http.response.status_code=409 \
             oncekey.attempt.kind=retry oncekey.effect=unknown oncekey.verdict=in progress, still running \
             oncekey.wait_ms={} otel.kind=client {place}",
            waits[2]
        )),
        attempt(format!(
            "http.request.method=POST http.request.resend_count=3 http.response.status_code=201 \
             oncekey.attempt.kind=poll oncekey.effect=applied oncekey.verdict=applied otel.kind=client {place}"
        )),
    ];
    assert_eq!(spans, expected);

    let text = &capture.0.lock().unwrap().text;
    for secret in [CARD, TOKEN, "secret-header", key.as_str(), "card"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

#[tokio::test]
async fn an_error_is_named_and_a_dropped_call_closes_its_spans() {
    let (capture, sandbox) = (Capture::default(), sandbox([Fault::status(400), Fault::stall_after_executing()]).await);
    let client = steady().build().unwrap();
    let guard = tracing::subscriber::set_default(capture.clone());
    fails(pay(&client, &sandbox).await, ErrorKind::Refused, Effect::NotApplied);
    let spans = capture.spans();
    assert!(spans[0].2.starts_with("error.type=refused http.request.method=POST oncekey.attempts=1"), "{spans:?}");
    assert!(spans[0].2.contains("oncekey.effect=not applied"), "{spans:?}");
    tokio::select! {
        biased;
        () = sandbox.until(|sandbox| sandbox.executions() == 1) => {}
        _ = pay(&client, &sandbox) => unreachable!(),
    }
    drop(guard);
    let spans = capture.spans();
    assert_eq!(spans.len(), 4);
    assert!(!spans[2].2.contains("oncekey.effect") && !spans[3].2.contains("oncekey.verdict"), "{spans:?}");
}
