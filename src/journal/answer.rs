use std::fmt;

use http::{HeaderMap, StatusCode};

/// An answer as it is kept: without `Set-Cookie` and other headers that are
/// never stored.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl StoredAnswer {
    /// An answer of these parts.
    pub const fn new(status: StatusCode, headers: HeaderMap, body: Vec<u8>) -> Self {
        Self { status, headers, body }
    }

    /// The status.
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// The headers.
    pub const fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The body, decoded; for an answer that was cut, as much as came.
    pub fn body(&self) -> &[u8] {
        &self.body
    }
}

impl fmt::Debug for StoredAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredAnswer")
            .field("status", &self.status)
            .field("body_len", &self.body.len())
            .finish_non_exhaustive()
    }
}
