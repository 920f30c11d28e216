use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use oncekey::profile::Extent;

/// What an answer truly is, whatever it looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    Done,
    Pending,
    Refusal,
    /// The idempotency layer's code for "the first one still runs".
    InProgress,
    /// The same, in words that the profile does not know.
    Vague,
    Reused,
    Already,
    Error,
    /// 429, 408, 425: try later.
    Later,
    /// A page or a redirect of something on the way.
    Page,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Json,
    Html,
    None,
}

/// A status, a body, and what it truly is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) status: u16,
    pub(crate) body: &'static str,
    pub(crate) kind: Kind,
    pub(crate) says: Says,
}

pub(crate) const fn json(status: u16, body: &'static str, says: Says) -> Shape {
    Shape { status, body, kind: Kind::Json, says }
}

pub(crate) const fn page(status: u16) -> Shape {
    Shape { status, body: "<!doctype html><html><h1>Oops</h1></html>", kind: Kind::Html, says: Says::Page }
}

pub(crate) const fn empty(status: u16, says: Says) -> Shape {
    Shape { status, body: "", kind: Kind::None, says }
}

/// One answer on its way: a shape, and what became of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) shape: Shape,
    /// 0, or which of the dialect's marks it carries.
    pub(crate) mark: usize,
    /// Index into [`WAITS`].
    pub(crate) wait: usize,
    /// 0, or 1 for "true", 2 for "false" in the should-retry header.
    pub(crate) again: usize,
    /// Its framing proves no length.
    pub(crate) to_the_close: bool,
    pub(crate) extent: Extent,
    pub(crate) len: usize,
}

impl Answer {
    pub(crate) const fn whole(shape: Shape) -> Self {
        let len = shape.body.len();
        Self { shape, mark: 0, wait: 0, again: 0, to_the_close: false, extent: Extent::Whole, len }
    }

    pub(crate) const fn marked(mut self, mark: usize) -> Self {
        self.mark = mark;
        self
    }

    pub(crate) const fn is_all_there(&self) -> bool {
        matches!(self.extent, Extent::Whole) && self.len == self.shape.body.len()
    }
}

/// Header lines.
pub(crate) type Lines = &'static [(&'static str, &'static str)];

/// `Retry-After`, or `retry-after-ms`, or both dates of an HTTP-date; and the wait in milliseconds that it names.
pub(crate) const WAITS: [(Lines, Option<u64>); 11] = [
    (&[], None),
    (&[("retry-after", "1")], Some(1000)),
    (&[("retry-after", "0")], Some(0)),
    (&[("retry-after", "2.5")], Some(2500)),
    (&[("retry-after", "30")], Some(30_000)),
    (&[("retry-after-ms", "1500"), ("retry-after", "1")], Some(1500)),
    (&[("retry-after", "Tue, 14 Nov 2023 22:13:25 GMT"), ("date", "Tue, 14 Nov 2023 22:13:20 GMT")], Some(5000)),
    (&[("retry-after", "soon")], None),
    (&[("retry-after", "-3")], None),
    (&[("retry-after", "120")], Some(120_000)),
    (&[("retry-after", "99999999999999999999")], Some(u64::MAX)),
];

/// Every combination of headers that an answer can have, made once.
#[derive(Debug)]
pub(crate) struct Library {
    maps: Vec<HeaderMap>,
    marks: usize,
}

impl Library {
    pub(crate) fn new(marks: Lines, should_retry: Option<&'static str>) -> Self {
        let mut library = Self { maps: Vec::new(), marks: marks.len() + 1 };
        for kind in [Kind::Json, Kind::Html, Kind::None] {
            for to_the_close in [false, true] {
                for mark in 0..library.marks {
                    for (wait, _) in WAITS {
                        for again in ["", "true", "false"] {
                            let mut map = plain(kind, to_the_close);
                            if let Some((name, value)) = mark.checked_sub(1).map(|index| marks[index]) {
                                map.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
                            }
                            for (name, value) in wait {
                                map.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
                            }
                            if let (Some(name), false) = (should_retry, again.is_empty()) {
                                map.insert(HeaderName::from_static(name), HeaderValue::from_static(again));
                            }
                            library.maps.push(map);
                        }
                    }
                }
            }
        }
        library
    }

    pub(crate) fn of(&self, answer: &Answer) -> &HeaderMap {
        let kind = answer.shape.kind as usize * 2 + usize::from(answer.to_the_close);
        &self.maps[((kind * self.marks + answer.mark) * WAITS.len() + answer.wait) * 3 + answer.again]
    }
}

fn plain(kind: Kind, to_the_close: bool) -> HeaderMap {
    let mut map = HeaderMap::with_capacity(8);
    match kind {
        Kind::Json => map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8")),
        Kind::Html => map.insert(CONTENT_TYPE, HeaderValue::from_static("text/html")),
        Kind::None => None,
    };
    if !to_the_close {
        map.insert(CONTENT_LENGTH, HeaderValue::from_static("7"));
    }
    map
}
