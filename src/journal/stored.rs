use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::{HeaderName, HeaderValue};
use url::Url;

use super::StoredAnswer;
use crate::engine::{Entry, Owner, Time};
use crate::fingerprint::Fingerprint;
use crate::submission::{OperationId, Shown, abbreviated};

/// What is written once about an operation.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    pub(crate) id: OperationId,
    pub(crate) scope: Scope,
    pub(crate) profile_version: u32,
    pub(crate) key: Option<Box<str>>,
    pub(crate) key_lifetime: Duration,
    pub(crate) fingerprint: Fingerprint,
}

impl Identity {
    /// An identity of these parts.
    pub fn new(id: OperationId, scope: Scope, fingerprint: Fingerprint) -> Self {
        Self { id, scope, profile_version: 1, key: None, key_lifetime: Duration::ZERO, fingerprint }
    }

    /// The same with the key that it is sent under, and how long the server honours it.
    #[must_use]
    pub fn with_key(mut self, key: Option<Box<str>>, lifetime: Duration) -> Self {
        self.key = key;
        self.key_lifetime = lifetime;
        self
    }

    /// The same with the version of the profile that it began under.
    #[must_use]
    pub const fn with_profile_version(mut self, version: u32) -> Self {
        self.profile_version = version;
        self
    }

    /// Its id.
    pub const fn id(&self) -> &OperationId {
        &self.id
    }

    /// The profile and account that it belongs to.
    pub const fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The version of the profile that it began under.
    pub const fn profile_version(&self) -> u32 {
        self.profile_version
    }

    /// The key that it is sent under.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// How long the server honours the key.
    pub const fn key_lifetime(&self) -> Duration {
        self.key_lifetime
    }

    /// What tells its request from another.
    pub const fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("id", &self.id)
            .field("scope", &self.scope)
            .field("key", &self.key.as_deref().map(abbreviated))
            .finish_non_exhaustive()
    }
}

/// Whose operations: a client sees those of its own profile and account alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
    profile: Box<str>,
    account: Box<str>,
}

impl Scope {
    /// The scope of this profile and account; the account may be empty.
    pub fn new(profile: impl Into<Box<str>>, account: impl Into<Box<str>>) -> Self {
        Self { profile: profile.into(), account: account.into() }
    }

    /// The profile's id.
    pub fn profile(&self) -> &str {
        &self.profile
    }

    /// The account, or an empty text.
    pub fn account(&self) -> &str {
        &self.account
    }
}

/// A request as it is kept: without its key's header and its credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredRequest {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: StoredBody,
}

impl StoredRequest {
    /// A request of these parts.
    pub const fn new(method: Method, url: Url, headers: Vec<(HeaderName, HeaderValue)>, body: StoredBody) -> Self {
        Self { method, url, headers, body }
    }

    /// The method.
    pub const fn method(&self) -> &Method {
        &self.method
    }

    /// The URL.
    pub const fn url(&self) -> &Url {
        &self.url
    }

    /// The headers, in their order.
    pub fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        &self.headers
    }

    /// The body.
    pub const fn body(&self) -> &StoredBody {
        &self.body
    }
}

impl fmt::Debug for StoredRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredRequest")
            .field("method", &self.method)
            .field("url", &Shown(&self.url))
            .finish_non_exhaustive()
    }
}

/// A request's body as it is kept.
#[derive(Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)] // complete by definition
pub enum StoredBody {
    /// There is none.
    None,
    /// These bytes.
    Kept(Bytes),
    /// There is one, and it was not to be stored: this tells its bytes from others.
    LeftOut(Fingerprint),
}

impl fmt::Debug for StoredBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Kept(_) => "Kept(..)",
            Self::LeftOut(_) => "LeftOut",
        })
    }
}

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
    pub const fn new(identity: Identity, request: StoredRequest, entries: Vec<Entry>, status: Status) -> Self {
        Self { identity, request, entries, status }
    }

    /// What is written once.
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// What is sent.
    pub const fn request(&self) -> &StoredRequest {
        &self.request
    }

    /// The first entries.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Where it stands.
    pub const fn status(&self) -> Status {
        self.status
    }
}

/// Entries to be added to an operation, and what comes with them.
#[derive(Clone, Debug)]
pub struct Append {
    pub(crate) id: OperationId,
    pub(crate) position: usize,
    pub(crate) entries: Vec<Entry>,
    pub(crate) answer: Option<StoredAnswer>,
    pub(crate) amended: Option<(Fingerprint, StoredRequest)>,
    pub(crate) status: Status,
    pub(crate) durability: Durability,
}

impl Append {
    /// These entries, behind the first `position` ones, after which the
    /// operation stands at `status`. Flushed.
    pub const fn new(id: OperationId, position: usize, entries: Vec<Entry>, status: Status) -> Self {
        Self { id, position, entries, answer: None, amended: None, status, durability: Durability::Flushed }
    }

    /// The same with the answer that takes the place of an earlier one.
    #[must_use]
    pub fn with_answer(mut self, answer: Option<StoredAnswer>) -> Self {
        self.answer = answer;
        self
    }

    /// The same with the corrected request and its fingerprint.
    #[must_use]
    pub fn with_request(mut self, amended: Option<(Fingerprint, StoredRequest)>) -> Self {
        self.amended = amended;
        self
    }

    /// The same with this durability.
    #[must_use]
    pub const fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// The operation's id.
    pub const fn id(&self) -> &OperationId {
        &self.id
    }

    /// How many entries the record must hold.
    pub const fn position(&self) -> usize {
        self.position
    }

    /// The entries to add.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The answer to keep.
    pub const fn answer(&self) -> Option<&StoredAnswer> {
        self.answer.as_ref()
    }

    /// The corrected request and its fingerprint.
    pub const fn amended(&self) -> Option<&(Fingerprint, StoredRequest)> {
        self.amended.as_ref()
    }

    /// Where the operation stands then.
    pub const fn status(&self) -> Status {
        self.status
    }

    /// When it must be on the disk.
    pub const fn durability(&self) -> Durability {
        self.durability
    }
}

/// When a write must be on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums)] // complete by definition
pub enum Durability {
    /// Before the call returns.
    Flushed,
    /// Soon; every process sees it before the call returns.
    Visible,
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
    pub const fn new(identity: Identity, entries: Vec<Entry>, status: Status) -> Self {
        Self { identity, request: None, entries, answer: None, status }
    }

    /// The same with its request, in its latest version, and its last answer.
    #[must_use]
    pub fn with_exchange(mut self, request: Option<StoredRequest>, answer: Option<StoredAnswer>) -> Self {
        self.request = request;
        self.answer = answer;
        self
    }

    /// What was written once; the fingerprint is the latest request's.
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// What is sent, unless it was pruned.
    pub const fn request(&self) -> Option<&StoredRequest> {
        self.request.as_ref()
    }

    /// All that happened to it.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The last answer, if one is kept.
    pub const fn answer(&self) -> Option<&StoredAnswer> {
        self.answer.as_ref()
    }

    /// Where it stands.
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
