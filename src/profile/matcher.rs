use std::borrow::Cow;

use http::header::{HeaderMap, HeaderName};
use http::{HeaderValue, StatusCode};
use serde_json::Value;

use super::builder::ProfileError;
use super::json::Path;

/// A pattern over an answer: every part that is given must match.
///
/// Without a status it matches any 4xx and 5xx, never a success.
///
/// ```
/// use oncekey::profile::Matcher;
///
/// // 409 {"code":"IDEMPOTENCY_IN_PROGRESS"}
/// let running = Matcher::new().status(409).code("IDEMPOTENCY_IN_PROGRESS");
/// // 400 {"error":{"type":"idempotency_error"}}
/// let reused = Matcher::new().status(400).code_at("error.type", "idempotency_error");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Matcher {
    statuses: Vec<u16>,
    codes: Vec<Cow<'static, str>>,
    path: Option<Cow<'static, str>>,
    header: Option<(Cow<'static, str>, Cow<'static, str>)>,
    message: Option<Cow<'static, str>>,
}

impl Matcher {
    /// Matches every 4xx and 5xx.
    pub fn new() -> Self {
        Self::default()
    }

    /// This status, or any other one given.
    pub fn status(mut self, status: u16) -> Self {
        self.statuses.push(status);
        self
    }

    /// This code, or any other one given, in any of the profile's places for a
    /// code. Compared to the letter.
    pub fn code(mut self, code: impl Into<Cow<'static, str>>) -> Self {
        self.codes.push(code.into());
        self
    }

    /// This code at this place: names parted by dots, `[]` for every element
    /// of a list, as in `errors[].code`.
    pub fn code_at(mut self, path: impl Into<Cow<'static, str>>, code: impl Into<Cow<'static, str>>) -> Self {
        self.path = Some(path.into());
        self.code(code)
    }

    /// A header of this value, in any letter case.
    pub fn header(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<Cow<'static, str>>) -> Self {
        self.header = Some((name.into(), value.into()));
        self
    }

    /// These words anywhere in the body, to the letter: for APIs that tell two
    /// cases apart in prose alone.
    pub fn message_contains(mut self, words: impl Into<Cow<'static, str>>) -> Self {
        self.message = Some(words.into());
        self
    }

    pub(super) fn compile(&self) -> Result<Compiled, ProfileError> {
        let path = match &self.path {
            Some(path) => Some(compile_path(path)?),
            None => None,
        };
        let header = match &self.header {
            Some((name, value)) => {
                let name = HeaderName::try_from(&**name).map_err(|_| ProfileError::header_name(name))?;
                let value = HeaderValue::try_from(&**value).map_err(|_| ProfileError::header_value(name.as_str()))?;
                Some((name, value))
            }
            None => None,
        };
        if let Some(status) = self.statuses.iter().find(|status| !(100..1000).contains(*status)) {
            return Err(ProfileError::status(*status));
        }
        Ok(Compiled {
            statuses: self.statuses.clone(),
            codes: self.codes.clone(),
            path,
            header,
            message: self.message.clone(),
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
    codes: Vec<Cow<'static, str>>,
    path: Option<Path>,
    header: Option<(HeaderName, HeaderValue)>,
    message: Option<Cow<'static, str>>,
}

impl Compiled {
    pub(super) fn may_match_success(&self) -> bool {
        self.statuses.iter().any(|status| *status < 400)
    }

    pub(super) fn matches(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        parsed: Option<&Value>,
        places: &[Path],
    ) -> bool {
        let status_fits = if self.statuses.is_empty() {
            status.is_client_error() || status.is_server_error()
        } else {
            self.statuses.contains(&status.as_u16())
        };
        status_fits
            && self.header.as_ref().is_none_or(|(name, value)| has_value(headers, name, value.as_bytes()))
            && self.message.as_ref().is_none_or(|words| contains(body, words.as_bytes()))
            && (self.codes.is_empty() || parsed.is_some_and(|parsed| self.code_matches(parsed, places)))
    }

    fn code_matches(&self, parsed: &Value, places: &[Path]) -> bool {
        let places = self.path.as_ref().map_or(places, std::slice::from_ref);
        places
            .iter()
            .flat_map(|path| path.scalars(parsed))
            .any(|found| self.codes.iter().any(|code| *code == found.as_str()))
    }
}

/// Whether some line of this header has this value, in any letter case.
pub(super) fn has_value(headers: &HeaderMap, name: &HeaderName, value: &[u8]) -> bool {
    headers.get_all(name).iter().any(|line| line.as_bytes().trim_ascii().eq_ignore_ascii_case(value))
}

fn contains(body: &[u8], words: &[u8]) -> bool {
    words.is_empty() || body.windows(words.len()).any(|window| window == words)
}
