//! How a faulty answer is delivered.

use super::super::plan::{At, Ending, Framing, Route};
use super::Fault;
use std::time::Duration;

/// How it is delivered.
impl Fault {
    /// The body in one chunk, without a `Content-Length`. Then FIN, announced.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::none().chunked());
    /// let answer = http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send().await?;
    /// assert_eq!(answer.headers()["transfer-encoding"], "chunked");
    /// assert_eq!(answer.text().await?, r#"{"id":"pay_1","status":"captured"}"#);
    /// # Ok(())
    /// # }
    /// ```
    pub fn chunked(mut self) -> Self {
        self.plan.framing = Framing::Chunked;
        self
    }

    /// The body without any length, ended by FIN.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::none().unframed());
    /// let answer = http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send().await?;
    /// assert_eq!(answer.content_length(), None);
    /// assert_eq!(answer.text().await?, r#"{"id":"pay_1","status":"captured"}"#);
    /// # Ok(())
    /// # }
    /// ```
    pub fn unframed(mut self) -> Self {
        self.plan.framing = Framing::Unframed;
        self
    }

    /// Cut as by [`head_cut`](Self::head_cut).
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::status(503).with_head_cut(12));
    /// assert!(http.post(sandbox.url("/payments")).body("{}").send().await.is_err());
    /// assert_eq!(sandbox.executions(), 0, "half a head of a gateway's");
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_head_cut(self, n: usize) -> Self {
        self.with_cut(At::Head(n), Ending::Broken)
    }

    /// Cut as by [`body_cut`](Self::body_cut).
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::status(402).with_body_cut(4));
    /// let paid = client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// assert_eq!(paid.attempts()[0].failure(), Some(oncekey::Failure::CutBody));
    /// assert_eq!(paid.attempts()[1].status().map(|s| s.as_u16()), Some(201));
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_body_cut(self, n: usize) -> Self {
        self.with_cut(At::Body(n), Ending::Broken)
    }

    /// Stalled as by [`stall_after_executing`](Self::stall_after_executing).
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// let hung = Fault::status(503).with_stall_before_head().lasting(Duration::from_secs(60));
    /// sandbox.fail_next(hung);
    /// let call = tokio::spawn(http.post(sandbox.url("/payments")).body("{}").send());
    /// sandbox.until(|s| s.requests().first().is_some_and(|seen| seen.status().is_some())).await;
    /// sandbox.advance(Duration::from_secs(60));
    /// assert_eq!(call.await??.status(), 503);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_stall_before_head(self) -> Self {
        self.with_cut(At::Start, Ending::Stall)
    }

    /// Stalled as by [`stall_in_head`](Self::stall_in_head).
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::status(429).retry_after("60").with_stall_in_head(20));
    /// let call = http.post(sandbox.url("/payments")).body("{}").timeout(Duration::from_millis(100));
    /// assert!(call.send().await.unwrap_err().is_timeout());
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_stall_in_head(self, n: usize) -> Self {
        self.with_cut(At::Head(n), Ending::Stall)
    }

    /// Stalled as by [`stall_in_body`](Self::stall_in_body).
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::html(502).with_stall_in_body(15).lasting(Duration::from_secs(60)));
    /// let answer = http.post(sandbox.url("/payments")).body("{}").send().await?;
    /// assert_eq!(answer.status(), 502);
    /// sandbox.advance(Duration::from_secs(60));
    /// assert!(answer.text().await?.starts_with("<!DOCTYPE html><html>"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_stall_in_body(self, n: usize) -> Self {
        self.with_cut(At::Body(n), Ending::Stall)
    }

    /// Ends the connection by RST in place of FIN or of a stall; an answer that was not cut is
    /// followed by it.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next([Fault::answer_lost().with_reset(), Fault::body_cut(5).with_reset()]);
    /// let paid = client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// assert_eq!((sandbox.requests().len(), sandbox.executions()), (3, 1));
    /// assert!(paid.is_replay());
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_reset(mut self) -> Self {
        if matches!(self.plan.route, Route::Shut(_)) {
            self.plan.route = Route::Shut(Ending::Reset);
        }
        let at = self.plan.cut.map_or(At::End, |cut| cut.at);
        self.with_cut(at, Ending::Reset)
    }

    /// Ends a stall after this time on the sandbox's clock, and goes on. Default: never. It counts
    /// from the moment in which [`requests`](super::super::Sandbox::requests) shows the request (stalls
    /// before executing), [`at_work`](super::super::Sandbox::at_work) its handler, or its
    /// [`status`](super::super::SeenRequest::status) the answer: [`advance`](super::super::Sandbox::advance) from
    /// then on ends it.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// let second = Duration::from_secs(1);
    /// sandbox.fail_next(Fault::stall_before_reading().lasting(second));
    /// let call = tokio::spawn(http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send());
    /// sandbox.until(|s| s.requests().len() == 1).await;
    /// sandbox.advance(second);
    /// assert_eq!(call.await??.status(), 201, "late, as if nothing had been");
    /// # Ok(())
    /// # }
    /// ```
    pub fn lasting(mut self, duration: Duration) -> Self {
        self.plan.lasting = Some(duration);
        self
    }

    /// Written `bytes` at a time (at least one), with a `tick` of the sandbox's clock in between.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::status(500).dripping(8, Duration::from_millis(1)));
    /// let answer = http.post(sandbox.url("/payments")).body("{}").send().await?;
    /// assert_eq!(answer.text().await?, r#"{"message":"Internal Server Error"}"#);
    /// assert_eq!(sandbox.executions(), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn dripping(mut self, bytes: usize, tick: Duration) -> Self {
        self.plan.drip = Some((bytes.max(1), tick));
        self
    }

    /// Bytes that are not HTTP in place of the whole answer.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::status(503).garbled().times(2));
    /// for _ in 0..2 {
    ///     assert!(http.post(sandbox.url("/payments")).body("{}").send().await.is_err());
    /// }
    /// assert_eq!(sandbox.executions(), 0, "a broken gateway's, unlike `garbled_head`");
    /// # Ok(())
    /// # }
    /// ```
    pub fn garbled(mut self) -> Self {
        self.plan.garbled = true;
        self
    }
}
