//! The rules that a sandbox plays by.

use super::Sandbox;
use super::chaos::Chaos;
use super::shared::Shared;
use super::store::KeyRules;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

type Keyed = Arc<dyn Fn(&Method, &str) -> bool + Send + Sync>;

#[derive(Clone)]
pub(super) struct Config {
    pub(super) key_header: HeaderName,
    pub(super) keyed: Keyed,
    pub(super) replay_mark: Option<(HeaderName, HeaderValue)>,
    pub(super) keys: KeyRules,
    pub(super) ignore_keys: bool,
    pub(super) wait_while_in_progress: bool,
    pub(super) in_progress_retry_after: Option<HeaderValue>,
    pub(super) in_progress_json: Bytes,
    pub(super) reuse_status: StatusCode,
    pub(super) reuse_json: Bytes,
    pub(super) compare_requests: bool,
    pub(super) store_errors: bool,
    pub(super) work: Duration,
    pub(super) max_body: usize,
    pub(super) authorization: Option<String>,
    pub(super) chaos: Option<Chaos>,
    pub(super) port: u16,
}

/// Configures a [`Sandbox`]. The defaults are those of a good provider.
#[derive(Clone)]
#[must_use = "nothing listens until `start`"]
pub struct SandboxBuilder {
    config: Config,
}

