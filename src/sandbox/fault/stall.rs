//! Faults that keep the client waiting.

use super::super::plan::{At, Ending, Phase};
use super::Fault;

/// Stalls: the client sees nothing more until it gives up, or until
/// [`lasting`](Self::lasting) is over and the request goes on as if nothing had been.
impl Fault {
    /// Stalls with the body not read. Nothing is executed.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::stall_before_reading());
    /// let call = http.post(sandbox.url("/payments")).body("{}").timeout(Duration::from_millis(100));
    /// assert!(call.send().await.unwrap_err().is_timeout());
    /// assert_eq!(sandbox.executions(), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn stall_before_reading() -> Self {
        Self::stall("stall_before_reading", Phase::BeforeReading)
    }

    /// Stalls with the request read and its key not looked at: it waits in some queue. Nothing is
    /// executed; with [`lasting`](Self::lasting) it is served afterwards even if the client has
    /// gone, which is how a request arrives later than its own retry.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// let minute = Duration::from_secs(60);
    /// sandbox.fail_next(Fault::stall_before_executing().lasting(minute));
    /// let call = tokio::spawn(http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send());
    /// sandbox.until(|s| s.requests().len() == 1).await;
    /// call.abort(); // the client has given up
    /// sandbox.advance(minute);
    /// sandbox.until(|s| s.executions() == 1).await; // and is served all the same
    /// # Ok(())
    /// # }
    /// ```
    pub fn stall_before_executing() -> Self {
        Self::stall("stall_before_executing", Phase::BeforeExecuting)
    }

    /// Stalls with the key locked: a handler that hangs. Nothing is executed, and the key is in
    /// progress until it is reclaimed; with [`lasting`](Self::lasting) the handler works on after
    /// that, client or no client, reclaimed or not. A request that reaches no handler (replayed,
    /// refused) is answered.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::stall_while_executing().lasting(Duration::from_secs(10)));
    /// let pay = || http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send();
    /// let first = tokio::spawn(pay());
    /// sandbox.until(|s| s.at_work() == 1).await;
    /// assert_eq!(pay().await?.status(), 409, "in progress");
    /// sandbox.advance(Duration::from_secs(10));
    /// assert_eq!(first.await??.status(), 201);
    /// # Ok(())
    /// # }
    /// ```
    pub fn stall_while_executing() -> Self {
        Self::stall("stall_while_executing", Phase::WhileExecuting)
    }

    /// Stalls before the first byte of the answer. Served.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::stall_after_executing());
    /// let call = client.post(sandbox.url("/payments")).body("{}").attempt_timeout(Duration::from_millis(500));
    /// assert!(call.send().await?.is_replay());
    /// assert_eq!(sandbox.executions(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn stall_after_executing() -> Self {
        Self::cut("stall_after_executing", At::Start, Ending::Stall)
    }

    /// Stalls after `n` bytes of the head (at most all but one). Served.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::stall_in_head(12).lasting(Duration::from_secs(60)));
    /// let call = tokio::spawn(http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send());
    /// sandbox.until(|s| s.requests().first().is_some_and(|seen| seen.status().is_some())).await;
    /// assert!(!call.is_finished());
    /// sandbox.advance(Duration::from_secs(60)); // the rest of it comes
    /// assert_eq!(call.await??.status(), 201);
    /// # Ok(())
    /// # }
    /// ```
    pub fn stall_in_head(n: usize) -> Self {
        Self::cut("stall_in_head", At::Head(n), Ending::Stall)
    }

    /// Stalls after the head and `n` bytes of the body (at most all but one). Served.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().max_attempts(1).base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::stall_in_body(5));
    /// // A client with `max_attempts(1)`.
    /// let call = client.post(sandbox.url("/payments")).body("{}").attempt_timeout(Duration::from_millis(500));
    /// let error = call.send().await.unwrap_err();
    /// assert_eq!(error.attempts()[0].failure(), Some(oncekey::Failure::StalledBody));
    /// assert_eq!(sandbox.executions(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn stall_in_body(n: usize) -> Self {
        Self::cut("stall_in_body", At::Body(n), Ending::Stall)
    }
}
