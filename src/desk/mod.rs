mod record;

use std::sync::Arc;
use std::time::Duration;

use http::header::{HeaderName, HeaderValue};
use url::Url;

use crate::call::{Broken, OnRecord, Operation};
use crate::client::Inner;
use crate::engine::{Again, Effect, Entry, History, Policy, SHORTEST_ATTEMPT, Time};
use crate::error::{Cause, Error, ErrorKind, Record};
use crate::event::Hook;
use crate::fingerprint::{Fingerprint, Fingerprinted};
use crate::journal::{Claim, Identity, Journal, JournalErrorKind, Scope, Status, Stored, StoredBody, StoredRequest};
use crate::logbook::Logbook;
use crate::order::{Order, no_key};
use crate::profile::Answer;
use crate::reconcile::{self, Doubtful, Resolution};
use crate::response::Response;
use crate::runtime::{self, Moment};
use crate::submission::{IdempotencyKey, OperationId, Submission};

use record::{damaged, not_on_record, unreadable};
pub(crate) use record::{replayed, replayed_as, with_the_effect_on_record};

/// How often a record that another process works on is looked at.
const LOOK: Duration = Duration::from_millis(50);

const LATE: &str = "somebody else works on it, and the deadline came first";

/// Where operations are asked for by their id: one that is new is begun, one on
/// record is answered from there, taken up, or refused.
pub(crate) struct Desk {
    client: Arc<Inner>,
    journal: Arc<dyn Journal>,
    policy: Arc<Policy>,
    deadline: Duration,
    began: Moment,
    on_event: Option<Hook>,
}

/// What is asked for.
enum Ask {
    /// The operation of this id, with this request.
    Send(Box<Order>),
    /// The operation of this id, as it is on record, with these credentials.
    Resume(Vec<(HeaderName, HeaderValue)>),
}

/// What is to be done with an operation on record.
enum Found {
    Answered(Box<Result<Response, Error>>),
    TakenUp(Box<Operation>),
    /// Somebody else was faster.
    Displaced,
}

impl Desk {
    pub(crate) fn new(client: Arc<Inner>, journal: Arc<dyn Journal>, policy: Arc<Policy>) -> Self {
        Self { deadline: policy.run_time(), client, journal, policy, began: runtime::now(), on_event: None }
    }

    /// With a hook of this request's own.
    pub(crate) fn watched(mut self, hook: Option<Hook>) -> Self {
        self.on_event = hook;
        self
    }

    /// Sends it, or goes on with what is on record under its id.
    pub(crate) async fn send(self, mut order: Order) -> Result<Response, Error> {
        let account = order.account.take().unwrap_or_else(|| self.client.account.clone());
        let scope = Scope::new(self.client.profile.id(), account);
        let (id, is_new) = match (&order.id, &order.key) {
            (Some(id), _) => (id.clone(), false),
            (None, Some(key)) => (OperationId::of_key(key), false),
            (None, None) if order.draws_a_key(&self.client.profile) => {
                let key = IdempotencyKey::random();
                if key.as_str().is_empty() {
                    return Err(no_key(getrandom::Error::UNEXPECTED));
                }
                (OperationId::of_key(order.key.insert(key)), true)
            }
            (None, None) => match IdempotencyKey::drawn() {
                Ok(name) => (OperationId::from(name.as_str()), true),
                Err(error) => return Err(no_key(error)),
            },
        };
        order.id = Some(id.clone());
        self.carry(&id, &scope, Ask::Send(Box::new(order)), is_new).await
    }

    /// Goes on with what is on record.
    pub(crate) async fn resume(
        self,
        id: OperationId,
        account: Option<Box<str>>,
        credentials: Vec<(HeaderName, HeaderValue)>,
    ) -> Result<Response, Error> {
        let account = account.unwrap_or_else(|| self.client.account.clone());
        let scope = Scope::new(self.client.profile.id(), account);
        self.carry(&id, &scope, Ask::Resume(credentials), false).await
    }

    async fn carry(&self, id: &OperationId, scope: &Scope, ask: Ask, is_new: bool) -> Result<Response, Error> {
        let mut is_new = is_new;
        let mut claim = self.claim(id).await?;
        loop {
            // What comes once is in memory of its own, so that an operation on its way does not hold it.
            let stored = if is_new { None } else { Box::pin(self.stored_when_free(id)).await? };
            is_new = false;
            let found = match (stored, &ask) {
                (Some(stored), ask) => Box::pin(self.found(stored, scope, ask, claim)).await,
                (None, Ask::Send(order)) => self.begun(id, scope, (**order).clone(), claim)?,
                (None, Ask::Resume(_)) => return Err(not_on_record(id)),
            };
            claim = match found {
                Found::Answered(answer) => return *answer,
                Found::Displaced => self.claim(id).await?,
                Found::TakenUp(mut operation) => match operation.run().await {
                    Ok(outcome) => {
                        let outcome = operation.looked_up(outcome).await;
                        return operation.settle(outcome).await;
                    }
                    Err(Broken::Displaced) if !operation.has_begun() => {
                        operation.give_back();
                        self.claim(id).await?
                    }
                    Err(Broken::Displaced) => {
                        let end = Box::pin(self.displaced(id)).await;
                        return operation.displaced(end);
                    }
                    Err(broken) => return Err(operation.broken(broken)),
                },
            };
        }
    }

