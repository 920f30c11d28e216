//! How an API does idempotency, as data, and the one reader of answers.
//!
//! A [`Profile`] says where the key goes and how it is spelt, for how long the
//! server honours it, how a replay is marked, and which answers of the
//! idempotency layer mean what. Reading an answer is then the same for all of
//! them: ordered rules, the first that matches wins ([`Profile::read`]).
//!
//! Presets: [`Profile::generic`] (the default) and one constructor for each API
//! whose pages were read: [`Profile::presets`]. Your own: [`Profile::builder`],
//! or a TOML file (`Profile::from_toml`, feature `profile-files`).
//!
//! ```
//! use oncekey::engine::Reach;
//! use oncekey::profile::{Answer, Asked, Exchange, Matcher, Meaning, Profile};
//! use oncekey::reqwest::{Method, StatusCode, header::HeaderMap};
//!
//! let acme = Profile::builder("acme")
//!     .key_header("Acme-Request-Id")
//!     .rule(Matcher::new().status(409).code("KEY_BUSY"), Meaning::InProgress)
//!     .build()?;
//!
//! // How it reads an answer can be tested without a server.
//! let headers = HeaderMap::new();
//! let asked = Asked::new(&Method::POST, &headers).with_key(Some("order-7"));
//! let busy = Exchange::Answered(Answer::new(StatusCode::CONFLICT, &headers, br#"{"code":"KEY_BUSY"}"#));
//! assert_eq!(acme.read(&asked, &busy).reach(), Reach::Accepted { knows_key: true });
//! // Where nothing is said of it, a conflict may be our own earlier attempt.
//! let other = Exchange::Answered(Answer::new(StatusCode::CONFLICT, &headers, br#"{"code":"DUPLICATE"}"#));
//! assert_eq!(acme.read(&asked, &other).reach(), Reach::Ambiguous);
//! # Ok::<(), oncekey::profile::ProfileError>(())
//! ```

mod answer;
mod builder;
#[cfg(feature = "profile-files")]
mod file;
#[cfg(feature = "profile-files")]
mod file_error;
mod header_test;
mod json;
mod key_format;
mod matcher;
mod presets;
mod reader;
mod retry_after;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::engine::Verdict;

pub use answer::{Answer, Asked, Exchange, Extent, Judgement, Replay};
pub use builder::{ErrorsStored, Meaning, ProfileBuilder, ProfileError};
#[cfg(feature = "profile-files")]
#[cfg_attr(docsrs, doc(cfg(feature = "profile-files")))]
pub use file_error::ProfileFileError;
pub use key_format::{KeyError, KeyFormat};
pub use matcher::Matcher;

pub(crate) use answer::{Glance, method_kind};
#[cfg(feature = "json")]
pub(crate) use json::without_bom;

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
    marks: Vec<(HeaderName, header_test::Test)>,
    mark_promised: bool,
    code_paths: Vec<json::Path>,
    rules: Vec<Rule>,
    /// Some rule can match a 2xx, so their bodies must be looked at too.
    rules_on_success: bool,
    settles: Vec<matcher::Compiled>,
    should_retry: Option<HeaderName>,
    errors_stored: ErrorsStored,
    releases_key: bool,
    min_delay: Duration,
    limits_before_work: bool,
    promises_keys: bool,
    replays: bool,
    overlap_is_safe: bool,
    judge: Option<Judge>,
}

/// What an answer of the idempotency layer means.
#[derive(Clone, Debug)]
struct Rule {
    pattern: matcher::Compiled,
    meaning: Meaning,
    /// Where it names the original.
    original: Option<json::Path>,
}

impl Profile {
    /// A profile of your own, which begins with nothing known: no marks, no
    /// rules, keys of 1 to 300 visible characters in `Idempotency-Key` on POST
    /// and PATCH, for 24 hours.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::Profile;
    /// use oncekey::reqwest::Method;
    ///
    /// let acme = Profile::builder("acme").build()?;
    /// assert_eq!(acme.key_header(), "idempotency-key");
    /// assert_eq!(acme.key_lifetime(), Duration::from_secs(24 * 3600));
    /// assert!(acme.keys(&Method::PATCH) && !acme.keys(&Method::PUT));
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn builder(id: impl Into<String>) -> ProfileBuilder {
        ProfileBuilder::new(id.into())
    }

    /// Its name, as it is written down beside an operation.
    ///
    /// ```
    /// assert_eq!(oncekey::Profile::mercado_pago().id(), "mercado-pago-orders");
    /// ```
    pub fn id(&self) -> &str {
        &self.data.id
    }

    /// Its version, as it is written down beside an operation.
    ///
    /// ```
    /// let profile = oncekey::Profile::builder("acme").version(3).build()?;
    /// assert_eq!(profile.version(), 3);
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn version(&self) -> u32 {
        self.data.version
    }

    /// The header that carries the key.
    ///
    /// ```
    /// use oncekey::Profile;
    ///
    /// assert_eq!(Profile::stripe().key_header(), "idempotency-key");
    /// assert_eq!(Profile::checkout().key_header(), "cko-idempotency-key");
    /// ```
    pub fn key_header(&self) -> &HeaderName {
        &self.data.key_header
    }

