//! How often a fault strikes, and who says what the client is told.

use super::super::plan::Route;
use super::Fault;

/// How often, and where a canned answer comes from.
impl Fault {
    /// For `k` requests in a row. Default: one.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::status(503).times(3));
    /// let paid = client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// assert_eq!(paid.attempts().len(), 4);
    /// # Ok(())
    /// # }
    /// ```
    pub fn times(mut self, k: usize) -> Self {
        self.times = k;
        self
    }

    /// A gateway's answer that comes *after* the request was served: the ledger and the key store
    /// hold what really happened, the client sees this instead. For the faults that replace the
    /// answer, and those that cut it off after the request was read; the others are served anyway or
    /// cannot be.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::status(504).executing());
    /// let paid = client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// assert_eq!(paid.attempts()[0].status().map(|s| s.as_u16()), Some(504));
    /// assert!(paid.is_replay(), "the handler's own 201");
    /// assert_eq!(sandbox.executions(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn executing(mut self) -> Self {
        match self.plan.route {
            Route::Gateway => self.plan.route = Route::Behind,
            Route::Handler { .. } => self.plan.route = Route::Handler { executes: true },
            Route::Shut(_) | Route::Through | Route::Behind | Route::Crash { .. } | Route::Twice => {}
        }
        self
    }

    /// The handler's own answer: it executes, says this, and the key store takes it for the real
    /// answer. A success is stored and replayed. An error releases the key, so that a retry executes
    /// again, or is stored and replayed with the mark
    /// ([`store_errors`](super::super::SandboxBuilder::store_errors)).
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// let pay = || http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send();
    /// sandbox.fail_next(Fault::status(202).json(r#"{"id":"pay_1"}"#).from_handler());
    /// assert_eq!(pay().await?.status(), 202);
    /// assert_eq!(pay().await?.status(), 202, "stored, and replayed");
    /// assert_eq!(sandbox.executions(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_handler(mut self) -> Self {
        self.plan.route = Route::Handler { executes: true };
        self
    }

    /// The handler's own answer to something that it refused: as
    /// [`from_handler`](Self::from_handler), but nothing is executed. A declined card, say.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// let declined = r#"{"error":{"code":"card_declined"}}"#;
    /// sandbox.fail_next(Fault::status(402).json(declined).from_handler_without_executing());
    /// let error = client.post(sandbox.url("/payments")).body("{}").send().await.unwrap_err();
    /// assert_eq!(error.effect(), oncekey::Effect::NotApplied);
    /// assert_eq!(sandbox.executions(), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_handler_without_executing(mut self) -> Self {
        self.plan.route = Route::Handler { executes: false };
        self
    }
}
