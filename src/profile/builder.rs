use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use http::header::HeaderName;

use super::header_test::HeaderTest;
use super::key_format::KeyFormat;
use super::matcher::{Matcher, compile_path};
use super::{Answer, Data, Judgement, Profile, Rule};

/// What an answer of the idempotency layer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Meaning {
    /// The key's first request still runs: ask again.
    InProgress,
    /// The key came with another request. On this API the code may also have
    /// another meaning, so it settles nothing.
    KeyReused,
    /// The key came with another request, and the code means nothing else. For
    /// the first attempt of a key drawn here it is a refusal.
    KeyReusedForCertain,
    /// The key's first request has had its answer, which is not this one.
    AlreadyProcessed,
    /// A failure stored under the key, which it can never leave.
    StoredFailure,
    /// The server has forgotten the key.
    KeyExpired,
    /// The server says that this must not be sent again.
    NotToBeRetried,
}

/// Whether an API stores error answers under the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums)] // complete by definition
pub enum ErrorsStored {
    /// Never: an error releases the key.
    Never,
    /// It does, some or all of them.
    Always,
    /// Its pages do not say.
    Unsaid,
}

/// Makes a [`Profile`].
#[derive(Clone)]
#[must_use = "a profile is made by `build`"]
pub struct ProfileBuilder {
    id: String,
    version: u32,
    key_header: Cow<'static, str>,
    key_format: KeyFormat,
    keyed: Vec<Method>,
    key_lifetime: Duration,
    marks: Vec<(Cow<'static, str>, HeaderTest)>,
    mark_promised: bool,
    code_paths: Vec<Cow<'static, str>>,
    rules: Vec<(Matcher, Meaning, Option<Cow<'static, str>>)>,
    settles: Vec<Matcher>,
    should_retry: Option<Cow<'static, str>>,
    errors_stored: ErrorsStored,
    releases_key: Option<bool>,
    min_delay: Duration,
    limits_before_work: bool,
    promises_keys: bool,
    replays: bool,
    overlap_is_safe: bool,
    judge: Option<super::Judge>,
}

/// Where most APIs put the code of an error.
const CODE_PATHS: [&str; 9] = [
    "code",
    "error_code",
    "errorCode",
    "error.code",
    "error.error_code",
    "error.errorCode",
    "error",
    "errors[].code",
    "[].code",
];

impl ProfileBuilder {
    pub(super) fn new(id: String) -> Self {
        Self {
            id,
            version: 1,
            key_header: "idempotency-key".into(),
            key_format: KeyFormat::any(),
            keyed: vec![Method::POST, Method::PATCH],
            key_lifetime: Duration::from_secs(86_400),
            marks: Vec::new(),
            mark_promised: false,
            code_paths: CODE_PATHS.map(Cow::Borrowed).to_vec(),
            rules: Vec::new(),
            settles: Vec::new(),
            should_retry: None,
            errors_stored: ErrorsStored::Unsaid,
            releases_key: None,
            min_delay: Duration::ZERO,
            limits_before_work: false,
            promises_keys: false,
            replays: true,
            overlap_is_safe: true,
            judge: None,
        }
    }

    /// Its version, written down beside each operation; to be raised when the
    /// reading of an answer changes. A newer version still takes up what an
    /// older one began. Default: 1.
    ///
    /// ```
    /// use oncekey::Profile;
    ///
    /// let acme = Profile::builder("acme").version(2).build()?;
    /// assert_eq!((acme.id(), acme.version()), ("acme", 2));
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }

    /// The header that carries the key. Default: `Idempotency-Key`.
    ///
    /// ```
    /// use oncekey::Profile;
    ///
    /// let acme = Profile::builder("acme").key_header("X-Idempotency-Key").build()?;
    /// assert_eq!(acme.key_header(), "x-idempotency-key");
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn key_header(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.key_header = name.into();
        self
    }

    /// Which keys it takes. Default: 1 to 300 visible characters.
    ///
    /// ```
    /// use oncekey::profile::{KeyFormat, Profile};
    ///
    /// let acme = Profile::builder("acme").key_format(KeyFormat::uuid()).build()?;
    /// assert!(acme.key_format().check("order-7").is_err());
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn key_format(mut self, format: KeyFormat) -> Self {
        self.key_format = format;
        self
    }

    /// The methods that get a key of their own accord. Default: POST and PATCH.
    ///
    /// Where an API wants its key in the body or the URL, name none and put it
    /// there yourself: a request without a key of ours is never sent again once
    /// it may have been received.
    ///
    /// ```
    /// use oncekey::{Profile, reqwest::Method};
    ///
    /// let acme = Profile::builder("acme").keyed_methods([Method::POST]).build()?;
    /// assert!(acme.keys(&Method::POST) && !acme.keys(&Method::PATCH));
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn keyed_methods(mut self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.keyed = methods.into_iter().collect();
        self
    }

    /// How long the server honours a key, at least. Default: 24 hours.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::Profile;
    ///
    /// let hours = |hours: u64| Duration::from_secs(hours * 3600);
    /// let acme = Profile::builder("acme").key_lifetime(hours(6)).build()?;
    /// assert!(acme.key_lifetime() < Profile::generic().key_lifetime());
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn key_lifetime(mut self, lifetime: Duration) -> Self {
        self.key_lifetime = lifetime;
        self
    }

    /// A header that marks a replayed answer, and its value, in any letter
    /// case. May be given more than once. Default: none.
    ///
    /// ```
    /// # use http::header::{HeaderMap, HeaderName, HeaderValue};
    /// # use http::{Method, StatusCode};
    /// # let none = HeaderMap::new();
    /// # let asked = Asked::new(&Method::POST, &none).with_key(Some("k-1"));
    /// use oncekey::profile::{Answer, Asked, Exchange, Profile};
    ///
    /// let acme = Profile::builder("acme").replay_mark("Idempotent-Replayed", "true").build()?;
    /// let mark = (HeaderName::from_static("idempotent-replayed"), HeaderValue::from_static("True"));
    /// let headers = HeaderMap::from_iter([mark]);
    /// let answer = Exchange::Answered(Answer::new(StatusCode::CREATED, &headers, b"{}"));
    /// assert!(acme.read(&asked, &answer).marked());
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn replay_mark(mut self, header: impl Into<Cow<'static, str>>, value: impl Into<Cow<'static, str>>) -> Self {
        self.marks.push((header.into(), HeaderTest::Is(value.into())));
        self
    }

    /// A header that marks a replayed answer by being there, whatever its value.
    /// Default: none.
    ///
    /// ```
    /// let profile = oncekey::Profile::builder("acme").replay_mark_present("Original-Request-Id").build()?;
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn replay_mark_present(mut self, header: impl Into<Cow<'static, str>>) -> Self {
        self.marks.push((header.into(), HeaderTest::Present));
        self
    }

    /// A header that marks a replayed answer by repeating the key. Only for
    /// APIs that do not repeat it in first answers too. Default: none.
    ///
    /// ```
    /// let profile = oncekey::Profile::builder("acme").replay_mark_is_key("Idempotency-Key").build()?;
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn replay_mark_is_key(mut self, header: impl Into<Cow<'static, str>>) -> Self {
        self.marks.push((header.into(), HeaderTest::SentKey));
        self
    }

    /// Whether every replay is marked, so that an answer without the mark is
    /// a first one. Default: no.
    ///
    /// ```
    /// use oncekey::{Profile, engine::*, profile::Replay};
    ///
    /// let first = Verdict::new(Reach::Applied, Advice::Stop, Why::Success); // of an answer without the mark
    /// let acme = || Profile::builder("acme").replay_mark("Idempotent-Replayed", "true");
    /// assert_eq!(acme().build()?.replay(&first), Replay::Unmarked);
    /// assert_eq!(acme().promises_mark(true).build()?.replay(&first), Replay::No);
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn promises_mark(mut self, yes: bool) -> Self {
        self.mark_promised = yes;
        self
    }

    /// Where an error's code stands in a JSON body, instead of the usual
    /// places (`code`, `error.code`, `errors[].code` and the like).
    ///
    /// ```
    /// # use http::header::{HeaderMap, HeaderName, HeaderValue};
    /// # use http::{Method, StatusCode};
    /// # let none = HeaderMap::new();
    /// # let asked = Asked::new(&Method::POST, &none).with_key(Some("k-1"));
    /// use oncekey::profile::{Answer, Asked, Exchange, Matcher, Meaning, Profile};
    ///
    /// let acme = Profile::builder("acme")
    ///     .code_paths(["error.reason"])
    ///     .rule(Matcher::new().code("KEY_BUSY"), Meaning::InProgress)
    ///     .build()?;
    /// let read = |body: &[u8]| acme.read(&asked, &Exchange::Answered(Answer::new(StatusCode::CONFLICT, &none, body)));
    /// assert_eq!(read(br#"{"error":{"reason":"KEY_BUSY"}}"#).why().as_str(), "still running");
    /// assert_eq!(read(br#"{"code":"KEY_BUSY"}"#).why().as_str(), "conflict"); // not there any more
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn code_paths<P: Into<Cow<'static, str>>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.code_paths = paths.into_iter().map(Into::into).collect();
        self
    }

