//! One request as it was seen on the wire.

use super::fault::Fault;
use super::redact::{Key, Names, Path};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Version};
use std::fmt;
use std::time::SystemTime;

/// A request whose head arrived, whatever became of it.
#[derive(Clone)]
pub struct SeenRequest {
    pub(super) number: usize,
    pub(super) connection: usize,
    pub(super) version: Version,
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) keys: Vec<String>,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) complete: bool,
    pub(super) at: SystemTime,
    pub(super) fault: Option<Fault>,
    pub(super) copy: bool,
    pub(super) status: Option<StatusCode>,
}

impl SeenRequest {
    /// Its place in the order of arrival; the first is 1.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// The connection that it came on; the first that the sandbox accepted is 1.
    #[must_use]
    pub fn connection(&self) -> usize {
        self.connection
    }

    /// The version of HTTP that it came by.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The path, with its query.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The value of the key's header, if there was exactly one such line.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        match self.keys.as_slice() {
            [key] => Some(key),
            _ => None,
        }
    }

    /// All lines of the key's header. Bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// All headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The body, as far as it was read.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Whether the body was read to its end.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// When its head arrived, on the sandbox's clock.
    #[must_use]
    pub fn at(&self) -> SystemTime {
        self.at
    }

    /// The fault it met, scripted or drawn. `None` also for [`Fault::none`].
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Whether no client sent it: it is the second copy of [`Fault::duplicate`].
    #[must_use]
    pub fn is_copy(&self) -> bool {
        self.copy
    }

    /// The status of the head that was written in answer, if one was written whole.
    #[must_use]
    pub fn status(&self) -> Option<StatusCode> {
        self.status
    }
}

impl fmt::Debug for SeenRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.keys.iter().map(|key| Key(key)).collect::<Vec<_>>();
        f.debug_struct("SeenRequest")
            .field("number", &self.number)
            .field("connection", &self.connection)
            .field("version", &self.version)
            .field("method", &self.method)
            .field("path", &Path(&self.path))
            .field("keys", &keys)
            .field("headers", &Names(&self.headers))
            .field("body_len", &self.body.len())
            .field("complete", &self.complete)
            .field("fault", &self.fault.as_ref().map(Fault::name))
            .field("copy", &self.copy)
            .field("status", &self.status.map(|status| status.as_u16()))
            .finish_non_exhaustive()
    }
}
