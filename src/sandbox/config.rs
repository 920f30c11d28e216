//! What a sandbox is told of its rules, and the checks of what it is told.

use super::chaos::Chaos;
use super::store::KeyRules;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use std::sync::Arc;
use std::time::Duration;

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

/// A good provider's.
impl Default for Config {
    fn default() -> Self {
        Self {
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
        }
    }
}

#[track_caller]
pub(super) fn header_name(name: &str) -> HeaderName {
    match HeaderName::from_bytes(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("{name:?} is not the name of a header"),
    }
}

/// The value is not printed: it may be a secret.
#[track_caller]
pub(super) fn header_value(value: &str) -> HeaderValue {
    match HeaderValue::from_bytes(value.as_bytes()) {
        Ok(value) => value,
        Err(_) => panic!("a header's value holds a character that a header cannot"),
    }
}

#[track_caller]
pub(super) fn status_code(status: u16) -> StatusCode {
    match StatusCode::from_u16(status) {
        Ok(status) => status,
        Err(_) => panic!("{status} is no status: give 100 to 999"),
    }
}
