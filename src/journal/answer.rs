use std::fmt;

use http::{HeaderMap, StatusCode};

/// An answer as it is kept: without `Set-Cookie` and other headers that are
/// never stored.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl StoredAnswer {
    /// An answer of these parts.
    ///
    /// ```
    /// use oncekey::journal::StoredAnswer;
    /// use oncekey::reqwest::{StatusCode, header::HeaderMap};
    ///
    /// let answer = StoredAnswer::new(StatusCode::CREATED, HeaderMap::new(), br#"{"id":"pay_7"}"#.to_vec());
    /// assert_eq!(format!("{answer:?}"), "StoredAnswer { status: 201, body_len: 14, .. }"); // no body in logs
    /// ```
    pub const fn new(status: StatusCode, headers: HeaderMap, body: Vec<u8>) -> Self {
        Self { status, headers, body }
    }

    /// The status.
    ///
    /// ```
    /// use oncekey::journal::codec;
    ///
    /// let answer = codec::decode_answer(b"{\"v\":1,\"status\":503,\"headers\":[]}\nupstream is down")?;
    /// assert_eq!(answer.status(), 503);
    /// assert!(answer.status().is_server_error());
    /// # Ok::<(), oncekey::journal::JournalError>(())
    /// ```
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// The headers.
    ///
    /// ```
    /// use oncekey::Client;
    /// use oncekey::journal::Memory;
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # let sandbox = Sandbox::start().await?;
    /// # sandbox.fail_next([Fault::status(422).header("x-request-id", "7f3a").header("set-cookie", "session=1")]);
    /// # let client = Client::builder().journal(Memory::new()).build()?;
    /// # let _ = client.post(sandbox.url("/payments")).operation("order-7").body("{}").send().await;
    /// let record = client.lookup("order-7").await?.unwrap();
    /// let answer = record.last_answer().unwrap();
    /// assert_eq!(answer.headers()["x-request-id"], "7f3a"); // for the provider's support
    /// assert!(!answer.headers().contains_key("set-cookie"));
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    pub const fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The body, decoded; for an answer that was cut, as much as came.
    ///
    /// ```
    /// use oncekey::Client;
    /// use oncekey::journal::Memory;
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # let sandbox = Sandbox::start().await?;
    /// # sandbox.fail_next([Fault::status(422).json(r#"{"code":"INVALID_IBAN"}"#)]);
    /// # let client = Client::builder().journal(Memory::new()).build()?;
    /// # let _ = client.post(sandbox.url("/payments")).operation("order-7").body("{}").send().await;
    /// let record = client.lookup("order-7").await?.unwrap();
    /// assert_eq!(record.last_answer().unwrap().body(), br#"{"code":"INVALID_IBAN"}"#);
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    pub fn body(&self) -> &[u8] {
        &self.body
    }
}

impl fmt::Debug for StoredAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredAnswer")
            .field("status", &self.status)
            .field("body_len", &self.body.len())
            .finish_non_exhaustive()
    }
}
