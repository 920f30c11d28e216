use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::Method;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, HeaderName, HeaderValue, TRANSFER_ENCODING};
use percent_encoding::percent_decode_str;
use url::Url;

use crate::client::Inner;
use crate::engine::{Policy, SHORTEST_ATTEMPT};
use crate::error::{Cause, Error};
use crate::event::Hook;
use crate::order::{Order, effect_before};
use crate::policy::limited;
use crate::submission::{IdempotencyKey, OperationId};

/// A request as far as it is written. In memory of its own, since each setter
/// moves the builder.
pub(crate) struct Draft {
    pub(crate) method: Method,
    pub(crate) url: Option<Url>,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Option<Bytes>,
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) without_key: bool,
    pub(crate) id: Option<OperationId>,
    #[cfg(feature = "journal")]
    pub(crate) account: Option<Box<str>>,
    pub(crate) gone_is_done: bool,
    pub(crate) attempt_timeout: Option<Duration>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) on_event: Option<Hook>,
    problem: Option<Problem>,
}

/// The first thing that is wrong with a request.
struct Problem {
    what: Cow<'static, str>,
    source: Option<Cause>,
}

/// Far more than any server takes, and less than a header map does.
pub(crate) const MOST_HEADERS: usize = 1000;

pub(crate) const SHORT_DEADLINE: &str = "deadline is under 50 ms, in which no attempt is started";

/// The longest that an HTTP library sends (`http::Uri`).
const LONGEST_URL: usize = u16::MAX as usize - 1;

const BAD_URL: &str = "the URL cannot be used: it must be absolute, with http or https and a host";

impl Draft {
    pub(crate) fn new(method: Method, url: reqwest::Result<Url>) -> Box<Self> {
        let (url, problem) = match url {
            Ok(url) => (Some(url), None),
            Err(error) => (None, Some(Problem { what: BAD_URL.into(), source: Some(Box::new(error.without_url())) })),
        };
        let mut draft = Box::new(Self {
            method,
            url,
            headers: Vec::with_capacity(4),
            body: None,
            key: None,
            without_key: false,
            id: None,
            #[cfg(feature = "journal")]
            account: None,
            gone_is_done: false,
            attempt_timeout: None,
            deadline: None,
            on_event: None,
            problem,
        });
        draft.take_credentials();
        draft
    }

    pub(crate) fn fail(&mut self, what: impl Into<Cow<'static, str>>, source: Option<Cause>) {
        if self.problem.is_none() {
            self.problem = Some(Problem { what: what.into(), source });
        }
    }

    #[cfg(any(feature = "json", feature = "form"))]
    pub(crate) fn typed_body(&mut self, kind: HeaderValue, body: Vec<u8>) {
        use http::header::CONTENT_TYPE;
        if !self.headers.iter().any(|(name, _)| *name == CONTENT_TYPE) {
            self.headers.push((CONTENT_TYPE, kind));
        }
        self.body = Some(body.into());
    }

    pub(crate) fn authorization(&mut self, value: String) {
        match HeaderValue::try_from(value) {
            Ok(mut value) => {
                value.set_sensitive(true);
                self.headers.push((AUTHORIZATION, value));
            }
            Err(_) => self.fail("the credentials hold a character that a header cannot", None),
        }
    }

    pub(crate) fn basic(&mut self, username: &str, password: &str) {
        self.authorization(format!("Basic {}", BASE64.encode(format!("{username}:{password}"))));
    }

    /// User and password of a URL are sent as `Authorization: Basic`, as reqwest does.
    fn take_credentials(&mut self) {
        let Some(url) = self.url.as_mut().filter(|url| url.password().is_some() || !url.username().is_empty()) else {
            return;
        };
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let (username, password) = (decoded(url.username()), decoded(url.password().unwrap_or_default()));
        // Only a URL without a host has no place for them, and that is refused.
        let _ = url.set_username("").and_then(|()| url.set_password(None));
        self.basic(&username, &password);
    }

