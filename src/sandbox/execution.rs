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
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send().await?;
    /// http.put(sandbox.url("/notes/1")).body("paid").send().await?;
    /// let ledger = sandbox.ledger();
    /// assert_eq!(ledger[0].key(), Some("order-17"));
    /// assert_eq!(ledger[1].key(), None);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// The request's method.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// client.get(sandbox.url("/mandates/7")).send().await?; // leaves no line
    /// client.delete(sandbox.url("/mandates/7")).send().await?;
    /// assert_eq!(sandbox.ledger()[0].method(), "DELETE");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The request's path, with its query.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// client.post(sandbox.url("/payments?dry=no")).body("{}").send().await?;
    /// assert_eq!(sandbox.ledger()[0].path(), "/payments?dry=no");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The request's body, as it was sent.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// client.post(sandbox.url("/payments")).body(r#"{"amount": 4999}"#).send().await?;
    /// assert_eq!(&sandbox.ledger()[0].body()[..], br#"{"amount": 4999}"#);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// When, on the sandbox's clock.
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
    /// let day = Duration::from_secs(24 * 60 * 60);
    /// for _ in 0..2 {
    ///     client.post(sandbox.url("/payments")).body("{}").send().await?;
    ///     sandbox.advance(day);
    /// }
    /// let ledger = sandbox.ledger();
    /// assert!(ledger[1].at() >= ledger[0].at() + day);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn at(&self) -> SystemTime {
        self.at
    }

    /// The id it was given: `pay_1`, `pay_2`, ...
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// let paid = client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// let ledger = sandbox.ledger();
    /// assert_eq!(ledger[0].id(), "pay_1");
    /// assert!(paid.text().contains(ledger[0].id()));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The [number](super::SeenRequest::number) of the request that caused it.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next([Fault::status(503), Fault::answer_lost()]);
    /// client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// // The first was turned away, the second is what paid, the third was a replay.
    /// assert_eq!(sandbox.ledger()[0].request(), 2);
    /// assert_eq!(sandbox.requests().len(), 3);
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// let pay = || http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send();
    /// sandbox.fail_next(Fault::crash_after_executing());
    /// assert!(pay().await.is_err());
    /// sandbox.advance(Duration::from_secs(30)); // the lock of the dead handler is stale
    /// pay().await?;
    /// let doubles = sandbox.ledger().iter().map(|done| done.is_double()).collect::<Vec<_>>();
    /// assert_eq!(doubles, [false, true]);
    /// # Ok(())
    /// # }
    /// ```
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
