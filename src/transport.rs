//! One HTTP exchange. The only module that sends. It knows no earlier attempt,
//! so it cannot guess about them.

#[cfg(feature = "rustls")]
use std::error::Error as StdError;
use std::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode, Version};
use reqwest::{Client, Request};

use crate::attempt::Failure;
use crate::engine::{Time, Verdict};
use crate::error::Cause;
use crate::profile::{Answer, Asked, Exchange, Extent, Profile};
use crate::runtime;

/// What has come of one exchange, whether it ended or its time was up.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) head: Option<Head>,
    pub(crate) failure: Option<Failure>,
    pub(crate) cause: Option<Cause>,
}

/// A complete head, and as much of its body as came.
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    version: Version,
    extent: Extent,
}

/// How much is set aside for a body before any of it came.
const LARGEST_GUESS: u64 = 64 * 1024;

/// Sends the request, once, and reads what comes, up to this many bytes of body.
pub(crate) fn exchange(
    http: &Client,
    request: Request,
    timeout: Duration,
    limit: usize,
) -> impl Future<Output = Progress> + Send + use<> {
    let is_head = *request.method() == Method::HEAD;
    // Made out here: the future that waits would hold the request, which is large.
    let pending = http.execute(request);
    ended(pending, is_head, timeout, limit)
}

async fn ended(
    pending: impl Future<Output = reqwest::Result<reqwest::Response>>,
    is_head: bool,
    timeout: Duration,
    limit: usize,
) -> Progress {
    let mut progress = Progress::default();
    if runtime::within(timeout, receive(pending, is_head, limit, &mut progress)).await.is_err() {
        progress.failure = Some(match &progress.head {
            Some(_) => Failure::StalledBody,
            None => Failure::Timeout,
        });
        progress.cause = Some("no complete answer came within the attempt's timeout".into());
    }
    progress
}

async fn receive(
    pending: impl Future<Output = reqwest::Result<reqwest::Response>>,
    is_head: bool,
    limit: usize,
    progress: &mut Progress,
) {
    let mut response = match pending.await {
        Ok(response) => response,
        Err(error) => {
            progress.failure = Some(before_the_head(&error));
            progress.cause = Some(shown(error));
            return;
        }
    };
    let guess = response.content_length().unwrap_or(0).min(LARGEST_GUESS);
    let head = progress.head.insert(Head {
        status: response.status(),
        version: response.version(),
        headers: std::mem::take(response.headers_mut()),
        body: Vec::with_capacity(usize::try_from(guess).unwrap_or(0).min(limit)),
        // Until its end has come.
        extent: Extent::Cut,
    });
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if chunk.len() > limit - head.body.len() => {
                head.body.extend_from_slice(&chunk[..limit - head.body.len()]);
                head.extent = Extent::TooLarge;
                progress.failure = Some(Failure::TooLarge);
                return;
            }
            Ok(Some(chunk)) => head.body.extend_from_slice(&chunk),
            // RST_STREAM(NO_ERROR) ends a body of HTTP/2 anywhere, without an error: what is left of
            // the length that was announced is then the only sign.
            Ok(None)
                if head.version > Version::HTTP_11
                    && !is_head
                    && head.status != StatusCode::NOT_MODIFIED
                    && response.content_length().is_some_and(|missing| missing > 0) =>
            {
                progress.failure = Some(Failure::CutBody);
                progress.cause = Some("the body ended before the length that was announced".into());
                return;
            }
            Ok(None) => {
                head.extent = Extent::Whole;
                return;
            }
            Err(error) => {
                progress.failure = Some(Failure::CutBody);
                progress.cause = Some(shown(error));
                return;
            }
        }
    }
}

/// A URL's query may be secret.
fn shown(error: reqwest::Error) -> Cause {
    Box::new(error.without_url())
}