    pub(crate) fn policy(&self, client: &Inner) -> Arc<Policy> {
        limited(&client.policy, self.attempt_timeout, self.deadline)
    }

    /// Checks it. Its key is not drawn yet: it may be on record.
    pub(crate) fn checked(mut self: Box<Self>, client: &Inner, policy: &Policy) -> Result<Order, Error> {
        self.check(client, policy);
        if let Some(Problem { what, source }) = self.problem.take() {
            return Err(Error::request(what, effect_before(&self.method, self.key.as_ref()), source));
        }
        let Some(url) = self.url.take() else {
            return Err(Error::request(BAD_URL, effect_before(&self.method, self.key.as_ref()), None));
        };
        Ok(Order {
            method: self.method,
            url,
            headers: self.headers,
            body: self.body,
            key: self.key,
            without_key: self.without_key,
            id: self.id,
            gone_is_done: self.gone_is_done,
            #[cfg(feature = "journal")]
            account: self.account,
        })
    }

    fn check(&mut self, client: &Inner, policy: &Policy) {
        let profile = &client.profile;
        if let Some(url) = &self.url {
            let tls = cfg!(any(feature = "rustls", feature = "native-tls"));
            let is_too_long = url.as_str().len() > LONGEST_URL;
            match (url.scheme(), url.has_host()) {
                ("http", true) => {}
                ("https", true) if tls => {}
                ("https", true) => {
                    self.fail("the URL is https, and this build has no TLS: turn the feature `rustls` on", None);
                }
                _ => self.fail(BAD_URL, None),
            }
            if is_too_long {
                self.fail("the URL is longer than 65,534 bytes", None);
            }
        }
        if let Some(what) = self.bad_header(profile.key_header()) {
            self.fail(what, None);
        }
        if self.without_key && self.key.is_some() {
            self.fail("both a key and `without_key` were given", None);
        }
        if let Some(Err(error)) = self.key.as_ref().map(|key| profile.key_format().check(key.as_str())) {
            self.fail(error.to_string(), None);
        }
        if let Some(id) = &self.id {
            #[cfg(feature = "journal")]
            let has_journal = client.journal.is_some();
            #[cfg(not(feature = "journal"))]
            let has_journal = false;
            let problem = id.problem();
            if !has_journal {
                self.fail("an operation id was given, and this client has no journal to keep it in", None);
            } else if let Some(problem) = problem {
                self.fail(problem, None);
            }
        }
        if self.gone_is_done && self.method != Method::DELETE {
            self.fail("`gone_is_done` is for DELETE alone", None);
        }
        if self.attempt_timeout.is_some_and(|timeout| timeout.is_zero()) {
            self.fail("attempt_timeout is zero, in which nothing can be sent", None);
        }
        if self.deadline.is_some_and(|deadline| deadline < SHORTEST_ATTEMPT) {
            self.fail(SHORT_DEADLINE, None);
        }
        if let Some(timeout) = self.attempt_timeout
            && !policy.fits_the_key(timeout)
        {
            let what = "attempt_timeout and the margin do not fit the key's lifetime: not even a first attempt would";
            self.fail(what, None);
        }
    }

    fn bad_header(&self, key_header: &HeaderName) -> Option<Cow<'static, str>> {
        if self.headers.len() > MOST_HEADERS {
            return Some("there are more than 1,000 headers".into());
        }
        let length = self.body.as_ref().map_or(0, Bytes::len);
        self.headers.iter().find_map(|(name, value)| {
            if name == key_header {
                Some(format!("the header {name} was set by hand: give the key with `idempotency_key`").into())
            } else if *name == TRANSFER_ENCODING {
                Some("a Transfer-Encoding was set by hand: leave it out".into())
            } else if *name == CONTENT_LENGTH && value.as_bytes() != length.to_string().as_bytes() {
                Some("a Content-Length was set by hand that is not the body's length: leave it out".into())
            } else {
                None
            }
        })
    }
}
