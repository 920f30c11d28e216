use std::fmt;

use http::header::{
    ACCEPT, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING,
};
use http::{Method, StatusCode, Version};

use crate::engine::{Advice, MethodKind, Time, Verdict};

/// What a request asked for: all that the reading of its answer depends on.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    pub(super) method: &'a Method,
    headers: Headers<'a>,
    pub(super) key: Option<&'a str>,
    pub(super) gone_is_done: bool,
}

impl<'a> Asked<'a> {
    /// A request of this method with these headers, sent without a key.
    ///
    /// ```
    /// use http::header::{ACCEPT, HeaderMap, HeaderValue};
    /// # use http::{Method, StatusCode};
    /// use oncekey::engine::Why;
    /// use oncekey::profile::{Answer, Asked, Exchange, Profile};
    ///
    /// # let headers = HeaderMap::new();
    /// let page = Exchange::Answered(Answer::new(StatusCode::OK, &headers, b"<html>Sign in</html>"));
    /// let none = HeaderMap::new(); // data is asked for
    /// assert_eq!(Profile::generic().read(&Asked::new(&Method::GET, &none), &page).why(), Why::WrongType);
    /// let html = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("text/html"))]);
    /// assert_eq!(Profile::generic().read(&Asked::new(&Method::GET, &html), &page).why(), Why::Success);
    /// ```
    pub const fn new(method: &'a Method, headers: &'a HeaderMap) -> Self {
        Self { method, headers: Headers::Map(headers), key: None, gone_is_done: false }
    }

    /// The same of headers that are not in a map yet.
    pub(crate) const fn listed(method: &'a Method, headers: &'a [(HeaderName, HeaderValue)]) -> Self {
        Self { method, headers: Headers::List(headers), key: None, gone_is_done: false }
    }

    /// The idempotency key it carried.
    ///
    /// ```
    /// # use http::{HeaderMap, Method, StatusCode};
    /// use oncekey::engine::Reach;
    /// use oncekey::profile::{Answer, Asked, Exchange, Profile};
    ///
    /// # let headers = HeaderMap::new();
    /// let keyless = Asked::new(&Method::POST, &headers);
    /// let keyed = keyless.with_key(Some("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506"));
    /// // What says that it still runs is no reason to ask again where no key was sent.
    /// let answer = Answer::new(StatusCode::CONFLICT, &headers, br#"{"code":"IDEMPOTENCY_IN_PROGRESS"}"#);
    /// let reach = |asked| Profile::verifika().read(asked, &Exchange::Answered(answer)).reach();
    /// assert_eq!(reach(&keyed), Reach::Accepted { knows_key: true });
    /// assert_eq!(reach(&keyless), Reach::Accepted { knows_key: false });
    /// ```
    #[must_use]
    pub const fn with_key(mut self, key: Option<&'a str>) -> Self {
        self.key = key;
        self
    }

    /// For a DELETE: 404 and 410 count as done.
    ///
    /// ```
    /// # use http::{HeaderMap, Method, StatusCode};
    /// use oncekey::engine::Reach;
    /// use oncekey::profile::{Answer, Asked, Exchange, Profile};
    ///
    /// # let headers = HeaderMap::new();
    /// let delete = Asked::new(&Method::DELETE, &headers);
    /// let gone = Exchange::Answered(Answer::new(StatusCode::GONE, &headers, b""));
    /// assert_eq!(Profile::generic().read(&delete, &gone).reach(), Reach::Refused);
    /// assert_eq!(Profile::generic().read(&delete.gone_is_done(true), &gone).reach(), Reach::Applied);
    /// ```
    #[must_use]
    pub const fn gone_is_done(mut self, yes: bool) -> Self {
        self.gone_is_done = yes;
        self
    }

    pub(super) fn names(&self, header: &HeaderName) -> bool {
        !self.headers.all(header).is_empty()
    }

    /// What its method promises.
    pub(super) fn kind(&self) -> MethodKind {
        method_kind(self.method)
    }

    /// JSON counts as asked for unless the caller's own `Accept` names other
    /// types and no JSON.
    pub(super) fn wants_json(&self) -> bool {
        let accepted = self.accepted();
        let is_json = |range: &String| {
            range == "*/*" || range == "application/*" || range.ends_with("/json") || range.ends_with("+json")
        };
        accepted.is_empty() || accepted.iter().any(is_json)
    }

    /// A page counts as asked for only if the caller's `Accept` names it.
    pub(super) fn wants_html(&self) -> bool {
        self.accepted()
            .iter()
            .any(|range| range == "text/html" || range == "application/xhtml+xml" || range == "text/*")
    }

