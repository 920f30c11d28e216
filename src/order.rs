use bytes::Bytes;
use http::Method;
use http::header::{CONTENT_LENGTH, HeaderName, HeaderValue};
use url::Url;

use crate::engine::{Effect, KeyOrigin, MethodKind};
use crate::error::Error;
use crate::profile::{Profile, method_kind};
#[cfg(feature = "journal")]
use crate::submission::is_credential;
use crate::submission::{IdempotencyKey, OperationId, Submission};

/// A request that was found good, before its key is drawn.
#[derive(Clone)]
pub(crate) struct Order {
    pub(crate) method: Method,
    pub(crate) url: Url,
    /// The caller's own.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Option<Bytes>,
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) without_key: bool,
    pub(crate) id: Option<OperationId>,
    pub(crate) gone_is_done: bool,
    #[cfg(feature = "journal")]
    pub(crate) account: Option<Box<str>>,
}

impl Order {
    /// What every attempt sends, under the caller's key or a new one.
    pub(crate) fn submission(mut self, profile: &Profile) -> Result<Submission, Error> {
        let (key, origin) = match self.key.take() {
            Some(key) => {
                let origin = key.claim();
                (Some(key), origin)
            }
            None if !self.draws_a_key(profile) => (None, KeyOrigin::None),
            None => match IdempotencyKey::drawn() {
                Ok(key) => (Some(key), KeyOrigin::Drawn),
                Err(error) => return Err(no_key(error)),
            },
        };
        if let Some(value) = key.as_ref().and_then(|key| profile.key_value(key.as_str())) {
            self.headers.push((profile.key_header().clone(), value));
        }
        // RFC 9110, 8.6: some gateways turn a POST without a length away.
        let expects_content = matches!(self.method, Method::POST | Method::PUT | Method::PATCH);
        let is_empty = self.body.as_ref().is_none_or(Bytes::is_empty);
        if expects_content && is_empty && !self.headers.iter().any(|(name, _)| *name == CONTENT_LENGTH) {
            self.headers.push((CONTENT_LENGTH, HeaderValue::from_static("0")));
        }
        Ok(Submission {
            method: self.method,
            url: self.url,
            headers: self.headers,
            body: self.body,
            key,
            origin,
            gone_is_done: self.gone_is_done,
            id: self.id,
        })
    }

    /// What is written down with it.
    #[cfg(feature = "journal")]
    pub(crate) fn plain_headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        self.headers.iter().filter(|(name, value)| !is_credential(name, value)).cloned().collect()
    }

    /// What is given anew each time.
    #[cfg(feature = "journal")]
    pub(crate) fn secret_headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        self.headers.iter().filter(|(name, value)| is_credential(name, value)).cloned().collect()
    }

    pub(crate) fn draws_a_key(&self, profile: &Profile) -> bool {
        !self.without_key && profile.keys(&self.method)
    }
}

pub(crate) fn no_key(error: getrandom::Error) -> Error {
    let what = "no idempotency key could be drawn: the system's random generator failed";
    Error::request(what, Effect::NotApplied, Some(Box::new(error)))
}

/// What is known before anything is sent: a key of the caller's own may have
/// been sent before.
pub(crate) fn effect_before(method: &Method, key: Option<&IdempotencyKey>) -> Effect {
    match key {
        Some(key) if !key.is_fresh() && method_kind(method) != MethodKind::Safe => Effect::Unknown,
        Some(_) | None => Effect::NotApplied,
    }
}
