//! What a faulty answer says.

use super::super::config::{header_name, header_value};
use super::super::retry_after::{DateForm, RetryAfter};
use super::Fault;
use bytes::Bytes;
use std::time::Duration;

/// What the answer says. These work on a canned answer as on the real one.
impl Fault {
    /// Adds a header; in place of the answer's own of that name. A `Content-Length`,
    /// `Transfer-Encoding` or `Connection` is written as it is, true or not.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::none().header("X-Request-Id", "req_7"));
    /// let answer = http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send().await?;
    /// assert_eq!(answer.status(), 201, "the real answer");
    /// assert_eq!(answer.headers()["x-request-id"], "req_7");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When they cannot be the name and the value of a header.
    #[track_caller]
    pub fn header(mut self, name: &str, value: impl AsRef<str>) -> Self {
        let (name, value) = (header_name(name), header_value(value.as_ref()));
        self.plan.said.headers.append(name, value);
        self
    }

    /// Replaces the body.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::status(502).body("text/plain", "no upstream"));
    /// let answer = http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send().await?;
    /// assert_eq!(answer.headers()["content-type"], "text/plain");
    /// assert_eq!(answer.text().await?, "no upstream");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When `content_type` cannot be the value of a header.
    #[track_caller]
    pub fn body(mut self, content_type: &str, body: impl Into<Bytes>) -> Self {
        self.plan.said.body = Some((header_value(content_type), body.into()));
        self
    }

    /// Replaces the body by this text, as `application/json`; it need not be JSON.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// let said = r#"{"error":{"code":"amount_too_small"}}"#;
    /// sandbox.fail_next(Fault::status(422).json(said));
    /// let error = client.post(sandbox.url("/payments")).body("{}").send().await.unwrap_err();
    /// assert_eq!(error.response().map(|answer| answer.text()).as_deref(), Some(said));
    /// # Ok(())
    /// # }
    /// ```
    pub fn json(self, body: impl Into<Bytes>) -> Self {
        self.body("application/json", body)
    }

    /// Adds a `Retry-After` with this text: `"3"`, `"0.5"`, `"soon"`, `""`.
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
    /// sandbox.fail_next(Fault::status(429).retry_after("0.05"));
    /// let paid = client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// assert!(paid.attempts()[0].wait() >= Duration::from_millis(50));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When `value` cannot be the value of a header.
    #[track_caller]
    pub fn retry_after(mut self, value: impl AsRef<str>) -> Self {
        self.plan.said.retry_after = Some(RetryAfter::Text(header_value(value.as_ref())));
        self
    }

    /// Adds a `Retry-After` with a date that far ahead of the answer's own `Date`, in today's form:
    /// `Sun, 06 Nov 1994 08:49:37 GMT`. In whole seconds.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::status(503).retry_after_date(Duration::from_secs(3)));
    /// let answer = http.get(sandbox.url("/")).send().await?;
    /// let date = |name| httpdate::parse_http_date(answer.headers()[name].to_str().unwrap_or_default());
    /// assert_eq!(date("retry-after")?, date("date")? + Duration::from_secs(3));
    /// # Ok(())
    /// # }
    /// ```
    pub fn retry_after_date(mut self, ahead: Duration) -> Self {
        self.plan.said.retry_after = Some(RetryAfter::Date(DateForm::Imf, ahead));
        self
    }

    /// The same in the form of RFC 850: `Sunday, 06-Nov-94 08:49:37 GMT`.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::status(503).retry_after_rfc850(Duration::from_secs(60)));
    /// let answer = http.get(sandbox.url("/")).send().await?;
    /// let text = answer.headers()["retry-after"].to_str()?;
    /// assert_eq!(text.matches('-').count(), 2, "{text}"); // Sunday, 06-Nov-94 08:49:37 GMT
    /// assert!(text.ends_with(" GMT"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn retry_after_rfc850(mut self, ahead: Duration) -> Self {
        self.plan.said.retry_after = Some(RetryAfter::Date(DateForm::Rfc850, ahead));
        self
    }

    /// The same in the form of C's `asctime`: `Sun Nov  6 08:49:37 1994`.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::status(429).retry_after_asctime(Duration::from_secs(60)));
    /// let answer = http.get(sandbox.url("/")).send().await?;
    /// let text = answer.headers()["retry-after"].to_str()?;
    /// assert_eq!(text.len(), "Sun Nov  6 08:49:37 1994".len(), "no zone, and a blank before a short day");
    /// # Ok(())
    /// # }
    /// ```
    pub fn retry_after_asctime(mut self, ahead: Duration) -> Self {
        self.plan.said.retry_after = Some(RetryAfter::Date(DateForm::Asctime, ahead));
        self
    }

    /// Leaves out the answer's `Date`.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::status(503).undated());
    /// let answer = http.get(sandbox.url("/")).send().await?;
    /// assert_eq!(answer.headers().get("date"), None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn undated(mut self) -> Self {
        self.plan.said.undated = true;
        self
    }

    /// Adds the mark of a replay, true or not.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// # let sandbox = Sandbox::start().await?;
    /// sandbox.fail_next(Fault::none().with_replay_mark());
    /// let paid = client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// assert!(paid.is_replay(), "so it says; it was the first request");
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_replay_mark(mut self) -> Self {
        self.plan.said.marked = true;
        self
    }
}
