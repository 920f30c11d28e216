use std::fmt;
#[cfg(feature = "journal")]
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use url::Url;

use crate::call::Operation;
use crate::client::Inner;
#[cfg(feature = "journal")]
use crate::desk::Desk;
use crate::draft::Draft;
#[cfg(feature = "blocking")]
use crate::engine::Effect;
#[cfg(any(feature = "blocking", feature = "journal"))]
use crate::engine::MethodKind;
use crate::error::Error;
use crate::event::Event;
#[cfg(feature = "blocking")]
use crate::order::effect_before;
use crate::pairs;
#[cfg(any(feature = "blocking", feature = "journal"))]
use crate::profile::method_kind;
use crate::response::Response;
use crate::submission::{IdempotencyKey, OperationId, Shown};

/// One operation being written, with reqwest's names. [`send`](Self::send)
/// freezes it: every attempt sends the same bytes under the same key.
///
/// What is wrong with it is told by `send`, before anything is sent.
#[must_use = "a request does nothing until it is sent"]
pub struct RequestBuilder {
    client: Arc<Inner>,
    draft: Box<Draft>,
}

/// A request that is ready, or why it is not.
enum Begun {
    Operation(Box<Operation>),
    Refused(Box<Error>),
    #[cfg(feature = "journal")]
    AtTheDesk(Pin<Box<dyn Future<Output = Result<Response, Error>> + Send>>),
}

impl RequestBuilder {
    pub(crate) fn new(client: Arc<Inner>, method: Method, url: reqwest::Result<Url>) -> Self {
        Self { client, draft: Draft::new(method, url) }
    }