    /// The media ranges of the caller's `Accept`, in lower case.
    fn accepted(&self) -> Vec<String> {
        let ranges = self.headers.all(&ACCEPT);
        let ranges = ranges.iter().flat_map(|value| value.to_str().unwrap_or_default().split(','));
        let named = ranges.map(|range| range.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
        named.filter(|range| !range.is_empty()).collect()
    }
}

impl fmt::Debug for Asked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked")
            .field("method", self.method)
            .field("has_key", &self.key.is_some())
            .field("gone_is_done", &self.gone_is_done)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Copy)]
enum Headers<'a> {
    Map(&'a HeaderMap),
    List(&'a [(HeaderName, HeaderValue)]),
}

impl<'a> Headers<'a> {
    fn all(self, name: &HeaderName) -> Vec<&'a HeaderValue> {
        match self {
            Self::Map(map) => map.get_all(name).iter().collect(),
            Self::List(list) => list.iter().filter(|(other, _)| other == name).map(|(_, value)| value).collect(),
        }
    }
}

/// What a method promises about being sent twice (RFC 9110, 9.2).
pub(crate) fn method_kind(method: &Method) -> MethodKind {
    match *method {
        Method::GET | Method::HEAD | Method::OPTIONS => MethodKind::Safe,
        Method::PUT | Method::DELETE => MethodKind::Idempotent,
        _ => MethodKind::Other,
    }
}

/// What one attempt gave.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Exchange<'a> {
    /// Proof that nothing was sent.
    Unsent {
        /// Trying again cannot help, as with a certificate that will never be accepted.
        hopeless: bool,
    },
    /// It may have been sent, and no complete head of an answer came.
    NoHead,
    /// A complete head came, and as much of its body as `extent` says.
    Answered(Answer<'a>),
}

/// How much of a body came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums)] // complete by definition
pub enum Extent {
    /// All of it, as far as the connection tells.
    Whole,
    /// It ended early, or stalled until the attempt's time was up.
    Cut,
    /// It is longer than the client's limit.
    TooLarge,
}

/// One answer: a complete head, and what came of its body.
#[derive(Clone, Copy)]
pub struct Answer<'a> {
    pub(super) status: StatusCode,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a [u8],
    pub(super) extent: Extent,
    length_proved: bool,
    pub(super) received: Time,
    glance: Glance<'a>,
}

impl<'a> Answer<'a> {
    /// An answer whose body came whole, over HTTP/1.1, at the epoch.
    ///
    /// ```
    /// # use http::{HeaderMap, Method, StatusCode};
    /// use oncekey::engine::Reach;
    /// use oncekey::profile::{Answer, Asked, Exchange, Profile};
    ///
    /// # let headers = HeaderMap::new();
    /// let asked = Asked::new(&Method::POST, &headers);
    /// let answer = Answer::new(StatusCode::CREATED, &headers, br#"{"id":"pay_1"}"#);
    /// let verdict = Profile::stripe().read(&asked, &Exchange::Answered(answer));
    /// assert_eq!(verdict.reach(), Reach::Applied);
    /// ```
    pub fn new(status: StatusCode, headers: &'a HeaderMap, body: &'a [u8]) -> Self {
        let glance = Glance::over(headers);
        let length_proved = glance.has_length || glance.is_chunked;
        Self { status, headers, body, extent: Extent::Whole, length_proved, received: Time::default(), glance }
    }

    /// How much of the body came.
    ///
    /// ```
    /// # use http::{HeaderMap, Method, StatusCode};
    /// use oncekey::engine::Reach;
    /// use oncekey::profile::{Answer, Asked, Exchange, Extent, Profile};
    ///
    /// # let headers = HeaderMap::new();
    /// # let asked = Asked::new(&Method::POST, &headers);
    /// let cut = Answer::new(StatusCode::CREATED, &headers, br#"{"id":"pa"#).with_extent(Extent::Cut);
    /// let verdict = Profile::stripe().read(&asked, &Exchange::Answered(cut));
    /// assert_eq!(verdict.reach(), Reach::AppliedUnread); // it is done; its answer can be fetched
    /// ```
    #[must_use]
    pub const fn with_extent(mut self, extent: Extent) -> Self {
        self.extent = extent;
        self
    }

    /// The protocol it came by: HTTP/2 proves the length of a body only where
    /// a `Content-Length` announced it.
    ///
    /// ```
    /// # use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, TRANSFER_ENCODING};
    /// # use http::{Method, StatusCode};
    /// use http::Version;
    /// use oncekey::engine::Why;
    /// use oncekey::profile::{Answer, Asked, Exchange, Profile};
    ///
    /// # let none = HeaderMap::new();
    /// # let asked = Asked::new(&Method::POST, &none);
    /// let mut headers = HeaderMap::new();
    /// headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    /// headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    /// // Chunks prove that nothing is missing, but over HTTP/2 there are none.
    /// let answer = Answer::new(StatusCode::OK, &headers, b"");
    /// let why = |answer| Profile::generic().read(&asked, &Exchange::Answered(answer)).why();
    /// assert_eq!(why(answer), Why::Success);
    /// assert_eq!(why(answer.with_version(Version::HTTP_2)), Why::CutBody);
    /// ```
    #[must_use]
    pub fn with_version(mut self, version: Version) -> Self {
        if version > Version::HTTP_11 {
            self.length_proved = self.glance.has_length;
        }
        self
    }

