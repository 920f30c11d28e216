use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;

use super::worker::Worker;
use crate::error::Error;
use crate::event::Event;
use crate::response::Response;
use crate::submission::{IdempotencyKey, OperationId};

/// One operation being written, with reqwest's names. [`send`](Self::send)
/// freezes it: every attempt sends the same bytes under the same key.
///
/// What is wrong with it is told by `send`, before anything is sent.
#[must_use = "a request does nothing until it is sent"]
pub struct RequestBuilder {
    inner: crate::RequestBuilder,
    worker: Arc<Worker>,
}

impl RequestBuilder {
    pub(super) fn new(inner: crate::RequestBuilder, worker: Arc<Worker>) -> Self {
        Self { inner, worker }
    }

    /// Adds a header. The key's own header is refused: use
    /// [`idempotency_key`](Self::idempotency_key).
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let client = Client::new();
    /// use oncekey::ErrorKind;
    ///
    /// client.post(sandbox.url("/v1/payments")).header("x-tenant", "acme").send()?;
    /// assert_eq!(sandbox.requests()[0].headers()["x-tenant"], "acme");
    /// let error = client.post(sandbox.url("/v1/payments")).header("idempotency-key", "order-7").send().unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Request);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn header<K, V>(self, name: K, value: V) -> Self
    where
        HeaderName: TryFrom<K>,
        <HeaderName as TryFrom<K>>::Error: Into<http::Error>,
        HeaderValue: TryFrom<V>,
        <HeaderValue as TryFrom<V>>::Error: Into<http::Error>,
    {
        self.with(|inner| inner.header(name, value))
    }

