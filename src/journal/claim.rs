use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::engine::Owner;
use crate::submission::OperationId;

type Live = HashMap<(Owner, OperationId), Arc<Notify>>;

/// The operations that this process works on, by open journal: dropping the
/// claim frees one at once.
static LIVE: LazyLock<Mutex<Live>> = LazyLock::new(Mutex::default);

fn live() -> std::sync::MutexGuard<'static, Live> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nobody else in this process works on the operation while this lives.
pub(crate) struct Claim {
    of: (Owner, OperationId),
}

impl Claim {
    /// Waits until nobody else in this process works on it.
    pub(crate) async fn wait(owner: Owner, id: &OperationId) -> Self {
        loop {
            let freed = match Self::take(owner, id) {
                Ok(claim) => return claim,
                Err(freed) => freed,
            };
            let mut freed = std::pin::pin!(freed.notified_owned());
            // Freed between the look and the wait: it would not be told of that.
            freed.as_mut().enable();
            if live().contains_key(&(owner, id.clone())) {
                freed.await;
            }
        }
    }

    /// Whether somebody in this process works on it.
    pub(crate) fn is_held(owner: Owner, id: &OperationId) -> bool {
        live().contains_key(&(owner, id.clone()))
    }

    fn take(owner: Owner, id: &OperationId) -> Result<Self, Arc<Notify>> {
        let of = (owner, id.clone());
        let mut live = live();
        if let Some(freed) = live.get(&of) {
            return Err(Arc::clone(freed));
        }
        live.insert(of.clone(), Arc::new(Notify::new()));
        Ok(Self { of })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(freed) = live().remove(&self.of) {
            freed.notify_waiters();
        }
    }
}