    /// Writes down a decision about an operation that was made outside of it.
    pub(crate) async fn resolve(
        &self,
        id: &OperationId,
        scope: &Scope,
        by: Box<str>,
        decide: impl FnOnce(&History, Again) -> Result<Effect, &'static str>,
    ) -> Result<(), Error> {
        let claim = self.claim(id).await?;
        self.decided(claim, id, scope, by, decide).await
    }

    async fn decided(
        &self,
        claim: Claim,
        id: &OperationId,
        scope: &Scope,
        by: Box<str>,
        decide: impl FnOnce(&History, Again) -> Result<Effect, &'static str>,
    ) -> Result<(), Error> {
        let Some(stored) = self.stored_when_free(id).await? else {
            return Err(not_on_record(id));
        };
        let mut history = replayed(&stored)?;
        if stored.identity().scope() != scope {
            return Err(self.mismatch("the operation belongs to another profile or account", &stored, &history));
        }
        let on_record = self.record(&stored, &history);
        let wall = runtime::now().time();
        let effect = match decide(&history, history.asked_again(&self.policy_of(&stored), wall)) {
            Ok(effect) => effect,
            Err(why) => return Err(Error::on_record(ErrorKind::Request, why, on_record)),
        };
        let at = wall.max(history.latest());
        let mut entries = vec![Entry::Resumed { owner: self.journal.owner(), at: wall }];
        entries.extend(history.open_attempt().map(|attempt| Entry::Interrupted { attempt, at }));
        entries.push(Entry::Resolved { effect, by, at });
        if entries.iter().any(|entry| history.apply(entry).is_err()) {
            return Err(Error::on_record(
                ErrorKind::Request,
                "refused: the record knows better how it ended",
                on_record,
            ));
        }
        let position = stored.entries().len();
        let mut logbook = Logbook::behind(Arc::clone(&self.journal), id.clone(), position, claim);
        let written = match logbook.take_up(entries, None, &history, self.left()).await {
            Ok(()) => logbook.flush().await,
            Err(error) => Err(error),
        };
        written.map_err(|error| {
            let record = Record { source: Some(Box::new(error)), ..on_record };
            Error::on_record(ErrorKind::Journal, "the decision could not be written down", record)
        })
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_sub(runtime::now().since(self.began))
    }

    async fn claim(&self, id: &OperationId) -> Result<Claim, Error> {
        let waiting = Claim::wait(self.journal.owner(), id);
        match runtime::within(self.left(), waiting).await {
            Ok(claim) => Ok(claim),
            Err(_) => Err(self.busy(id, LATE).await),
        }
    }

    /// What is on record, once nobody else works on it.
    async fn stored_when_free(&self, id: &OperationId) -> Result<Option<Stored>, Error> {
        loop {
            let stored = self.journal.load(id).await.map_err(|error| unreadable(id, error))?;
            let Some(stored) = stored else {
                return Ok(None);
            };
            let Status::Running(owner) = stored.status() else {
                return Ok(Some(stored));
            };
            // What this process worked on is free: its claim is held here.
            if owner == self.journal.owner() {
                return Ok(Some(stored));
            }
            let alive = self.journal.is_alive(owner).await.map_err(|error| unreadable(id, error))?;
            if !alive {
                return Ok(Some(stored));
            }
            if self.left() < SHORTEST_ATTEMPT {
                return Err(self.busy(id, LATE).await);
            }
            runtime::sleep(LOOK.min(self.left())).await;
        }
    }

    /// A new operation.
    fn begun(&self, id: &OperationId, scope: &Scope, order: Order, claim: Claim) -> Result<Found, Error> {
        let fingerprint = self.fingerprint(&order, scope);
        let request = stored_request(&order);
        let submission = order.submission(&self.client.profile)?;
        let now = runtime::now().time();
        let first = vec![submission.created(now), Entry::Resumed { owner: self.journal.owner(), at: now }];
        let history = History::replay(&first).expect("a creation that is taken up is a history");
        let key = submission.key.as_ref().map(|key| key.as_str().into());
        let identity = Identity::new(id.clone(), scope.clone(), fingerprint)
            .with_key(key, self.policy.key_life())
            .with_profile_version(self.client.profile.version());
        let logbook = Logbook::new(Arc::clone(&self.journal), identity, request, first, claim);
        let record = OnRecord { history, logbook, ahead: Duration::ZERO, look: None };
        let policy = self.policy.deadline(self.left());
        Ok(Found::TakenUp(self.operation(submission, policy, record)))
    }

