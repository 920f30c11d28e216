//! One line of the ledger.

use super::redact::{Key, Path};
use bytes::Bytes;
use http::Method;
use std::fmt;
use std::time::SystemTime;

/// Something that was really carried out. Written when the work is done.
#[derive(Clone)]
pub struct Execution {
    pub(super) key: Option<String>,
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Bytes,
    pub(super) at: SystemTime,
    pub(super) id: String,
    pub(super) request: usize,
    pub(super) double: bool,
}

impl Execution {
    /// The key that was sent with it, if any.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// The request's method.
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The request's path, with its query.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The request's body, as it was sent.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// When, on the sandbox's clock.
    #[must_use]
    pub fn at(&self) -> SystemTime {
        self.at
    }

    /// The id it was given: `pay_1`, `pay_2`, ...
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The [number](super::SeenRequest::number) of the request that caused it.
    #[must_use]
    pub fn request(&self) -> usize {
        self.request
    }

    /// Whether this is the server's own double: it had promised to run this key once, had run it,
    /// and ran it again within the key's lifetime. Three things lead there: a stale lock was
    /// reclaimed while its handler was alive, the handler died between executing and saving its
    /// answer ([`Fault::crash_after_executing`](super::Fault::crash_after_executing)), or it
    /// executed, said an error and so released the key
    /// ([`Fault::from_handler`](super::Fault::from_handler)).
    ///
    /// Never set for a server that ignores keys, nor for a key that was forgotten in between: there
    /// the client sent what it should not have sent.
    #[must_use]
    pub fn is_double(&self) -> bool {
        self.double
    }
}

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution")
            .field("id", &self.id)
            .field("key", &self.key.as_deref().map(Key))
            .field("method", &self.method)
            .field("path", &Path(&self.path))
            .field("body_len", &self.body.len())
            .field("request", &self.request)
            .field("double", &self.double)
            .finish_non_exhaustive()
    }
}
