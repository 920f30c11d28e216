//! How an API does idempotency, as data, and the one reader of answers.
//!
//! A [`Profile`] says where the key goes and how it is spelt, for how long the
//! server honours it, how a replay is marked, and which answers of the
//! idempotency layer mean what. Reading an answer is then the same for all of
//! them: ordered rules, the first that matches wins ([`Profile::read`]).
//!
//! Presets: [`Profile::generic`] (the default), [`Profile::verifika`],
//! [`Profile::ietf`], [`Profile::stripe`], [`Profile::toss`]. Your own:
//! [`Profile::builder`].

mod answer;
mod builder;
mod generic;
mod ietf;
mod json;
mod key_format;
mod matcher;
mod reader;
mod retry_after;
mod stripe;
mod toss;
mod verifika;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::engine::Verdict;

pub use answer::{Answer, Asked, Exchange, Extent, Judgement, Replay};
pub use builder::{ErrorsStored, Meaning, ProfileBuilder, ProfileError};
pub use key_format::{KeyError, KeyFormat};
pub use matcher::Matcher;

pub(crate) use answer::{Glance, method_kind};

type Judge = Arc<dyn Fn(&Answer<'_>) -> Judgement + Send + Sync>;

/// How one API does idempotency. Cheap to clone.
///
/// ```
/// use std::time::Duration;
/// use oncekey::profile::{Matcher, Meaning, Profile};
///
/// let profile = Profile::builder("acme-v2")
///     .key_lifetime(Duration::from_secs(6 * 3600))
///     .replay_mark("Acme-Replayed", "true")
///     .rule(Matcher::new().status(409).code("KEY_BUSY"), Meaning::InProgress)
///     .build()?;
/// assert_eq!(profile.id(), "acme-v2");
/// # Ok::<(), oncekey::profile::ProfileError>(())
/// ```
#[derive(Clone)]
pub struct Profile {
    data: Arc<Data>,
}

#[derive(Clone)]
struct Data {
    id: String,
    version: u32,
    key_header: HeaderName,
    key_format: KeyFormat,
    keyed: Vec<Method>,
    key_lifetime: Duration,
    marks: Vec<(HeaderName, HeaderValue)>,
    mark_promised: bool,
    code_paths: Vec<json::Path>,
    rules: Vec<(matcher::Compiled, Meaning)>,
    /// Some rule can match a 2xx, so their bodies must be looked at too.
    rules_on_success: bool,
    settles: Vec<matcher::Compiled>,
    should_retry: Option<HeaderName>,
    errors_stored: ErrorsStored,
    limits_before_work: bool,
    promises_keys: bool,
    replays: bool,
    overlap_is_safe: bool,
    judge: Option<Judge>,
}

impl Profile {
    /// A profile of your own, which begins with nothing known: no marks, no
    /// rules, keys of 1 to 300 visible characters in `Idempotency-Key` on POST
    /// and PATCH, for 24 hours.
    pub fn builder(id: impl Into<String>) -> ProfileBuilder {
        ProfileBuilder::new(id.into())
    }

    /// Its name, as it is written down beside an operation.
    pub fn id(&self) -> &str {
        &self.data.id
    }

    /// Its version, as it is written down beside an operation.
    pub fn version(&self) -> u32 {
        self.data.version
    }

    /// The header that carries the key.
    pub fn key_header(&self) -> &HeaderName {
        &self.data.key_header
    }

    /// Which keys it takes.
    pub fn key_format(&self) -> &KeyFormat {
        &self.data.key_format
    }

    /// How long the server honours a key, at least.
    pub fn key_lifetime(&self) -> Duration {
        self.data.key_lifetime
    }

    /// Whether requests of this method get a key of their own accord.
    pub fn keys(&self, method: &Method) -> bool {
        self.data.keyed.contains(method)
    }

    /// Whether a repeated request is answered with the original answer.
    pub fn replays(&self) -> bool {
        self.data.replays
    }

    /// Whether two requests under one key may overlap.
    pub fn overlap_is_safe(&self) -> bool {
        self.data.overlap_is_safe
    }

    /// Whether an error releases the key, so that a corrected body may follow
    /// under it.
    pub fn releases_key(&self) -> bool {
        self.data.errors_stored == ErrorsStored::Never
    }

    /// What an attempt showed: the rules in their order, the first that
    /// matches wins. It knows of no earlier attempt; what depends on those is
    /// settled by the [`History`](crate::engine::History).
    ///
    /// ```
    /// use http::{HeaderMap, Method, StatusCode};
    /// use oncekey::engine::Reach;
    /// use oncekey::profile::{Answer, Asked, Exchange, Profile};
    ///
    /// let headers = HeaderMap::new();
    /// let asked = Asked::new(&Method::POST, &headers).with_key(Some("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506"));
    /// let body = br#"{"code":"IDEMPOTENCY_IN_PROGRESS"}"#;
    /// let answer = Answer::new(StatusCode::CONFLICT, &headers, body);
    /// let verdict = Profile::verifika().read(&asked, &Exchange::Answered(answer));
    /// assert_eq!(verdict.reach(), Reach::Accepted { knows_key: true });
    /// ```
    pub fn read(&self, asked: &Asked<'_>, exchange: &Exchange<'_>) -> Verdict {
        reader::read(&self.data, asked, exchange)
    }

    /// Whether an answer with this verdict is a replay, as far as this API tells.
    pub fn replay(&self, verdict: &Verdict) -> Replay {
        match (verdict.marked(), self.data.mark_promised) {
            (true, _) => Replay::Yes,
            (false, true) => Replay::No,
            (false, false) => Replay::Unmarked,
        }
    }

    pub(crate) fn with_judge(mut self, judge: Judge) -> Self {
        Arc::make_mut(&mut self.data).judge = Some(judge);
        self
    }

    /// The key as it stands on the wire.
    pub(crate) fn key_value(&self, key: &str) -> Option<HeaderValue> {
        if self.data.key_format.is_quoted() {
            HeaderValue::try_from(format!("\"{key}\"")).ok()
        } else {
            HeaderValue::from_str(key).ok()
        }
    }
}

impl Data {
    fn is_marked(&self, asked: &Asked<'_>, headers: &HeaderMap) -> bool {
        let is_mark = |name: &HeaderName, value: &HeaderValue| {
            let is_set = |set: &HeaderValue| value.as_bytes().trim_ascii().eq_ignore_ascii_case(set.as_bytes());
            self.marks.iter().any(|(mark, set)| mark == name && is_set(set))
        };
        // One pass over the headers, instead of a look-up for each mark.
        asked.key.is_some() && headers.iter().any(|(name, value)| is_mark(name, value))
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::generic()
    }
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profile")
            .field("id", &self.data.id)
            .field("key_header", &self.data.key_header)
            .field("key_lifetime", &self.data.key_lifetime)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stands_bare_on_the_wire_unless_its_format_quotes_it() {
        assert_eq!(Profile::generic().key_value("3f2a91c4").unwrap(), "3f2a91c4");
        assert_eq!(Profile::ietf().key_value("3f2a91c4").unwrap(), "\"3f2a91c4\"");
    }
}