    fn operation(&self, submission: Submission, policy: Policy, record: OnRecord) -> Box<Operation> {
        Operation::on_record(Arc::clone(&self.client), submission, Arc::new(policy), record)
            .watched(self.on_event.clone())
    }

    /// What asking again does: the table of the crate's documentation.
    async fn found(&self, stored: Stored, scope: &Scope, ask: &Ask, claim: Claim) -> Found {
        match self.looked_at(stored, scope, ask, claim).await {
            Ok(found) => found,
            Err(error) => Found::Answered(Box::new(Err(error))),
        }
    }

    async fn looked_at(&self, stored: Stored, scope: &Scope, ask: &Ask, claim: Claim) -> Result<Found, Error> {
        let history = replayed(&stored)?;
        if stored.identity().scope() != scope {
            let what = "the operation's id is on record for another profile or account";
            return Err(self.mismatch(what, &stored, &history));
        }
        let amended = match ask {
            Ask::Send(order) => self.compared(order, scope, &stored, &history)?,
            Ask::Resume(_) => None,
        };
        let wall = runtime::now().time();
        let left = self.left();
        let policy = self.policy_of(&stored);
        if amended.is_none()
            && let Again::Ended(outcome) = history.asked_again(&policy, wall)
        {
            let source = match self.settled_by_look_up(&stored, &history, ask).await? {
                Ok(Some((effect, by))) => {
                    let is_as_it_was = |_: &History, again| match again {
                        Again::Ended(now) if now == outcome => Ok(effect),
                        Again::Ended(_) | Again::GoesOn => Err("somebody else settled it meanwhile"),
                    };
                    let written = self.decided(claim, stored.identity().id(), scope, by, is_as_it_was).await;
                    // Whoever it was that settled it: it is looked at anew.
                    return match written {
                        Err(error) if error.kind() != ErrorKind::Request => Err(error),
                        Ok(()) | Err(_) => Ok(Found::Displaced),
                    };
                }
                Ok(None) => None,
                Err(error) => Some(error),
            };
            return Ok(Found::Answered(Box::new(self.answered(outcome, &stored, &history, source))));
        }
        let order = self.order_again(&stored, &history, ask, amended.as_ref().map(|(_, request)| request))?;
        // Counted from the moment that goes on record, so that the writing of it counts once.
        self.taken_up(order, &stored, history, amended, policy.deadline(left), claim, wall).await
    }

    /// Whether the request is the one on record; else what it is to be amended to.
    fn compared(
        &self,
        order: &Order,
        scope: &Scope,
        stored: &Stored,
        history: &History,
    ) -> Result<Option<(Fingerprint, StoredRequest)>, Error> {
        let given = order.key.as_ref().map(|key| key.as_str());
        if given.is_some() && given != stored.identity().key() {
            return Err(self.mismatch("the operation's id is on record with another key", stored, history));
        }
        if order.without_key && stored.identity().key().is_some() {
            return Err(self.mismatch("the operation's id is on record with a key", stored, history));
        }
        let fingerprint = self.fingerprint(order, scope);
        if fingerprint == *stored.identity().fingerprint() {
            return Ok(None);
        }
        let is_same_place =
            stored.request().is_some_and(|request| *request.method() == order.method && *request.url() == order.url);
        if is_same_place && self.client.profile.releases_key() && history.may_be_amended() {
            return Ok(Some((fingerprint, stored_request(order))));
        }
        Err(self.mismatch("the operation's id is on record with another request", stored, history))
    }

    /// What goes out again: the bytes on record, with fresh credentials.
    fn order_again(
        &self,
        stored: &Stored,
        history: &History,
        ask: &Ask,
        amended: Option<&StoredRequest>,
    ) -> Result<Order, Error> {
        let missing = || {
            let what = "its request is not on record: ask for it again with `send`, under the same id";
            Error::on_record(ErrorKind::Request, what, self.record(stored, history))
        };
        let (credentials, own) = match ask {
            Ask::Send(order) => (order.secret_headers(), Some(order)),
            Ask::Resume(credentials) => (credentials.clone(), None),
        };
        let (method, url, mut headers, body) = match amended.or_else(|| stored.request()) {
            Some(request) => {
                let body = match request.body() {
                    StoredBody::None => None,
                    StoredBody::Kept(body) => Some(body.clone()),
                    StoredBody::LeftOut(print) => {
                        let body = own.ok_or_else(missing)?.body.clone().unwrap_or_default();
                        if Fingerprint::of_body(self.journal.fingerprint_key(), &body) != *print {
                            let what = "the body is not byte for byte the one that was sent before";
                            return Err(self.mismatch(what, stored, history));
                        }
                        Some(body)
                    }
                };
                (request.method().clone(), request.url().clone(), request.headers().to_vec(), body)
            }
            // It was pruned; by its fingerprint this request is the same.
            None => {
                let own = own.ok_or_else(missing)?;
                (own.method.clone(), own.url.clone(), own.plain_headers(), own.body.clone())
            }
        };
        headers.extend(credentials);
        Ok(Order {
            method,
            url,
            headers,
            body,
            key: stored.identity().key().map(IdempotencyKey::stored),
            without_key: stored.identity().key().is_none(),
            id: Some(stored.identity().id().clone()),
            gone_is_done: history.gone_is_done(),
            account: None,
        })
    }