impl Head {
    /// Takes the headers away, into a text of a tenth of their size.
    pub(crate) fn pack(&mut self) -> Box<[u8]> {
        let headers = std::mem::take(&mut self.headers);
        let length = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 2).sum();
        let mut packed = Vec::with_capacity(length);
        for (name, value) in &headers {
            packed.extend_from_slice(name.as_str().as_bytes());
            packed.push(b':');
            packed.extend_from_slice(value.as_bytes());
            packed.push(b'\n');
        }
        packed.into_boxed_slice()
    }

    /// Gives them back. Neither a name nor a value can hold a line break, nor a name a colon.
    pub(crate) fn unpack(&mut self, packed: &[u8]) {
        for line in packed.split(|byte| *byte == b'\n') {
            let mut parts = line.splitn(2, |byte| *byte == b':');
            let name = parts.next().and_then(|name| HeaderName::from_bytes(name).ok());
            let value = parts.next().and_then(|value| HeaderValue::from_bytes(value).ok());
            if let (Some(name), Some(value)) = (name, value) {
                self.headers.append(name, value);
            }
        }
    }

    /// As the profile's rules and the caller's own read it.
    pub(crate) fn answer(&self, now: Time) -> Answer<'_> {
        Answer::new(self.status, &self.headers, &self.body)
            .with_extent(self.extent)
            .with_version(self.version)
            .received(now)
    }
}

impl Progress {
    /// What it shows, read by the profile's rules.
    pub(crate) fn verdict(&self, profile: &Profile, asked: &Asked<'_>, now: Time) -> Verdict {
        let exchange = match (&self.head, self.failure) {
            (Some(head), _) => Exchange::Answered(head.answer(now)),
            (None, Some(Failure::Connect | Failure::ConnectTimeout)) => Exchange::Unsent { hopeless: false },
            (None, Some(Failure::Certificate | Failure::Request)) => Exchange::Unsent { hopeless: true },
            (None, Some(_) | None) => Exchange::NoHead,
        };
        profile.read(asked, &exchange)
    }
}

/// A connection that was never made is the one proof that nothing was sent;
/// redirects, which would break it, are not followed.
fn before_the_head(error: &reqwest::Error) -> Failure {
    if error.is_builder() {
        return Failure::Request;
    }
    match (error.is_connect(), error.is_timeout()) {
        (true, true) => Failure::ConnectTimeout,
        (true, false) if is_bad_certificate(error) => Failure::Certificate,
        (true, false) => Failure::Connect,
        (false, true) => Failure::Timeout,
        (false, false) => Failure::Broken,
    }
}

/// Whether the server's certificate was looked at and turned down. Under
/// native-tls that cannot be told from other failures of the handshake.
#[cfg(feature = "rustls")]
fn is_bad_certificate(error: &reqwest::Error) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        if matches!(cause.downcast_ref(), Some(rustls::Error::InvalidCertificate(_))) {
            return true;
        }
        // An I/O error hides what it wraps from `source`, which names that one's own source.
        let wrapped = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        source = match wrapped {
            Some(inner) => Some(inner),
            None => cause.source(),
        };
    }
    false
}

#[cfg(not(feature = "rustls"))]
fn is_bad_certificate(_: &reqwest::Error) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_as_they_were() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("set-cookie", &b"a=1"[..]),
            ("x-empty", b""),
            ("x-bytes", b"\xff: \x80:\t\xfe"),
            ("set-cookie", b"b=2"),
            ("location", b"https://a.example:1/?x=y:z"),
        ] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_bytes(value).unwrap());
        }
        for headers in [headers, HeaderMap::new()] {
            let mut head = Head {
                status: StatusCode::OK,
                headers: headers.clone(),
                body: Vec::new(),
                version: Version::HTTP_11,
                extent: Extent::Whole,
            };
            let packed = head.pack();
            assert!(head.headers.is_empty());
            head.unpack(&packed);
            assert!(head.headers.iter().eq(headers.iter()), "{:?}", head.headers);
        }
    }
}
