use std::fmt;

use bytes::Bytes;
use http::Method;
use http::header::{HeaderName, HeaderValue};
use url::Url;

use crate::fingerprint::Fingerprint;
use crate::submission::Shown;

/// A request as it is kept: without its key's header and its credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredRequest {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: StoredBody,
}

impl StoredRequest {
    /// A request of these parts.
    ///
    /// ```
    /// use oncekey::journal::{StoredBody, StoredRequest};
    /// use oncekey::reqwest::Method;
    ///
    /// let url = "https://api.example/payments?card=4111111111111111".parse()?;
    /// let request = StoredRequest::new(Method::POST, url, vec![], StoredBody::Kept(r#"{"amount":450}"#.into()));
    /// let shown = "StoredRequest { method: POST, url: https://api.example/payments, .. }";
    /// assert_eq!(format!("{request:?}"), shown); // neither query nor body
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn new(method: Method, url: Url, headers: Vec<(HeaderName, HeaderValue)>, body: StoredBody) -> Self {
        Self { method, url, headers, body }
    }

    /// The method.
    ///
    /// ```
    /// use oncekey::journal::codec;
    ///
    /// # let kept = br#"{"v":1,"method":"PUT","url":"https://api.example/limits/7","headers":[],"body":"none"}"#;
    /// # let kept = [&kept[..], b"\n"].concat();
    /// let request = codec::decode_request(&kept)?;
    /// assert_eq!(request.method(), "PUT");
    /// assert!(request.method().is_idempotent());
    /// # Ok::<(), oncekey::journal::JournalError>(())
    /// ```
    pub const fn method(&self) -> &Method {
        &self.method
    }

    /// The URL.
    ///
    /// ```
    /// use oncekey::journal::{Journal, Memory};
    /// # use oncekey::{Client, Retry};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let journal = Memory::new();
    /// # let client = Client::builder().journal(journal.clone()).retry(Retry::default().max_attempts(1)).build()?;
    /// # let payment = client.post("http://127.0.0.1:1/payments").query(&[("expand", "fees")]);
    /// let _ = payment.operation("order-7").send().await;
    /// let stored = journal.load(&"order-7".into()).await?.unwrap();
    /// assert_eq!(stored.request().unwrap().url().query(), Some("expand=fees")); // whole, as it was sent
    /// # Ok(())
    /// # }
    /// ```
    pub const fn url(&self) -> &Url {
        &self.url
    }

    /// The headers, in their order.
    ///
    /// ```
    /// use oncekey::journal::{Journal, Memory};
    /// # use oncekey::{Client, Retry};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let journal = Memory::new();
    /// # let client = Client::builder().journal(journal.clone()).retry(Retry::default().max_attempts(1)).build()?;
    /// # let payment = client.post("http://127.0.0.1:1/payments");
    /// let payment = payment.bearer_auth("secret").header("x-merchant", "shop_1");
    /// let _ = payment.operation("order-7").send().await;
    /// let stored = journal.load(&"order-7".into()).await?.unwrap();
    /// let names: Vec<_> = stored.request().unwrap().headers().iter().map(|(name, _)| name.as_str()).collect();
    /// assert_eq!(names, ["x-merchant"]); // credentials are not on record
    /// # Ok(())
    /// # }
    /// ```
    pub fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        &self.headers
    }

    /// The body.
    ///
    /// ```
    /// use oncekey::journal::StoredBody;
    /// # use oncekey::journal::StoredRequest;
    /// # use oncekey::reqwest::Method;
    ///
    /// # let url = "https://api.example/payments".parse()?;
    /// # let request = StoredRequest::new(Method::POST, url, vec![], StoredBody::Kept("amount=450".into()));
    /// let text = match request.body() {
    ///     StoredBody::Kept(bytes) => String::from_utf8_lossy(bytes),
    ///     StoredBody::LeftOut(_) => "was not to be stored".into(),
    ///     StoredBody::None => "none".into(),
    /// };
    /// assert_eq!(text, "amount=450");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn body(&self) -> &StoredBody {
        &self.body
    }
}

impl fmt::Debug for StoredRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredRequest")
            .field("method", &self.method)
            .field("url", &Shown(&self.url))
            .finish_non_exhaustive()
    }
}

/// A request's body as it is kept.
#[derive(Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)] // complete by definition
pub enum StoredBody {
    /// There is none.
    None,
    /// These bytes.
    Kept(Bytes),
    /// There is one, and it was not to be stored: this tells its bytes from others.
    LeftOut(Fingerprint),
}

impl fmt::Debug for StoredBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Kept(_) => "Kept(..)",
            Self::LeftOut(_) => "LeftOut",
        })
    }
}
