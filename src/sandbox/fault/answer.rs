//! Faults of the answer to a request that was served.

use super::super::plan::{At, Ending, Mangle, Plan};
use super::Fault;
use std::time::Duration;

/// Served, but the answer gets lost or damaged.
impl Fault {
    /// Nothing goes wrong. To place faults at later requests.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// // The token is fetched well, and the payment fails.
    /// sandbox.fail_next([Fault::none(), Fault::status(503)]);
    /// assert_eq!(http.get(sandbox.url("/token")).send().await?.status(), 200);
    /// assert_eq!(http.post(sandbox.url("/payments")).send().await?.status(), 503);
    /// # Ok(())
    /// # }
    /// ```
    pub fn none() -> Self {
        Self::new("none", Plan::default())
    }

    /// The client sees the connection close (FIN) without a byte. Served, so a new key is executed
    /// and its answer stored. With [`with_reset`](Self::with_reset): RST.
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
    /// assert!(paid.is_replay(), "the answer that was lost");
    /// assert_eq!((sandbox.requests().len(), sandbox.executions()), (2, 1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn answer_lost() -> Self {
        Self::cut("answer_lost", At::Start, Ending::Broken)
    }

    /// The client sees the first `n` bytes of the head (at most all but one), then FIN. Served.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::head_cut(12)); // "HTTP/1.1 201"
    /// let sent = http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send().await;
    /// assert!(sent.is_err());
    /// assert_eq!(sandbox.executions(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn head_cut(n: usize) -> Self {
        Self::cut("head_cut", At::Head(n), Ending::Broken)
    }

    /// The client sees the head with the body's length, `n` bytes of the body (at most all but
    /// one), then FIN. Served. With [`chunked`](Self::chunked): `n` bytes out of the only chunk, or
    /// all of them without the chunk that ends a body. An answer that has no body arrives whole.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::body_cut(5));
    /// let answer = http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send().await?;
    /// assert_eq!(answer.status(), 201);
    /// assert!(answer.text().await.is_err(), "the length tells that bytes are missing");
    /// # Ok(())
    /// # }
    /// ```
    pub fn body_cut(n: usize) -> Self {
        Self::cut("body_cut", At::Body(n), Ending::Broken)
    }

    /// The client sees a head without any length, `n` bytes of the body (at most all), then FIN:
    /// nothing tells it that bytes are missing. Served.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::unframed_cut(5));
    /// let answer = http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send().await?;
    /// assert_eq!(answer.text().await?, r#"{"id""#, "and no error");
    /// assert_eq!(sandbox.executions(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn unframed_cut(n: usize) -> Self {
        Self::cut("unframed_cut", At::Body(n), Ending::Broken).unframed()
    }

    /// The client sees bytes that are not HTTP, then FIN. Served.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().max_attempts(1).base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::garbled_head());
    /// // A client with `max_attempts(1)`.
    /// let error = client.post(sandbox.url("/payments")).body("{}").send().await.unwrap_err();
    /// assert_eq!(error.attempts()[0].failure(), Some(oncekey::Failure::Broken));
    /// assert_eq!(error.effect(), oncekey::Effect::Unknown);
    /// assert_eq!(sandbox.executions(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn garbled_head() -> Self {
        Self::new("garbled_head", Plan::default()).garbled()
    }

    /// The client sees the whole answer, `bytes` of it per `tick` of the sandbox's clock, then FIN
    /// (announced). Served.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::drip(16, Duration::from_millis(1)));
    /// let answer = http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send().await?;
    /// assert_eq!(answer.headers()["connection"], "close");
    /// assert_eq!(answer.text().await?, r#"{"id":"pay_1","status":"captured"}"#, "slow, and whole");
    /// # Ok(())
    /// # }
    /// ```
    pub fn drip(bytes: usize, tick: Duration) -> Self {
        Self::new("drip", Plan::default()).dripping(bytes, tick)
    }

    /// The client sees the answer's body filled up with blanks to `n` bytes, its length announced.
    /// It is still the same JSON. Served.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().max_response_bytes(64 * 1024).http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::oversized(1024 * 1024));
    /// // A client with `max_response_bytes(64 * 1024)`.
    /// let error = client.post(sandbox.url("/payments")).body("{}").send().await.unwrap_err();
    /// assert_eq!(error.kind(), oncekey::ErrorKind::TooLarge);
    /// assert_eq!(error.effect(), oncekey::Effect::Applied);
    /// # Ok(())
    /// # }
    /// ```
    pub fn oversized(n: usize) -> Self {
        Self::mangled("oversized", Mangle::Pad(n))
    }

    /// The client sees the first `n` bytes of the answer's body (at most all but one) and a
    /// `Content-Length` of just that: whole by its framing, cut by its content. Served.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::truncated_json(5));
    /// let answer = http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send().await?;
    /// assert_eq!(answer.content_length(), Some(5));
    /// assert_eq!(answer.text().await?, r#"{"id""#);
    /// # Ok(())
    /// # }
    /// ```
    pub fn truncated_json(n: usize) -> Self {
        Self::mangled("truncated_json", Mangle::Truncate(n))
    }

    /// The client sees a body that begins and ends as JSON does and is not any in between, its
    /// length right. Served.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::invalid_json());
    /// let answer = http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send().await?;
    /// let body = answer.text().await?;
    /// assert!(body.starts_with('{') && body.ends_with('}'));
    /// assert!(serde_json::from_str::<serde_json::Value>(&body).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn invalid_json() -> Self {
        Self::mangled("invalid_json", Mangle::Garble)
    }

    /// The client sees the whole answer, with no word of closing, and then FIN: the next request
    /// on this connection races with it. Served.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::closed_after_answer());
    /// for _ in 0..2 {
    ///     client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// }
    /// assert_eq!(sandbox.executions(), 2, "however the race ended");
    /// # Ok(())
    /// # }
    /// ```
    pub fn closed_after_answer() -> Self {
        Self::cut("closed_after_answer", At::End, Ending::Fin)
    }
}
