//! Faults of the handler, and of what hands it the request.

use super::super::plan::Route;
use super::Fault;

/// Around the handler.
impl Fault {
    /// A proxy delivers the request twice at once; the client sees the second copy's answer. Both
    /// are served: the first is executed, the second finds it in progress (or waits for it). A
    /// server that ignores keys executes both. [`requests`](super::super::Sandbox::requests) shows both.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::duplicate());
    /// let answer = http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send().await?;
    /// assert_eq!(answer.status(), 409, "the second copy finds the first in progress");
    /// sandbox.until(|s| s.executions() == 1).await;
    /// assert_eq!(sandbox.requests().len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn duplicate() -> Self {
        Self::route("duplicate", Route::Twice)
    }

    /// The handler dies with the key locked, before it executed. The client sees FIN without a
    /// byte; the key stays in progress until it is reclaimed, and is executed then.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// let pay = || http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send();
    /// sandbox.fail_next(Fault::crash_before_executing());
    /// assert!(pay().await.is_err());
    /// assert_eq!(pay().await?.status(), 409);
    /// sandbox.advance(Duration::from_secs(30)); // reclaimed
    /// assert_eq!(pay().await?.status(), 201);
    /// assert_eq!(sandbox.executions(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn crash_before_executing() -> Self {
        let route = Route::Crash { executes: false };
        Self::route("crash_before_executing", route)
    }

    /// The handler dies with the key locked, after it executed and before its answer was stored.
    /// The client sees FIN without a byte; the key stays in progress until it is reclaimed, and is
    /// executed again then: the server's own [double](super::super::Execution::is_double).
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
    /// sandbox.advance(Duration::from_secs(30)); // reclaimed
    /// assert_eq!(pay().await?.status(), 201);
    /// assert_eq!(sandbox.executions(), 2, "the server broke its own promise");
    /// # Ok(())
    /// # }
    /// ```
    pub fn crash_after_executing() -> Self {
        let route = Route::Crash { executes: true };
        Self::route("crash_after_executing", route)
    }
}