    /// When its head came, by our clock.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use http::header::{HeaderMap, HeaderValue, RETRY_AFTER};
    /// # use http::{Method, StatusCode};
    /// use oncekey::engine::{Advice, Time};
    /// use oncekey::profile::{Answer, Asked, Exchange, Profile};
    ///
    /// # let none = HeaderMap::new();
    /// # let asked = Asked::new(&Method::POST, &none);
    /// let date = HeaderValue::from_static("Tue, 14 Nov 2023 22:13:30 GMT");
    /// let headers = HeaderMap::from_iter([(RETRY_AFTER, date)]);
    /// let at = Time::from_millis(1_700_000_000_000); // 10 s before that
    /// let answer = Answer::new(StatusCode::SERVICE_UNAVAILABLE, &headers, b"").received(at);
    /// let verdict = Profile::generic().read(&asked, &Exchange::Answered(answer));
    /// assert_eq!(verdict.advice(), Advice::RetryAfter(Duration::from_secs(10)));
    /// ```
    #[must_use]
    pub const fn received(mut self, at: Time) -> Self {
        self.received = at;
        self
    }

    /// Its status.
    ///
    /// ```
    /// use oncekey::profile::{Answer, Judgement};
    ///
    /// fn judge(answer: &Answer<'_>) -> Judgement {
    ///     if answer.status() == 202 { Judgement::Pending } else { Judgement::Final }
    /// }
    /// # let headers = http::HeaderMap::new();
    /// # assert_eq!(judge(&Answer::new(http::StatusCode::ACCEPTED, &headers, b"")), Judgement::Pending);
    /// # assert_eq!(judge(&Answer::new(http::StatusCode::OK, &headers, b"")), Judgement::Final);
    /// ```
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// Its headers.
    ///
    /// ```
    /// use oncekey::profile::{Answer, Judgement};
    ///
    /// fn judge(answer: &Answer<'_>) -> Judgement {
    ///     match answer.headers().get("payment-status").map(|status| status.as_bytes()) {
    ///         Some(b"captured") => Judgement::Final,
    ///         Some(_) => Judgement::Pending,
    ///         None => Judgement::Unclear,
    ///     }
    /// }
    /// # let mut headers = http::HeaderMap::new();
    /// # assert_eq!(judge(&Answer::new(http::StatusCode::OK, &headers, b"")), Judgement::Unclear);
    /// # headers.insert("payment-status", http::HeaderValue::from_static("captured"));
    /// # assert_eq!(judge(&Answer::new(http::StatusCode::OK, &headers, b"")), Judgement::Final);
    /// ```
    pub const fn headers(&self) -> &'a HeaderMap {
        self.headers
    }

    /// What came of its body, decoded.
    ///
    /// ```
    /// use oncekey::profile::{Answer, Judgement};
    ///
    /// fn judge(answer: &Answer<'_>) -> Judgement {
    ///     let Ok(payment) = serde_json::from_slice::<serde_json::Value>(answer.body()) else {
    ///         return Judgement::Unclear;
    ///     };
    ///     if payment["status"] == "declined" { Judgement::Refused } else { Judgement::Final }
    /// }
    /// # let headers = http::HeaderMap::new();
    /// # let judged = |body: &[u8]| judge(&Answer::new(http::StatusCode::OK, &headers, body));
    /// # assert_eq!(judged(br#"{"status":"declined"}"#), Judgement::Refused);
    /// # assert_eq!(judged(br#"{"status":"captured"}"#), Judgement::Final);
    /// # assert_eq!(judged(b"OK"), Judgement::Unclear);
    /// ```
    pub const fn body(&self) -> &'a [u8] {
        self.body
    }

    fn content_type(&self) -> &'a str {
        let value = self.glance.content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
        value.split(';').next().unwrap_or_default().trim()
    }

    /// Whether its framing proves that there is nothing in it.
    pub(super) const fn is_proved_empty(&self) -> bool {
        self.body.is_empty() && self.length_proved && matches!(self.extent, Extent::Whole)
    }

    pub(super) fn is_html(&self) -> bool {
        let kind = self.content_type();
        kind.eq_ignore_ascii_case("text/html")
            || kind.eq_ignore_ascii_case("application/xhtml+xml")
            || super::json::begins_like_html(self.body)
    }

    /// Whether it says that it is JSON, its framing proves no length, and it is none.
    pub(super) fn is_cut_json(&self) -> bool {
        !self.length_proved && !self.is_what_it_says()
    }

    /// Whether a body that came whole is the JSON that its content type says.
    /// Where the framing proved the length both ends are enough, and nothing at
    /// all is as good; where it did not, nothing may be all that is left.
    /// The verdict with the wait that this answer names, if it may be tried again.
    pub(crate) fn heeded(&self, verdict: Verdict) -> Verdict {
        if verdict.advice() != Advice::Retry {
            return verdict;
        }
        match super::retry_after::named_wait(self.headers, self.received) {
            Some(wait) => verdict.with_advice(Advice::RetryAfter(wait)),
            None => verdict,
        }
    }

    /// Where codes cannot be looked for: in a coding that was not undone, or in too much data.
    pub(super) fn hides_its_codes(&self) -> bool {
        self.body.len() > super::json::LONGEST_PARSED && !self.is_html()
            || (self.glance.is_encoded && !self.body.is_empty())
    }

    pub(super) fn is_what_it_says(&self) -> bool {
        if self.is_proved_empty() || self.glance.is_encoded {
            return true;
        }
        let kind = self.content_type();
        match (is_json_type(kind), self.length_proved) {
            (true, true) => super::json::begins_and_ends_like_json(self.body),
            (true, false) => super::json::is_json(self.body),
            (false, true) => true,
            // An object is one under no name, or a careless one, too.
            (false, false) => {
                let may_be_json = kind.is_empty() || kind.to_ascii_lowercase().starts_with("text/");
                !may_be_json || !super::json::begins_like_an_object(self.body) || super::json::is_json(self.body)
            }
        }
    }
}

