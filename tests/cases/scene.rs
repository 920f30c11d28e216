//! A report made ready to be played: the script, the client, what is expected.
#![allow(clippy::disallowed_methods)] // how long a whole operation takes is measured from outside

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use oncekey::{Client, ClientBuilder, Error, IdempotencyKey, Parts, Poll, Profile, RequestBuilder, Response, Retry};

use crate::checks::{self, Evidence, Problems};
use crate::data::{At, Expect, Reply, Report, Settings, Step};
use crate::record::Record;
use crate::run::Findings;
use crate::script::{self, Server, Speaks};

pub(crate) type Hooked = Result<(), Box<dyn StdError + Send + Sync>>;
type Hook = Arc<dyn Fn(&mut Parts<'_>) -> Hooked + Send + Sync>;
type Check = Box<dyn Fn(&Evidence, &mut Problems) + Send + Sync>;

pub(crate) struct Scene {
    pub(crate) settings: Settings,
    pub(crate) steps: Vec<Step>,
    pub(crate) expect: Expect,
    pub(crate) profile: Profile,
    pub(crate) body: Vec<u8>,
    /// A key that the caller brings.
    pub(crate) key: Option<&'static str>,
    /// What the server speaks, and the client knows.
    pub(crate) speaks: Speaks,
    hook: Option<Hook>,
    checks: Vec<Check>,
}

impl Scene {
    pub(crate) fn of(report: &Report) -> Self {
        Self {
            settings: report.client.clone(),
            steps: report.steps.clone(),
            expect: report.expect.clone(),
            profile: Profile::generic(),
            body: BODY.to_vec(),
            key: None,
            speaks: Speaks::Http1,
            hook: None,
            checks: Vec::new(),
        }
    }

    /// The step for this request, which the report must have.
    fn step(&mut self, at: &At) -> &mut Step {
        self.steps.iter_mut().find(|step| step.at == *at).expect("the report has that step")
    }

    pub(crate) fn first(&mut self) -> &mut Step {
        self.step(&At::number(1))
    }

    /// The step for all requests that no other is for.
    pub(crate) fn others(&mut self) -> &mut Step {
        self.step(&At::AllOthers)
    }

    pub(crate) fn hook(&mut self, hook: impl Fn(&mut Parts<'_>) -> Hooked + Send + Sync + 'static) {
        self.hook = Some(Arc::new(hook));
    }

    /// What the right outcome says and `expect` does not.
    pub(crate) fn check(&mut self, check: impl Fn(&Evidence, &mut Problems) + Send + Sync + 'static) {
        self.checks.push(Box::new(check));
    }

    pub(crate) fn client(&self) -> Client {
        let builder = client(&self.settings).profile(self.profile.clone());
        let builder = match self.speaks {
            Speaks::Http1 => builder,
            #[cfg(feature = "http2")]
            Speaks::Http2 { .. } => builder.http(|http| http.http2_prior_knowledge()),
        };
        match self.hook.clone() {
            Some(hook) => builder.authorize(move |parts: &mut Parts<'_>| hook(parts)).build(),
            None => builder.build(),
        }
        .unwrap()
    }

    fn request(&self, client: &Client, url: &str) -> RequestBuilder {
        let request = pay(client, url, self.body.clone());
        match self.key {
            Some(key) => request.idempotency_key(IdempotencyKey::parse(key).unwrap()),
            None => request,
        }
    }

    /// The operation against the scripted server, and all that is to hold.
    pub(crate) async fn play(self) -> Findings {
        let mut evidence = self.once().await;
        // The pool takes a connection back in its own time. Without it this is
        // not the scene that the report tells of.
        for _ in 0..10 {
            if self.begins_on_a_kept_connection(&evidence) {
                break;
            }
            evidence = self.once().await;
        }
        let mut problems = Problems::default();
        problems.that(self.begins_on_a_kept_connection(&evidence), "request 1 came on a new connection");
        self.judge(&evidence, problems)
    }

    fn begins_on_a_kept_connection(&self, evidence: &Evidence) -> bool {
        let first = evidence.record.requests.first();
        self.settings.warmup == 0
            || first.is_some_and(|first| evidence.record.warmups.last() == Some(&first.connection))
    }

    async fn once(&self) -> Evidence {
        let server = Server::speaking(self.speaks, script::steps(self.steps.clone()), self.settings.warmup).await;
        let (client, url) = (self.client(), server.url("/pay"));
        for _ in 0..self.settings.warmup {
            let warm = pay(&client, &url, BODY.to_vec()).send().await;
            assert!(warm.is_ok(), "{warm:?}");
        }
        let (sent, began, took) = timed(self.request(&client, &url)).await;
        self.evidence(sent, began, took, server.record())
    }

    /// The operation at a URL of its own, and what the server there saw, if there was one.
    pub(crate) async fn play_at(self, url: &str, record: impl FnOnce() -> Record) -> Findings {
        let (sent, began, took) = timed(self.request(&self.client(), url)).await;
        let evidence = self.evidence(sent, began, took, record());
        self.judge(&evidence, Problems::default())
    }

    fn evidence(&self, sent: Result<Response, Error>, began: SystemTime, took: Duration, record: Record) -> Evidence {
        let key = self.key.map(str::to_owned);
        Evidence { sent, began, took, record, body: self.body.clone(), key }
    }

    fn judge(&self, evidence: &Evidence, mut problems: Problems) -> Findings {
        checks::expected(&self.expect, evidence, &mut problems);
        checks::always(evidence, &mut problems);
        for check in &self.checks {
            check(evidence, &mut problems);
        }
        Findings {
            problems,
            summary: evidence.summary(),
            details: format!("      {}\n{}", evidence.told(), evidence.record),
        }
    }
}

/// A small JSON body.
pub(crate) const BODY: &[u8] = b"{\"amount\":100,\"currency\":\"EUR\"}";

pub(crate) const CAPTURED: &str = "{\"id\":\"pay_1\",\"status\":\"captured\"}";

/// What the reports' servers answer a known key.
pub(crate) fn replayed() -> Reply {
    Reply::json(201, CAPTURED).with("Idempotent-Replay", "true")
}

pub(crate) fn pay(client: &Client, url: &str, body: Vec<u8>) -> RequestBuilder {
    client.post(url).header("content-type", "application/json").body(body)
}

pub(crate) fn client(settings: &Settings) -> ClientBuilder {
    let millis = Duration::from_millis;
    let (timeout, deadline) = (millis(settings.per_attempt_timeout_ms), millis(settings.deadline_ms));
    let retry = Retry::default().max_attempts(settings.max_attempts);
    let second = Duration::from_secs(1);
    Client::builder()
        .http(|builder| builder.no_proxy())
        .retry(retry.base_delay(millis(settings.base_ms)).max_delay(millis(settings.cap_ms)))
        .poll(Poll::default().interval(second).max_interval(second).limit(deadline))
        .attempt_timeout(timeout)
        .connect_timeout(timeout / 2)
        .deadline(deadline)
        .key_lifetime(Duration::from_secs(24 * 3600))
}

pub(crate) async fn timed(request: RequestBuilder) -> (Result<Response, Error>, SystemTime, Duration) {
    let (began, clock) = (SystemTime::now(), Instant::now());
    let sent = request.send().await;
    (sent, began, clock.elapsed())
}