    /// Adds a header. The key's own header is refused: use
    /// [`idempotency_key`](Self::idempotency_key).
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).build()?;
    /// use oncekey::ErrorKind;
    ///
    /// client.post(sandbox.url("/payments")).header("x-tenant", "acme").send().await?;
    /// assert_eq!(sandbox.requests()[0].headers()["x-tenant"], "acme");
    /// let request = client.post(sandbox.url("/payments")).header("idempotency-key", "order-7");
    /// assert_eq!(request.send().await.unwrap_err().kind(), ErrorKind::Request); // nothing was sent
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn header<K, V>(mut self, name: K, value: V) -> Self
    where
        HeaderName: TryFrom<K>,
        <HeaderName as TryFrom<K>>::Error: Into<http::Error>,
        HeaderValue: TryFrom<V>,
        <HeaderValue as TryFrom<V>>::Error: Into<http::Error>,
    {
        match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(value)) => {
                self.draft.headers.push((name, value));
            }
            (Err(error), _) => {
                self.draft.fail("a header's name holds a character that a name cannot", Some(Box::new(error.into())))
            }
            (Ok(name), Err(error)) => {
                let what = format!("the value of the header {name} holds a character that a header cannot");
                self.draft.fail(what, Some(Box::new(error.into())));
            }
        }
        self
    }

    /// Sets headers, in the place of those of the same names.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).build()?;
    /// use oncekey::reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
    ///
    /// let json = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
    /// client.get(sandbox.url("/payments")).header("accept", "text/csv").headers(json).send().await?;
    /// assert_eq!(sandbox.requests()[0].headers()["accept"], "application/json");
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn headers(mut self, headers: HeaderMap) -> Self {
        self.draft.headers.retain(|(name, _)| !headers.contains_key(name));
        let mut last = None;
        for (name, value) in headers {
            // Of several values for one name only the first comes with it.
            last = name.or(last);
            self.draft.headers.extend(last.clone().map(|name| (name, value)));
        }
        self
    }

    /// `Authorization: Bearer`, never printed.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).build()?;
    /// let request = client.post(sandbox.url("/payments")).bearer_auth("sk_test_1");
    /// assert!(!format!("{request:?}").contains("sk_test_1"));
    /// request.send().await?;
    /// assert_eq!(sandbox.requests()[0].headers()["authorization"], "Bearer sk_test_1");
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn bearer_auth<T: fmt::Display>(mut self, token: T) -> Self {
        self.draft.authorization(format!("Bearer {token}"));
        self
    }

    /// `Authorization: Basic` (RFC 7617), never printed.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).build()?;
    /// client.post(sandbox.url("/payments")).basic_auth("user", Some("password")).send().await?;
    /// assert_eq!(sandbox.requests()[0].headers()["authorization"], "Basic dXNlcjpwYXNzd29yZA==");
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn basic_auth<U: fmt::Display, P: fmt::Display>(mut self, username: U, password: Option<P>) -> Self {
        let password = password.map_or_else(String::new, |password| password.to_string());
        self.draft.basic(&username.to_string(), &password);
        self
    }

    /// Adds to the query: a struct, a map, or a list of pairs.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).build()?;
    /// client.get(sandbox.url("/payments")).query(&[("from", "2026-01-01"), ("limit", "5")]).send().await?;
    /// assert_eq!(sandbox.requests()[0].path(), "/payments?from=2026-01-01&limit=5");
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn query<T: Serialize + ?Sized>(mut self, query: &T) -> Self {
        match (pairs::of(query), &mut self.draft.url) {
            (Ok(pairs), Some(url)) if !pairs.is_empty() => pairs::encode(&mut url.query_pairs_mut(), &pairs),
            (Ok(_), _) => {}
            (Err(error), _) => {
                self.draft.fail(format!("the query cannot be written as names and values: {error}"), None);
            }
        }
        self
    }

    /// The body as JSON, serialised once, here.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).build()?;
    /// use std::collections::HashMap;
    ///
    /// client.post(sandbox.url("/payments")).json(&HashMap::from([("amount", 4999)])).send().await?;
    /// let seen = sandbox.requests().remove(0);
    /// assert_eq!(seen.headers()["content-type"], "application/json");
    /// assert_eq!(seen.body(), r#"{"amount":4999}"#);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    #[cfg(feature = "json")]
    pub fn json<T: Serialize + ?Sized>(mut self, json: &T) -> Self {
        match serde_json::to_vec(json) {
            Ok(body) => self.draft.typed_body(HeaderValue::from_static("application/json"), body),
            // The error itself may repeat what it could not write.
            Err(_) => self
                .draft
                .fail("the body cannot be written as JSON: its `Serialize` failed, or a map's keys are no text", None),
        }
        self
    }

    /// The body as a form: a struct, a map, or a list of pairs.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).build()?;
    /// client.post(sandbox.url("/payments")).form(&[("amount", "4999"), ("note", "a b")]).send().await?;
    /// assert_eq!(sandbox.requests()[0].body(), "amount=4999&note=a+b");
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    #[cfg(feature = "form")]
    pub fn form<T: Serialize + ?Sized>(mut self, form: &T) -> Self {
        match pairs::of(form) {
            Ok(pairs) => {
                let mut body = url::form_urlencoded::Serializer::new(String::new());
                pairs::encode(&mut body, &pairs);
                let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
                self.draft.typed_body(kind, body.finish().into_bytes());
            }
            Err(error) => self.draft.fail(format!("the form cannot be written as names and values: {error}"), None),
        }
        self
    }

    /// The body. There is no streaming one: every attempt sends the same bytes.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(oncekey::Retry::default().base_delay(Duration::ZERO)).build()?;
    /// sandbox.fail_next(Fault::answer_lost());
    /// client.post(sandbox.url("/payments")).body("<amount>4999</amount>").send().await?;
    /// let [first, second] = &sandbox.requests()[..] else { panic!("it was sent twice") };
    /// assert_eq!((first.body(), first.key()), (second.body(), second.key()));
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.draft.body = Some(body.into());
        self
    }

    /// A key of your own, in the place of a new one. See [`IdempotencyKey`].
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).build()?;
    /// use oncekey::IdempotencyKey;
    ///
    /// let key = IdempotencyKey::random(); // to be kept before it is sent
    /// let pay = || client.post(sandbox.url("/payments")).idempotency_key(&key).body("{}").send();
    /// assert!(!pay().await?.is_replay());
    /// assert!(pay().await?.is_replay());
    /// assert_eq!(sandbox.executions(), 1);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn idempotency_key(mut self, key: impl Into<IdempotencyKey>) -> Self {
        let key = key.into();
        match &self.draft.key {
            // Of the two the one that may have been sent before stays: it is what is known of the effect.
            Some(first) => {
                if first.is_fresh() {
                    self.draft.key = Some(key);
                }
                self.draft.fail("two idempotency keys were given: one operation has one key", None);
            }
            None => self.draft.key = Some(key),
        }
        self
    }

    /// Sends no key. Such a POST is never sent again once it may have been received.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(oncekey::Retry::default().base_delay(Duration::ZERO)).build()?;
    /// use oncekey::Effect;
    ///
    /// sandbox.fail_next(Fault::status(503));
    /// let error = client.post(sandbox.url("/payments")).without_key().send().await.unwrap_err();
    /// assert_eq!((error.attempts().len(), error.effect()), (1, Effect::Unknown));
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn without_key(mut self) -> Self {
        self.draft.without_key = true;
        self
    }

    /// The operation's id in the journal. Needs a client with a journal, and
    /// is an error without one. Without it, the key is the id.
    ///
    /// The same id again, with the same request, is the same operation: an
    /// answer on record is given without a request, and one that is open goes
    /// on under its key. With another request it is refused, unless the first
    /// was turned away on an API that releases keys on errors.
    ///
    /// ```
    /// # #[cfg(all(feature = "sandbox", feature = "journal"))]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # let url = sandbox.url("/payments");
    /// # let client = oncekey::Client::builder().journal(oncekey::journal::Memory::new()).build()?;
    /// let pay = || client.post(&url).operation("rent:2026-07").body("amount=45000").send();
    /// let (paid, again) = (pay().await?, pay().await?);
    /// assert_eq!(again.text(), paid.text());
    /// assert_eq!((sandbox.requests().len(), sandbox.executions()), (1, 1));
    /// # Ok(())
    /// # }
    /// # #[cfg(not(all(feature = "sandbox", feature = "journal")))]
    /// # fn main() {}
    /// ```
    pub fn operation(mut self, id: impl Into<OperationId>) -> Self {
        self.draft.id = Some(id.into());
        self
    }

    /// The account at the provider that this is for, in the place of the
    /// client's. It is part of what tells one request from another, and of what
    /// lists show.
    ///
    /// ```
    /// # #[cfg(all(feature = "sandbox", feature = "journal"))]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # let url = sandbox.url("/payments");
    /// # let client = oncekey::Client::builder().journal(oncekey::journal::Memory::new()).build()?;
    /// let pay = |account| client.post(&url).account(account).operation("rent:2026-07").body("amount=45000").send();
    /// pay("acct_1").await?;
    /// let error = pay("acct_2").await.expect_err("another account: another operation");
    /// assert_eq!(error.kind(), oncekey::ErrorKind::Mismatch);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(all(feature = "sandbox", feature = "journal")))]
    /// # fn main() {}
    /// ```
    #[cfg(feature = "journal")]
    #[cfg_attr(docsrs, doc(cfg(feature = "journal")))]
    pub fn account(mut self, account: impl Into<Box<str>>) -> Self {
        self.draft.account = Some(account.into());
        self
    }

    /// For a DELETE: 404 and 410 mean that it is done. Without it they are
    /// refusals, which after a lost answer leave the effect unknown.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).build()?;
    /// use oncekey::ErrorKind;
    ///
    /// let cancel = || client.delete(sandbox.url("/subscriptions/7"));
    /// assert_eq!(cancel().send().await?.status(), 204);
    /// assert_eq!(cancel().send().await.unwrap_err().kind(), ErrorKind::Refused);
    /// assert_eq!(cancel().gone_is_done().send().await?.status(), 404);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn gone_is_done(mut self) -> Self {
        self.draft.gone_is_done = true;
        self
    }

    /// How long one attempt may take, for this operation, in the place of the
    /// client's.
    ///
    /// Below twice the client's connect timeout a hang while connecting may
    /// count as in doubt; and over HTTP/2 a connection that died silently may
    /// cost several attempts, since its pings follow the client's own timeout.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(oncekey::Retry::default().base_delay(Duration::ZERO)).build()?;
    /// sandbox.fail_next(Fault::stall_after_executing());
    /// let request = client.post(sandbox.url("/payments")).attempt_timeout(Duration::from_millis(200));
    /// assert!(request.send().await?.is_replay()); // at the second attempt
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.draft.attempt_timeout = Some(timeout);
        self
    }

    /// How long this operation may take, waits included, in the place of the
    /// client's. A hang while connecting that it cuts short counts as in doubt.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).build()?;
    /// use std::time::Duration;
    /// use oncekey::ErrorKind;
    ///
    /// let request = || client.post("http://127.0.0.1:1/payments"); // nobody listens there
    /// let error = request().deadline(Duration::from_millis(300)).send().await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Exhausted);
    /// let error = request().deadline(Duration::from_millis(1)).send().await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Request); // no attempt fits into that
    /// # Ok(())
    /// # }
    /// ```
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.draft.deadline = Some(deadline);
        self
    }

    /// What is known of the effect before anything is sent, and without a look
    /// at the journal: under an id of the caller's own something may be on record.
    #[cfg(feature = "blocking")]
    pub(crate) fn effect_before(&self) -> Effect {
        #[cfg(feature = "journal")]
        if self.client.journal.is_some() && self.draft.id.is_some() && !self.is_safe() {
            return Effect::Unknown;
        }
        effect_before(&self.draft.method, self.draft.key.as_ref())
    }

    /// Whether its method has no effect to speak of.
    #[cfg(feature = "blocking")]
    pub(crate) fn is_safe(&self) -> bool {
        method_kind(&self.draft.method) == MethodKind::Safe
    }

    /// Tells what happens to this operation, after the client's own hook: see [`Event`].
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).build()?;
    /// let (told, heard) = std::sync::mpsc::channel();
    /// let request = client.post(sandbox.url("/payments")).body("{}");
    /// request.on_event(move |event| { let _ = told.send(event.to_string()); }).send().await?;
    /// assert_eq!(heard.iter().count(), 3); // the attempt's start, its end, the end of all
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn on_event(mut self, hook: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.draft.on_event = Some(Arc::new(hook));
        self
    }

    /// Sends it, again and again under the same key, until the answer is final
    /// or nothing more can safely be done.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().retry(oncekey::Retry::default().base_delay(std::time::Duration::ZERO)).build()?;
    /// sandbox.fail_next([Fault::answer_lost()]); // it is paid, and nobody is told
    /// let paid = client.post(sandbox.url("/payments")).body("amount=4999").send().await?;
    /// assert!(paid.is_replay());
    /// assert_eq!((sandbox.requests().len(), sandbox.executions()), (2, 1));
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error`]: why there is no final answer, and whether it took effect.
    ///
    /// # Effect
    ///
    /// `Ok` means that the server carried the operation out. Every error says
    /// truthfully whether it did: [`Error::effect`].
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub async fn send(self) -> Result<Response, Error> {
        match self.begun() {
            Begun::Operation(operation) => operation.carry_out().await,
            Begun::Refused(error) => Err(*error),
            #[cfg(feature = "journal")]
            Begun::AtTheDesk(work) => work.await,
        }
    }

    /// What is to be awaited. Apart from it, so that a request on its way holds nothing twice.
    fn begun(self) -> Begun {
        let Self { client, mut draft } = self;
        let hook = draft.on_event.take();
        let policy = draft.policy(&client);
        #[cfg(feature = "journal")]
        let named = draft.id.clone().filter(|id| id.problem().is_none());
        let order = match draft.checked(&client, &policy) {
            Ok(order) => order,
            #[cfg(feature = "journal")]
            Err(error) => {
                return Begun::AtTheDesk(Box::pin(async move {
                    Err(crate::desk::with_the_effect_on_record(error, client.journal.as_deref(), named).await)
                }));
            }
            #[cfg(not(feature = "journal"))]
            Err(error) => return Begun::Refused(Box::new(error)),
        };
        #[cfg(feature = "journal")]
        if let Some(journal) = client.journal.clone()
            && (order.id.is_some() || method_kind(&order.method) != MethodKind::Safe)
        {
            return Begun::AtTheDesk(Box::pin(Desk::new(client, journal, policy).watched(hook).send(order)));
        }
        match order.submission(&client.profile) {
            Ok(submission) => Begun::Operation(Operation::begin(client, submission, policy).watched(hook)),
            Err(error) => Begun::Refused(Box::new(error)),
        }
    }
}

impl fmt::Debug for RequestBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBuilder")
            .field("method", &self.draft.method)
            .field("url", &self.draft.url.as_ref().map(|url| Shown(url).to_string()))
            .field("key", &self.draft.key)
            .finish_non_exhaustive()
    }
}
