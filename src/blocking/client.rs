use std::fmt;
use std::sync::Arc;

use http::Method;
use reqwest::IntoUrl;

use super::builder::ClientBuilder;
use super::request::RequestBuilder;
use super::worker::Worker;

/// [`oncekey::Client`](crate::Client) for threads: sends operations, each under
/// one key, to a final answer. Cheap to clone; clones share its thread.
#[derive(Clone)]
pub struct Client {
    pub(super) inner: crate::Client,
    pub(super) worker: Arc<Worker>,
}

impl Client {
    /// A client with every default, for an API of the
    /// [generic](crate::Profile::generic) kind.
    ///
    /// # Panics
    ///
    /// Inside a runtime, or if the TLS backend or the thread cannot be had, as
    /// `reqwest::blocking::Client::new` does. [`Client::builder`] gives an error
    /// instead.
    pub fn new() -> Self {
        Self::builder().build().expect("outside of a runtime, with a thread and TLS to be had")
    }

    /// A client to be set up.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// A GET request: sent again after failures, without a key.
    pub fn get(&self, url: impl IntoUrl) -> RequestBuilder {
        self.wrapped(self.inner.get(url))
    }

    /// A POST request, under a key of its own.
    pub fn post(&self, url: impl IntoUrl) -> RequestBuilder {
        self.wrapped(self.inner.post(url))
    }

    /// A PUT request: sent again after failures, without a key.
    pub fn put(&self, url: impl IntoUrl) -> RequestBuilder {
        self.wrapped(self.inner.put(url))
    }

    /// A PATCH request, under a key of its own where the profile says so.
    pub fn patch(&self, url: impl IntoUrl) -> RequestBuilder {
        self.wrapped(self.inner.patch(url))
    }

    /// A DELETE request: sent again after failures, without a key.
    pub fn delete(&self, url: impl IntoUrl) -> RequestBuilder {
        self.wrapped(self.inner.delete(url))
    }

    /// A HEAD request: sent again after failures, without a key.
    pub fn head(&self, url: impl IntoUrl) -> RequestBuilder {
        self.wrapped(self.inner.head(url))
    }

    /// A request of any method.
    pub fn request(&self, method: Method, url: impl IntoUrl) -> RequestBuilder {
        self.wrapped(self.inner.request(method, url))
    }

    fn wrapped(&self, inner: crate::RequestBuilder) -> RequestBuilder {
        RequestBuilder::new(inner, Arc::clone(&self.worker))
    }
}

impl Default for Client {
    /// As [`Client::new`], which may panic.
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