    /// What an answer of the idempotency layer means. The first that matches wins.
    /// Default: none.
    ///
    /// ```
    /// # use http::header::{HeaderMap, HeaderName, HeaderValue};
    /// # use http::{Method, StatusCode};
    /// # let none = HeaderMap::new();
    /// # let asked = Asked::new(&Method::POST, &none).with_key(Some("k-1"));
    /// use oncekey::profile::{Answer, Asked, Exchange, Matcher, Meaning, Profile};
    ///
    /// let acme = Profile::builder("acme")
    ///     .rule(Matcher::new().status(409).code("KEY_BUSY"), Meaning::InProgress)
    ///     .rule(Matcher::new().status(409), Meaning::AlreadyProcessed)
    ///     .build()?;
    /// let read = |body: &[u8]| acme.read(&asked, &Exchange::Answered(Answer::new(StatusCode::CONFLICT, &none, body)));
    /// assert_eq!(read(br#"{"code":"KEY_BUSY"}"#).why().as_str(), "still running");
    /// assert_eq!(read(br#"{"code":"DONE"}"#).why().as_str(), "already processed");
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn rule(mut self, matcher: Matcher, meaning: Meaning) -> Self {
        self.rules.push((matcher, meaning, None));
        self
    }

    /// An answer that means [`Meaning::AlreadyProcessed`] and names the
    /// original at this place of its body: see [`Profile::original_id`]. Default: none.
    ///
    /// ```
    /// # use http::{HeaderMap, StatusCode};
    /// use oncekey::profile::{Answer, Matcher, Profile};
    ///
    /// let seen = Matcher::new().status(409).code("ALREADY_PAID");
    /// let acme = Profile::builder("acme").recovers(seen, "payment.id").build()?;
    /// # let none = HeaderMap::new();
    /// let body = br#"{"code":"ALREADY_PAID","payment":{"id":"pay_7"}}"#;
    /// let original = acme.original_id(&Answer::new(StatusCode::CONFLICT, &none, body));
    /// assert_eq!(original.as_deref(), Some("pay_7"));
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn recovers(mut self, matcher: Matcher, original: impl Into<Cow<'static, str>>) -> Self {
        self.rules.push((matcher, Meaning::AlreadyProcessed, Some(original.into())));
        self
    }

