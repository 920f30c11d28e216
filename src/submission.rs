use std::cmp::Ordering as Order;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::SystemTime;

use bytes::Bytes;
use http::Method;
use http::header::{HeaderName, HeaderValue};
use url::Url;

use crate::engine::{Entry, KeyOrigin, Time};
use crate::profile::{KeyError, KeyFormat, method_kind};
use crate::runtime;

/// The key under which an operation is carried out at most once.
///
/// Without one of your own, a request gets a random key that was never used.
///
/// A key is printed by no `Debug` and no `Display`; [`IdempotencyKey::as_str`]
/// is the whole of it.
///
/// ```
/// use oncekey::IdempotencyKey;
///
/// let key = IdempotencyKey::parse("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506")?;
/// assert_eq!(key.as_str(), "3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506");
/// assert_eq!(format!("{key:?}"), "IdempotencyKey(3f2a91c4…)");
/// # Ok::<(), oncekey::profile::KeyError>(())
/// ```
#[derive(Clone)]
pub struct IdempotencyKey {
    text: Text,
    first_sent: Option<SystemTime>,
    /// What its clones have in common; none for a key that was drawn for one operation.
    shared: Option<Arc<Use>>,
}

#[derive(Clone)]
enum Text {
    Uuid([u8; 36]),
    Other(Box<str>),
}

impl IdempotencyKey {
    /// A UUID v4 from the operating system's generator, in lower case.
    ///
    /// Until its first attempt it is known to be new, so that an operation
    /// under it starts free of doubt; all of its clones share that.
    ///
    /// Should the system's generator fail, the key is empty, and every request
    /// with it is refused before anything is sent.
    ///
    /// ```
    /// use oncekey::IdempotencyKey;
    ///
    /// let key = IdempotencyKey::random();
    /// assert_eq!((key.as_str().len(), &key.as_str()[14..15]), (36, "4"));
    /// assert_ne!(IdempotencyKey::random(), key);
    /// ```
    pub fn random() -> Self {
        match Self::drawn() {
            Ok(key) => Self { shared: Some(Arc::new(Use::new(FRESH))), ..key },
            Err(_) => Self { text: Text::Other("".into()), first_sent: None, shared: None },
        }
    }

    /// A new key that nobody else can hold.
    pub(crate) fn drawn() -> Result<Self, getrandom::Error> {
        let uuid = uuid::Builder::from_random_bytes(runtime::random_bytes()?).into_uuid();
        let mut text = [0; 36];
        uuid.hyphenated().encode_lower(&mut text);
        Ok(Self { text: Text::Uuid(text), first_sent: None, shared: None })
    }

    /// A key of your own: 1 to 300 visible ASCII characters without quotes. The
    /// client's profile may ask for more, and is asked when it is used.
    ///
    /// It may have been sent before, so an operation under it starts in doubt:
    /// a refusal then says nothing about what came earlier. Its lifetime counts
    /// from its first attempt here, which all of its clones know of, unless
    /// [`first_sent`](Self::first_sent) says when it was sent elsewhere.
    ///
    /// ```
    /// use oncekey::IdempotencyKey;
    ///
    /// let key = IdempotencyKey::parse("order-7")?;
    /// assert_eq!(key.as_str(), "order-7"); // to the letter
    /// let error = IdempotencyKey::parse("order 7").unwrap_err();
    /// assert!(error.to_string().starts_with("the idempotency key"), "{error}");
    /// assert_eq!("order-7".parse::<IdempotencyKey>()?, key); // for `clap` and the like
    /// # Ok::<(), oncekey::profile::KeyError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`KeyError`], which names what is wrong with it.
    pub fn parse(key: impl AsRef<str>) -> Result<Self, KeyError> {
        let key = key.as_ref();
        KeyFormat::any().check(key)?;
        Ok(Self { text: Text::Other(key.into()), first_sent: None, shared: Some(Arc::new(Use::new(USED))) })
    }

