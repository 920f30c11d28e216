use super::{Identity, StoredAnswer, StoredRequest};
use crate::engine::{Entry, Owner, Time};

/// A new operation and its first entries.
#[derive(Clone, Debug)]
pub struct NewOperation {
    pub(crate) identity: Identity,
    pub(crate) request: StoredRequest,
    pub(crate) entries: Vec<Entry>,
    pub(crate) status: Status,
}

impl NewOperation {
    /// An operation of these parts.
    ///
    /// ```
    /// use oncekey::journal::{NewOperation, Status};
    /// # use oncekey::engine::{Entry, KeyOrigin, MethodKind, Owner, Time};
    /// # use oncekey::journal::{Fingerprint, Identity, Scope, StoredBody, StoredRequest};
    /// # use oncekey::reqwest::Method;
    ///
    /// # let url = "https://api.example/payments".parse()?;
    /// # let request = StoredRequest::new(Method::POST, url, vec![], StoredBody::None);
    /// # let (at, key) = (Time::from_millis(1), KeyOrigin::None);
    /// # let created = Entry::Created { at, key, method: MethodKind::Other, gone_is_done: false };
    /// # let identity = Identity::new("order-7".into(), Scope::new("acme", ""), Fingerprint::from_bytes([7; 32]));
    /// let operation = NewOperation::new(identity, request, vec![created.clone()], Status::Open);
    /// assert_eq!(operation.entries(), [created]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn new(identity: Identity, request: StoredRequest, entries: Vec<Entry>, status: Status) -> Self {
        Self { identity, request, entries, status }
    }

    /// What is written once.
    ///
    /// ```
    /// use oncekey::journal::{NewOperation, Status};
    /// # use oncekey::engine::{Entry, KeyOrigin, MethodKind, Owner, Time};
    /// # use oncekey::journal::{Fingerprint, Identity, Scope, StoredBody, StoredRequest};
    /// # use oncekey::reqwest::Method;
    ///
    /// # let url = "https://api.example/payments".parse()?;
    /// # let request = StoredRequest::new(Method::POST, url, vec![], StoredBody::None);
    /// # let (at, key) = (Time::from_millis(1), KeyOrigin::None);
    /// # let created = Entry::Created { at, key, method: MethodKind::Other, gone_is_done: false };
    /// # let identity = Identity::new("order-7".into(), Scope::new("acme", ""), Fingerprint::from_bytes([7; 32]));
    /// # let operation = NewOperation::new(identity, request, vec![created], Status::Running(Owner::new(1)));
    /// // What a journal's columns are filled from.
    /// let row = (operation.identity().id().as_str(), operation.identity().key());
    /// assert_eq!(row, ("order-7", None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// What is sent.
    ///
    /// ```
    /// use oncekey::journal::{NewOperation, Status};
    /// # use oncekey::engine::{Entry, KeyOrigin, MethodKind, Owner, Time};
    /// # use oncekey::journal::{Fingerprint, Identity, Scope, StoredBody, StoredRequest};
    /// # use oncekey::reqwest::Method;
    ///
    /// # let url = "https://api.example/payments".parse()?;
    /// # let request = StoredRequest::new(Method::POST, url, vec![], StoredBody::None);
    /// # let (at, key) = (Time::from_millis(1), KeyOrigin::None);
    /// # let created = Entry::Created { at, key, method: MethodKind::Other, gone_is_done: false };
    /// # let identity = Identity::new("order-7".into(), Scope::new("acme", ""), Fingerprint::from_bytes([7; 32]));
    /// # let operation = NewOperation::new(identity, request, vec![created], Status::Running(Owner::new(1)));
    /// let bytes = oncekey::journal::codec::encode_request(operation.request());
    /// assert!(bytes.starts_with(b"{"));
    /// assert_eq!(operation.request().method(), Method::POST);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn request(&self) -> &StoredRequest {
        &self.request
    }

    /// The first entries.
    ///
    /// ```
    /// use oncekey::journal::{NewOperation, Status};
    /// # use oncekey::engine::{Entry, KeyOrigin, MethodKind, Owner, Time};
    /// # use oncekey::journal::{Fingerprint, Identity, Scope, StoredBody, StoredRequest};
    /// # use oncekey::reqwest::Method;
    ///
    /// # let url = "https://api.example/payments".parse()?;
    /// # let request = StoredRequest::new(Method::POST, url, vec![], StoredBody::None);
    /// # let (at, key) = (Time::from_millis(1), KeyOrigin::None);
    /// # let created = Entry::Created { at, key, method: MethodKind::Other, gone_is_done: false };
    /// # let identity = Identity::new("order-7".into(), Scope::new("acme", ""), Fingerprint::from_bytes([7; 32]));
    /// # let operation = NewOperation::new(identity, request, vec![created], Status::Running(Owner::new(1)));
    /// let lines: Vec<String> = operation.entries().iter().map(oncekey::journal::codec::encode_entry).collect();
    /// assert_eq!(lines.len(), 1);
    /// assert!(lines[0].contains(r#""created":{"#));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Where it stands.
    ///
    /// ```
    /// use oncekey::journal::{NewOperation, Status};
    /// # use oncekey::engine::{Entry, KeyOrigin, MethodKind, Owner, Time};
    /// # use oncekey::journal::{Fingerprint, Identity, Scope, StoredBody, StoredRequest};
    /// # use oncekey::reqwest::Method;
    ///
    /// # let url = "https://api.example/payments".parse()?;
    /// # let request = StoredRequest::new(Method::POST, url, vec![], StoredBody::None);
    /// # let (at, key) = (Time::from_millis(1), KeyOrigin::None);
    /// # let created = Entry::Created { at, key, method: MethodKind::Other, gone_is_done: false };
    /// # let identity = Identity::new("order-7".into(), Scope::new("acme", ""), Fingerprint::from_bytes([7; 32]));
    /// # let operation = NewOperation::new(identity, request, vec![created], Status::Running(Owner::new(1)));
    /// assert_eq!(operation.status(), Status::Running(Owner::new(1))); // a list tells others that it is worked on
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn status(&self) -> Status {
        self.status
    }
}

