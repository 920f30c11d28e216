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
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::status(503));
    /// client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// let numbers = sandbox.requests().iter().map(|seen| seen.number()).collect::<Vec<_>>();
    /// assert_eq!(numbers, [1, 2]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// The connection that it came on; the first that the sandbox accepted is 1.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::answer_lost());
    /// client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// // The first connection was closed: the retry came on another.
    /// let connections = sandbox.requests().iter().map(|seen| seen.connection()).collect::<Vec<_>>();
    /// assert_eq!(connections, [1, 2]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn connection(&self) -> usize {
        self.connection
    }

    /// The version of HTTP that it came by.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// client.get(sandbox.url("/balance")).send().await?;
    /// assert_eq!(sandbox.requests()[0].version(), reqwest::Version::HTTP_11);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The method.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// client.put(sandbox.url("/notes/1")).body("paid").send().await?;
    /// assert_eq!(sandbox.requests()[0].method(), "PUT");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The path, with its query.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// client.get(sandbox.url("/payments")).query(&[("limit", 10)]).send().await?;
    /// assert_eq!(sandbox.requests()[0].path(), "/payments?limit=10");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The value of the key's header, if there was exactly one such line.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::answer_lost());
    /// let paid = client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// let key = paid.key().map(|key| key.as_str());
    /// assert!(key.is_some());
    /// assert!(sandbox.requests().iter().all(|seen| seen.key() == key), "both attempts bear it");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        match self.keys.as_slice() {
            [key] => Some(key),
            _ => None,
        }
    }

    /// All lines of the key's header. Bytes that are not UTF-8 are replaced.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// let twice = http.post(sandbox.url("/payments")).header("Idempotency-Key", "a").header("Idempotency-Key", "b");
    /// assert_eq!(twice.send().await?.text().await?, r#"{"code":"IDEMPOTENCY_KEY_REPEATED"}"#);
    /// let requests = sandbox.requests();
    /// assert_eq!(requests[0].keys(), ["a", "b"]);
    /// assert_eq!(requests[0].key(), None);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// All headers.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// client.post(sandbox.url("/payments")).header("X-Tenant", "m1").body("{}").send().await?;
    /// let requests = sandbox.requests();
    /// assert_eq!(requests[0].headers()["x-tenant"], "m1");
    /// assert!(requests[0].headers().contains_key("idempotency-key"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The body, as far as it was read.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::status(503).times(2));
    /// client.post(sandbox.url("/payments")).body(r#"{"amount": 4999}"#).send().await?;
    /// assert!(sandbox.requests().iter().all(|seen| &seen.body()[..] == br#"{"amount": 4999}"#));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Whether the body was read to its end.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::closed_before_reading());
    /// client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// let requests = sandbox.requests();
    /// assert!(!requests[0].is_complete() && requests[0].body().is_empty());
    /// assert!(requests[1].is_complete());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// When its head arrived, on the sandbox's clock.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// client.get(sandbox.url("/balance")).send().await?;
    /// sandbox.advance(Duration::from_secs(3600));
    /// client.get(sandbox.url("/balance")).send().await?;
    /// let requests = sandbox.requests();
    /// assert!(requests[1].at() >= requests[0].at() + Duration::from_secs(3600));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn at(&self) -> SystemTime {
        self.at
    }

    /// The fault it met, scripted or drawn. `None` also for [`Fault::none`].
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::status(503));
    /// client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// let requests = sandbox.requests();
    /// assert_eq!(requests[0].fault(), Some(&Fault::status(503)));
    /// assert_eq!(requests[1].fault(), None);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Whether no client sent it: it is the second copy of [`Fault::duplicate`].
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::duplicate());
    /// client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// let requests = sandbox.requests();
    /// assert!(!requests[0].is_copy());
    /// assert!(requests[1].is_copy(), "a proxy made it");
    /// assert_eq!(requests[0].key(), requests[1].key());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn is_copy(&self) -> bool {
        self.copy
    }

    /// The status of the head that was written in answer, if one was written whole.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next([Fault::status(503), Fault::head_cut(10)]);
    /// client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// let said = sandbox.requests().iter().map(|seen| seen.status().map(|s| s.as_u16())).collect::<Vec<_>>();
    /// assert_eq!(said, [Some(503), None, Some(201)]);
    /// # Ok(())
    /// # }
    /// ```
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
