use std::fmt;
use std::time::Duration;

use crate::fingerprint::Fingerprint;
use crate::submission::{OperationId, abbreviated};

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
    ///
    /// ```
    /// use oncekey::journal::{Fingerprint, Identity, Scope};
    ///
    /// let scope = Scope::new("acme", "acct_1");
    /// let identity = Identity::new("order-7".into(), scope, Fingerprint::from_bytes([7; 32]));
    /// assert_eq!((identity.key(), identity.profile_version()), (None, 1)); // until told otherwise
    /// ```
    pub fn new(id: OperationId, scope: Scope, fingerprint: Fingerprint) -> Self {
        Self { id, scope, profile_version: 1, key: None, key_lifetime: Duration::ZERO, fingerprint }
    }

    /// The same with the key that it is sent under, and how long the server honours it.
    ///
    /// ```
    /// use std::time::Duration;
    /// # use oncekey::journal::{Fingerprint, Identity, Scope};
    ///
    /// # let scope = Scope::new("acme", "acct_1");
    /// # let identity = Identity::new("order-7".into(), scope, Fingerprint::from_bytes([7; 32]));
    /// let day = Duration::from_secs(86_400);
    /// let identity = identity.with_key(Some("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506".into()), day);
    /// assert_eq!(identity.key_lifetime(), day);
    /// assert!(format!("{identity:?}").contains("3f2a91c4…")); // never the whole key
    /// ```
    #[must_use]
    pub fn with_key(mut self, key: Option<Box<str>>, lifetime: Duration) -> Self {
        self.key = key;
        self.key_lifetime = lifetime;
        self
    }

    /// The same with the version of the profile that it began under.
    ///
    /// ```
    /// # use oncekey::journal::{Fingerprint, Identity, Scope};
    /// # let scope = Scope::new("acme", "acct_1");
    /// # let identity = Identity::new("order-7".into(), scope, Fingerprint::from_bytes([7; 32]));
    /// // As it stands in a row's column.
    /// let column: i64 = 3;
    /// let identity = identity.with_profile_version(u32::try_from(column)?);
    /// assert_eq!(identity.profile_version(), 3);
    /// # Ok::<(), std::num::TryFromIntError>(())
    /// ```
    #[must_use]
    pub const fn with_profile_version(mut self, version: u32) -> Self {
        self.profile_version = version;
        self
    }

    /// Its id.
    ///
    /// ```
    /// # use oncekey::journal::{Fingerprint, Identity, Scope};
    /// # let scope = Scope::new("acme", "acct_1");
    /// # let identity = Identity::new("order-7".into(), scope, Fingerprint::from_bytes([7; 32]));
    /// assert_eq!(identity.id().as_str(), "order-7");
    /// ```
    pub const fn id(&self) -> &OperationId {
        &self.id
    }

    /// The profile and account that it belongs to.
    ///
    /// ```
    /// # use oncekey::journal::{Fingerprint, Identity, Scope};
    /// # let scope = Scope::new("acme", "acct_1");
    /// # let identity = Identity::new("order-7".into(), scope, Fingerprint::from_bytes([7; 32]));
    /// let columns = (identity.scope().profile(), identity.scope().account());
    /// assert_eq!(columns, ("acme", "acct_1"));
    /// ```
    pub const fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The version of the profile that it began under.
    ///
    /// ```
    /// use oncekey::journal::{Journal, Memory};
    /// use oncekey::{Client, Profile, Retry};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (journal, retry) = (Memory::new(), Retry::default().max_attempts(1));
    /// let profile = Profile::builder("acme").version(4).build()?;
    /// let client = Client::builder().profile(profile).journal(journal.clone()).retry(retry).build()?;
    /// let _ = client.post("http://127.0.0.1:1/payments").operation("order-7").send().await; // nobody listens there
    /// let stored = journal.load(&"order-7".into()).await?.unwrap();
    /// assert_eq!(stored.identity().profile_version(), 4);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn profile_version(&self) -> u32 {
        self.profile_version
    }

    /// The key that it is sent under.
    ///
    /// ```
    /// use oncekey::journal::{Journal, Memory};
    /// use oncekey::{Client, IdempotencyKey, Retry};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let journal = Memory::new();
    /// # let client = Client::builder().journal(journal.clone()).retry(Retry::default().max_attempts(1)).build()?;
    /// let key = IdempotencyKey::random();
    /// let request = client.post("http://127.0.0.1:1/payments").operation("order-7").idempotency_key(&key);
    /// let _ = request.send().await; // nobody listens there
    /// let stored = journal.load(&"order-7".into()).await?.unwrap();
    /// assert_eq!(stored.identity().key(), Some(key.as_str())); // another attempt is sent under the same
    /// # Ok(())
    /// # }
    /// ```
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// How long the server honours the key.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::journal::{Journal, Memory};
    /// use oncekey::{Client, Retry};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (journal, retry) = (Memory::new(), Retry::default().max_attempts(1));
    /// let hours = Duration::from_secs(6 * 3600);
    /// let client = Client::builder().key_lifetime(hours).journal(journal.clone()).retry(retry).build()?;
    /// let _ = client.post("http://127.0.0.1:1/payments").operation("order-7").send().await; // nobody listens there
    /// let stored = journal.load(&"order-7".into()).await?.unwrap();
    /// assert_eq!(stored.identity().key_lifetime(), hours); // of the time when it began
    /// # Ok(())
    /// # }
    /// ```
    pub const fn key_lifetime(&self) -> Duration {
        self.key_lifetime
    }

    /// What tells its request from another.
    ///
    /// ```
    /// # use oncekey::journal::{Fingerprint, Identity, Scope};
    /// # let scope = Scope::new("acme", "acct_1");
    /// # let identity = Identity::new("order-7".into(), scope, Fingerprint::from_bytes([7; 32]));
    /// let asked = Fingerprint::from_bytes([8; 32]);
    /// assert_ne!(identity.fingerprint(), &asked); // the same id, and another request
    /// ```
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
    ///
    /// ```
    /// use oncekey::journal::Scope;
    ///
    /// // The accounts of one provider are apart: a key of one may be another's key too.
    /// assert_ne!(Scope::new("stripe-v1", "acct_1"), Scope::new("stripe-v1", "acct_2"));
    /// assert_ne!(Scope::new("stripe-v1", ""), Scope::new("adyen", ""));
    /// ```
    pub fn new(profile: impl Into<Box<str>>, account: impl Into<Box<str>>) -> Self {
        Self { profile: profile.into(), account: account.into() }
    }

    /// The profile's id.
    ///
    /// ```
    /// use oncekey::Profile;
    /// use oncekey::journal::Scope;
    ///
    /// let scope = Scope::new(Profile::stripe().id(), "");
    /// assert_eq!(scope.profile(), "stripe-v1");
    /// ```
    pub fn profile(&self) -> &str {
        &self.profile
    }

    /// The account, or an empty text.
    ///
    /// ```
    /// use oncekey::journal::Scope;
    ///
    /// let scope = Scope::new("stripe-v1", String::from("acct_1"));
    /// assert_eq!(scope.account(), "acct_1");
    /// assert!(Scope::new("stripe-v1", "").account().is_empty());
    /// ```
    pub fn account(&self) -> &str {
        &self.account
    }
}