    /// A refusal that comes from the idempotency layer itself and so holds for
    /// every attempt under the key, an earlier one in doubt included. Only
    /// with the provider's word for it. Default: none.
    ///
    /// ```
    /// # use http::header::{HeaderMap, HeaderName, HeaderValue};
    /// # use http::{Method, StatusCode};
    /// # let none = HeaderMap::new();
    /// # let asked = Asked::new(&Method::POST, &none).with_key(Some("k-1"));
    /// use oncekey::profile::{Answer, Asked, Exchange, Matcher, Profile};
    ///
    /// let acme = Profile::builder("acme").settles(Matcher::new().status(422).code("KEY_BOUND")).build()?;
    /// let read = |body: &[u8]| acme.read(&asked, &Exchange::Answered(Answer::new(StatusCode::UNPROCESSABLE_ENTITY, &none, body)));
    /// assert_eq!(read(br#"{"code":"KEY_BOUND"}"#).reach().as_str(), "rejected"); // of all attempts
    /// assert_eq!(read(br#"{"code":"IBAN_INVALID"}"#).reach().as_str(), "refused"); // of this one
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn settles(mut self, matcher: Matcher) -> Self {
        self.settles.push(matcher);
        self
    }

    /// The response header in which the server says `true` or `false` to
    /// another try. Default: none.
    ///
    /// ```
    /// let profile = oncekey::Profile::builder("acme").should_retry_header("Acme-Should-Retry").build()?;
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn should_retry_header(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.should_retry = Some(name.into());
        self
    }

