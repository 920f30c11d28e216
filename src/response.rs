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
    /// ```no_run
    /// # async fn example(client: oncekey::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let response = client.post("https://api.example/payments").body("x").send().await?;
    /// println!("{}", response.status());
    /// # Ok(())
    /// # }
    /// ```
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// The headers.
    ///
    /// ```no_run
    /// # async fn example(client: oncekey::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let response = client.post("https://api.example/payments").body("x").send().await?;
    /// let id = response.headers().get("request-id");
    /// # let _ = id;
    /// # Ok(())
    /// # }
    /// ```
    pub const fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The body, decoded.
    ///
    /// ```no_run
    /// # async fn example(client: oncekey::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let response = client.post("https://api.example/payments").body("x").send().await?;
    /// std::fs::write("receipt.json", response.bytes())?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn bytes(&self) -> &[u8] {
        &self.body
    }

    /// The body as text; what is not UTF-8 becomes U+FFFD.
    ///
    /// ```no_run
    /// # async fn example(client: oncekey::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let response = client.post("https://api.example/payments").body("x").send().await?;
    /// println!("{}", response.text());
    /// # Ok(())
    /// # }
    /// ```
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body from JSON.
    ///
    /// ```no_run
    /// # async fn example(client: oncekey::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let response = client.post("https://api.example/payments").body("x").send().await?;
    /// let receipt: std::collections::HashMap<String, u64> = response.json()?;
    /// # let _ = receipt;
    /// # Ok(())
    /// # }
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
        serde_json::from_slice(&self.body).map_err(|error| BodyError {
            applied: self.applied,
            is_json: error.is_data(),
            line: error.line(),
            column: error.column(),
        })
    }

    /// Whether this answer is a replay: the server had carried out the
    /// operation before this attempt, and says so.
    ///
    /// ```no_run
    /// # async fn example(client: oncekey::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let response = client.post("https://api.example/payments").body("x").send().await?;
    /// if response.is_replay() {
    ///     println!("it was paid before");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub const fn is_replay(&self) -> bool {
        matches!(self.replay, Replay::Yes)
    }

    /// Whether this answer is a replay, as far as the API tells.
    ///
    /// ```no_run
    /// # async fn example(client: oncekey::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let response = client.post("https://api.example/payments").body("x").send().await?;
    /// println!("{:?}", response.replay());
    /// # Ok(())
    /// # }
    /// ```
    pub const fn replay(&self) -> Replay {
        self.replay
    }

    /// The key it was carried out under, if it had one.
    ///
    /// ```no_run
    /// # async fn example(client: oncekey::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let response = client.post("https://api.example/payments").body("x").send().await?;
    /// let key = response.key().map(|key| key.as_str());
    /// # let _ = key;
    /// # Ok(())
    /// # }
    /// ```
    pub const fn key(&self) -> Option<&IdempotencyKey> {
        self.key.as_ref()
    }

    /// The attempts of this run that led here, in their order: none for an
    /// answer that was on record already.
    ///
    /// ```no_run
    /// # async fn example(client: oncekey::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let response = client.post("https://api.example/payments").body("x").send().await?;
    /// println!("{} attempts", response.attempts().len());
    /// # Ok(())
    /// # }
    /// ```
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// Those attempts as a table, with a picture of their time; see [`Attempt::table`].
    ///
    /// ```no_run
    /// # async fn example(client: oncekey::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let response = client.post("https://api.example/payments").body("x").send().await?;
    /// println!("{}", response.table());
    /// # Ok(())
    /// # }
    /// ```
    pub fn table(&self) -> Table<'_> {
        Attempt::table(&self.attempts)
    }

    /// Whether this answer is on record, for a client with a journal.
    ///
    /// ```no_run
    /// # async fn example(client: oncekey::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let response = client.post("https://api.example/payments").body("x").send().await?;
    /// if let Err(why) = response.recorded() {
    ///     eprintln!("paid, and not on record: {why}");
    /// }
    /// # Ok(())
    /// # }
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
