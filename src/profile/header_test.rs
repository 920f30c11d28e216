use std::borrow::Cow;

use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::builder::ProfileError;

/// What is asked of one header of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HeaderTest {
    /// This value, in any letter case.
    Is(Cow<'static, str>),
    /// Any value.
    Present,
    /// The key that was sent.
    SentKey,
    /// No such header.
    Absent,
}

impl HeaderTest {
    pub(super) fn compile(&self, name: &str) -> Result<Test, ProfileError> {
        Ok(match self {
            Self::Is(value) => Test::Is(HeaderValue::try_from(&**value).map_err(|_| ProfileError::header_value(name))?),
            Self::Present => Test::Present,
            Self::SentKey => Test::SentKey,
            Self::Absent => Test::Absent,
        })
    }
}

/// The same, checked and ready.
#[derive(Clone, Debug)]
pub(super) enum Test {
    Is(HeaderValue),
    Present,
    SentKey,
    Absent,
}

impl Test {
    /// Whether the header, in some line of it, passes.
    pub(super) fn passes(&self, headers: &HeaderMap, name: &HeaderName, sent_key: Option<&str>) -> bool {
        let mut lines = headers.get_all(name).iter();
        match self {
            Self::Absent => lines.next().is_none(),
            Self::Is(_) | Self::Present | Self::SentKey => lines.any(|line| self.holds_for(line, sent_key)),
        }
    }

    /// Whether one line of the header passes.
    pub(super) fn holds_for(&self, line: &HeaderValue, sent_key: Option<&str>) -> bool {
        let line = line.as_bytes().trim_ascii();
        match self {
            Self::Is(value) => line.eq_ignore_ascii_case(value.as_bytes()),
            Self::Present => true,
            // Keys are compared to the letter; one that goes out quoted may come back so.
            Self::SentKey => sent_key.is_some_and(|key| line == key.as_bytes() || unquoted(line) == key.as_bytes()),
            Self::Absent => false,
        }
    }
}

fn unquoted(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(line)
}
