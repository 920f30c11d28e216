use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use crate::engine::Effect;
use crate::error::Cause;
use crate::runtime;
use crate::submission::{IdempotencyKey, OperationId, Submission};

/// Looks an operation up at the provider, by a reference of the merchant's own,
/// when asking again under its key cannot tell how it ended: after a stored 5xx,
/// a conflict, a key that is too old.
///
/// It runs at the end of a run whose effect is [`Effect::Unknown`] and whose
/// operation must not be sent again, for one attempt's timeout at most and not
/// past the deadline, and may use any client but this one. With a
/// journal what it found is on the disk, with its evidence, before the call
/// returns, and is what the record says from then on.
///
/// A closure without `await` is one too.
pub trait Reconcile: Send + Sync {
    /// What the provider's own books say.
    ///
    /// ```
    /// use oncekey::{Client, Doubtful, Effect, Found, Reconcile};
    /// # use oncekey::IdempotencyKey;
    ///
    /// struct Statement(Vec<&'static str>);
    ///
    /// impl Reconcile for Statement {
    ///     async fn reconcile(
    ///         &self,
    ///         doubtful: &Doubtful<'_>,
    ///     ) -> Result<Found, Box<dyn std::error::Error + Send + Sync>> {
    ///         let reference = String::from_utf8_lossy(doubtful.body());
    ///         let paid = self.0.iter().any(|line| reference.contains(line)); // ask the provider here
    ///         Ok(if paid { Found::Applied(format!("{reference} is in the statement")) } else { Found::Unknown })
    ///     }
    /// }
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let two_days_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(2 * 86_400);
    /// # let key = IdempotencyKey::parse("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506")?.first_sent(two_days_ago);
    /// let client = Client::builder().reconcile_with(Statement(vec!["M1A2B3C4"])).build()?;
    /// // Its key is too old to be asked under.
    /// let payment = client.post("http://127.0.0.1:1/payments").idempotency_key(key).body("M1A2B3C4");
    /// assert_eq!(payment.send().await.unwrap_err().effect(), Effect::Applied);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Any: the effect stays unknown, and it is looked up again when the
    /// operation is asked for again. The caller finds it as the `source` of the
    /// error, unless that has another cause.
    fn reconcile(
        &self,
        doubtful: &Doubtful<'_>,
    ) -> impl Future<Output = Result<Found, Box<dyn StdError + Send + Sync>>> + Send;
}

impl<F> Reconcile for F
where
    F: Fn(&Doubtful<'_>) -> Result<Found, Box<dyn StdError + Send + Sync>> + Send + Sync,
{
    async fn reconcile(&self, doubtful: &Doubtful<'_>) -> Result<Found, Box<dyn StdError + Send + Sync>> {
        self(doubtful)
    }
}

/// What a look-up found, and where: the evidence is written down.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Found {
    /// It was carried out; here is what shows it.
    Applied(String),
    /// It was not carried out and never will be: say so only if the provider
    /// can tell that nothing is still on its way. "Not found" alone cannot.
    NotApplied(String),
    /// It cannot be told yet.
    Unknown,
}

/// An operation whose effect is unknown, as [`Reconcile`] sees it.
pub struct Doubtful<'a> {
    pub(crate) submission: &'a Submission,
    pub(crate) id: Option<OperationId>,
}