/// What is needed of every answer's headers, in one pass over them.
#[derive(Clone, Copy, Default)]
pub(crate) struct Glance<'a> {
    content_type: Option<&'a HeaderValue>,
    has_length: bool,
    is_chunked: bool,
    is_encoded: bool,
    pub(crate) date: Option<&'a HeaderValue>,
    /// The id that the server's support can look the request up by.
    pub(crate) request_id: Option<&'a HeaderValue>,
}

impl<'a> Glance<'a> {
    pub(crate) fn over(headers: &'a HeaderMap) -> Self {
        let mut glance = Self::default();
        for (name, value) in headers {
            if *name == CONTENT_TYPE {
                glance.content_type.get_or_insert(value);
            } else if *name == CONTENT_LENGTH {
                glance.has_length = true;
            } else if *name == DATE {
                glance.date = Some(value);
            } else if *name == TRANSFER_ENCODING {
                // Any other coding is read to the connection's end.
                glance.is_chunked = value.as_bytes().trim_ascii_end().to_ascii_lowercase().ends_with(b"chunked");
            } else if *name == CONTENT_ENCODING {
                glance.is_encoded |= !value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity");
            } else if matches!(name.as_str(), "request-id" | "x-request-id" | "x-correlation-id") {
                glance.request_id = Some(value);
            }
        }
        glance
    }
}

fn is_json_type(kind: &str) -> bool {
    let ends_with = |suffix: &str| {
        kind.len() >= suffix.len()
            && kind.as_bytes()[kind.len() - suffix.len()..].eq_ignore_ascii_case(suffix.as_bytes())
    };
    kind.eq_ignore_ascii_case("application/json") || kind.eq_ignore_ascii_case("text/json") || ends_with("+json")
}

impl fmt::Debug for Answer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("status", &self.status)
            .field("body_len", &self.body.len())
            .field("extent", &self.extent)
            .finish_non_exhaustive()
    }
}

/// What a `judge` makes of a complete 2xx.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums)] // complete by definition
pub enum Judgement {
    /// It is carried out, and this is the final answer.
    Final,
    /// It was taken, and is not finished.
    Pending,
    /// It was turned away, 2xx or not.
    Refused,
    /// The answer does not tell.
    Unclear,
}

/// Whether an answer is the replay of an earlier one under the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums)] // complete by definition
pub enum Replay {
    /// It carries the replay mark.
    Yes,
    /// It carries none, on an API that promises to mark every replay.
    No,
    /// It carries none, which on this API says nothing.
    Unmarked,
}

#[cfg(test)]
mod tests {
    use http::header::{IF_NONE_MATCH, RANGE};

    use super::*;

    #[test]
    fn headers_in_a_list_are_found_by_their_name() {
        let list = [(ACCEPT, "text/html"), (RANGE, "bytes=0-9")].map(|(name, value)| (name, value.parse().unwrap()));
        let asked = Asked::listed(&Method::GET, &list);
        assert!(asked.names(&RANGE) && !asked.names(&IF_NONE_MATCH));
        assert!(asked.wants_html() && !asked.wants_json());
    }
}
