use std::fmt;

use http::{HeaderMap, StatusCode};

use crate::attempt::{Attempt, Table};
use crate::profile::Replay;
use crate::submission::IdempotencyKey;

/// The final answer of an operation that was carried out, read to its end.
///
/// What the server decided is in the body: a declined payment is carried out
/// too. As [`Error::response`](crate::Error::response) it is the last complete
/// head of the run, with as much of its body as came.
#[must_use]
pub struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) replay: Replay,
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) attempts: Vec<Attempt>,
    #[cfg(feature = "json")]
    pub(crate) applied: bool,
    #[cfg(feature = "journal")]
    pub(crate) unrecorded: Option<Box<crate::journal::JournalError>>,
}

impl Response {
    /// The status.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).build()?;
    /// let response = client.post(sandbox.url("/payments")).send().await?;
    /// assert_eq!(response.status(), 201);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// The headers.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(oncekey::Retry::default().base_delay(Duration::ZERO)).build()?;
    /// sandbox.fail_next(Fault::none().header("Request-Id", "req_7"));
    /// let response = client.post(sandbox.url("/payments")).send().await?;
    /// assert_eq!(response.headers()["request-id"], "req_7");
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub const fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The body, decoded.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).build()?;
    /// let response = client.post(sandbox.url("/payments")).send().await?;
    /// let (receipt, kept) = (std::env::temp_dir().join("receipt.json"), response.bytes());
    /// # let receipt = receipt.with_extension(std::process::id().to_string());
    /// std::fs::write(&receipt, kept)?;
    /// assert_eq!(std::fs::read(&receipt)?, br#"{"id":"pay_1","status":"captured"}"#);
    /// # std::fs::remove_file(receipt)?;
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn bytes(&self) -> &[u8] {
        &self.body
    }

    /// The body as text; what is not UTF-8 becomes U+FFFD.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).build()?;
    /// let response = client.post(sandbox.url("/payments")).body(r#"{"amount":4999}"#).send().await?;
    /// assert_eq!(response.text(), r#"{"id":"pay_1","status":"captured","amount":4999}"#);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body from JSON, with a byte order mark before it or without.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).build()?;
    /// #[derive(serde::Deserialize)]
    /// struct Payment {
    ///     id: String,
    ///     amount: u64,
    /// }
    ///
    /// let response = client.post(sandbox.url("/payments")).body(r#"{"amount":4999}"#).send().await?;
    /// let payment: Payment = response.json()?;
    /// assert_eq!((payment.id.as_str(), payment.amount), ("pay_1", 4999));
    ///
    /// let wrong = response.json::<Vec<u64>>().unwrap_err();
    /// assert!(wrong.to_string().starts_with("the operation took effect, but"), "{wrong}");
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    ///
    /// [`BodyError`] where it is not the JSON of a `T`.
    ///
    /// # Effect
    ///
    /// The operation took effect all the same: this error can never mean "not
    /// paid". Look at [`Response::bytes`] before asking again.
    #[cfg(feature = "json")]
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T, BodyError> {
        serde_json::from_slice(crate::profile::without_bom(&self.body)).map_err(|error| BodyError {
            applied: self.applied,
            is_json: error.is_data(),
            line: error.line(),
            column: error.column(),
        })
    }

    /// Whether this answer is a replay: the server had carried out the
    /// operation before this attempt, and says so.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(oncekey::Retry::default().base_delay(Duration::ZERO)).build()?;
    /// sandbox.fail_next(Fault::answer_lost());
    /// let response = client.post(sandbox.url("/payments")).send().await?;
    /// assert!(response.is_replay()); // of the answer that was lost
    /// assert_eq!(sandbox.executions(), 1);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub const fn is_replay(&self) -> bool {
        matches!(self.replay, Replay::Yes)
    }

    /// Whether this answer is a replay, as far as the API tells.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).build()?;
    /// use oncekey::{Client, Profile, Replay};
    ///
    /// let response = client.post(sandbox.url("/payments")).send().await?;
    /// assert_eq!(response.replay(), Replay::Unmarked); // of an API without a preset nobody knows
    /// let verifika = Client::builder().profile(Profile::verifika()).build()?;
    /// let response = verifika.post(sandbox.url("/payments")).send().await?;
    /// assert_eq!(response.replay(), Replay::No); // this one marks each
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub const fn replay(&self) -> Replay {
        self.replay
    }

    /// The key it was carried out under, if it had one.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).build()?;
    /// let response = client.post(sandbox.url("/payments")).send().await?;
    /// let key = response.key().expect("a POST has one");
    /// assert_eq!(sandbox.executions_of(key), 1);
    /// assert!(client.get(sandbox.url("/payments/pay_1")).send().await?.key().is_none());
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub const fn key(&self) -> Option<&IdempotencyKey> {
        self.key.as_ref()
    }

    /// The attempts of this run that led here, in their order: none for an
    /// answer that was on record already.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(oncekey::Retry::default().base_delay(Duration::ZERO)).build()?;
    /// sandbox.fail_next(Fault::status(503).times(2));
    /// let response = client.post(sandbox.url("/payments")).send().await?;
    /// assert_eq!(response.attempts().len(), 3);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// Those attempts as a table, with a picture of their time; see [`Attempt::table`].
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(oncekey::Retry::default().base_delay(Duration::ZERO)).build()?;
    /// sandbox.fail_next([Fault::answer_lost(), Fault::status(503)]);
    /// let response = client.post(sandbox.url("/payments")).send().await?;
    /// let table = response.table().to_string();
    /// let rows: Vec<&str> = table.lines().skip(1).map(|row| row[..33].trim_end()).collect();
    /// assert_eq!(rows, [" 1 first closed          in doubt", " 2 retry 503             in doubt", " 3 retry 201             applied"]);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn table(&self) -> Table<'_> {
        Attempt::table(&self.attempts)
    }

    /// Whether this answer is on record, for a client with a journal.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::Sandbox; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).journal(oncekey::journal::Memory::new()).build()?;
    /// let response = client.post(sandbox.url("/payments")).operation("order-7").send().await?;
    /// match response.recorded() {
    ///     Ok(()) => assert!(client.lookup("order-7").await?.is_some()),
    ///     Err(why) => eprintln!("paid, and not on record: {why}"),
    /// }
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    ///
    /// What kept it from being written. The operation was carried out all the
    /// same; asked again, under the same id, the server is asked for its replay.
    #[cfg(feature = "journal")]
    #[cfg_attr(docsrs, doc(cfg(feature = "journal")))]
    pub fn recorded(&self) -> Result<(), &crate::journal::JournalError> {
        self.unrecorded.as_deref().map_or(Ok(()), Err)
    }
}

/// Neither header values nor anything of the body is printed.
impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("body_len", &self.body.len())
            .field("replay", &self.replay)
            .field("key", &self.key)
            .field("attempts", &self.attempts.len())
            .finish_non_exhaustive()
    }
}

/// A body that could not be read as what was asked for: where, and not what
/// stands there, which may be secret.
#[cfg(feature = "json")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyError {
    applied: bool,
    is_json: bool,
    line: usize,
    column: usize,
}

#[cfg(feature = "json")]
impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let about = if self.applied { "the operation took effect, but " } else { "" };
        let what = if self.is_json { "is JSON of another shape than was asked for" } else { "is not JSON" };
        write!(f, "{about}its answer {what}, at line {} column {}", self.line, self.column)
    }
}

#[cfg(feature = "json")]
impl std::error::Error for BodyError {}
