use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;

use super::worker::Worker;
use crate::error::Error;
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
    pub fn headers(self, headers: HeaderMap) -> Self {
        self.with(|inner| inner.headers(headers))
    }

    /// `Authorization: Bearer`, never printed.
    pub fn bearer_auth<T: fmt::Display>(self, token: T) -> Self {
        self.with(|inner| inner.bearer_auth(token))
    }

    /// `Authorization: Basic` (RFC 7617), never printed.
    pub fn basic_auth<U: fmt::Display, P: fmt::Display>(self, username: U, password: Option<P>) -> Self {
        self.with(|inner| inner.basic_auth(username, password))
    }

    /// Adds to the query: a struct, a map, or a list of pairs.
    pub fn query<T: Serialize + ?Sized>(self, query: &T) -> Self {
        self.with(|inner| inner.query(query))
    }

    /// The body as JSON, serialised once, here.
    #[cfg(feature = "json")]
    #[cfg_attr(docsrs, doc(cfg(feature = "json")))]
    pub fn json<T: Serialize + ?Sized>(self, json: &T) -> Self {
        self.with(|inner| inner.json(json))
    }

    /// The body as a form: a struct, a map, or a list of pairs.
    #[cfg(feature = "form")]
    #[cfg_attr(docsrs, doc(cfg(feature = "form")))]
    pub fn form<T: Serialize + ?Sized>(self, form: &T) -> Self {
        self.with(|inner| inner.form(form))
    }

    /// The body. There is no streaming one: every attempt sends the same bytes.
    pub fn body(self, body: impl Into<Bytes>) -> Self {
        self.with(|inner| inner.body(body))
    }

    /// A key of your own, in the place of a new one. See [`IdempotencyKey`].
    pub fn idempotency_key(self, key: impl Into<IdempotencyKey>) -> Self {
        self.with(|inner| inner.idempotency_key(key))
    }

    /// Sends no key. Such a POST is never sent again once it may have been received.
    pub fn without_key(self) -> Self {
        self.with(crate::RequestBuilder::without_key)
    }

    /// The operation's id in the journal, without which it is an error. See
    /// [`oncekey::RequestBuilder::operation`](crate::RequestBuilder::operation)
    /// for what the same id does again. Default: the key is the id.
    pub fn operation(self, id: impl Into<OperationId>) -> Self {
        self.with(|inner| inner.operation(id))
    }

    /// The account at the provider that this is for, in the place of the client's.
    #[cfg(feature = "journal")]
    #[cfg_attr(docsrs, doc(cfg(feature = "journal")))]
    pub fn account(self, account: impl Into<Box<str>>) -> Self {
        self.with(|inner| inner.account(account))
    }

    /// For a DELETE: 404 and 410 mean that it is done. Without it they are
    /// refusals, which after a lost answer leave the effect unknown.
    pub fn gone_is_done(self) -> Self {
        self.with(crate::RequestBuilder::gone_is_done)
    }

    /// How long one attempt may take, for this operation, in the place of the
    /// client's. See
    /// [`oncekey::RequestBuilder::attempt_timeout`](crate::RequestBuilder::attempt_timeout).
    pub fn attempt_timeout(self, timeout: Duration) -> Self {
        self.with(|inner| inner.attempt_timeout(timeout))
    }

    /// How long this operation may take, waits included, in the place of the
    /// client's. A hang while connecting that it cuts short counts as in doubt.
    pub fn deadline(self, deadline: Duration) -> Self {
        self.with(|inner| inner.deadline(deadline))
    }

    /// Sends it, again and again under the same key, until the answer is final
    /// or nothing more can safely be done. This thread waits, up to the deadline.
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