    /// When it was first sent. Its lifetime counts from then instead of from
    /// the first attempt here.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use oncekey::{Client, ErrorKind, IdempotencyKey};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let two_days_ago = SystemTime::now() - Duration::from_secs(2 * 86_400);
    /// let key = IdempotencyKey::parse("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506")?.first_sent(two_days_ago);
    /// let request = Client::new().post("http://127.0.0.1:1/payments").idempotency_key(key);
    /// assert_eq!(request.send().await.unwrap_err().kind(), ErrorKind::KeyExpired); // and nothing was sent
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn first_sent(mut self, at: SystemTime) -> Self {
        self.first_sent = Some(at);
        self.shared = Some(Arc::new(Use::new(USED)));
        self
    }

    /// The whole key, as it is sent, without the quotes of APIs that want some.
    ///
    /// ```
    /// use oncekey::IdempotencyKey;
    ///
    /// let key = IdempotencyKey::random();
    /// let row = key.as_str().to_owned(); // to be kept before it is sent
    /// assert_eq!(IdempotencyKey::parse(row)?, key);
    /// # Ok::<(), oncekey::profile::KeyError>(())
    /// ```
    pub fn as_str(&self) -> &str {
        match &self.text {
            Text::Uuid(text) => std::str::from_utf8(text).expect("a UUID's text is ASCII"),
            Text::Other(text) => text,
        }
    }

    /// Whether nobody can have sent it.
    pub(crate) fn is_fresh(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.state.load(Ordering::Acquire) == FRESH)
    }

    /// Where an operation's key came from, if it begins with this one now.
    pub(crate) fn claim(&self) -> KeyOrigin {
        let elsewhere = self.first_sent.map(runtime::time);
        let Some(shared) = &self.shared else {
            return KeyOrigin::Given { first_sent: elsewhere };
        };
        if shared.claim() {
            return KeyOrigin::Drawn;
        }
        let here = shared.first_sent();
        KeyOrigin::Given { first_sent: here.into_iter().chain(elsewhere).min() }
    }

    /// Nothing was started under the claim: it is as fresh as it was.
    pub(crate) fn release(&self) {
        if let Some(shared) = &self.shared {
            shared.release();
        }
    }

    /// An attempt under it is about to be sent.
    pub(crate) fn note_sent(&self, at: Time) {
        if let Some(shared) = &self.shared {
            shared.first_sent.fetch_min(at.as_millis(), Ordering::AcqRel);
        }
    }

    /// Whether somebody else began an operation under it since the claim.
    pub(crate) fn is_contested(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.state.load(Ordering::Acquire) == USED)
    }

    /// A key of the record, where nobody else can use it without being seen.
    #[cfg(feature = "journal")]
    pub(crate) fn stored(text: &str) -> Self {
        Self { text: Text::Other(text.into()), first_sent: None, shared: None }
    }

    /// The key as it is handed out after a use: never fresh, with its age.
    pub(crate) fn used(mut self, since: Option<Time>) -> Self {
        match since {
            Some(since) => {
                self.first_sent = Some(runtime::system_time(since));
                self.shared = None;
            }
            // What is to be known of it is yet to come.
            None => self.shared = Some(Arc::new(Use::new(USED))),
        }
        self
    }
}

impl AsRef<str> for IdempotencyKey {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

/// As [`IdempotencyKey::parse`], for what reads arguments and settings.
impl FromStr for IdempotencyKey {
    type Err = KeyError;

    fn from_str(key: &str) -> Result<Self, KeyError> {
        Self::parse(key)
    }
}

impl From<&Self> for IdempotencyKey {
    fn from(key: &Self) -> Self {
        key.clone()
    }
}

impl PartialEq for IdempotencyKey {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for IdempotencyKey {}

impl Hash for IdempotencyKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdempotencyKey({})", abbreviated(self.as_str()))
    }
}

/// Enough of a key to find it in a log, too little to use it.
pub(crate) fn abbreviated(key: &str) -> String {
    let shown = if key.len() >= 16 { 8 } else { key.len() / 4 };
    format!("{}…", key.get(..shown).unwrap_or_default())
}

/// What became of a key in this process, shared by its clones.
struct Use {
    state: AtomicU8,
    /// Milliseconds since the epoch of the first attempt under it.
    first_sent: AtomicU64,
}

