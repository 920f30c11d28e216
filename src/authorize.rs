use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;

use bytes::Bytes;
use http::header::{
    ACCEPT, HOST, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, RANGE, TRANSFER_ENCODING,
};
use http::{Method, StatusCode};
use url::Url;

use crate::draft::MOST_HEADERS;
use crate::submission::Submission;

/// Brings the credentials of each attempt: a fresh token, an HMAC signature, a
/// timestamp.
///
/// It runs before every attempt, inside that attempt's timeout, and may set
/// headers and nothing else, so that the bytes of the request stay the same. If
/// it fails, nothing is sent. After a 401 it is asked once more, with
/// [`Parts::previous_status`] telling so.
///
/// A closure without `await` is one too: `.authorize(|parts: &mut Parts<'_>| ..)`.
///
/// ```
/// use std::sync::Mutex;
/// use oncekey::{Authorize, Parts};
///
/// /// Keeps a token until the server turns it down.
/// struct Tokens(Mutex<Option<String>>);
///
/// async fn fetch_token() -> Result<String, std::io::Error> {
///     Ok("fresh".to_owned()) // from your identity provider
/// }
///
/// impl Authorize for Tokens {
///     async fn authorize(&self, parts: &mut Parts<'_>) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
///         let refused = parts.previous_status().is_some_and(|status| status == 401);
///         let kept = self.0.lock().unwrap().clone().filter(|_| !refused);
///         let token = match kept {
///             Some(token) => token,
///             None => fetch_token().await?,
///         };
///         parts.set_header("authorization", format!("Bearer {token}"))?;
///         *self.0.lock().unwrap() = Some(token);
///         Ok(())
///     }
/// }
/// ```
pub trait Authorize: Send + Sync {
    /// Sets the headers of one attempt.
    ///
    /// ```
    /// use oncekey::{Authorize, Client, Effect, ErrorKind, Parts};
    ///
    /// /// A vault that is locked.
    /// struct Locked;
    ///
    /// impl Authorize for Locked {
    ///     async fn authorize(&self, _: &mut Parts<'_>) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    ///         Err("the vault is locked".into())
    ///     }
    /// }
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::builder().authorize(Locked).build()?;
    /// let error = client.post("http://127.0.0.1:1/payments").send().await.unwrap_err();
    /// assert_eq!((error.kind(), error.effect()), (ErrorKind::Authorize, Effect::NotApplied)); // nothing was sent
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Any: the run ends with [`ErrorKind::Authorize`](crate::ErrorKind::Authorize) and this as its source.
    fn authorize(
        &self,
        parts: &mut Parts<'_>,
    ) -> impl Future<Output = Result<(), Box<dyn StdError + Send + Sync>>> + Send;
}

impl<F> Authorize for F
where
    F: Fn(&mut Parts<'_>) -> Result<(), Box<dyn StdError + Send + Sync>> + Send + Sync,
{
    async fn authorize(&self, parts: &mut Parts<'_>) -> Result<(), Box<dyn StdError + Send + Sync>> {
        self(parts)
    }
}

type Authorized<'a> = Pin<Box<dyn Future<Output = Result<(), Box<dyn StdError + Send + Sync>>> + Send + 'a>>;

/// [`Authorize`] behind a pointer.
pub(crate) trait AnyAuthorize: Send + Sync {
    fn authorize<'a>(&'a self, parts: &'a mut Parts<'_>) -> Authorized<'a>;
}

impl<A: Authorize> AnyAuthorize for A {
    fn authorize<'a>(&'a self, parts: &'a mut Parts<'_>) -> Authorized<'a> {
        Box::pin(Authorize::authorize(self, parts))
    }
}

/// One attempt as the [`Authorize`] hook sees it.
pub struct Parts<'a> {
    submission: &'a Submission,
    headers: HeaderMap,
    key_header: &'a HeaderName,
    attempt: u32,
    previous_status: Option<StatusCode>,
    set: Vec<(HeaderName, HeaderValue)>,
}