    /// Whether error answers are stored under the key. Default: unsaid.
    ///
    /// ```
    /// use oncekey::profile::{ErrorsStored, Profile};
    ///
    /// let acme = Profile::builder("acme").errors_stored(ErrorsStored::Never).build()?;
    /// assert!(acme.releases_key());
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn errors_stored(mut self, stored: ErrorsStored) -> Self {
        self.errors_stored = stored;
        self
    }

    /// Whether an error releases the key, so that a corrected body may follow
    /// under it. Default: where errors are never stored.
    ///
    /// ```
    /// use oncekey::Profile;
    ///
    /// let acme = Profile::builder("acme").releases_key(true).build()?;
    /// assert!(acme.releases_key() && !Profile::builder("acme").build()?.releases_key());
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn releases_key(mut self, yes: bool) -> Self {
        self.releases_key = Some(yes);
        self
    }

    /// The shortest time that the provider wants between two requests under one
    /// key. Default: none.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::Profile;
    ///
    /// let acme = Profile::builder("acme").min_delay(Duration::from_secs(1)).build()?;
    /// assert_eq!(acme.min_delay(), Duration::from_secs(1));
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn min_delay(mut self, delay: Duration) -> Self {
        self.min_delay = delay;
        self
    }

    /// Whether a 429 is promised to come before any work. Default: no.
    ///
    /// ```
    /// # use http::{HeaderMap, Method, StatusCode};
    /// use oncekey::profile::{Answer, Asked, Exchange, Profile};
    ///
    /// # let none = HeaderMap::new();
    /// let limited = Exchange::Answered(Answer::new(StatusCode::TOO_MANY_REQUESTS, &none, b""));
    /// let read = |acme: Profile| acme.read(&Asked::new(&Method::POST, &none), &limited).to_string();
    /// assert_eq!(read(Profile::builder("acme").build()?), "in doubt, rate limited");
    /// assert_eq!(read(Profile::builder("acme").limits_before_work(true).build()?), "refused, rate limited");
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn limits_before_work(mut self, yes: bool) -> Self {
        self.limits_before_work = yes;
        self
    }

    /// Whether the API promises to honour the key on every route, so that an
    /// unfinished success may be polled by sending it again. Default: no.
    ///
    /// ```
    /// let profile = oncekey::Profile::builder("acme").promises_keys(true).build()?;
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn promises_keys(mut self, yes: bool) -> Self {
        self.promises_keys = yes;
        self
    }

    /// Whether a repeated request is answered with the original answer. Where it
    /// is not, a lost record of an answer cannot be had again, so that a journal
    /// makes it durable before it is given out. Default: yes.
    ///
    /// ```
    /// use oncekey::Profile;
    ///
    /// let acme = Profile::builder("acme").replays(false).build()?;
    /// assert!(!acme.replays());
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn replays(mut self, yes: bool) -> Self {
        self.replays = yes;
        self
    }

    /// Whether two requests under one key may overlap. Where they may not, an
    /// operation whose process died goes on only when the timeout of its last
    /// attempt is over. Default: yes.
    ///
    /// ```
    /// use oncekey::Profile;
    ///
    /// let acme = Profile::builder("acme").overlap_is_safe(false).build()?;
    /// assert!(!acme.overlap_is_safe());
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn overlap_is_safe(mut self, yes: bool) -> Self {
        self.overlap_is_safe = yes;
        self
    }