    /// Sets headers, in the place of those of the same names.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let client = Client::new();
    /// use oncekey::reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
    ///
    /// let json = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
    /// client.get(sandbox.url("/v1/payments")).header("accept", "text/csv").headers(json).send()?;
    /// assert_eq!(sandbox.requests()[0].headers()["accept"], "application/json");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn headers(self, headers: HeaderMap) -> Self {
        self.with(|inner| inner.headers(headers))
    }

    /// `Authorization: Bearer`, never printed.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let client = Client::new();
    /// let request = client.post(sandbox.url("/v1/payments")).bearer_auth("sk_test_1");
    /// assert!(!format!("{request:?}").contains("sk_test_1"));
    /// request.send()?;
    /// assert_eq!(sandbox.requests()[0].headers()["authorization"], "Bearer sk_test_1");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn bearer_auth<T: fmt::Display>(self, token: T) -> Self {
        self.with(|inner| inner.bearer_auth(token))
    }

    /// `Authorization: Basic` (RFC 7617), never printed.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let client = Client::new();
    /// client.post(sandbox.url("/v1/payments")).basic_auth("user", Some("password")).send()?;
    /// assert_eq!(sandbox.requests()[0].headers()["authorization"], "Basic dXNlcjpwYXNzd29yZA==");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn basic_auth<U: fmt::Display, P: fmt::Display>(self, username: U, password: Option<P>) -> Self {
        self.with(|inner| inner.basic_auth(username, password))
    }

    /// Adds to the query: a struct, a map, or a list of pairs.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let client = Client::new();
    /// client.get(sandbox.url("/v1/payments")).query(&[("from", "2026-01-01"), ("limit", "5")]).send()?;
    /// assert_eq!(sandbox.requests()[0].path(), "/v1/payments?from=2026-01-01&limit=5");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn query<T: Serialize + ?Sized>(self, query: &T) -> Self {
        self.with(|inner| inner.query(query))
    }

    /// The body as JSON, serialised once, here.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let client = Client::new();
    /// # use std::collections::HashMap;
    /// client.post(sandbox.url("/v1/payments")).json(&HashMap::from([("amount", 4999)])).send()?;
    /// let seen = sandbox.requests().remove(0);
    /// assert_eq!(seen.headers()["content-type"], "application/json");
    /// assert_eq!(seen.body(), r#"{"amount":4999}"#);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "json")]
    #[cfg_attr(docsrs, doc(cfg(feature = "json")))]
    pub fn json<T: Serialize + ?Sized>(self, json: &T) -> Self {
        self.with(|inner| inner.json(json))
    }

    /// The body as a form: a struct, a map, or a list of pairs.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let client = Client::new();
    /// client.post(sandbox.url("/v1/payments")).form(&[("amount", "4999"), ("note", "a b")]).send()?;
    /// assert_eq!(sandbox.requests()[0].body(), "amount=4999&note=a+b");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "form")]
    #[cfg_attr(docsrs, doc(cfg(feature = "form")))]
    pub fn form<T: Serialize + ?Sized>(self, form: &T) -> Self {
        self.with(|inner| inner.form(form))
    }

    /// The body. There is no streaming one: every attempt sends the same bytes.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let client = Client::builder().retry(oncekey::Retry::default().base_delay(std::time::Duration::from_millis(10))).build()?;
    /// use oncekey::sandbox::Fault;
    ///
    /// sandbox.fail_next(Fault::answer_lost());
    /// client.post(sandbox.url("/v1/payments")).body("<amount>4999</amount>").send()?;
    /// let [first, second] = &sandbox.requests()[..] else { panic!() };
    /// assert_eq!((first.body(), first.key()), (second.body(), second.key()));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn body(self, body: impl Into<Bytes>) -> Self {
        self.with(|inner| inner.body(body))
    }

    /// A key of your own, in the place of a new one. See [`IdempotencyKey`].
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let client = Client::new();
    /// use oncekey::IdempotencyKey;
    ///
    /// let key = IdempotencyKey::random(); // to be kept before it is sent
    /// let pay = || client.post(sandbox.url("/v1/payments")).idempotency_key(&key).body("{}").send();
    /// assert!(!pay()?.is_replay());
    /// assert!(pay()?.is_replay());
    /// assert_eq!(sandbox.executions(), 1);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn idempotency_key(self, key: impl Into<IdempotencyKey>) -> Self {
        self.with(|inner| inner.idempotency_key(key))
    }

    /// Sends no key. Such a POST is never sent again once it may have been received.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let client = Client::new();
    /// use oncekey::{Effect, sandbox::Fault};
    ///
    /// sandbox.fail_next(Fault::status(503));
    /// let error = client.post(sandbox.url("/v1/payments")).without_key().body("{}").send().unwrap_err();
    /// assert_eq!((error.attempts().len(), error.effect()), (1, Effect::Unknown));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn without_key(self) -> Self {
        self.with(crate::RequestBuilder::without_key)
    }

    /// The operation's id in the journal, without which it is an error. See
    /// [`oncekey::RequestBuilder::operation`](crate::RequestBuilder::operation)
    /// for what the same id does again. Default: the key is the id.
    ///
    /// ```
    /// # #[cfg(all(feature = "sandbox", feature = "journal"))] {
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// use oncekey::blocking::Client;
    /// use oncekey::journal::Memory;
    ///
    /// let client = Client::builder().journal(Memory::new()).build()?;
    /// let pay = || client.post(sandbox.url("/v1/payments")).operation("order-7").body("{}").send();
    /// assert_eq!(pay()?.text(), pay()?.text()); // the second is from the record
    /// assert_eq!(sandbox.requests().len(), 1);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn operation(self, id: impl Into<OperationId>) -> Self {
        self.with(|inner| inner.operation(id))
    }

    /// The account at the provider that this is for, in the place of the client's.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// use oncekey::blocking::Client;
    /// use oncekey::{ErrorKind, journal::Memory};
    ///
    /// let client = Client::builder().journal(Memory::new()).account("acct_1").build()?;
    /// let pay = || client.post(sandbox.url("/v1/payments")).operation("order-7").body("{}");
    /// pay().account("acct_2").send()?;
    /// let error = pay().send().unwrap_err(); // the same id for another account
    /// assert_eq!(error.kind(), ErrorKind::Mismatch);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "journal")]
    #[cfg_attr(docsrs, doc(cfg(feature = "journal")))]
    pub fn account(self, account: impl Into<Box<str>>) -> Self {
        self.with(|inner| inner.account(account))
    }

    /// For a DELETE: 404 and 410 mean that it is done. Without it they are
    /// refusals, which after a lost answer leave the effect unknown.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let client = Client::new();
    /// use oncekey::ErrorKind;
    ///
    /// let cancel = || client.delete(sandbox.url("/v1/subscriptions/7"));
    /// assert_eq!(cancel().send()?.status(), 204);
    /// assert_eq!(cancel().send().unwrap_err().kind(), ErrorKind::Refused);
    /// assert_eq!(cancel().gone_is_done().send()?.status(), 404);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn gone_is_done(self) -> Self {
        self.with(crate::RequestBuilder::gone_is_done)
    }

    /// How long one attempt may take, for this operation, in the place of the
    /// client's. See
    /// [`oncekey::RequestBuilder::attempt_timeout`](crate::RequestBuilder::attempt_timeout).
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let client = Client::builder().retry(oncekey::Retry::default().base_delay(std::time::Duration::from_millis(10))).build()?;
    /// use std::time::Duration;
    /// use oncekey::sandbox::Fault;
    ///
    /// sandbox.fail_next(Fault::stall_after_executing());
    /// let request = client.post(sandbox.url("/v1/payments")).attempt_timeout(Duration::from_millis(200));
    /// let response = request.send()?;
    /// assert!(response.is_replay()); // at the second attempt
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn attempt_timeout(self, timeout: Duration) -> Self {
        self.with(|inner| inner.attempt_timeout(timeout))
    }

    /// Tells what happens, on the client's own thread: see [`Event`](crate::Event).
    /// A blocking call in the hook fails.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let client = Client::new();
    /// use std::sync::mpsc;
    ///
    /// let (sender, events) = mpsc::channel();
    /// let request = client.post(sandbox.url("/v1/payments")).body("{}");
    /// request.on_event(move |event| { let _ = sender.send(event.to_string()); }).send()?;
    /// assert_eq!(events.iter().count(), 3); // the attempt's start, its end, the end of all
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_event(self, hook: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.with(|inner| inner.on_event(hook))
    }

    /// How long this operation may take, waits included, in the place of the
    /// client's. A hang while connecting that it cuts short counts as in doubt.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::{ErrorKind, blocking::Client};
    ///
    /// let client = Client::new();
    /// let request = || client.post("http://127.0.0.1:1/payments"); // nobody listens there
    /// let error = request().deadline(Duration::from_millis(300)).send().unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Exhausted);
    /// let error = request().deadline(Duration::from_millis(1)).send().unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Request); // no attempt fits into that
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn deadline(self, deadline: Duration) -> Self {
        self.with(|inner| inner.deadline(deadline))
    }

    /// Sends it, again and again under the same key, until the answer is final
    /// or nothing more can safely be done. This thread waits, up to the deadline.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let client = Client::builder().retry(oncekey::Retry::default().base_delay(std::time::Duration::from_millis(10))).build()?;
    /// use oncekey::{Effect, sandbox::Fault};
    ///
    /// sandbox.fail_next([Fault::answer_lost(), Fault::status(400)]);
    /// match client.post(sandbox.url("/v1/payments")).body("{}").send() {
    ///     Ok(response) => println!("carried out: {}", response.text()),
    ///     // The 400 speaks of the second attempt. What came of the first is not known.
    ///     Err(error) => assert_eq!(error.effect(), Effect::Unknown),
    /// }
    /// assert_eq!(sandbox.executions(), 1);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error`]: why there is no final answer, and whether it took effect.
    /// Inside a runtime, of kind [`Request`](crate::ErrorKind::Request), with
    /// nothing sent.
    ///
    /// # Effect
    ///
    /// `Ok` means that the server carried the operation out. Every error says
    /// truthfully whether it did: [`Error::effect`]. Inside a runtime it is
    /// `NotApplied`, but `Unknown` under a key of your own that may have been
    /// sent, and for an id of your own, whose record is not read for it.
    ///
    /// # Panics
    ///
    /// If a hook of yours panics, with its panic.
    pub fn send(self) -> Result<Response, Error> {
        let Self { inner, worker } = self;
        let (before, safe) = (inner.effect_before(), inner.is_safe());
        worker.run(inner.send()).unwrap_or_else(|lost| Err(lost.error(before, safe)))
    }

    fn with(self, set: impl FnOnce(crate::RequestBuilder) -> crate::RequestBuilder) -> Self {
        Self { inner: set(self.inner), worker: self.worker }
    }
}

impl fmt::Debug for RequestBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
