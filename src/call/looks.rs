//! Asking after an operation in other ways than by sending it again.

use std::sync::Arc;
use std::time::Duration;

use url::Url;

use super::{Call, Operation, request};
use crate::attempt::Attempt;
use crate::authorize::Parts;
use crate::driver::World;
use crate::engine::{Advice, Again, Effect, Entry, Outcome, Reach, Verdict, Why};
use crate::look;
use crate::profile::Asked;
use crate::reconcile::{self, Doubtful};
use crate::runtime;
use crate::submission::Submission;
use crate::transport::{self, Head};

impl Operation {
    /// What a look-up by the caller's own reference makes of an end in doubt.
    pub(crate) async fn looked_up(&mut self, outcome: Outcome) -> Outcome {
        if self.call.client.reconcile_with.is_none() || self.history.effect() != Effect::Unknown {
            return outcome;
        }
        // While it may be sent again, that is what tells.
        if self.history.asked_again(&self.policy, self.call.now()) == Again::GoesOn {
            return outcome;
        }
        // In memory of its own: it comes seldom.
        Box::pin(self.reconciled()).await.unwrap_or(outcome)
    }

    async fn reconciled(&mut self) -> Option<Outcome> {
        let limit = self.policy.attempt_time().min(self.history.left(&self.policy, self.call.now()));
        let hook = self.call.client.reconcile_with.as_deref()?;
        let doubtful = Doubtful { submission: &self.call.submission, id: self.call.submission.operation() };
        let settled = reconcile::settled_by(hook, &doubtful, limit).await;
        self.call.now = runtime::now();
        let (effect, by) = match settled {
            Ok(settled) => settled?,
            Err(error) => {
                self.call.cause.get_or_insert(error);
                return None;
            }
        };
        let entry = Entry::Resolved { effect, by, at: self.call.now().max(self.history.latest()) };
        let mut after = self.history.clone();
        after.apply(&entry).ok()?;
        // What is not on record is not settled.
        self.call.record(&entry, &after, &self.policy).await.ok()?;
        self.history = after;
        Some(Outcome::Resolved(effect))
    }
}

impl Call {
    /// What goes out next.
    pub(super) fn outgoing(&self) -> &Submission {
        self.look.as_deref().unwrap_or(&self.submission)
    }

    /// What a status resource says of the operation, and where it is asked next.
    pub(super) fn followed(&mut self, read: Verdict, head: Option<&Head>) -> Verdict {
        self.names_it = false;
        let is_look = self.look.is_some();
        let Some(head) = head else {
            return if is_look { look::of_status(read, None) } else { read };
        };
        let answer = head.answer(self.now.time());
        let verdict = if is_look { answer.heeded(look::of_status(read, Some(head.status))) } else { read };
        let Some(find) = &self.client.poll_with else {
            return verdict;
        };
        let base = &self.outgoing().url;
        let is_pending = matches!(verdict.reach(), Reach::Accepted { .. }) && verdict.why() == Why::Pending;
        let named = || {
            let text = find(&answer)?;
            let url = base.join(&text).ok().filter(Url::has_host)?;
            // On record it is read against the operation's own URL.
            let is_found_again = self.submission.url.join(&text).is_ok_and(|again| again == url);
            Some((url, is_found_again))
        };
        let moved = is_look.then(|| look::see_other(head.status, &head.headers, base)).flatten();
        let next = match moved {
            Some(url) => Some((url, false)),
            None if is_pending || (is_look && verdict.reach() == Reach::Applied) => named(),
            None => None,
        };
        let Some((url, names_it)) = next else {
            return verdict;
        };
        self.names_it = names_it;
        self.look = Some(Box::new(look::asking(&self.submission, url, &self.client.profile)));
        answer.heeded(look::pending(verdict))
    }

    /// The original in the place of the answer that says that there is one.
    pub(super) async fn recovered(&mut self, verdict: Verdict, told: &mut Option<Head>, left: Duration) -> Verdict {
        let client = Arc::clone(&self.client);
        let url = told.as_ref().zip(client.recover_with.as_ref()).and_then(|(head, find)| {
            let id = client.profile.original_id(&head.answer(self.now.time()))?;
            self.submission.url.join(&find(&id)?).ok()
        });
        let Some(url) = url else {
            return verdict;
        };
        let look = look::asking(&self.submission, url, &client.profile);
        let again = verdict.with_reach(Reach::Ambiguous).with_advice(Advice::Retry);
        let began = runtime::now();
        let attempt = self.log.last().map_or(1, Attempt::number);
        let mut headers = Vec::new();
        if let Some(hook) = client.authorize.as_ref().filter(|_| look.url.origin() == self.submission.url.origin()) {
            let mut parts = Parts::new(&look, client.profile.key_header(), attempt, None);
            match runtime::within(left, hook.authorize(&mut parts)).await {
                Ok(Ok(())) => headers = parts.into_headers(),
                Ok(Err(_)) | Err(_) => return again,
            }
        }
        let left = left.saturating_sub(runtime::now().since(began));
        if left.is_zero() {
            return again;
        }
        let request = request(&look, headers);
        let progress = transport::exchange(&client.http, request, left, client.max_response_bytes).await;
        self.now = runtime::now();
        let read = progress.verdict(&client.profile, &Asked::listed(&look.method, &look.headers), self.now.time());
        if let (Some(attempt), Some(head)) = (self.log.last_mut(), &progress.head) {
            attempt.looked_up = Some(head.status);
        }
        match (read.reach(), read.advice()) {
            (Reach::Applied, _) => {
                *told = progress.head;
                verdict.with_reach(Reach::Applied).with_advice(Advice::Stop)
            }
            // Turned away for good: the server's first word stands, and settles nothing.
            (_, Advice::Stop) => verdict,
            (_, advice @ (Advice::Retry | Advice::RetryAfter(_))) => again.with_advice(advice),
        }
    }
}
