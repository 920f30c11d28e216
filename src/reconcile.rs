use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use crate::engine::Effect;
use crate::runtime;
use crate::submission::{IdempotencyKey, OperationId, Submission};

/// Looks an operation up at the provider, by a reference of the merchant's own,
/// when asking again under its key cannot tell how it ended: after a stored 5xx,
/// a conflict, a key that is too old.
///
/// It runs at the end of a run whose effect is [`Effect::Unknown`] and whose
/// operation must not be sent again, and may use any client but this one. With a
/// journal what it found is on the disk, with its evidence, before the call
/// returns, and is what the record says from then on.
///
/// A closure without `await` is one too.
pub trait Reconcile: Send + Sync {
    /// What the provider's own books say.
    ///
    /// # Errors
    ///
    /// Any: the effect stays unknown, and it is looked up again when the
    /// operation is asked for again.
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
    pub fn operation(&self) -> Option<&OperationId> {
        self.id.as_ref()
    }

    /// The key that it was sent under.
    pub fn key(&self) -> Option<&IdempotencyKey> {
        self.submission.key.as_ref()
    }

    /// The URL that it was sent to.
    pub fn url(&self) -> &str {
        self.submission.url.as_str()
    }

    /// The body that was sent, which holds the merchant's reference.
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

/// What the hook settled, if it did within this time: the effect, and by whom on
/// what evidence.
pub(crate) async fn settled_by(
    hook: &dyn AnyReconcile,
    doubtful: &Doubtful<'_>,
    limit: Duration,
) -> Option<(Effect, Box<str>)> {
    let found = runtime::within(limit, hook.reconcile(doubtful)).await?.ok()?;
    let (effect, evidence) = match found {
        Found::Applied(evidence) => (Effect::Applied, evidence),
        Found::NotApplied(evidence) => (Effect::NotApplied, evidence),
        Found::Unknown => return None,
    };
    Some((effect, format!("reconcile: {evidence}").into()))
}

impl<R: Reconcile> AnyReconcile for R {
    fn reconcile<'a>(&'a self, doubtful: &'a Doubtful<'_>) -> Reconciled<'a> {
        Box::pin(Reconcile::reconcile(self, doubtful))
    }
}