    /// Which keys it takes.
    ///
    /// ```
    /// use oncekey::Profile;
    ///
    /// let format = Profile::mangopay().key_format().clone();
    /// assert_eq!(format.to_string(), "16 to 36 letters, digits and hyphens");
    /// assert!(format.check("order-7").is_err()); // too short for it
    /// ```
    pub fn key_format(&self) -> &KeyFormat {
        &self.data.key_format
    }

    /// How long the server honours a key, at least.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// assert_eq!(oncekey::Profile::verifika().key_lifetime(), Duration::from_secs(24 * 3600));
    /// ```
    pub fn key_lifetime(&self) -> Duration {
        self.data.key_lifetime
    }

    /// Whether requests of this method get a key of their own accord.
    ///
    /// ```
    /// use oncekey::Profile;
    /// use oncekey::reqwest::Method;
    ///
    /// assert!(Profile::laravel().keys(&Method::DELETE));
    /// assert!(!Profile::mollie().keys(&Method::PATCH)); // POST alone
    /// ```
    pub fn keys(&self, method: &Method) -> bool {
        self.data.keyed.contains(method)
    }

    /// Whether a repeated request is answered with the original answer.
    ///
    /// ```
    /// use oncekey::Profile;
    ///
    /// assert!(Profile::stripe().replays());
    /// assert!(!Profile::gocardless().replays()); // a repeated request is an error there
    /// ```
    pub fn replays(&self) -> bool {
        self.data.replays
    }

    /// Whether two requests under one key may overlap.
    ///
    /// ```
    /// use oncekey::Profile;
    ///
    /// assert!(Profile::verifika().overlap_is_safe());
    /// assert!(!Profile::moov().overlap_is_safe()); // its pages do not say that keys are locks
    /// ```
    pub fn overlap_is_safe(&self) -> bool {
        self.data.overlap_is_safe
    }

    /// Whether an error releases the key, so that a corrected body may follow
    /// under it.
    ///
    /// ```
    /// use oncekey::Profile;
    /// use oncekey::profile::ErrorsStored;
    ///
    /// let acme = || Profile::builder("acme").errors_stored(ErrorsStored::Never);
    /// assert!(acme().build()?.releases_key());
    /// assert!(!acme().releases_key(false).build()?.releases_key());
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn releases_key(&self) -> bool {
        self.data.releases_key
    }

    /// Whether error answers are stored under the key.
    ///
    /// ```
    /// use oncekey::Profile;
    /// use oncekey::profile::ErrorsStored;
    ///
    /// assert_eq!(Profile::memo_bank().errors_stored(), ErrorsStored::Always);
    /// assert_eq!(Profile::checkout().errors_stored(), ErrorsStored::Never);
    /// ```
    pub fn errors_stored(&self) -> ErrorsStored {
        self.data.errors_stored
    }

    /// The shortest time that the provider wants between two requests under
    /// one key; zero where it names none.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::Profile;
    ///
    /// assert_eq!(Profile::checkout().min_delay(), Duration::from_secs(30));
    /// assert_eq!(Profile::stripe().min_delay(), Duration::ZERO);
    /// ```
    pub fn min_delay(&self) -> Duration {
        self.data.min_delay
    }

    /// The id of what was carried out before, where an answer says that it was
    /// and names it. With it the original can be fetched; it may be of another
    /// request under the same key, so compare what is fetched.
    ///
    /// ```
    /// use http::{HeaderMap, StatusCode};
    /// use oncekey::profile::{Answer, Profile};
    ///
    /// let headers = HeaderMap::new();
    /// let body = br#"{"error":{"errors":[{"reason":"idempotent_creation_conflict",
    ///     "links":{"conflicting_resource_id":"PM000123"}}]}}"#;
    /// let answer = Answer::new(StatusCode::CONFLICT, &headers, body);
    /// assert_eq!(Profile::gocardless().original_id(&answer).as_deref(), Some("PM000123"));
    /// ```
    pub fn original_id(&self, answer: &Answer<'_>) -> Option<String> {
        reader::original_id(&self.data, answer)
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
    ///
    /// ```
    /// # use http::header::{HeaderMap, HeaderName, HeaderValue};
    /// # use http::{Method, StatusCode};
    /// use oncekey::profile::{Answer, Asked, Exchange, Profile, Replay};
    ///
    /// # let none = HeaderMap::new();
    /// # let asked = Asked::new(&Method::POST, &none).with_key(Some("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506"));
    /// let mark = HeaderMap::from_iter([(HeaderName::from_static("idempotent-replayed"), HeaderValue::from_static("true"))]);
    /// let replay = |api: Profile, headers| {
    ///     api.replay(&api.read(&asked, &Exchange::Answered(Answer::new(StatusCode::OK, headers, b"{}"))))
    /// };
    /// assert_eq!(replay(Profile::mollie(), &mark), Replay::Yes);
    /// assert_eq!(replay(Profile::mollie(), &none), Replay::No); // it marks every one
    /// assert_eq!(replay(Profile::generic(), &none), Replay::Unmarked);
    /// ```
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
            self.marks.iter().any(|(mark, test)| mark == name && test.holds_for(value, asked.key))
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
