//! A whole answer, before anything happens to it on its way.

use super::redact::Names;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use http_body_util::Full;
use std::fmt;

#[derive(Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Answer {
    pub(super) fn json(status: StatusCode, body: impl Into<Bytes>) -> Self {
        let json = HeaderValue::from_static("application/json");
        Self::empty(status).with_body(json, body.into())
    }

    /// An error as this API words it: `{"code":"..."}`.
    pub(super) fn code(status: StatusCode, code: &'static str) -> Self {
        Self::json(status, format!(r#"{{"code":"{code}"}}"#))
    }

    /// What a bare status says: an error has a message and no code, a success an empty object.
    pub(super) fn bare(status: StatusCode) -> Self {
        if !allows_body(&Method::GET, status) {
            return Self::empty(status);
        }
        if status.is_success() {
            return Self::json(status, "{}");
        }
        let reason = status.canonical_reason().unwrap_or("Unknown");
        Self::json(status, format!(r#"{{"message":"{reason}"}}"#))
    }

    pub(super) fn empty(status: StatusCode) -> Self {
        Self { status, headers: HeaderMap::new(), body: Bytes::new() }
    }

    pub(super) fn with_body(mut self, content_type: HeaderValue, body: Bytes) -> Self {
        self.headers.insert(CONTENT_TYPE, content_type);
        self.body = body;
        self
    }

    pub(super) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }
}

impl From<Answer> for Response<Full<Bytes>> {
    fn from(answer: Answer) -> Self {
        let mut response = Self::new(Full::new(answer.body));
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        response
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("status", &self.status.as_u16())
            .field("headers", &Names(&self.headers))
            .field("body_len", &self.body.len())
            .finish()
    }
}

/// Whether the answer to `method` with `status` has a body at all (RFC 9112, section 6.3).
pub(super) fn allows_body(method: &Method, status: StatusCode) -> bool {
    let bodiless = status.is_informational() || status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED;
    method != Method::HEAD && !bodiless
}