const FRESH: u8 = 0;
const CLAIMED: u8 = 1;
const USED: u8 = 2;

impl Use {
    const fn new(state: u8) -> Self {
        Self { state: AtomicU8::new(state), first_sent: AtomicU64::new(u64::MAX) }
    }

    /// The first to claim it has it fresh; for anybody after that it is used.
    fn claim(&self) -> bool {
        let first = self.state.compare_exchange(FRESH, CLAIMED, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if !first {
            self.state.store(USED, Ordering::Release);
        }
        first
    }

    fn release(&self) {
        let _ = self.state.compare_exchange(CLAIMED, FRESH, Ordering::AcqRel, Ordering::Acquire);
    }

    fn first_sent(&self) -> Option<Time> {
        let millis = self.first_sent.load(Ordering::Acquire);
        (millis != u64::MAX).then(|| Time::from_millis(millis))
    }
}

/// The name of a business operation: what is asked for again after a crash.
///
/// 1 to 255 bytes, without control characters and without space at its ends.
#[derive(Clone)]
pub struct OperationId {
    text: Box<str>,
    /// Without a name, the key is the name.
    is_key: bool,
}

impl OperationId {
    pub(crate) fn of_key(key: &IdempotencyKey) -> Self {
        Self { text: key.as_str().into(), is_key: true }
    }

    /// The whole id.
    ///
    /// ```
    /// use oncekey::OperationId;
    ///
    /// let id = OperationId::from("income:M1A2B3C4");
    /// assert_eq!(id.as_str(), "income:M1A2B3C4");
    /// assert_eq!(id.to_string(), id.as_str(), "but for one that is a key: that is abbreviated");
    /// ```
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What is wrong with it.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let text = &*self.text;
        if text.is_empty() {
            Some("the operation's id is empty")
        } else if text.len() > 255 {
            Some("the operation's id is longer than 255 bytes")
        } else if text.trim() != text || text.chars().any(char::is_control) {
            Some("the operation's id has space at an end or a control character in it")
        } else {
            None
        }
    }
}

#[cfg(feature = "journal")]
impl OperationId {
    /// The same, known to be a key: it is abbreviated where it is printed.
    #[cfg(feature = "sqlite")]
    pub(crate) fn known_as_key(mut self) -> Self {
        self.is_key = true;
        self
    }
}

impl From<&str> for OperationId {
    fn from(id: &str) -> Self {
        Self { text: id.into(), is_key: false }
    }
}

impl From<String> for OperationId {
    fn from(id: String) -> Self {
        Self { text: id.into(), is_key: false }
    }
}

impl From<&Self> for OperationId {
    fn from(id: &Self) -> Self {
        id.clone()
    }
}

impl AsRef<str> for OperationId {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for OperationId {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for OperationId {}

impl PartialOrd for OperationId {
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl Ord for OperationId {
    fn cmp(&self, other: &Self) -> Order {
        self.text.cmp(&other.text)
    }
}

impl Hash for OperationId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

/// The id, abbreviated where it is the key.
impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_key { f.pad(&abbreviated(&self.text)) } else { f.pad(&self.text) }
    }
}

impl fmt::Debug for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OperationId({self})")
    }
}

/// One operation's request, byte for byte: what every attempt sends.
pub(crate) struct Submission {
    pub(crate) method: Method,
    pub(crate) url: Url,
    /// The key's header included.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Option<Bytes>,
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) origin: KeyOrigin,
    pub(crate) gone_is_done: bool,
    /// Its name, where that is not its key.
    pub(crate) id: Option<OperationId>,
}

impl Submission {
    pub(crate) fn created(&self, at: Time) -> Entry {
        Entry::Created { at, key: self.origin, method: method_kind(&self.method), gone_is_done: self.gone_is_done }
    }

    /// What it is called: its key, where it has no name, or the key's for one.
    pub(crate) fn operation(&self) -> Option<OperationId> {
        let named = self.id.as_ref().filter(|id| self.key.as_ref().is_none_or(|key| key.as_str() != id.as_str()));
        named.cloned().or_else(|| self.key.as_ref().map(OperationId::of_key))
    }
}

