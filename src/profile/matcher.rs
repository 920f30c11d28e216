use std::borrow::Cow;

use http::StatusCode;
use http::header::{HeaderMap, HeaderName};
use serde_json::Value;

use super::builder::ProfileError;
use super::header_test::{HeaderTest, Test};
use super::json::{LONGEST_PARSED, Path};

/// A pattern over an answer: every part that is given must match.
///
/// Without a status it matches any 4xx and 5xx, never a success. One of
/// statuses alone matches neither a page that came where data was asked for (a
/// gateway may have said it) nor the answer to a request without a key.
///
/// ```
/// use oncekey::profile::Matcher;
///
/// // 409 {"code":"IDEMPOTENCY_IN_PROGRESS"}
/// let running = Matcher::new().status(409).code("IDEMPOTENCY_IN_PROGRESS");
/// // 400 {"error":{"type":"idempotency_error"}}
/// let reused = Matcher::new().status(400).code_at("error.type", "idempotency_error");
/// // 422 {"errorCode":"704"}, and in its head `transient-error: true`
/// let busy = Matcher::new().status(422).code_at("errorCode", "704").header("transient-error", "true");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Matcher {
    statuses: Vec<u16>,
    codes: Vec<Code>,
    path: Option<Cow<'static, str>>,
    present: Vec<Cow<'static, str>>,
    headers: Vec<(Cow<'static, str>, HeaderTest)>,
    messages: Vec<Cow<'static, str>>,
}

