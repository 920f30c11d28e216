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
/// from a ready-made one.
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
    /// let client = oncekey::Client::builder().build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// A GET request: sent again after failures, without a key.
    ///
    /// ```
    /// let client = oncekey::Client::new();
    /// let request = client.get("https://api.example/payments/pay_1");
    /// # let _ = request;
    /// ```
    pub fn get(&self, url: impl IntoUrl) -> RequestBuilder {
        self.request(Method::GET, url)
    }

    /// A POST request, under a key of its own.
    ///
    /// ```
    /// let client = oncekey::Client::new();
    /// let request = client.post("https://api.example/payments").body(r#"{"amount":4999}"#);
    /// # let _ = request;
    /// ```
    pub fn post(&self, url: impl IntoUrl) -> RequestBuilder {
        self.request(Method::POST, url)
    }

    /// A PUT request: sent again after failures, without a key.
    ///
    /// ```
    /// let client = oncekey::Client::new();
    /// let request = client.put("https://api.example/customers/7").body(r#"{"name":"Ana"}"#);
    /// # let _ = request;
    /// ```
    pub fn put(&self, url: impl IntoUrl) -> RequestBuilder {
        self.request(Method::PUT, url)
    }

    /// A PATCH request, under a key of its own where the profile says so.
    ///
    /// ```
    /// let client = oncekey::Client::new();
    /// let request = client.patch("https://api.example/payments/pay_1").body(r#"{"note":"gift"}"#);
    /// # let _ = request;
    /// ```
    pub fn patch(&self, url: impl IntoUrl) -> RequestBuilder {
        self.request(Method::PATCH, url)
    }

    /// A DELETE request: sent again after failures, without a key.
    ///
    /// ```
    /// let client = oncekey::Client::new();
    /// let request = client.delete("https://api.example/subscriptions/7");
    /// # let _ = request;
    /// ```
    pub fn delete(&self, url: impl IntoUrl) -> RequestBuilder {
        self.request(Method::DELETE, url)
    }

    /// A HEAD request: sent again after failures, without a key.
    ///
    /// ```
    /// let client = oncekey::Client::new();
    /// let request = client.head("https://api.example/payments/pay_1");
    /// # let _ = request;
    /// ```
    pub fn head(&self, url: impl IntoUrl) -> RequestBuilder {
        self.request(Method::HEAD, url)
    }

    /// A request of any method.
    ///
    /// ```
    /// use oncekey::reqwest::Method;
    ///
    /// let client = oncekey::Client::new();
    /// let request = client.request(Method::OPTIONS, "https://api.example/payments");
    /// # let _ = request;
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
