//! Spans of `tracing`, with the names of OpenTelemetry's conventions for HTTP.
//! Without the feature all of this is nothing.

#[cfg(feature = "tracing")]
pub(crate) use spans::Trace;

#[cfg(not(feature = "tracing"))]
pub(crate) use nothing::Trace;

#[cfg(feature = "tracing")]
mod spans {
    use std::time::Duration;

    use tracing::field::Empty;
    use tracing::{Instrument as _, Span, info_span};

    use crate::attempt::Attempt;
    use crate::engine::Effect;
    use crate::error::ErrorKind;
    use crate::submission::{Submission, abbreviated};

    /// The spans of one operation: its own, and that of the attempt on its way.
    pub(crate) struct Trace {
        operation: Span,
        attempt: Span,
    }

    /// A span to work in.
    pub(crate) struct Scope(Span);

    impl Trace {
        pub(crate) fn of(submission: &Submission, profile: &str) -> Self {
            let operation = info_span!(
                target: "oncekey",
                "oncekey.operation",
                otel.kind = "internal",
                http.request.method = submission.method.as_str(),
                server.address = submission.url.host_str(),
                server.port = submission.url.port_or_known_default(),
                url.path = Empty,
                error.r#type = Empty,
                oncekey.operation.id = Empty,
                oncekey.profile = profile,
                oncekey.effect = Empty,
                oncekey.attempts = Empty,
            );
            if !operation.is_disabled() {
                operation.record("url.path", path(submission));
                if let Some(id) = submission.operation() {
                    operation.record("oncekey.operation.id", tracing::field::display(id));
                }
            }
            Self { operation, attempt: Span::none() }
        }

        /// Where the whole operation works.
        pub(crate) fn operation(&self) -> Scope {
            Scope(self.operation.clone())
        }

        pub(crate) fn ended(&self, effect: Effect, kind: Option<ErrorKind>, attempts: usize) {
            self.operation.record("oncekey.effect", effect.as_str());
            self.operation.record("oncekey.attempts", attempts);
            if let Some(kind) = kind {
                self.operation.record("error.type", kind.code());
            }
        }

        /// Where an attempt is sent and its answer read.
        pub(crate) fn attempt(&mut self, submission: &Submission, attempt: Option<&Attempt>) -> Scope {
            if let Some(attempt) = attempt.filter(|_| !self.operation.is_disabled()) {
                self.attempt = info_span!(
                    target: "oncekey",
                    parent: &self.operation,
                    "oncekey.attempt",
                    otel.kind = "client",
                    http.request.method = submission.method.as_str(),
                    http.request.resend_count = attempt.number().saturating_sub(1),
                    server.address = submission.url.host_str(),
                    server.port = submission.url.port_or_known_default(),
                    http.response.status_code = Empty,
                    error.r#type = Empty,
                    oncekey.attempt.kind = attempt.kind().as_str(),
                    oncekey.verdict = Empty,
                    oncekey.effect = Empty,
                    oncekey.wait_ms = Empty,
                );
            }
            Scope(self.attempt.clone())
        }

        /// It ended, and the next one may be sent after this wait.
        pub(crate) fn attempt_ended(&mut self, attempt: &Attempt, effect: Effect, wait: Option<Duration>) {
            // Dropped here, which closes it.
            let span = std::mem::replace(&mut self.attempt, Span::none());
            if span.is_disabled() {
                return;
            }
            if let Some(status) = attempt.status() {
                span.record("http.response.status_code", status.as_u16());
                if attempt.failure().is_none() && (status.is_client_error() || status.is_server_error()) {
                    span.record("error.type", status.as_str());
                }
            }
            if let Some(failure) = attempt.failure() {
                span.record("error.type", failure.code());
            }
            if let Some(verdict) = attempt.verdict() {
                span.record("oncekey.verdict", tracing::field::display(verdict));
            }
            span.record("oncekey.effect", effect.as_str());
            if let Some(wait) = wait {
                span.record("oncekey.wait_ms", u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
            }
        }
    }

    impl Scope {
        pub(crate) fn around<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
            work.instrument(self.0)
        }
    }

    /// The URL's path; some APIs have the key in it.
    fn path(submission: &Submission) -> String {
        let path = submission.url.path();
        match &submission.key {
            Some(key) if !key.as_str().is_empty() => path.replace(key.as_str(), &abbreviated(key.as_str())),
            Some(_) | None => path.to_owned(),
        }
    }
}

#[cfg(not(feature = "tracing"))]
mod nothing {
    use std::time::Duration;

    use crate::attempt::Attempt;
    use crate::engine::Effect;
    use crate::error::ErrorKind;
    use crate::submission::Submission;

    pub(crate) struct Trace;

    pub(crate) struct Scope;

    impl Trace {
        pub(crate) const fn of(_: &Submission, _: &str) -> Self {
            Self
        }

        pub(crate) const fn operation(&self) -> Scope {
            Scope
        }

        pub(crate) const fn ended(&self, _: Effect, _: Option<ErrorKind>, _: usize) {}

        pub(crate) const fn attempt(&self, _: &Submission, _: Option<&Attempt>) -> Scope {
            Scope
        }

        pub(crate) const fn attempt_ended(&self, _: &Attempt, _: Effect, _: Option<Duration>) {}
    }

    impl Scope {
        #[allow(clippy::unused_self)] // as of the one that is not nothing
        pub(crate) const fn around<F: Future>(self, work: F) -> F {
            work
        }
    }
}
