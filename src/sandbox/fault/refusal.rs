//! Faults before the key store, and what a gateway says there.

use super::super::config::{header_value, status_code};
use super::super::plan::{Ending, Route};
use super::Fault;
use bytes::Bytes;
use http::HeaderValue;
use http::header::LOCATION;

/// Not served: nothing is executed, and the key store never hears of it.
impl Fault {
    /// The client sees FIN without a byte. The head was taken off the wire, so that
    /// [`requests`](super::super::Sandbox::requests) can show it; the body was not read.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::closed_before_reading());
    /// client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// assert!(!sandbox.requests()[0].is_complete());
    /// assert_eq!(sandbox.ledger()[0].request(), 2, "only the retry was carried out");
    /// # Ok(())
    /// # }
    /// ```
    pub fn closed_before_reading() -> Self {
        Self::route("closed_before_reading", Route::Shut(Ending::Fin))
    }

    /// The same with RST, which may already strike while the client is writing.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::reset_before_reading());
    /// let sent = http.post(sandbox.url("/payments")).body(vec![b'x'; 1024 * 1024]).send().await;
    /// assert!(sent.is_err());
    /// assert_eq!((sandbox.requests().len(), sandbox.executions()), (1, 0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn reset_before_reading() -> Self {
        Self::route("reset_before_reading", Route::Shut(Ending::Reset))
    }

    /// The client sees FIN without a byte. The request was read whole.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::closed_without_executing());
    /// assert!(http.post(sandbox.url("/payments")).body("{}").send().await.is_err());
    /// assert_eq!(sandbox.requests()[0].body(), "{}", "it came whole");
    /// assert_eq!(sandbox.executions(), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn closed_without_executing() -> Self {
        Self::gateway_cut("closed_without_executing", Ending::Fin)
    }

    /// The client sees RST without a byte. The request was read whole.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().max_attempts(1).base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::reset_without_executing());
    /// // A client with `max_attempts(1)`: to it, only the answer may have been lost.
    /// let error = client.post(sandbox.url("/payments")).body("{}").send().await.unwrap_err();
    /// assert_eq!(error.effect(), oncekey::Effect::Unknown);
    /// assert_eq!(sandbox.executions(), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reset_without_executing() -> Self {
        Self::gateway_cut("reset_without_executing", Ending::Reset)
    }

    /// The client sees this status from a gateway, before its key is looked at. The body is
    /// `{"message":".."}` for an error and `{}` for a success unless set. See
    /// [`executing`](Self::executing) and [`from_handler`](Self::from_handler) for one that comes
    /// after the execution.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::status(503));
    /// let answer = http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send().await?;
    /// assert_eq!(answer.status(), 503);
    /// assert_eq!(answer.text().await?, r#"{"message":"Service Unavailable"}"#);
    /// assert_eq!(sandbox.executions(), 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When `status` is not within 100 to 999.
    #[track_caller]
    pub fn status(status: u16) -> Self {
        let mut fault = Self::route("status", Route::Gateway);
        fault.plan.said.status = Some(status_code(status));
        fault
    }

    /// The client sees 409 `{"code":"IDEMPOTENCY_IN_PROGRESS"}`, true or not.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::in_progress());
    /// let paid = client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// let first = &paid.attempts()[0];
    /// assert_eq!(first.status().map(|s| s.as_u16()), Some(409));
    /// assert_eq!(first.wait_reason(), Some(oncekey::WaitReason::Poll));
    /// # Ok(())
    /// # }
    /// ```
    pub fn in_progress() -> Self {
        let mut fault = Self::route("in_progress", Route::Gateway);
        fault.plan.said.in_progress = true;
        fault
    }

    /// The client sees this status with the mark of a replay, true or not: a stored error, say.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::replayed(500)); // a stored error: asking again changes nothing
    /// let error = client.post(sandbox.url("/payments")).body("{}").send().await.unwrap_err();
    /// assert_eq!(sandbox.requests().len(), 1);
    /// assert_eq!(error.effect(), oncekey::Effect::Unknown);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When `status` is not within 100 to 999.
    #[track_caller]
    pub fn replayed(status: u16) -> Self {
        Self::status(status).named("replayed").with_replay_mark()
    }

    /// The client sees this status with a page of HTML, as from a portal or a gateway.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::html(200)); // a captive portal's "success"
    /// let paid = client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// assert_eq!(paid.attempts().len(), 2, "it was not taken for one");
    /// assert_eq!(sandbox.executions(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When `status` is not within 100 to 999.
    #[track_caller]
    pub fn html(status: u16) -> Self {
        let mut fault = Self::status(status).named("html");
        let html = HeaderValue::from_static("text/html; charset=utf-8");
        let page = "<!DOCTYPE html><html><body><h1>Please sign in</h1></body></html>";
        fault.plan.said.body = Some((html, Bytes::from_static(page.as_bytes())));
        fault
    }

    /// The client sees this status, a `Location` and no body.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// let elsewhere = sandbox.url("/elsewhere");
    /// sandbox.fail_next(Fault::redirect(307, &elsewhere));
    /// let error = client.post(sandbox.url("/payments")).body("{}").send().await.unwrap_err();
    /// assert_eq!(error.response().map(|r| r.headers()["location"].as_bytes()), Some(elsewhere.as_bytes()));
    /// assert_eq!(sandbox.requests().len(), 1, "it was not followed");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When `status` is not within 100 to 999 or `location` cannot be the value of a header.
    #[track_caller]
    pub fn redirect(status: u16, location: &str) -> Self {
        let mut fault = Self::status(status).named("redirect");
        let said = &mut fault.plan.said;
        said.headers.insert(LOCATION, header_value(location));
        said.body = Some((HeaderValue::from_static("text/plain"), Bytes::new()));
        fault
    }
}
