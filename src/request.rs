use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING,
};
use http::{HeaderName as Name, Method};
use serde::Serialize;
use url::Url;

use crate::call::carry_out;
use crate::client::Inner;
use crate::engine::{Effect, KeyOrigin, MethodKind};
use crate::error::{Cause, Error};
use crate::pairs;
use crate::profile::method_kind;
use crate::response::Response;
use crate::submission::{IdempotencyKey, OperationId, Submission};

/// One operation being written, with reqwest's names. [`send`](Self::send)
/// freezes it: every attempt sends the same bytes under the same key.
///
/// What is wrong with it is told by `send`, before anything is sent.
#[must_use = "a request does nothing until it is sent"]
pub struct RequestBuilder {
    client: Arc<Inner>,
    method: Method,
    url: Option<Url>,
    headers: HeaderMap,
    body: Option<Bytes>,
    keys: Vec<IdempotencyKey>,
    without_key: bool,
    operation: Option<OperationId>,
    gone_is_done: bool,
    attempt_timeout: Option<Duration>,
    deadline: Option<Duration>,
    problem: Option<Problem>,
}

/// The first thing that is wrong with a request.
struct Problem {
    what: Cow<'static, str>,
    source: Option<Cause>,
}

impl RequestBuilder {
    pub(crate) fn new(client: Arc<Inner>, method: Method, url: reqwest::Result<Url>) -> Self {
        let (url, problem) = match url {
            Ok(url) => (Some(url), None),
            Err(error) => {
                let what = "the URL cannot be used: it must be absolute, with http or https and a host";
                (None, Some(Problem { what: what.into(), source: Some(Box::new(error.without_url())) }))
            }
        };
        Self {
            client,
            method,
            url,
            headers: HeaderMap::new(),
            body: None,
            keys: Vec::new(),
            without_key: false,
            operation: None,
            gone_is_done: false,
            attempt_timeout: None,
            deadline: None,
            problem,
        }
    }

    fn fail(&mut self, what: impl Into<Cow<'static, str>>, source: Option<Cause>) {
        if self.problem.is_none() {
            self.problem = Some(Problem { what: what.into(), source });
        }
    }

