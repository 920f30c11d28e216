//! `docs/composition.md`: its programs, and what it says of layers.

use std::sync::atomic::Ordering;

use oncekey::sandbox::Fault;
use oncekey::{IdempotencyKey, testing};

use crate::*;

mod service {
    // page
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use oncekey::{Client, Error, IdempotencyKey, Response};
    use tower_service::Service;

    #[derive(Clone)]
    pub(super) struct Payments {
        pub(super) client: Client,
        pub(super) url: String,
    }

    /// The operation, and its key: whoever calls twice with it asks again.
    #[derive(Clone)]
    pub(super) struct Payment {
        pub(super) key: IdempotencyKey,
        pub(super) body: serde_json::Value,
    }

    impl Service<Payment> for Payments {
        type Response = Response;
        type Error = Error; // which says whether it took effect
        type Future = Pin<Box<dyn Future<Output = Result<Response, Error>> + Send>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, payment: Payment) -> Self::Future {
            Box::pin(self.client.post(&self.url).idempotency_key(payment.key).json(&payment.body).send())
        }
    }
    // end
}

mod layer {
    // page
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll};

    use tower_layer::Layer;
    use tower_service::Service;

    /// Counts the connections that are opened.
    #[derive(Clone, Default)]
    pub(super) struct Count(pub(super) Arc<AtomicUsize>);

    #[derive(Clone)]
    pub(super) struct Counted<S>(S, Arc<AtomicUsize>);

    impl<S> Layer<S> for Count {
        type Service = Counted<S>;

        fn layer(&self, connector: S) -> Counted<S> {
            Counted(connector, Arc::clone(&self.0))
        }
    }

    impl<S: Service<R>, R> Service<R> for Counted<S> {
        type Response = S::Response;
        type Error = S::Error;
        type Future = S::Future;

        fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
            self.0.poll_ready(cx)
        }

        fn call(&mut self, to: R) -> S::Future {
            self.1.fetch_add(1, Ordering::Relaxed);
            self.0.call(to)
        }
    }
    // end
}

use layer::Count;
use service::{Payment, Payments};
use tower_service::Service as _;

/// What a retry layer does: the same request, cloned, until it succeeds.
async fn retried(service: &mut Payments, payment: &Payment) -> Result<oncekey::Response, Error> {
    let first = service.call(payment.clone()).await;
    if first.is_ok() { first } else { service.call(payment.clone()).await }
}

#[tokio::test]
async fn a_retry_above_the_service_asks_again_and_does_not_pay_again() {
    let sandbox = sandbox([Fault::answer_lost()]).await;
    let client = builder().retry(Retry::default().max_attempts(1)).build().unwrap();
    let mut payments = Payments { client, url: sandbox.url("/v1/payments") };
    let payment = Payment { key: IdempotencyKey::random(), body: payment() };
    let sent = retried(&mut payments, &payment).await;
    assert!(sent.as_ref().unwrap().is_replay());
    testing::assert_once(&sandbox, &sent);
}

#[tokio::test]
async fn a_refusal_after_doubt_stays_in_doubt_through_the_service() {
    let sandbox = sandbox([Fault::answer_lost(), Fault::status(400)]).await;
    let client = builder().retry(Retry::default().max_attempts(1)).build().unwrap();
    let mut payments = Payments { client, url: sandbox.url("/v1/payments") };
    let sent = retried(&mut payments, &Payment { key: IdempotencyKey::random(), body: payment() }).await;
    testing::assert_truthful(&sandbox, &sent);
    fails(sent, ErrorKind::Refused, Effect::Unknown);
}

/// Why the key is part of the request: drawn in `call`, each call is an order.
#[tokio::test]
async fn without_the_key_in_the_request_a_second_call_is_a_second_order() {
    let sandbox = sandbox([Fault::answer_lost()]).await;
    let client = builder().retry(Retry::default().max_attempts(1)).build().unwrap();
    let _ = pay(&client, &sandbox).await.unwrap_err();
    let _ = pay(&client, &sandbox).await.unwrap();
    assert_eq!(sandbox.executions(), 2);
}

/// A layer of the connector that never connects, or fails to.
#[derive(Clone, Copy)]
enum Broken {
    Hangs,
    Fails,
}

#[derive(Clone)]
struct Breaking<S>(S, Broken);

impl<S> tower_layer::Layer<S> for Broken {
    type Service = Breaking<S>;

    fn layer(&self, connector: S) -> Breaking<S> {
        Breaking(connector, *self)
    }
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

impl<S, R> tower_service::Service<R> for Breaking<S>
where
    S: tower_service::Service<R, Error = AnyError>,
    S::Response: Send + 'static,
{
    type Response = S::Response;
    type Error = AnyError;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<S::Response, AnyError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), AnyError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, _: R) -> Self::Future {
        match self.1 {
            Broken::Hangs => Box::pin(std::future::pending()),
            Broken::Fails => Box::pin(async { Err("no permit in time".into()) }),
        }
    }
}

#[tokio::test]
async fn a_layer_of_the_connector_counts_and_changes_nothing() {
    let count = Count::default();
    let layer = count.clone();
    let sandbox = sandbox([Fault::answer_lost(), Fault::status(503)]).await;
    let client = builder().http(move |http| http.connector_layer(layer)).build().unwrap();
    let sent = pay(&client, &sandbox).await;
    testing::assert_once(&sandbox, &sent);
    let opened = sandbox.requests().iter().map(oncekey::sandbox::SeenRequest::connection).max();
    assert_eq!(Some(count.0.load(Ordering::Relaxed)), opened);
}

#[tokio::test]
async fn what_fails_or_hangs_in_the_connector_was_not_sent() {
    for broken in [Broken::Hangs, Broken::Fails] {
        let sandbox = sandbox([]).await;
        let client = builder()
            .http(move |http| http.connector_layer(broken))
            .connect_timeout(ms(50))
            .retry(Retry::default().max_attempts(2).base_delay(ms(1)))
            .build()
            .unwrap();
        let sent = pay(&client, &sandbox).await;
        testing::assert_executions(&sandbox, 0, &sent);
        fails(sent, ErrorKind::Exhausted, Effect::NotApplied);
    }
}