impl<'a> Parts<'a> {
    pub(crate) fn new(
        submission: &'a Submission,
        key_header: &'a HeaderName,
        attempt: u32,
        previous_status: Option<StatusCode>,
    ) -> Self {
        let mut headers = HeaderMap::with_capacity(submission.headers.len());
        for (name, value) in &submission.headers {
            headers.append(name, value.clone());
        }
        Self { submission, headers, key_header, attempt, previous_status, set: Vec::new() }
    }

    pub(crate) fn into_headers(self) -> Vec<(HeaderName, HeaderValue)> {
        self.set
    }

    /// The method.
    ///
    /// ```
    /// use oncekey::{Client, Parts};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (tell, told) = std::sync::mpsc::channel();
    /// let client = Client::builder()
    ///     .authorize(move |parts: &mut Parts<'_>| {
    ///         if parts.method().is_safe() {
    ///             parts.set_header("authorization", "Bearer read-only")?;
    ///         }
    /// #       tell.send(parts.method().clone())?;
    ///         Ok(())
    ///     })
    /// #   .retry(oncekey::Retry::default().max_attempts(1))
    ///     .build()?;
    /// # let _ = client.post("http://127.0.0.1:1/payments").send().await;
    /// # assert_eq!(told.try_recv()?, "POST");
    /// # Ok(())
    /// # }
    /// ```
    pub const fn method(&self) -> &Method {
        &self.submission.method
    }