impl fmt::Debug for Submission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Submission")
            .field("method", &self.method)
            .field("url", &Shown(&self.url))
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// Whether a header is a credential: never written down.
#[cfg(feature = "journal")]
pub(crate) fn is_credential(name: &HeaderName, value: &HeaderValue) -> bool {
    use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION};
    value.is_sensitive() || [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION].contains(name)
}

/// A URL without what may be secret in it: user, password, query, fragment.
pub(crate) struct Shown<'a>(pub(crate) &'a Url);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.0.scheme(), self.0.host_str().unwrap_or_default())?;
        if let Some(port) = self.0.port() {
            write!(f, ":{port}")?;
        }
        f.write_str(self.0.path())
    }
}

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use http::header::AUTHORIZATION;

    use super::*;

    #[test]
    fn a_random_key_is_a_fresh_v4_in_lower_case() {
        let key = IdempotencyKey::random();
        KeyFormat::uuid().check(key.as_str()).unwrap();
        assert_eq!(key.as_str().as_bytes()[14], b'4', "version");
        assert!(matches!(key.as_str().as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "variant");
        assert_ne!(key, IdempotencyKey::random());
    }

    #[test]
    fn freshness_is_shared_by_clones_and_ends_with_the_first_use() {
        let given = KeyOrigin::Given { first_sent: None };
        let key = IdempotencyKey::random();
        let clone = key.clone();
        assert_eq!(clone.claim(), KeyOrigin::Drawn);
        assert_eq!(key.claim(), given);
        clone.release();
        assert_eq!(key.claim(), given, "somebody else had it meanwhile");

        let key = IdempotencyKey::random();
        assert_eq!(key.claim(), KeyOrigin::Drawn);
        key.clone().release();
        assert_eq!(key.claim(), KeyOrigin::Drawn, "nothing was started under it");
        assert_eq!(key.used(None).claim(), given);

        let key = IdempotencyKey::random();
        assert_eq!((key.claim(), key.is_contested()), (KeyOrigin::Drawn, false));
        key.note_sent(Time::from_millis(7000));
        key.note_sent(Time::from_millis(9000));
        let known = KeyOrigin::Given { first_sent: Some(Time::from_millis(7000)) };
        assert_eq!(key.clone().claim(), known, "its clones know when it was first sent");
        assert!(key.is_contested());
        let parsed = IdempotencyKey::parse("a-key").unwrap();
        parsed.clone().note_sent(Time::from_millis(7000));
        assert_eq!(parsed.claim(), known);
        assert_eq!(IdempotencyKey::parse("a-key").unwrap().claim(), given);
        let at = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(5);
        let sent = IdempotencyKey::random().first_sent(at);
        assert_eq!(sent.claim(), KeyOrigin::Given { first_sent: Some(Time::from_millis(5000)) });
    }

    #[test]
    fn neither_key_nor_query_is_printed() {
        let key = IdempotencyKey::parse("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506").unwrap();
        assert_eq!(format!("{key:?}"), "IdempotencyKey(3f2a91c4…)");
        assert_eq!(format!("{:?}", IdempotencyKey::parse("secret").unwrap()), "IdempotencyKey(s…)");
        assert_eq!(OperationId::of_key(&key).to_string(), "3f2a91c4…");
        assert_eq!(OperationId::from("income:7").to_string(), "income:7");
        let submission = Submission {
            method: Method::POST,
            url: Url::parse("https://user:pass@api.example:8443/pay?card=4242#x").unwrap(),
            headers: vec![(AUTHORIZATION, "Bearer token".parse().unwrap())],
            body: Some(Bytes::from_static(b"{\"card\":\"4242\"}")),
            key: Some(key),
            origin: KeyOrigin::Drawn,
            gone_is_done: false,
            id: None,
        };
        assert_eq!(
            format!("{submission:?}"),
            "Submission { method: POST, url: https://api.example:8443/pay, key: Some(IdempotencyKey(3f2a91c4…)), .. }"
        );
    }
}