/// What a code is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Code {
    Is(Cow<'static, str>),
    Begins(Cow<'static, str>),
    SentKey,
}

impl Code {
    fn matches(&self, found: &str, sent_key: Option<&str>) -> bool {
        match self {
            Self::Is(code) => found == code,
            Self::Begins(start) => found.starts_with(&**start),
            Self::SentKey => sent_key == Some(found),
        }
    }
}

impl Matcher {
    /// Matches every 4xx and 5xx.
    ///
    /// ```
    /// # use http::header::{HeaderMap, HeaderName, HeaderValue};
    /// # use http::{Method, StatusCode};
    /// # use oncekey::engine::Why;
    /// # use oncekey::profile::{Answer, Asked, Exchange, Matcher, Meaning, Profile};
    /// # let none = HeaderMap::new();
    /// # let asked = Asked::new(&Method::POST, &none).with_key(Some("k-1"));
    /// let acme = Profile::builder("acme").rule(Matcher::new(), Meaning::InProgress).build()?;
    /// let why = |status| acme.read(&asked, &Exchange::Answered(Answer::new(status, &none, b"{}"))).why();
    /// assert_eq!(why(StatusCode::IM_A_TEAPOT), Why::InProgress);
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// This status, or any other one given.
    ///
    /// ```
    /// # use http::header::{HeaderMap, HeaderName, HeaderValue};
    /// # use http::{Method, StatusCode};
    /// # use oncekey::engine::Why;
    /// # use oncekey::profile::{Answer, Asked, Exchange, Matcher, Meaning, Profile};
    /// # let none = HeaderMap::new();
    /// # let asked = Asked::new(&Method::POST, &none).with_key(Some("k-1"));
    /// let acme = Profile::builder("acme").rule(Matcher::new().status(409).status(423), Meaning::InProgress).build()?;
    /// let why = |status| acme.read(&asked, &Exchange::Answered(Answer::new(status, &none, b"{}"))).why();
    /// assert_eq!(why(StatusCode::CONFLICT), Why::InProgress);
    /// assert_eq!(why(StatusCode::LOCKED), Why::InProgress);
    /// assert_eq!(why(StatusCode::BAD_REQUEST), Why::Refusal);
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn status(mut self, status: u16) -> Self {
        self.statuses.push(status);
        self
    }

    /// This code, or any other one given, in any of the profile's places for a
    /// code. Compared to the letter.
    ///
    /// ```
    /// # use http::header::{HeaderMap, HeaderName, HeaderValue};
    /// # use http::{Method, StatusCode};
    /// # use oncekey::engine::Why;
    /// # use oncekey::profile::{Answer, Asked, Exchange, Matcher, Meaning, Profile};
    /// # let none = HeaderMap::new();
    /// # let asked = Asked::new(&Method::POST, &none).with_key(Some("k-1"));
    /// let acme = Profile::builder("acme").rule(Matcher::new().code("KEY_BUSY").code("KEY_LOCKED"), Meaning::InProgress).build()?;
    /// let why = |body: &[u8]| acme.read(&asked, &Exchange::Answered(Answer::new(StatusCode::CONFLICT, &none, body))).why();
    /// assert_eq!(why(br#"{"error":{"code":"KEY_LOCKED"}}"#), Why::InProgress);
    /// assert_eq!(why(br#"{"error":{"code":"key_locked"}}"#), Why::Conflict);
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn code(mut self, code: impl Into<Cow<'static, str>>) -> Self {
        self.codes.push(Code::Is(code.into()));
        self
    }

    /// This code at this place: names parted by dots, `[]` for every element
    /// of a list, as in `errors[].code`.
    ///
    /// ```
    /// # use http::header::{HeaderMap, HeaderName, HeaderValue};
    /// # use http::{Method, StatusCode};
    /// # use oncekey::engine::Why;
    /// # use oncekey::profile::{Answer, Asked, Exchange, Matcher, Meaning, Profile};
    /// # let none = HeaderMap::new();
    /// # let asked = Asked::new(&Method::POST, &none).with_key(Some("k-1"));
    /// let acme = Profile::builder("acme").rule(Matcher::new().code_at("errors[].reason", "busy"), Meaning::InProgress).build()?;
    /// let why = |body: &[u8]| acme.read(&asked, &Exchange::Answered(Answer::new(StatusCode::CONFLICT, &none, body))).why();
    /// assert_eq!(why(br#"{"errors":[{"reason":"late"},{"reason":"busy"}]}"#), Why::InProgress);
    /// assert_eq!(why(br#"{"code":"busy"}"#), Why::Conflict); // not there
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn code_at(self, path: impl Into<Cow<'static, str>>, code: impl Into<Cow<'static, str>>) -> Self {
        self.at(path).code(code)
    }

    /// Looks for the codes at this place alone.
    ///
    /// ```
    /// # use http::header::{HeaderMap, HeaderName, HeaderValue};
    /// # use http::{Method, StatusCode};
    /// # use oncekey::engine::Why;
    /// # use oncekey::profile::{Answer, Asked, Exchange, Matcher, Meaning, Profile};
    /// # let none = HeaderMap::new();
    /// # let asked = Asked::new(&Method::POST, &none).with_key(Some("k-1"));
    /// let acme = Profile::builder("acme").rule(Matcher::new().at("meta.state").code("RUNNING").code("QUEUED"), Meaning::InProgress).build()?;
    /// let why = |body: &[u8]| acme.read(&asked, &Exchange::Answered(Answer::new(StatusCode::CONFLICT, &none, body))).why();
    /// assert_eq!(why(br#"{"meta":{"state":"QUEUED"}}"#), Why::InProgress);
    /// assert_eq!(why(br#"{"code":"QUEUED"}"#), Why::Conflict);
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn at(mut self, path: impl Into<Cow<'static, str>>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// A code that begins so, or any other one given.
    ///
    /// ```
    /// # use http::header::{HeaderMap, HeaderName, HeaderValue};
    /// # use http::{Method, StatusCode};
    /// # use oncekey::engine::Why;
    /// # use oncekey::profile::{Answer, Asked, Exchange, Matcher, Meaning, Profile};
    /// # let none = HeaderMap::new();
    /// # let asked = Asked::new(&Method::POST, &none).with_key(Some("k-1"));
    /// let acme = Profile::builder("acme").rule(Matcher::new().code_prefix("urn:acme:busy:"), Meaning::InProgress).build()?;
    /// let why = |body: &[u8]| acme.read(&asked, &Exchange::Answered(Answer::new(StatusCode::CONFLICT, &none, body))).why();
    /// assert_eq!(why(br#"{"code":"urn:acme:busy:eu-1"}"#), Why::InProgress);
    /// assert_eq!(why(br#"{"code":"urn:acme:used:eu-1"}"#), Why::Conflict);
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn code_prefix(mut self, start: impl Into<Cow<'static, str>>) -> Self {
        self.codes.push(Code::Begins(start.into()));
        self
    }

    /// The key that was sent, where a code stands, or any code given.
    ///
    /// ```
    /// # use http::header::{HeaderMap, HeaderName, HeaderValue};
    /// # use http::{Method, StatusCode};
    /// # use oncekey::engine::Why;
    /// # use oncekey::profile::{Answer, Asked, Exchange, Matcher, Meaning, Profile};
    /// # let none = HeaderMap::new();
    /// # let asked = Asked::new(&Method::POST, &none).with_key(Some("k-1"));
    /// let acme = Profile::builder("acme").rule(Matcher::new().at("running").code_is_key(), Meaning::InProgress).build()?;
    /// let why = |body: &[u8]| acme.read(&asked, &Exchange::Answered(Answer::new(StatusCode::CONFLICT, &none, body))).why();
    /// assert_eq!(why(br#"{"running":"k-1"}"#), Why::InProgress);
    /// assert_eq!(why(br#"{"running":"k-2"}"#), Why::Conflict); // of somebody else
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn code_is_key(mut self) -> Self {
        self.codes.push(Code::SentKey);
        self
    }

    /// Some text or number at this place.
    ///
    /// ```
    /// # use http::header::{HeaderMap, HeaderName, HeaderValue};
    /// # use http::{Method, StatusCode};
    /// # use oncekey::engine::Why;
    /// # use oncekey::profile::{Answer, Asked, Exchange, Matcher, Meaning, Profile};
    /// # let none = HeaderMap::new();
    /// # let asked = Asked::new(&Method::POST, &none).with_key(Some("k-1"));
    /// let acme = Profile::builder("acme").rule(Matcher::new().status(409).present("retry.token"), Meaning::InProgress).build()?;
    /// let why = |body: &[u8]| acme.read(&asked, &Exchange::Answered(Answer::new(StatusCode::CONFLICT, &none, body))).why();
    /// assert_eq!(why(br#"{"retry":{"token":17}}"#), Why::InProgress);
    /// assert_eq!(why(br#"{"retry":{}}"#), Why::Conflict);
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn present(mut self, path: impl Into<Cow<'static, str>>) -> Self {
        self.present.push(path.into());
        self
    }

    /// A header of this value, in any letter case. Given again for the same
    /// header, any of its values will do; other headers must match too.
    ///
    /// ```
    /// # use http::header::{HeaderMap, HeaderName, HeaderValue};
    /// # use http::{Method, StatusCode};
    /// # use oncekey::engine::Why;
    /// # use oncekey::profile::{Answer, Asked, Exchange, Matcher, Meaning, Profile};
    /// # let none = HeaderMap::new();
    /// # let asked = Asked::new(&Method::POST, &none).with_key(Some("k-1"));
    /// let acme = Profile::builder("acme").rule(Matcher::new().header("acme-state", "busy").header("acme-state", "queued"), Meaning::InProgress).build()?;
    /// let why = |headers: &HeaderMap| {
    ///     acme.read(&asked, &Exchange::Answered(Answer::new(StatusCode::CONFLICT, headers, b"{}"))).why()
    /// };
    /// let says = |state| HeaderMap::from_iter([(HeaderName::from_static("acme-state"), HeaderValue::from_static(state))]);
    /// assert_eq!(why(&says("Queued")), Why::InProgress);
    /// assert_eq!(why(&says("done")), Why::Conflict);
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn header(self, name: impl Into<Cow<'static, str>>, value: impl Into<Cow<'static, str>>) -> Self {
        self.header_test(name.into(), HeaderTest::Is(value.into()))
    }

    /// A header of whatever value.
    ///
    /// ```
    /// # use http::header::{HeaderMap, HeaderName, HeaderValue};
    /// # use http::{Method, StatusCode};
    /// # use oncekey::engine::Why;
    /// # use oncekey::profile::{Answer, Asked, Exchange, Matcher, Meaning, Profile};
    /// # let none = HeaderMap::new();
    /// # let asked = Asked::new(&Method::POST, &none).with_key(Some("k-1"));
    /// let acme = Profile::builder("acme").rule(Matcher::new().status(409).header_present("acme-lock"), Meaning::InProgress).build()?;
    /// let why = |headers: &HeaderMap| {
    ///     acme.read(&asked, &Exchange::Answered(Answer::new(StatusCode::CONFLICT, headers, b"{}"))).why()
    /// };
    /// let lock = HeaderName::from_static("acme-lock");
    /// assert_eq!(why(&HeaderMap::from_iter([(lock, HeaderValue::from_static("eu-1"))])), Why::InProgress);
    /// assert_eq!(why(&HeaderMap::new()), Why::Conflict);
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn header_present(self, name: impl Into<Cow<'static, str>>) -> Self {
        self.header_test(name.into(), HeaderTest::Present)
    }

    /// A header whose value is the key that was sent.
    ///
    /// ```
    /// # use http::header::{HeaderMap, HeaderName, HeaderValue};
    /// # use http::{Method, StatusCode};
    /// # use oncekey::engine::Why;
    /// # use oncekey::profile::{Answer, Asked, Exchange, Matcher, Meaning, Profile};
    /// # let none = HeaderMap::new();
    /// # let asked = Asked::new(&Method::POST, &none).with_key(Some("k-1"));
    /// let acme = Profile::builder("acme").rule(Matcher::new().header_is_key("acme-running"), Meaning::InProgress).build()?;
    /// let why = |headers: &HeaderMap| {
    ///     acme.read(&asked, &Exchange::Answered(Answer::new(StatusCode::CONFLICT, headers, b"{}"))).why()
    /// };
    /// let names = |key| HeaderMap::from_iter([(HeaderName::from_static("acme-running"), HeaderValue::from_static(key))]);
    /// assert_eq!(why(&names("k-1")), Why::InProgress);
    /// assert_eq!(why(&names("k-2")), Why::Conflict);
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn header_is_key(self, name: impl Into<Cow<'static, str>>) -> Self {
        self.header_test(name.into(), HeaderTest::SentKey)
    }

    /// No such header.
    ///
    /// ```
    /// # use http::header::{HeaderMap, HeaderName, HeaderValue};
    /// # use http::{Method, StatusCode};
    /// # use oncekey::engine::Why;
    /// # use oncekey::profile::{Answer, Asked, Exchange, Matcher, Meaning, Profile};
    /// # let none = HeaderMap::new();
    /// # let asked = Asked::new(&Method::POST, &none).with_key(Some("k-1"));
    /// let acme = Profile::builder("acme").rule(Matcher::new().status(409).header_absent("acme-final"), Meaning::InProgress).build()?;
    /// let why = |headers: &HeaderMap| {
    ///     acme.read(&asked, &Exchange::Answered(Answer::new(StatusCode::CONFLICT, headers, b"{}"))).why()
    /// };
    /// let last = HeaderName::from_static("acme-final");
    /// assert_eq!(why(&HeaderMap::new()), Why::InProgress);
    /// assert_eq!(why(&HeaderMap::from_iter([(last, HeaderValue::from_static("true"))])), Why::Conflict);
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn header_absent(self, name: impl Into<Cow<'static, str>>) -> Self {
        self.header_test(name.into(), HeaderTest::Absent)
    }

    fn header_test(mut self, name: Cow<'static, str>, test: HeaderTest) -> Self {
        self.headers.push((name, test));
        self
    }

    /// These words anywhere in the body, to the letter, and all others given:
    /// for APIs that tell two cases apart in prose alone.
    ///
    /// ```
    /// # use http::header::{HeaderMap, HeaderName, HeaderValue};
    /// # use http::{Method, StatusCode};
    /// # use oncekey::engine::Why;
    /// # use oncekey::profile::{Answer, Asked, Exchange, Matcher, Meaning, Profile};
    /// # let none = HeaderMap::new();
    /// # let asked = Asked::new(&Method::POST, &none).with_key(Some("k-1"));
    /// let acme = Profile::builder("acme").rule(Matcher::new().status(409).message_contains("still").message_contains("running"), Meaning::InProgress).build()?;
    /// let why = |body: &[u8]| acme.read(&asked, &Exchange::Answered(Answer::new(StatusCode::CONFLICT, &none, body))).why();
    /// assert_eq!(why(br#"{"message":"The request is still running."}"#), Why::InProgress);
    /// assert_eq!(why(br#"{"message":"The request is running late."}"#), Why::Conflict); // both words, or none
    /// # Ok::<(), oncekey::profile::ProfileError>(())
    /// ```
    pub fn message_contains(mut self, words: impl Into<Cow<'static, str>>) -> Self {
        self.messages.push(words.into());
        self
    }

    pub(super) fn compile(&self) -> Result<Compiled, ProfileError> {
        if let Some(status) = self.statuses.iter().find(|status| !(100..1000).contains(*status)) {
            return Err(ProfileError::status(*status));
        }
        let mut headers: Vec<(HeaderName, Vec<Test>)> = Vec::new();
        for (name, test) in &self.headers {
            let header = HeaderName::try_from(&**name).map_err(|_| ProfileError::header_name(name))?;
            let test = test.compile(header.as_str())?;
            match headers.iter_mut().find(|(known, _)| *known == header) {
                Some((_, tests)) => tests.push(test),
                None => headers.push((header, vec![test])),
            }
        }
        Ok(Compiled {
            statuses: self.statuses.clone(),
            codes: self.codes.clone(),
            path: self.path.as_deref().map(compile_path).transpose()?,
            present: self.present.iter().map(|path| compile_path(path)).collect::<Result<_, _>>()?,
            headers,
            messages: self.messages.clone(),
        })
    }
}

pub(super) fn compile_path(path: &str) -> Result<Path, ProfileError> {
    Path::parse(path).ok_or_else(|| ProfileError::path(path))
}

/// A matcher, checked and ready.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    statuses: Vec<u16>,
    codes: Vec<Code>,
    path: Option<Path>,
    present: Vec<Path>,
    headers: Vec<(HeaderName, Vec<Test>)>,
    messages: Vec<Cow<'static, str>>,
}

/// What a matcher looks at.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) status: StatusCode,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a [u8],
    pub(super) parsed: Option<&'a Value>,
    /// A page came where data was asked for.
    pub(super) is_page: bool,
    pub(super) sent_key: Option<&'a str>,
    /// The profile's places for a code.
    pub(super) places: &'a [Path],
}