    #[allow(clippy::too_many_arguments)] // each is a part of what goes on
    async fn taken_up(
        &self,
        order: Order,
        stored: &Stored,
        mut history: History,
        amended: Option<(Fingerprint, StoredRequest)>,
        policy: Policy,
        claim: Claim,
        wall: Time,
    ) -> Result<Found, Error> {
        let on_record = self.record(stored, &history);
        let look = self.status_resource(stored, &order.url);
        if history.is_linked() && look.is_none() {
            let what = "it is pending, and the status resource that it is asked after at is not on record";
            return Err(Error::on_record(ErrorKind::Pending, what, on_record));
        }
        let look = look.filter(|_| history.is_linked());
        let ahead = history.latest().since(wall);
        let mut entries = vec![Entry::Resumed { owner: self.journal.owner(), at: wall }];
        if amended.is_some() {
            let version = history.version().saturating_add(1);
            entries.push(Entry::Amended { at: wall.max(history.latest()), version });
        }
        for entry in &entries {
            history.apply(entry).map_err(|_| damaged(stored))?;
        }
        let submission = order.submission(&self.client.profile)?;
        let id = stored.identity().id().clone();
        let mut logbook = Logbook::behind(Arc::clone(&self.journal), id, stored.entries().len(), claim);
        match logbook.take_up(entries, amended, &history, self.left()).await {
            Ok(()) => {
                let record = OnRecord { history, logbook, ahead, look };
                Ok(Found::TakenUp(self.operation(submission, policy, record)))
            }
            Err(error) if error.kind() == JournalErrorKind::Conflict => Ok(Found::Displaced),
            Err(error) => {
                // It may be on record as taken up, and so go on.
                let effect = match on_record.effect {
                    Effect::NotApplied if !error.is_certain() => Effect::Unknown,
                    effect => effect,
                };
                let record = Record { effect, source: Some(Box::new(error)), ..on_record };
                Err(Error::on_record(ErrorKind::Journal, "that it is taken up could not be written down", record))
            }
        }
    }

    /// Where an operation on record is asked after, if its last answer names that.
    fn status_resource(&self, stored: &Stored, base: &Url) -> Option<Url> {
        let (find, answer) = self.client.poll_with.as_ref().zip(stored.answer())?;
        let answer = Answer::new(answer.status(), answer.headers(), answer.body());
        base.join(&find(&answer)?).ok().filter(Url::has_host)
    }

    /// Whether a look-up by the caller's own reference settles what is in doubt.
    async fn settled_by_look_up(
        &self,
        stored: &Stored,
        history: &History,
        ask: &Ask,
    ) -> Result<Result<Option<Resolution>, Cause>, Error> {
        let Some(hook) = self.client.reconcile_with.as_ref().filter(|_| history.effect() == Effect::Unknown) else {
            return Ok(Ok(None));
        };
        let submission = self.order_again(stored, history, ask, None)?.submission(&self.client.profile)?;
        let doubtful = Doubtful { submission: &submission, id: Some(stored.identity().id().clone()) };
        Ok(reconcile::settled_by(&**hook, &doubtful, self.policy.attempt_time().min(self.left())).await)
    }

    fn fingerprint(&self, order: &Order, scope: &Scope) -> Fingerprint {
        let request = Fingerprinted {
            method: &order.method,
            url: &order.url,
            headers: &order.headers,
            body: order.body.as_ref(),
            account: scope.account(),
        };
        Fingerprint::of(self.journal.fingerprint_key(), &request)
    }

    /// The limits of an operation on record: its key lives no longer than was
    /// believed when it was drawn.
    fn policy_of(&self, stored: &Stored) -> Policy {
        self.policy.key_lifetime(self.policy.key_life().min(stored.identity().key_lifetime()))
    }
}

/// The request as it is kept.
fn stored_request(order: &Order) -> StoredRequest {
    let body = order.body.clone().map_or(StoredBody::None, StoredBody::Kept);
    StoredRequest::new(order.method.clone(), order.url.clone(), order.plain_headers(), body)
}
