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
    /// ```
    /// use oncekey::{ErrorKind, blocking::Client};
    ///
    /// let client = Client::new();
    /// let error = client.post("api.example/payments").send().unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Request); // the URL has no `https://`
    /// ```
    ///
    /// # Panics
    ///
    /// Inside a runtime, or if the TLS backend or the thread cannot be had, as
    /// `reqwest::blocking::Client::new` does. [`Client::builder`] gives an error
    /// instead.
    #[track_caller]
    pub fn new() -> Self {
        Self::builder().build().expect("outside of a runtime, with a thread and TLS to be had")
    }

    /// A client to be set up.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::{Profile, blocking::Client};
    ///
    /// let client = Client::builder().profile(Profile::stripe()).deadline(Duration::from_secs(90)).build()?;
    /// let same = client.clone(); // for another thread
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// A GET request: sent again after failures, without a key.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let client = Client::new();
    /// let response = client.get(sandbox.url("/v1/payments/pay_1")).send()?;
    /// assert_eq!(response.status(), 200);
    /// assert!(response.key().is_none());
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get(&self, url: impl IntoUrl) -> RequestBuilder {
        self.wrapped(self.inner.get(url))
    }

    /// A POST request, under a key of its own.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let client = Client::builder().retry(oncekey::Retry::default().base_delay(std::time::Duration::from_millis(10))).build()?;
    /// # sandbox.fail_next(oncekey::sandbox::Fault::answer_lost());
    /// let response = client.post(sandbox.url("/v1/payments")).body(r#"{"amount":4999}"#).send()?;
    /// // Its answer was lost at first, and had again under the same key.
    /// assert_eq!((response.attempts().len(), response.is_replay()), (2, true));
    /// assert_eq!(sandbox.executions_of(response.key().unwrap().as_str()), 1);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn post(&self, url: impl IntoUrl) -> RequestBuilder {
        self.wrapped(self.inner.post(url))
    }

    /// A PUT request: sent again after failures, without a key.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let client = Client::new();
    /// let response = client.put(sandbox.url("/v1/customers/7")).body(r#"{"name":"Ana"}"#).send()?;
    /// assert_eq!(response.status(), 200);
    /// assert!(sandbox.requests()[0].key().is_none()); // PUT is idempotent by itself
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn put(&self, url: impl IntoUrl) -> RequestBuilder {
        self.wrapped(self.inner.put(url))
    }

    /// A PATCH request, under a key of its own where the profile says so.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// use oncekey::blocking::Client;
    /// use oncekey::Profile;
    ///
    /// # let client = Client::new();
    /// let keyed = client.patch(sandbox.url("/v1/payments/pay_1")).body(r#"{"note":"gift"}"#).send()?;
    /// assert!(keyed.key().is_some());
    /// let client = Client::builder().profile(Profile::mollie()).build()?; // keys are for POST alone
    /// # sandbox.fail_next(oncekey::sandbox::Fault::status(200));
    /// let keyless = client.patch(sandbox.url("/v1/payments/pay_1")).body(r#"{"note":"gift"}"#).send()?;
    /// assert!(keyless.key().is_none());
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn patch(&self, url: impl IntoUrl) -> RequestBuilder {
        self.wrapped(self.inner.patch(url))
    }

    /// A DELETE request: sent again after failures, without a key.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let client = Client::new();
    /// let response = client.delete(sandbox.url("/v1/subscriptions/7")).send()?;
    /// assert_eq!(response.status(), 204);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn delete(&self, url: impl IntoUrl) -> RequestBuilder {
        self.wrapped(self.inner.delete(url))
    }

    /// A HEAD request: sent again after failures, without a key.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let client = Client::new();
    /// let response = client.head(sandbox.url("/v1/payments/pay_1")).send()?;
    /// assert!(response.headers().contains_key("content-type") && response.bytes().is_empty());
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn head(&self, url: impl IntoUrl) -> RequestBuilder {
        self.wrapped(self.inner.head(url))
    }

    /// A request of any method.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let client = Client::new();
    /// use oncekey::reqwest::Method;
    ///
    /// client.request(Method::OPTIONS, sandbox.url("/v1/payments")).send()?;
    /// assert_eq!(sandbox.requests()[0].method(), Method::OPTIONS);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
