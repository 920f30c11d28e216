//! The rules that a sandbox plays by.

use super::Sandbox;
use super::chaos::Chaos;
use super::config::{Config, header_name, header_value, status_code};
use super::shared::Shared;
use bytes::Bytes;
use http::Method;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Configures a [`Sandbox`]. The defaults are those of a good provider.
#[derive(Clone)]
#[must_use = "nothing listens until `start`"]
pub struct SandboxBuilder {
    config: Config,
}

impl SandboxBuilder {
    pub(super) fn new() -> Self {
        Self { config: Config::default() }
    }

    /// The header that carries the key. Default: `Idempotency-Key`.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// let sandbox = Sandbox::builder().key_header("X-Request-Id").start().await?;
    /// let pay = |header| http.post(sandbox.url("/payments")).header(header, "order-17").send();
    /// assert_eq!(pay("X-Request-Id").await?.status(), 201);
    /// assert_eq!(pay("Idempotency-Key").await?.text().await?, r#"{"code":"IDEMPOTENCY_KEY_MISSING"}"#);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When `name` cannot be the name of a header.
    #[track_caller]
    pub fn key_header(mut self, name: &str) -> Self {
        self.config.key_header = header_name(name);
        self
    }

    /// Which requests need a key, by method and path (without its query). Default: POST and PATCH
    /// on every path. The others are executed each time they arrive, with or without a key.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// let routes = |method: &reqwest::Method, path: &str| method == "POST" && path.starts_with("/payments");
    /// let sandbox = Sandbox::builder().keyed(routes).start().await?;
    /// assert_eq!(http.post(sandbox.url("/search")).send().await?.status(), 201);
    /// assert_eq!(http.post(sandbox.url("/payments")).send().await?.status(), 400, "the key is missing");
    /// # Ok(())
    /// # }
    /// ```
    pub fn keyed(mut self, routes: impl Fn(&Method, &str) -> bool + Send + Sync + 'static) -> Self {
        self.config.keyed = Arc::new(routes);
        self
    }

    /// The header that marks a replayed answer. Default: `Idempotent-Replay: true`.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().profile(oncekey::Profile::stripe()).http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// let sandbox = Sandbox::builder().replay_header("Idempotent-Replayed", "true").start().await?;
    /// sandbox.fail_next(Fault::answer_lost());
    /// // A client with `Profile::stripe()`, which knows this mark.
    /// let paid = client.post(sandbox.url("/v1/charges")).body("amount=100").send().await?;
    /// assert!(paid.is_replay());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When they cannot be the name and the value of a header.
    #[track_caller]
    pub fn replay_header(mut self, name: &str, value: &str) -> Self {
        self.config.replay_mark = Some((header_name(name), header_value(value)));
        self
    }