impl SandboxBuilder {
    pub(super) fn new() -> Self {
        Self {
            config: Config {
                key_header: HeaderName::from_static("idempotency-key"),
                keyed: Arc::new(|method, _| *method == Method::POST || *method == Method::PATCH),
                replay_mark: Some((HeaderName::from_static("idempotent-replay"), HeaderValue::from_static("true"))),
                keys: KeyRules { lifetime: Duration::from_secs(24 * 60 * 60), reclaim_after: Duration::from_secs(30) },
                ignore_keys: false,
                wait_while_in_progress: false,
                in_progress_retry_after: None,
                in_progress_json: Bytes::from_static(br#"{"code":"IDEMPOTENCY_IN_PROGRESS"}"#),
                reuse_status: StatusCode::CONFLICT,
                reuse_json: Bytes::from_static(br#"{"code":"IDEMPOTENCY_KEY_REUSED"}"#),
                compare_requests: true,
                store_errors: false,
                work: Duration::ZERO,
                max_body: 64 * 1024 * 1024,
                authorization: None,
                chaos: None,
                port: 0,
            },
        }
    }

    /// The header that carries the key. Default: `Idempotency-Key`.
    ///
    /// # Panics
    ///
    /// When `name` can't be the name of a header.
    pub fn key_header(mut self, name: &str) -> Self {
        self.config.key_header = header_name(name);
        self
    }

    /// Which requests need a key, by method and path (without its query). Default: POST and PATCH
    /// on every path. The others are executed each time they arrive, with or without a key.
    pub fn keyed(mut self, routes: impl Fn(&Method, &str) -> bool + Send + Sync + 'static) -> Self {
        self.config.keyed = Arc::new(routes);
        self
    }

    /// The header that marks a replayed answer. Default: `Idempotent-Replay: true`.
    ///
    /// # Panics
    ///
    /// When they can't be the name and the value of a header.
    pub fn replay_header(mut self, name: &str, value: &str) -> Self {
        self.config.replay_mark = Some((header_name(name), header_value(value)));
        self
    }

    /// Replays without a mark, as most providers do.
    pub fn no_replay_header(mut self) -> Self {
        self.config.replay_mark = None;
        self
    }

    /// How long after its first use a key is forgotten. Default: 24 hours.
    pub fn key_lifetime(mut self, lifetime: Duration) -> Self {
        self.config.keys.lifetime = lifetime;
        self
    }

    /// After how long a key that is still in progress is taken from its handler, as if that had
    /// died. Default: 30 seconds. If it is alive the operation is executed twice.
    pub fn reclaim_after(mut self, stale: Duration) -> Self {
        self.config.keys.reclaim_after = stale;
        self
    }

    /// A server that knows nothing of keys: every request executes. Default: `false`.
    pub fn ignore_keys(mut self, ignore: bool) -> Self {
        self.config.ignore_keys = ignore;
        self
    }

    /// Holds a duplicate until the first request is done and then replays its answer, in place of
    /// 409 `{"code":"IDEMPOTENCY_IN_PROGRESS"}`. Default: `false`.
    pub fn wait_while_in_progress(mut self, wait: bool) -> Self {
        self.config.wait_while_in_progress = wait;
        self
    }

    /// A `Retry-After` for the answer "in progress". Default: none.
    ///
    /// # Panics
    ///
    /// When `value` can't be the value of a header.
    pub fn in_progress_retry_after(mut self, value: impl AsRef<str>) -> Self {
        self.config.in_progress_retry_after = Some(header_value(value.as_ref()));
        self
    }

    /// The JSON of the answer "in progress", as another provider words it. Default:
    /// `{"code":"IDEMPOTENCY_IN_PROGRESS"}`.
    pub fn in_progress_json(mut self, body: impl Into<Bytes>) -> Self {
        self.config.in_progress_json = body.into();
        self
    }

    /// The JSON that refuses a key which came with another request. Default:
    /// `{"code":"IDEMPOTENCY_KEY_REUSED"}`.
    pub fn reuse_json(mut self, body: impl Into<Bytes>) -> Self {
        self.config.reuse_json = body.into();
        self
    }

    /// Looks at the key alone: another request under it gets the first one's answer, as with Toss
    /// Payments. Default: requests are compared.
    pub fn compare_requests(mut self, compare: bool) -> Self {
        self.config.compare_requests = compare;
        self
    }

    /// The status of `{"code":"IDEMPOTENCY_KEY_REUSED"}`. Default: 409; some providers say 422.
    ///
    /// # Panics
    ///
    /// When `status` is not within 100 to 999.
    pub fn reuse_status(mut self, status: u16) -> Self {
        self.config.reuse_status = status_code(status);
        self
    }

    /// Stores the handler's error answers (400 and above) and replays them with the mark, in place
    /// of releasing the key. Default: `false`. What a gateway says is never stored.
    pub fn store_errors(mut self, store: bool) -> Self {
        self.config.store_errors = store;
        self
    }

    /// How long an execution takes, on the sandbox's clock. Default: no time. The key is held from
    /// the start, the ledger is written at the end, and a client that goes away in between changes
    /// nothing: the handler works on.
    pub fn work(mut self, duration: Duration) -> Self {
        self.config.work = duration;
        self
    }

    /// The largest request body, in bytes; a larger one is answered 413. Default: 64 MiB.
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.config.max_body = bytes;
        self
    }

    /// Lets in only requests with this `Authorization`; others get 401 `{"code":"UNAUTHORIZED"}`
    /// before their key is looked at. Default: lets everyone in.
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
    pub fn port(mut self, port: u16) -> Self {
        self.config.port = port;
        self
    }

    /// Starts to listen on 127.0.0.1. It runs on the runtime that this is awaited on.
    ///
    /// # Errors
    ///
    /// When the port can't be bound.
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

pub(super) fn header_name(name: &str) -> HeaderName {
    match HeaderName::from_bytes(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("not the name of a header: {name:?}"),
    }
}

/// The value is not printed: it may be a secret.
pub(super) fn header_value(value: &str) -> HeaderValue {
    match HeaderValue::from_bytes(value.as_bytes()) {
        Ok(value) => value,
        Err(_) => panic!("not the value of a header"),
    }
}

pub(super) fn status_code(status: u16) -> StatusCode {
    match StatusCode::from_u16(status) {
        Ok(status) => status,
        Err(_) => panic!("not a status: {status}"),
    }
}