    /// Adds a header. The key's own header is refused: use
    /// [`idempotency_key`](Self::idempotency_key).
    pub fn header<K, V>(mut self, name: K, value: V) -> Self
    where
        HeaderName: TryFrom<K>,
        <HeaderName as TryFrom<K>>::Error: Into<http::Error>,
        HeaderValue: TryFrom<V>,
        <HeaderValue as TryFrom<V>>::Error: Into<http::Error>,
    {
        match (Name::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(value)) => {
                self.headers.append(name, value);
            }
            (Err(error), _) => {
                self.fail("a header's name holds a character that a name cannot", Some(Box::new(error.into())))
            }
            (Ok(name), Err(error)) => {
                let what = format!("the value of the header {name} holds a character that a header cannot");
                self.fail(what, Some(Box::new(error.into())));
            }
        }
        self
    }

    /// Sets headers, in the place of those of the same names.
    pub fn headers(mut self, headers: HeaderMap) -> Self {
        let mut last: Option<HeaderName> = None;
        for (name, value) in headers {
            match (name, &last) {
                (Some(name), _) => {
                    self.headers.insert(name.clone(), value);
                    last = Some(name);
                }
                (None, Some(name)) => {
                    self.headers.append(name.clone(), value);
                }
                (None, None) => {}
            }
        }
        self
    }

    /// `Authorization: Bearer`, never printed.
    pub fn bearer_auth<T: fmt::Display>(self, token: T) -> Self {
        self.authorization(format!("Bearer {token}"))
    }

    /// `Authorization: Basic` (RFC 7617), never printed.
    pub fn basic_auth<U: fmt::Display, P: fmt::Display>(self, username: U, password: Option<P>) -> Self {
        let credentials = match password {
            Some(password) => format!("{username}:{password}"),
            None => format!("{username}:"),
        };
        self.authorization(format!("Basic {}", BASE64.encode(credentials)))
    }

    fn authorization(mut self, value: String) -> Self {
        match HeaderValue::try_from(value) {
            Ok(mut value) => {
                value.set_sensitive(true);
                self.headers.insert(AUTHORIZATION, value);
            }
            Err(_) => self.fail("the credentials hold a character that a header cannot", None),
        }
        self
    }

    /// Adds to the query: a struct, a map, or a list of pairs.
    pub fn query<T: Serialize + ?Sized>(mut self, query: &T) -> Self {
        match (pairs::of(query), &mut self.url) {
            (Ok(pairs), Some(url)) if !pairs.is_empty() => pairs::encode(&mut url.query_pairs_mut(), &pairs),
            (Ok(_), _) => {}
            (Err(error), _) => self.fail("the query cannot be written as names and values", Some(Box::new(error))),
        }
        self
    }

    /// The body as JSON, serialised once, here.
    #[cfg(feature = "json")]
    pub fn json<T: Serialize + ?Sized>(mut self, json: &T) -> Self {
        match serde_json::to_vec(json) {
            Ok(body) => self.typed_body(HeaderValue::from_static("application/json"), body),
            Err(error) => self.fail("the body cannot be written as JSON", Some(Box::new(error))),
        }
        self
    }

    /// The body as a form: a struct, a map, or a list of pairs.
    #[cfg(feature = "form")]
    pub fn form<T: Serialize + ?Sized>(mut self, form: &T) -> Self {
        match pairs::of(form) {
            Ok(pairs) => {
                let mut body = url::form_urlencoded::Serializer::new(String::new());
                pairs::encode(&mut body, &pairs);
                let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
                self.typed_body(kind, body.finish().into_bytes());
            }
            Err(error) => self.fail("the form cannot be written as names and values", Some(Box::new(error))),
        }
        self
    }

    #[cfg(any(feature = "json", feature = "form"))]
    fn typed_body(&mut self, kind: HeaderValue, body: Vec<u8>) {
        self.headers.entry(CONTENT_TYPE).or_insert(kind);
        self.body = Some(body.into());
    }

    /// The body. There is no streaming one: every attempt sends the same bytes.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// A key of your own, in the place of a new one. See [`IdempotencyKey`].
    pub fn idempotency_key(mut self, key: impl Into<IdempotencyKey>) -> Self {
        self.keys.push(key.into());
        self
    }

    /// Sends no key. Such a POST is never sent again once it may have been received.
    pub fn without_key(mut self) -> Self {
        self.without_key = true;
        self
    }

    /// The operation's id in the journal. Needs a client with a journal, and
    /// is an error without one.
    pub fn operation(mut self, id: impl Into<OperationId>) -> Self {
        self.operation = Some(id.into());
        self
    }

    /// For a DELETE: 404 and 410 mean that it is done. Without it they are
    /// refusals, which after a lost answer leave the effect unknown.
    pub fn gone_is_done(mut self) -> Self {
        self.gone_is_done = true;
        self
    }

    /// How long one attempt may take, for this operation.
    ///
    /// Below twice the client's connect timeout a hang while connecting may
    /// count as in doubt.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = Some(timeout);
        self
    }

    /// How long this operation may take, waits included.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Sends it, again and again under the same key, until the answer is final
    /// or nothing more can safely be done.
    ///
    /// # Errors
    ///
    /// [`Error`]: why there is no final answer, and whether it took effect.
    ///
    /// # Effect
    ///
    /// `Ok` means that the server carried the operation out. Every error says
    /// truthfully whether it did: [`Error::effect`].
    pub async fn send(self) -> Result<Response, Error> {
        let client = Arc::clone(&self.client);
        let attempt_timeout = self.attempt_timeout.unwrap_or(client.attempt_timeout);
        let mut policy = client.policy.attempt_timeout(attempt_timeout);
        if let Some(deadline) = self.deadline {
            policy = policy.deadline(deadline);
        }
        let submission = self.freeze(attempt_timeout)?;
        carry_out(&client, submission, policy).await
    }

    /// Checks it, and makes of it what every attempt sends.
    fn freeze(mut self, attempt_timeout: Duration) -> Result<Submission, Error> {
        self.check(attempt_timeout);
        let fresh = self.keys.first().is_none();
        let (url, problem) = (self.url.take(), self.problem.take());
        let (Some(url), None) = (url, &problem) else {
            let problem = problem.unwrap_or(Problem { what: "the URL is missing".into(), source: None });
            // A key of the caller's own may have been sent before.
            let safe = fresh || method_kind(&self.method) == MethodKind::Safe;
            let effect = if safe { Effect::NotApplied } else { Effect::Unknown };
            return Err(Error::request(problem.what, effect, problem.source));
        };
        let profile = &self.client.profile;
        let (key, origin) = match self.keys.pop() {
            Some(key) => {
                let origin = key.claim();
                (Some(key), origin)
            }
            None if self.without_key || !profile.keys(&self.method) => (None, KeyOrigin::None),
            None => match IdempotencyKey::drawn() {
                Ok(key) => (Some(key), KeyOrigin::Drawn),
                Err(error) => {
                    let what = "no idempotency key could be drawn: the system's random generator failed";
                    return Err(Error::request(what, Effect::NotApplied, Some(Box::new(error))));
                }
            },
        };
        let mut headers = self.headers;
        if let Some(value) = key.as_ref().and_then(|key| profile.key_value(key.as_str())) {
            headers.insert(profile.key_header().clone(), value);
        }
        Ok(Submission {
            method: self.method,
            url,
            headers,
            body: self.body,
            key,
            origin,
            gone_is_done: self.gone_is_done,
        })
    }

    fn check(&mut self, attempt_timeout: Duration) {
        if let Some(url) = &self.url {
            match (url.scheme(), url.has_host()) {
                ("http", true) => {}
                ("https", true) if cfg!(any(feature = "rustls", feature = "native-tls")) => {}
                ("https", true) => {
                    self.fail("the URL is https, and this build has no TLS: turn the feature `rustls` on", None)
                }
                _ => self.fail("the URL cannot be used: it must be absolute, with http or https and a host", None),
            }
        }
        let client = Arc::clone(&self.client);
        let name = client.profile.key_header();
        if self.headers.contains_key(name) {
            let what = format!("the header {name} was set by hand: give the key with `idempotency_key`");
            self.fail(what, None);
        }
        if self.keys.len() > 1 {
            self.fail("two idempotency keys were given: one operation has one key", None);
        }
        if self.without_key && !self.keys.is_empty() {
            self.fail("both a key and `without_key` were given", None);
        }
        if let Some(key) = self.keys.first()
            && let Err(error) = client.profile.key_format().check(key.as_str())
        {
            self.fail(error.to_string(), None);
        }
        if self.operation.is_some() {
            self.fail("an operation id was given, and this client has no journal to keep it in", None);
        }
        if self.gone_is_done && self.method != Method::DELETE {
            self.fail("`gone_is_done` is for DELETE alone", None);
        }
        let length = self.body.as_ref().map_or(0, Bytes::len).to_string();
        if self.headers.get_all(CONTENT_LENGTH).iter().any(|value| value.as_bytes() != length.as_bytes()) {
            self.fail("a Content-Length was set by hand that is not the body's length: leave it out", None);
        }
        if self.headers.contains_key(TRANSFER_ENCODING) {
            self.fail("a Transfer-Encoding was set by hand: leave it out", None);
        }
        if attempt_timeout.is_zero() {
            self.fail("attempt_timeout is zero, in which nothing can be sent", None);
        }
        if self.deadline.is_some_and(|deadline| deadline.is_zero()) {
            self.fail("deadline is zero, in which nothing can be sent", None);
        }
        let policy = &client.policy;
        if !policy.fits_the_key(attempt_timeout) {
            self.fail(
                "attempt_timeout and the margin do not fit the key's lifetime: not even a first attempt would",
                None,
            );
        }
    }
}

impl fmt::Debug for RequestBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBuilder")
            .field("method", &self.method)
            .field("url", &self.url.as_ref().map(|url| crate::submission::Shown(url).to_string()))
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}