impl Doubtful<'_> {
    /// Its id.
    ///
    /// ```
    /// use oncekey::{Client, Doubtful, Found};
    /// # use oncekey::{Effect, IdempotencyKey};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # #[cfg(feature = "journal")] {
    /// # let two_days_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(2 * 86_400);
    /// # let key = IdempotencyKey::parse("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506")?.first_sent(two_days_ago);
    /// let client = Client::builder()
    ///     .reconcile_with(|doubtful: &Doubtful<'_>| {
    ///         let order = doubtful.operation().expect("a client with a journal names all of them");
    ///         assert_eq!(order.as_str(), "order-7");
    ///         Ok(Found::Applied(format!("{order} is in the statement")))
    ///     })
    /// #   .journal(oncekey::journal::Memory::new())
    ///     .build()?;
    /// # let payment = client.post("http://127.0.0.1:1/payments").operation("order-7").idempotency_key(key);
    /// # assert_eq!(payment.send().await.unwrap_err().effect(), Effect::Applied);
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    pub fn operation(&self) -> Option<&OperationId> {
        self.id.as_ref()
    }

    /// The key that it was sent under.
    ///
    /// ```
    /// use oncekey::{Client, Doubtful, Found};
    /// # use oncekey::{Effect, IdempotencyKey};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let two_days_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(2 * 86_400);
    /// # let key = IdempotencyKey::parse("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506")?.first_sent(two_days_ago);
    /// let client = Client::builder()
    ///     .reconcile_with(|doubtful: &Doubtful<'_>| {
    ///         // Many providers show it beside the payment.
    ///         let key = doubtful.key().map(|key| key.as_str());
    ///         let is_paid = key == Some("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506");
    ///         Ok(if is_paid { Found::Applied("pay_7".into()) } else { Found::Unknown })
    ///     })
    ///     .build()?;
    /// # let payment = client.post("http://127.0.0.1:1/payments").idempotency_key(key);
    /// # assert_eq!(payment.send().await.unwrap_err().effect(), Effect::Applied);
    /// # Ok(())
    /// # }
    /// ```
    pub fn key(&self) -> Option<&IdempotencyKey> {
        self.submission.key.as_ref()
    }

    /// The URL that it was sent to.
    ///
    /// ```
    /// use oncekey::{Client, Doubtful, Found};
    /// # use oncekey::{Effect, IdempotencyKey};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let two_days_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(2 * 86_400);
    /// # let key = IdempotencyKey::parse("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506")?.first_sent(two_days_ago);
    /// let client = Client::builder()
    ///     .reconcile_with(|doubtful: &Doubtful<'_>| {
    ///         // Refunds are looked up elsewhere than payments.
    ///         let list = if doubtful.url().ends_with("/refunds") { "/v1/refunds" } else { "/v1/payments" };
    ///         Ok(Found::NotApplied(format!("not in {list}, and closed for the day")))
    ///     })
    ///     .build()?;
    /// # let refund = client.post("http://127.0.0.1:1/refunds").idempotency_key(key);
    /// # assert_eq!(refund.send().await.unwrap_err().effect(), Effect::NotApplied);
    /// # Ok(())
    /// # }
    /// ```
    pub fn url(&self) -> &str {
        self.submission.url.as_str()
    }

    /// The body that was sent, which holds the merchant's reference.
    ///
    /// ```
    /// use oncekey::{Client, Doubtful, Effect, Found};
    /// # use oncekey::IdempotencyKey;
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let two_days_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(2 * 86_400);
    /// # let key = IdempotencyKey::parse("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506")?.first_sent(two_days_ago);
    /// let client = Client::builder()
    ///     .reconcile_with(|doubtful: &Doubtful<'_>| {
    ///         let reference = std::str::from_utf8(doubtful.body())?;
    ///         Ok(if reference.contains("M1A2B3C4") { Found::Applied("pay_7".into()) } else { Found::Unknown })
    ///     })
    ///     .build()?;
    /// let payment = client.post("http://127.0.0.1:1/payments").idempotency_key(key).body("ref=M1A2B3C4");
    /// assert_eq!(payment.send().await.unwrap_err().effect(), Effect::Applied);
    /// # Ok(())
    /// # }
    /// ```
    pub fn body(&self) -> &[u8] {
        self.submission.body.as_deref().unwrap_or_default()
    }
}

impl fmt::Debug for Doubtful<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Doubtful").field("operation", &self.id).finish_non_exhaustive()
    }
}

type Reconciled<'a> = Pin<Box<dyn Future<Output = Result<Found, Box<dyn StdError + Send + Sync>>> + Send + 'a>>;

/// [`Reconcile`] behind a pointer.
pub(crate) trait AnyReconcile: Send + Sync {
    fn reconcile<'a>(&'a self, doubtful: &'a Doubtful<'_>) -> Reconciled<'a>;
}

/// What a look-up found: the effect, and by whom on what evidence.
pub(crate) type Resolution = (Effect, Box<str>);

/// What the hook settled. An error, if it did not end within this time either.
pub(crate) async fn settled_by(
    hook: &dyn AnyReconcile,
    doubtful: &Doubtful<'_>,
    limit: Duration,
) -> Result<Option<Resolution>, Cause> {
    let found = runtime::within(limit, hook.reconcile(doubtful)).await;
    let (effect, evidence) = match found.map_err(|_| "the `reconcile` hook did not end in its time")?? {
        Found::Applied(evidence) => (Effect::Applied, evidence),
        Found::NotApplied(evidence) => (Effect::NotApplied, evidence),
        Found::Unknown => return Ok(None),
    };
    Ok(Some((effect, format!("reconcile: {evidence}").into())))
}

impl<R: Reconcile> AnyReconcile for R {
    fn reconcile<'a>(&'a self, doubtful: &'a Doubtful<'_>) -> Reconciled<'a> {
        Box::pin(Reconcile::reconcile(self, doubtful))
    }
}