impl Compiled {
    pub(super) fn may_match_success(&self) -> bool {
        self.statuses.iter().any(|status| *status < 400)
    }

    pub(super) fn matches(&self, seen: &Seen<'_>) -> bool {
        let status_fits = if self.statuses.is_empty() {
            seen.status.is_client_error() || seen.status.is_server_error()
        } else {
            self.statuses.contains(&seen.status.as_u16())
        };
        status_fits
            && !(self.is_of_statuses_alone() && (seen.is_page || seen.sent_key.is_none()))
            && self
                .headers
                .iter()
                .all(|(name, tests)| tests.iter().any(|test| test.passes(seen.headers, name, seen.sent_key)))
            && self.messages.iter().all(|words| contains(seen.body, words.as_bytes()))
            && self.present.iter().all(|path| seen.parsed.is_some_and(|parsed| !path.scalars(parsed).is_empty()))
            && (self.codes.is_empty() || seen.parsed.is_some_and(|parsed| self.code_matches(parsed, seen)))
    }

    fn is_of_statuses_alone(&self) -> bool {
        self.codes.is_empty() && self.present.is_empty() && self.headers.is_empty() && self.messages.is_empty()
    }

    fn code_matches(&self, parsed: &Value, seen: &Seen<'_>) -> bool {
        let places = self.path.as_ref().map_or(seen.places, std::slice::from_ref);
        places
            .iter()
            .flat_map(|path| path.scalars(parsed))
            .any(|found| self.codes.iter().any(|code| code.matches(found.as_str(), seen.sent_key)))
    }
}

/// Whether some line of this header has this value, in any letter case.
pub(super) fn has_value(headers: &HeaderMap, name: &HeaderName, value: &[u8]) -> bool {
    headers.get_all(name).iter().any(|line| line.as_bytes().trim_ascii().eq_ignore_ascii_case(value))
}

fn contains(body: &[u8], words: &[u8]) -> bool {
    let body = &body[..body.len().min(LONGEST_PARSED)];
    words.is_empty() || body.windows(words.len()).any(|window| window == words)
}
