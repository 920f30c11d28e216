mod builder;

use std::fmt;
use std::sync::{Arc, Mutex};

use http::Method;
use reqwest::IntoUrl;
use url::Url;

use crate::authorize::AnyAuthorize;
use crate::engine::Policy;
use crate::event::Hook;
#[cfg(feature = "journal")]
use crate::journal::Journal;
use crate::policy::Schedule;
use crate::profile::{Answer, Profile};
use crate::reconcile::AnyReconcile;
use crate::request::RequestBuilder;
use crate::runtime::Dice;

pub use builder::ClientBuilder;

/// Sends operations, each under one key, to a final answer. Cheap to clone.
///
/// It holds a `reqwest::Client` of its own: redirects, reqwest's retries and
/// its timeouts would each break a promise made here, and cannot be read back
/// from a ready-made one. What is sent must be awaited in a tokio runtime.
#[derive(Clone)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) http: reqwest::Client,
    pub(crate) profile: Profile,
    pub(crate) policy: Arc<Policy>,
    pub(crate) authorize: Option<Box<dyn AnyAuthorize>>,
    pub(crate) on_event: Option<Hook>,
    pub(crate) dice: Dice,
    pub(crate) max_response_bytes: usize,
    last_url: Mutex<Option<(Box<str>, Url)>>,
    #[cfg(feature = "backoff")]
    backoff: Option<MakeBackoff>,
    pub(crate) poll_with: Option<PollWith>,
    pub(crate) recover_with: Option<RecoverWith>,
    pub(crate) reconcile_with: Option<Box<dyn AnyReconcile>>,
    #[cfg(feature = "journal")]
    pub(crate) journal: Option<Arc<dyn Journal>>,
    #[cfg(feature = "journal")]
    pub(crate) account: Box<str>,
}

/// From an answer to where the operation is asked after.
pub(crate) type PollWith = Box<dyn Fn(&Answer<'_>) -> Option<String> + Send + Sync>;

/// From an original's id to where it is fetched.
pub(crate) type RecoverWith = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

#[cfg(feature = "backoff")]
type MakeBackoff = Box<dyn Fn() -> Box<dyn backoff::backoff::Backoff + Send> + Send + Sync>;

impl Inner {
    /// Parsing is a tenth of a call's cost, and most calls go where the last one went.
    fn url(&self, url: impl IntoUrl) -> reqwest::Result<Url> {
        let Ok(mut last) = self.last_url.try_lock() else {
            return url.into_url();
        };
        if let Some((text, parsed)) = &*last
            && **text == *url.as_str()
        {
            return Ok(parsed.clone());
        }
        let text = url.as_str().into();
        let parsed = url.into_url()?;
        *last = Some((text, parsed.clone()));
        Ok(parsed)
    }

    pub(crate) fn schedule(&self) -> Schedule {
        #[cfg(feature = "backoff")]
        if let Some(make) = &self.backoff {
            return Schedule::Callers(make());
        }
        Schedule::Own
    }
}

impl Client {
    /// A client with every default, for an API of the [generic](Profile::generic) kind.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # let url = sandbox.url("/payments");
    /// let client = oncekey::Client::new();
    /// let paid = client.post(url).body("amount=4999").send().await?;
    /// assert_eq!(paid.status(), 201);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Panics
    ///
    /// If the TLS backend cannot be initialised, as `reqwest::Client::new`
    /// does. [`Client::builder`] gives an error instead.
    #[track_caller]
    pub fn new() -> Self {
        Self::builder().build().expect("the defaults are valid and TLS can be initialised")
    }

    /// A client to be set up.
    ///
    /// ```
    /// use oncekey::{Client, Profile};
    ///
    /// let client = Client::builder().profile(Profile::stripe()).http(|http| http.user_agent("my-bot/1.0")).build()?;
    /// let same = client.clone(); // for another task
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// A GET request: sent again after failures, without a key.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).build()?;
    /// let response = client.get(sandbox.url("/v1/payments/pay_1")).send().await?;
    /// assert_eq!(response.status(), 200);
    /// assert!(response.key().is_none());
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn get(&self, url: impl IntoUrl) -> RequestBuilder {
        self.request(Method::GET, url)
    }

    /// A POST request, under a key of its own.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(oncekey::Retry::default().base_delay(Duration::ZERO)).build()?;
    /// sandbox.fail_next(Fault::answer_lost());
    /// let response = client.post(sandbox.url("/v1/payments")).body(r#"{"amount":4999}"#).send().await?;
    /// // Its answer was lost at first, and had again under the same key.
    /// assert_eq!((response.attempts().len(), response.is_replay()), (2, true));
    /// assert_eq!(sandbox.executions_of(response.key().unwrap()), 1);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn post(&self, url: impl IntoUrl) -> RequestBuilder {
        self.request(Method::POST, url)
    }

    /// A PUT request: sent again after failures, without a key.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).build()?;
    /// let response = client.put(sandbox.url("/v1/customers/7")).body(r#"{"name":"Ana"}"#).send().await?;
    /// assert_eq!(response.status(), 200);
    /// assert!(sandbox.requests()[0].key().is_none()); // PUT is idempotent by itself
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn put(&self, url: impl IntoUrl) -> RequestBuilder {
        self.request(Method::PUT, url)
    }

    /// A PATCH request, under a key of its own where the profile says so.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(oncekey::Retry::default().base_delay(Duration::ZERO)).build()?;
    /// use oncekey::{Client, Profile};
    ///
    /// let change = r#"{"note":"gift"}"#;
    /// let keyed = client.patch(sandbox.url("/v1/payments/pay_1")).body(change).send().await?;
    /// assert!(keyed.key().is_some());
    /// let mollie = Client::builder().profile(Profile::mollie()).build()?; // keys are for POST alone
    /// # sandbox.fail_next(Fault::status(200));
    /// let keyless = mollie.patch(sandbox.url("/v1/payments/pay_1")).body(change).send().await?;
    /// assert!(keyless.key().is_none());
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn patch(&self, url: impl IntoUrl) -> RequestBuilder {
        self.request(Method::PATCH, url)
    }

    /// A DELETE request: sent again after failures, without a key.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).build()?;
    /// let response = client.delete(sandbox.url("/v1/subscriptions/7")).send().await?;
    /// assert_eq!(response.status(), 204);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn delete(&self, url: impl IntoUrl) -> RequestBuilder {
        self.request(Method::DELETE, url)
    }

    /// A HEAD request: sent again after failures, without a key.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).build()?;
    /// let response = client.head(sandbox.url("/v1/payments/pay_1")).send().await?;
    /// assert!(response.headers().contains_key("content-type") && response.bytes().is_empty());
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn head(&self, url: impl IntoUrl) -> RequestBuilder {
        self.request(Method::HEAD, url)
    }

    /// A request of any method.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).build()?;
    /// use oncekey::reqwest::Method;
    ///
    /// client.request(Method::OPTIONS, sandbox.url("/v1/payments")).send().await?;
    /// assert_eq!(sandbox.requests()[0].method(), Method::OPTIONS);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn request(&self, method: Method, url: impl IntoUrl) -> RequestBuilder {
        RequestBuilder::new(Arc::clone(&self.inner), method, self.inner.url(url))
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("profile", &self.inner.profile)
            .field("policy", &self.inner.policy)
            .finish_non_exhaustive()
    }
}