    /// The URL, whole.
    ///
    /// ```
    /// use oncekey::{Client, Parts};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (tell, told) = std::sync::mpsc::channel();
    /// let client = Client::builder()
    ///     .authorize(move |parts: &mut Parts<'_>| {
    ///         let (path, query) = (parts.url().path(), parts.url().query().unwrap_or_default());
    ///         let signed = format!("{path}?{query}");
    ///         assert_eq!(signed, "/payments?expand=fees");
    /// #       tell.send(signed)?;
    ///         Ok(())
    ///     })
    /// #   .retry(oncekey::Retry::default().max_attempts(1))
    ///     .build()?;
    /// # let _ = client.post("http://127.0.0.1:1/payments?expand=fees").send().await;
    /// # assert!(told.try_recv().is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub const fn url(&self) -> &Url {
        &self.submission.url
    }

    /// The headers that every attempt sends, the key's included.
    ///
    /// ```
    /// use oncekey::{Client, Parts};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (tell, told) = std::sync::mpsc::channel();
    /// # let key = oncekey::IdempotencyKey::parse("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506")?;
    /// let client = Client::builder()
    ///     .authorize(move |parts: &mut Parts<'_>| {
    ///         // Signed with the rest, so that nobody can exchange it.
    ///         let key = parts.headers()["idempotency-key"].to_str()?;
    ///         assert!(key.contains("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506"));
    /// #       tell.send(key.len())?;
    ///         Ok(())
    ///     })
    /// #   .retry(oncekey::Retry::default().max_attempts(1))
    ///     .build()?;
    /// # let _ = client.post("http://127.0.0.1:1/payments").idempotency_key(key).send().await;
    /// # assert!(told.try_recv().is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub const fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The body's bytes; empty where there is none.
    ///
    /// ```
    /// use hmac::{Hmac, Mac};
    /// use oncekey::{Client, Parts};
    /// use sha2::Sha256;
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (tell, told) = std::sync::mpsc::channel();
    /// let client = Client::builder()
    ///     .authorize(move |parts: &mut Parts<'_>| {
    ///         let mut mac = Hmac::<Sha256>::new_from_slice(b"secret").expect("a key of any length");
    ///         mac.update(parts.body());
    ///         let signature: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    ///         parts.set_header("x-signature", signature)?;
    /// #       tell.send(parts.body().to_vec())?;
    ///         Ok(())
    ///     })
    /// #   .retry(oncekey::Retry::default().max_attempts(1))
    ///     .build()?;
    /// # let _ = client.post("http://127.0.0.1:1/payments").body(r#"{"amount":450}"#).send().await;
    /// # assert_eq!(told.try_recv()?, br#"{"amount":450}"#);
    /// # Ok(())
    /// # }
    /// ```
    pub fn body(&self) -> &[u8] {
        self.submission.body.as_ref().map_or(&[], Bytes::as_ref)
    }

    /// The attempt's number, from 1.
    ///
    /// ```
    /// use oncekey::{Client, Parts};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (tell, told) = std::sync::mpsc::channel();
    /// let client = Client::builder()
    ///     .authorize(move |parts: &mut Parts<'_>| {
    ///         parts.set_header("x-attempt", parts.attempt().to_string())?;
    /// #       tell.send(parts.attempt())?;
    ///         Ok(())
    ///     })
    /// #   .retry(oncekey::Retry::default().max_attempts(2).base_delay(std::time::Duration::from_millis(1)))
    ///     .build()?;
    /// # let _ = client.post("http://127.0.0.1:1/payments").send().await;
    /// # assert_eq!(told.try_iter().collect::<Vec<_>>(), [1, 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The status that the attempt before this one was answered with, if it was.
    ///
    /// ```
    /// use oncekey::{Client, Parts};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # #[cfg(feature = "sandbox")] {
    /// # let sandbox = oncekey::sandbox::Sandbox::builder().require_authorization("Bearer fresh").start().await?;
    /// let client = Client::builder()
    ///     .authorize(|parts: &mut Parts<'_>| {
    ///         let turned_down = parts.previous_status().is_some_and(|status| status == 401);
    ///         parts.set_header("authorization", if turned_down { "Bearer fresh" } else { "Bearer stale" })?;
    ///         Ok(())
    ///     })
    ///     .build()?;
    /// let response = client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// assert_eq!(response.attempts().len(), 2);
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    pub const fn previous_status(&self) -> Option<StatusCode> {
        self.previous_status
    }

    /// Sets a header of this attempt, over the request's own of that name. The
    /// value counts as sensitive.
    ///
    /// ```
    /// use oncekey::{Client, Parts};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (tell, told) = std::sync::mpsc::channel();
    /// let client = Client::builder()
    ///     .authorize(move |parts: &mut Parts<'_>| {
    ///         parts.set_header("authorization", "Bearer fresh")?;
    ///         let refused = parts.set_header("content-type", "text/plain").unwrap_err();
    ///         let why = "the header content-type says what is sent or how the answer is read; set it on the request";
    ///         assert_eq!(refused.to_string(), why);
    /// #       tell.send(why)?;
    ///         Ok(())
    ///     })
    /// #   .retry(oncekey::Retry::default().max_attempts(1))
    ///     .build()?;
    /// # let _ = client.post("http://127.0.0.1:1/payments").send().await;
    /// # assert!(told.try_recv().is_ok());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`HeaderRefused`] for what is no header, and for those that say what is
    /// sent or how the answer is read: the key's, `Content-*`, `Host`,
    /// `Transfer-Encoding`, `Accept`, `Range`, `If-None-Match`,
    /// `If-Modified-Since`.
    pub fn set_header<N, V>(&mut self, name: N, value: V) -> Result<(), HeaderRefused>
    where
        N: TryInto<HeaderName>,
        V: TryInto<HeaderValue>,
    {
        let name = name.try_into().map_err(|_| HeaderRefused { name: None, problem: "is no header name" })?;
        let fixed = [ACCEPT, HOST, IF_MODIFIED_SINCE, IF_NONE_MATCH, RANGE, TRANSFER_ENCODING];
        let problem = if self.set.len() >= MOST_HEADERS {
            "is one too many"
        } else if name == *self.key_header {
            "carries the key, which is the same for every attempt"
        } else if fixed.contains(&name) || name.as_str().starts_with("content-") {
            "says what is sent or how the answer is read; set it on the request"
        } else if let Ok(mut value) = value.try_into() {
            value.set_sensitive(true);
            self.set.push((name, value));
            return Ok(());
        } else {
            "got a value that holds a character which a header cannot"
        };
        Err(HeaderRefused { name: Some(name), problem })
    }
}

impl fmt::Debug for Parts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("submission", self.submission)
            .field("attempt", &self.attempt)
            .field("previous_status", &self.previous_status)
            .finish_non_exhaustive()
    }
}

/// A header that the [`Authorize`] hook may not set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderRefused {
    name: Option<HeaderName>,
    problem: &'static str,
}

impl fmt::Display for HeaderRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "the header {name} {}", self.problem),
            None => write!(f, "what was to be set {}", self.problem),
        }
    }
}

impl StdError for HeaderRefused {}