/// Where an operation stands, for lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums)] // complete by definition
pub enum Status {
    /// This owner works on it; should the owner die, it is open.
    Running(Owner),
    /// Nobody works on it, and it has no end.
    Open,
    /// It has an end.
    Closed,
}

/// An operation as it is on record.
#[derive(Clone, Debug)]
pub struct Stored {
    pub(crate) identity: Identity,
    pub(crate) request: Option<StoredRequest>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) answer: Option<StoredAnswer>,
    pub(crate) status: Status,
}

impl Stored {
    /// An operation of these parts.
    ///
    /// ```
    /// use oncekey::journal::{Status, Stored};
    /// # use oncekey::engine::{Entry, KeyOrigin, MethodKind, StopReason, Time};
    /// # use oncekey::journal::{Fingerprint, Identity, Scope, StoredAnswer, StoredBody, StoredRequest};
    /// # use oncekey::reqwest::{Method, StatusCode, header::HeaderMap};
    ///
    /// # let url = "https://api.example/payments".parse()?;
    /// # let request = StoredRequest::new(Method::POST, url, vec![], StoredBody::None);
    /// # let (at, key) = (Time::from_millis(1), KeyOrigin::None);
    /// # let created = Entry::Created { at, key, method: MethodKind::Other, gone_is_done: false };
    /// # let identity = Identity::new("order-7".into(), Scope::new("acme", ""), Fingerprint::from_bytes([7; 32]));
    /// // What a `Journal` of your own gives back for a list.
    /// let stored = Stored::new(identity, vec![created], Status::Open);
    /// assert!(stored.request().is_none() && stored.answer().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn new(identity: Identity, entries: Vec<Entry>, status: Status) -> Self {
        Self { identity, request: None, entries, answer: None, status }
    }

    /// The same with its request, in its latest version, and its last answer.
    ///
    /// ```
    /// use oncekey::journal::{Status, Stored};
    /// # use oncekey::engine::{Entry, KeyOrigin, MethodKind, StopReason, Time};
    /// # use oncekey::journal::{Fingerprint, Identity, Scope, StoredAnswer, StoredBody, StoredRequest};
    /// # use oncekey::reqwest::{Method, StatusCode, header::HeaderMap};
    ///
    /// # let url = "https://api.example/payments".parse()?;
    /// # let request = StoredRequest::new(Method::POST, url, vec![], StoredBody::None);
    /// # let (at, key) = (Time::from_millis(1), KeyOrigin::None);
    /// # let created = Entry::Created { at, key, method: MethodKind::Other, gone_is_done: false };
    /// # let identity = Identity::new("order-7".into(), Scope::new("acme", ""), Fingerprint::from_bytes([7; 32]));
    /// # let answer = StoredAnswer::new(StatusCode::CREATED, HeaderMap::new(), vec![]);
    /// # let stored = Stored::new(identity, vec![created], Status::Closed);
    /// // What a `Journal` of your own gives back when one is loaded.
    /// let stored = stored.with_exchange(Some(request), Some(answer));
    /// assert_eq!(stored.answer().unwrap().status(), 201);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_exchange(mut self, request: Option<StoredRequest>, answer: Option<StoredAnswer>) -> Self {
        self.request = request;
        self.answer = answer;
        self
    }

    /// What was written once; the fingerprint is the latest request's.
    ///
    /// ```
    /// use oncekey::journal::{Status, Stored};
    /// # use oncekey::engine::{Entry, KeyOrigin, MethodKind, StopReason, Time};
    /// # use oncekey::journal::{Fingerprint, Identity, Scope, StoredAnswer, StoredBody, StoredRequest};
    /// # use oncekey::reqwest::{Method, StatusCode, header::HeaderMap};
    ///
    /// # let url = "https://api.example/payments".parse()?;
    /// # let request = StoredRequest::new(Method::POST, url, vec![], StoredBody::None);
    /// # let (at, key) = (Time::from_millis(1), KeyOrigin::None);
    /// # let created = Entry::Created { at, key, method: MethodKind::Other, gone_is_done: false };
    /// # let identity = Identity::new("order-7".into(), Scope::new("acme", ""), Fingerprint::from_bytes([7; 32]));
    /// let stored = Stored::new(identity.clone(), vec![created], Status::Open);
    /// assert_eq!(stored.identity(), &identity);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// What is sent, unless it was pruned.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::journal::{Journal, Memory};
    /// # use oncekey::{Client, Retry};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let journal = Memory::new();
    /// # let client = Client::builder().journal(journal.clone()).retry(Retry::default().max_attempts(1)).build()?;
    /// # let _ = client.post("http://127.0.0.1:1/payments").operation("order-7").send().await;
    /// # client.abandon("order-7").await?;
    /// let before = journal.load(&"order-7".into()).await?.unwrap();
    /// journal.prune(Duration::ZERO).await?;
    /// let after = journal.load(&"order-7".into()).await?.unwrap();
    /// assert_eq!(before.request().unwrap().url().path(), "/payments");
    /// assert!(after.request().is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub const fn request(&self) -> Option<&StoredRequest> {
        self.request.as_ref()
    }

    /// All that happened to it.
    ///
    /// ```
    /// use oncekey::engine::{Effect, History};
    /// use oncekey::journal::{Journal, Memory};
    /// # use oncekey::{Client, Retry};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let journal = Memory::new();
    /// # let client = Client::builder().journal(journal.clone()).retry(Retry::default().max_attempts(1)).build()?;
    /// # let _ = client.post("http://127.0.0.1:1/payments").operation("order-7").send().await;
    /// let stored = journal.load(&"order-7".into()).await?.unwrap();
    /// let history = History::replay(stored.entries())?; // what they mean
    /// assert_eq!((history.attempts(), history.effect()), (1, Effect::NotApplied));
    /// # Ok(())
    /// # }
    /// ```
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The last answer, if one is kept.
    ///
    /// ```
    /// use oncekey::journal::{Journal, Memory};
    /// # use oncekey::{Client, Retry};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::sandbox::Sandbox;
    /// # let (journal, sandbox) = (Memory::new(), Sandbox::start().await?);
    /// # let client = Client::builder().journal(journal.clone()).build()?;
    /// let payment = client.post(sandbox.url("/payments")).operation("order-7").body(r#"{"amount":450}"#);
    /// let response = payment.send().await?;
    /// let stored = journal.load(&"order-7".into()).await?.unwrap();
    /// assert_eq!(stored.answer().unwrap().body(), response.bytes());
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    pub const fn answer(&self) -> Option<&StoredAnswer> {
        self.answer.as_ref()
    }

    /// Where it stands.
    ///
    /// ```
    /// use oncekey::journal::{Journal, Memory, Status};
    /// # use oncekey::{Client, IdempotencyKey, Retry};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let journal = Memory::new();
    /// # let client = Client::builder().journal(journal.clone()).retry(Retry::default().max_attempts(1)).build()?;
    /// // A key that may have been sent before, and nobody listens: in doubt.
    /// let key = IdempotencyKey::parse("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506")?;
    /// let _ = client.post("http://127.0.0.1:1/payments").operation("order-7").idempotency_key(key).send().await;
    /// let stored = journal.load(&"order-7".into()).await?.unwrap();
    /// assert_eq!(stored.status(), Status::Open);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn status(&self) -> Status {
        self.status
    }

    /// When it was created.
    pub(crate) fn created_at(&self) -> Time {
        match self.entries.first() {
            Some(Entry::Created { at, .. }) => *at,
            _ => Time::default(),
        }
    }
}