    /// Replays without a mark, as most providers do.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// let sandbox = Sandbox::builder().no_replay_header().start().await?;
    /// sandbox.fail_next(Fault::answer_lost());
    /// let paid = client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// assert!(!paid.is_replay(), "it was one, but nothing says so");
    /// assert_eq!(sandbox.executions(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn no_replay_header(mut self) -> Self {
        self.config.replay_mark = None;
        self
    }

    /// How long after its first use a key is forgotten. Default: 24 hours.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # use std::time::Duration;
    /// let hour = Duration::from_secs(60 * 60);
    /// let sandbox = Sandbox::builder().key_lifetime(hour).start().await?;
    /// let pay = || http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send();
    /// pay().await?;
    /// sandbox.advance(hour);
    /// pay().await?;
    /// assert_eq!(sandbox.executions_of("order-17"), 2, "a retry that came too late");
    /// # Ok(())
    /// # }
    /// ```
    pub fn key_lifetime(mut self, lifetime: Duration) -> Self {
        self.config.keys.lifetime = lifetime;
        self
    }

    /// After how long a key that is still in progress is taken from its handler, as if that had
    /// died. Default: 30 seconds. If it is alive the operation is executed twice.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # use std::time::Duration;
    /// let sandbox = Sandbox::builder().reclaim_after(Duration::from_secs(5)).start().await?;
    /// let pay = || http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send();
    /// sandbox.fail_next(Fault::crash_before_executing());
    /// assert!(pay().await.is_err());
    /// assert_eq!(pay().await?.status(), 409, "the dead handler still holds the key");
    /// sandbox.advance(Duration::from_secs(5));
    /// assert_eq!(pay().await?.status(), 201);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reclaim_after(mut self, stale: Duration) -> Self {
        self.config.keys.reclaim_after = stale;
        self
    }

    /// A server that knows nothing of keys: every request executes. Default: `false`.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// let sandbox = Sandbox::builder().ignore_keys(true).start().await?;
    /// sandbox.fail_next(Fault::answer_lost());
    /// client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// assert_eq!(sandbox.executions(), 2, "under one key: no client can help that");
    /// # Ok(())
    /// # }
    /// ```
    pub fn ignore_keys(mut self, ignore: bool) -> Self {
        self.config.ignore_keys = ignore;
        self
    }

    /// Holds a duplicate until the first request is done and then replays its answer, in place of
    /// 409 `{"code":"IDEMPOTENCY_IN_PROGRESS"}`. Default: `false`.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # use std::time::Duration;
    /// let builder = Sandbox::builder().work(Duration::from_millis(20));
    /// let sandbox = builder.wait_while_in_progress(true).start().await?;
    /// let pay = || http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send();
    /// let (first, second) = tokio::try_join!(pay(), pay())?;
    /// assert_eq!((first.status().as_u16(), second.status().as_u16()), (201, 201));
    /// assert_eq!(sandbox.executions(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait_while_in_progress(mut self, wait: bool) -> Self {
        self.config.wait_while_in_progress = wait;
        self
    }

    /// A `Retry-After` for the answer "in progress". Default: none.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// let sandbox = Sandbox::builder().in_progress_retry_after("2").start().await?;
    /// sandbox.fail_next(Fault::in_progress());
    /// let busy = http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send().await?;
    /// assert_eq!(busy.status(), 409);
    /// assert_eq!(busy.headers()["retry-after"], "2");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When `value` cannot be the value of a header.
    #[track_caller]
    pub fn in_progress_retry_after(mut self, value: impl AsRef<str>) -> Self {
        self.config.in_progress_retry_after = Some(header_value(value.as_ref()));
        self
    }

    /// The JSON of the answer "in progress", as another provider words it. Default:
    /// `{"code":"IDEMPOTENCY_IN_PROGRESS"}`.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().profile(oncekey::Profile::stripe()).http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// // As Stripe words it; the client has `Profile::stripe()`.
    /// let said = r#"{"error":{"code":"idempotency_key_in_use","type":"idempotency_error"}}"#;
    /// let sandbox = Sandbox::builder().in_progress_json(said).start().await?;
    /// sandbox.fail_next(Fault::in_progress());
    /// let paid = client.post(sandbox.url("/v1/charges")).body("amount=100").send().await?;
    /// assert_eq!(paid.attempts()[0].wait_reason(), Some(oncekey::WaitReason::Poll), "it was understood");
    /// # Ok(())
    /// # }
    /// ```
    pub fn in_progress_json(mut self, body: impl Into<Bytes>) -> Self {
        self.config.in_progress_json = body.into();
        self
    }

    /// The JSON that refuses a key which came with another request. Default:
    /// `{"code":"IDEMPOTENCY_KEY_REUSED"}`.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// let said = r#"{"error":{"code":"idempotency_error"}}"#;
    /// let sandbox = Sandbox::builder().reuse_json(said).start().await?;
    /// let pay = |body| http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").body(body).send();
    /// pay(r#"{"amount":100}"#).await?;
    /// assert_eq!(pay(r#"{"amount":200}"#).await?.text().await?, said);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reuse_json(mut self, body: impl Into<Bytes>) -> Self {
        self.config.reuse_json = body.into();
        self
    }

    /// Looks at the key alone: another request under it gets the first one's answer, as with Toss
    /// Payments. Default: requests are compared.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// let sandbox = Sandbox::builder().compare_requests(false).start().await?;
    /// let pay = |body| http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").body(body).send();
    /// pay(r#"{"amount":100}"#).await?;
    /// let other = pay(r#"{"amount":200}"#).await?;
    /// assert_eq!(other.text().await?, r#"{"id":"pay_1","status":"captured","amount":100}"#, "the first one's");
    /// # Ok(())
    /// # }
    /// ```
    pub fn compare_requests(mut self, compare: bool) -> Self {
        self.config.compare_requests = compare;
        self
    }

    /// The status of `{"code":"IDEMPOTENCY_KEY_REUSED"}`. Default: 409; some providers say 422.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// let sandbox = Sandbox::builder().reuse_status(422).start().await?;
    /// let pay = |body| http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").body(body).send();
    /// pay(r#"{"amount":100}"#).await?;
    /// let same = pay(r#"{ "amount": 100 }"#).await?;
    /// assert_eq!(same.status(), 201, "JSON is compared by what it says");
    /// assert_eq!(pay(r#"{"amount":200}"#).await?.status(), 422);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When `status` is not within 100 to 999.
    #[track_caller]
    pub fn reuse_status(mut self, status: u16) -> Self {
        self.config.reuse_status = status_code(status);
        self
    }

    /// Stores the handler's error answers (400 and above) and replays them with the mark, in place
    /// of releasing the key. Default: `false`. What a gateway says is never stored.
    ///
    /// ```
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// let sandbox = Sandbox::builder().store_errors(true).start().await?;
    /// sandbox.fail_next(Fault::status(500).from_handler());
    /// let pay = || http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send();
    /// pay().await?;
    /// let again = pay().await?;
    /// assert_eq!(again.status(), 500);
    /// assert_eq!(again.headers()["idempotent-replay"], "true");
    /// assert_eq!(sandbox.executions(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn store_errors(mut self, store: bool) -> Self {
        self.config.store_errors = store;
        self
    }

    /// How long an execution takes, on the sandbox's clock. Default: no time. The key is held from
    /// the start, the ledger is written at the end, and a client that goes away in between changes
    /// nothing: the handler works on.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// # use std::time::Duration;
    /// let sandbox = Sandbox::builder().work(Duration::from_secs(10)).start().await?;
    /// let call = tokio::spawn(http.post(sandbox.url("/payments")).header("Idempotency-Key", "order-17").send());
    /// sandbox.until(|s| s.at_work() == 1).await;
    /// call.abort(); // the client goes away
    /// sandbox.advance(Duration::from_secs(10));
    /// sandbox.until(|s| s.executions() == 1).await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn work(mut self, duration: Duration) -> Self {
        self.config.work = duration;
        self
    }

    /// The largest request body, in bytes; a larger one is answered 413. Default: 64 MiB.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let http = reqwest::Client::builder().no_proxy().build()?;
    /// let sandbox = Sandbox::builder().max_body(16).start().await?;
    /// let put = |body| http.put(sandbox.url("/notes/1")).body(body).send();
    /// assert_eq!(put("sixteen letters.").await?.status(), 200);
    /// assert_eq!(put("seventeen letters").await?.status(), 413);
    /// # Ok(())
    /// # }
    /// ```
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.config.max_body = bytes;
        self
    }

    /// Lets in only requests with this `Authorization`; others get 401 `{"code":"UNAUTHORIZED"}`
    /// before their key is looked at. Default: lets everyone in.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// let sandbox = Sandbox::builder().require_authorization("Bearer t-1").start().await?;
    /// let pay = || client.post(sandbox.url("/payments")).body("{}");
    /// assert_eq!(pay().bearer_auth("t-1").send().await?.status(), 201);
    /// let error = pay().send().await.unwrap_err();
    /// assert_eq!(error.effect(), oncekey::Effect::NotApplied);
    /// # Ok(())
    /// # }
    /// ```
    pub fn require_authorization(mut self, value: impl Into<String>) -> Self {
        self.config.authorization = Some(value.into());
        self
    }

    /// Draws a fault for `per_mille` of a thousand requests that no scripted fault is waiting for.
    /// The same seed and the same order of arrival draw the same faults. Default: none are drawn.
    ///
    /// All have the same chance: [`Fault::closed_before_reading`], [`Fault::reset_before_reading`],
    /// [`Fault::closed_without_executing`], [`Fault::reset_without_executing`],
    /// [`Fault::answer_lost`] with FIN and with RST, [`Fault::head_cut`], [`Fault::body_cut`] with a
    /// length and chunked, [`Fault::unframed_cut`], [`Fault::garbled_head`],
    /// [`Fault::truncated_json`], [`Fault::drip`], [`Fault::duplicate`], [`Fault::in_progress`],
    /// [`Fault::html`] with 200, and the [statuses](super::Fault::status) 429, 500, 502, 503, 504 of a
    /// gateway, the last two also after [executing](super::Fault::executing).
    ///
    /// Left out is what would last as long as the client's patience (stalls) and what makes the
    /// server break its own promise: under chaos alone, a client that sends one key again and
    /// again until it is told the truth has exactly one execution.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ms = std::time::Duration::from_millis;
    /// # let (retry, poll) = (oncekey::Retry::default().base_delay(ms(1)), oncekey::Poll::default().interval(ms(1)));
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(retry).poll(poll).build()?;
    /// // Four requests of ten meet a fault; each payment is made once all the same.
    /// let sandbox = Sandbox::builder().chaos(7, 400).start().await?;
    /// for _ in 0..8 {
    ///     client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// }
    /// assert_eq!(sandbox.executions(), 8);
    /// assert!(sandbox.requests().iter().any(|seen| seen.fault().is_some()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`Fault::closed_before_reading`]: super::Fault::closed_before_reading
    /// [`Fault::reset_before_reading`]: super::Fault::reset_before_reading
    /// [`Fault::closed_without_executing`]: super::Fault::closed_without_executing
    /// [`Fault::reset_without_executing`]: super::Fault::reset_without_executing
    /// [`Fault::answer_lost`]: super::Fault::answer_lost
    /// [`Fault::head_cut`]: super::Fault::head_cut
    /// [`Fault::body_cut`]: super::Fault::body_cut
    /// [`Fault::unframed_cut`]: super::Fault::unframed_cut
    /// [`Fault::garbled_head`]: super::Fault::garbled_head
    /// [`Fault::truncated_json`]: super::Fault::truncated_json
    /// [`Fault::drip`]: super::Fault::drip
    /// [`Fault::duplicate`]: super::Fault::duplicate
    /// [`Fault::in_progress`]: super::Fault::in_progress
    /// [`Fault::html`]: super::Fault::html
    pub fn chaos(mut self, seed: u64, per_mille: u16) -> Self {
        self.config.chaos = Some(Chaos::new(seed, per_mille));
        self
    }

    /// The port to listen on. Default: 0, any that is free.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let first = Sandbox::start().await?;
    /// let second = Sandbox::builder().port(first.addr().port()).start().await;
    /// assert_eq!(second.unwrap_err().kind(), std::io::ErrorKind::AddrInUse, "the first listens there");
    /// # Ok(())
    /// # }
    /// ```
    pub fn port(mut self, port: u16) -> Self {
        self.config.port = port;
        self
    }

    /// Starts to listen on 127.0.0.1. It runs on the runtime that this is awaited on.
    ///
    /// ```
    /// # use oncekey::sandbox::Sandbox;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (honest, forgetful) = tokio::try_join!(
    ///     Sandbox::builder().start(),
    ///     Sandbox::builder().ignore_keys(true).start(),
    /// )?;
    /// assert_ne!(honest.addr(), forgetful.addr(), "each has a port of its own");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When the port cannot be bound.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub async fn start(self) -> std::io::Result<Sandbox> {
        let listener = TcpListener::bind(("127.0.0.1", self.config.port)).await?;
        Sandbox::run(Shared::new(self.config), listener)
    }
}

impl fmt::Debug for SandboxBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SandboxBuilder")
            .field("key_header", &self.config.key_header)
            .field("keys", &self.config.keys)
            .field("ignore_keys", &self.config.ignore_keys)
            .field("store_errors", &self.config.store_errors)
            .field("work", &self.config.work)
            .field("chaos", &self.config.chaos)
            .finish_non_exhaustive()
    }
}