    /// Reads a complete 2xx: is it final, pending, refused, or unclear? Default: none.
    ///
    /// ```
    /// use oncekey::profile::{Answer, Judgement};
    ///
    /// let profile = oncekey::Profile::builder("acme").judge(|answer: &Answer<'_>| if answer.status() == 202 { Judgement::Pending } else { Judgement::Final }).build()?;
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn judge(mut self, judge: impl Fn(&Answer<'_>) -> Judgement + Send + Sync + 'static) -> Self {
        self.judge = Some(Arc::new(judge));
        self
    }

    /// Checks all of it.
    ///
    /// ```
    /// use oncekey::profile::{KeyFormat, Matcher, Meaning, Profile};
    ///
    /// assert!(Profile::builder("acme").build().is_ok());
    /// let twice = Matcher::new().at("error..code").code("USED");
    /// let error = Profile::builder("acme").rule(twice, Meaning::KeyReused).build().unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     r#""error..code" is no place in a JSON body; write `error.code` or `errors[].code`"#,
    /// );
    /// // A key that is drawn would not fit.
    /// assert!(Profile::builder("acme").key_format(KeyFormat::word(1..=20)).build().is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// [`ProfileError`], naming the first part that cannot be used.
    pub fn build(self) -> Result<Profile, ProfileError> {
        if self.id.is_empty() || !self.id.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ProfileError("the profile's id must be visible ASCII characters".into()));
        }
        if self.key_lifetime.is_zero() {
            return Err(ProfileError("the key lifetime must be longer than zero".into()));
        }
        self.key_format.is_possible().map_err(ProfileError)?;
        if !self.keyed.is_empty() && !self.key_format.takes_a_uuid() {
            return Err(ProfileError(
                "a key that is drawn is a UUID of 36 characters, which this key format does not take: \
                 name no keyed methods, and bring a key of your own with each request"
                    .into(),
            ));
        }
        let rules = self
            .rules
            .iter()
            .map(|(matcher, meaning, original)| {
                let original = original.as_deref().map(compile_path).transpose()?;
                Ok(Rule { pattern: matcher.compile()?, meaning: *meaning, original })
            })
            .collect::<Result<Vec<_>, ProfileError>>()?;
        let data = Data {
            id: self.id,
            version: self.version,
            key_header: header(&self.key_header)?,
            key_format: self.key_format,
            keyed: self.keyed,
            key_lifetime: self.key_lifetime,
            marks: self
                .marks
                .iter()
                .map(|(name, test)| Ok((header(name)?, test.compile(name)?)))
                .collect::<Result<_, ProfileError>>()?,
            mark_promised: self.mark_promised,
            code_paths: self.code_paths.iter().map(|path| compile_path(path)).collect::<Result<_, _>>()?,
            rules_on_success: rules.iter().any(|rule| rule.pattern.may_match_success()),
            rules,
            settles: self.settles.iter().map(refusal).collect::<Result<_, _>>()?,
            should_retry: self.should_retry.as_deref().map(header).transpose()?,
            errors_stored: self.errors_stored,
            releases_key: self.releases_key.unwrap_or(self.errors_stored == ErrorsStored::Never),
            min_delay: self.min_delay,
            limits_before_work: self.limits_before_work,
            promises_keys: self.promises_keys,
            replays: self.replays,
            overlap_is_safe: self.overlap_is_safe,
            judge: self.judge,
        };
        Ok(Profile { data: Arc::new(data) })
    }

    /// For the presets, whose parts are constants and held by tests.
    pub(super) fn preset(self) -> Profile {
        self.build().expect("a preset's names, values and paths are well formed")
    }
}

fn refusal(matcher: &Matcher) -> Result<super::matcher::Compiled, ProfileError> {
    let compiled = matcher.compile()?;
    if compiled.may_match_success() {
        return Err(ProfileError("`settles` is for refusals: its statuses go from 400 up".into()));
    }
    Ok(compiled)
}

fn header(name: &str) -> Result<HeaderName, ProfileError> {
    HeaderName::try_from(name).map_err(|_| ProfileError::header_name(name))
}

impl fmt::Debug for ProfileBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProfileBuilder").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A part of a profile that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProfileError(Cow<'static, str>);

impl ProfileError {
    pub(super) fn header_name(name: &str) -> Self {
        Self(format!("{name:?} is no header name").into())
    }

    pub(super) fn header_value(name: &str) -> Self {
        Self(format!("the value for the header {name} holds a character that a header cannot").into())
    }

    pub(super) fn path(path: &str) -> Self {
        Self(format!("{path:?} is no place in a JSON body; write `error.code` or `errors[].code`").into())
    }

    pub(super) fn status(status: u16) -> Self {
        Self(format!("{status} is no HTTP status; they go from 100 to 999").into())
    }
}
