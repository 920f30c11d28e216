use std::time::Duration;

use http::Method;

use super::{ErrorsStored, KeyFormat, Matcher, Meaning, Profile};

impl Profile {
    /// Stripe API v1.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | key | up to 255 characters in `Idempotency-Key`, on POST | `docs.stripe.com/api/idempotent_requests` |
    /// | lifetime | 24 hours; then the key counts as new | the same |
    /// | replay mark | `Idempotent-Replayed: true` | the same |
    /// | in progress | 409, `error.code` = `idempotency_key_in_use` | `docs.stripe.com/error-low-level`; the type differs between reports, so it is not looked at |
    /// | key reused | 400, `error.type` = `idempotency_error`: no code of its own, so it settles nothing | the same |
    /// | errors stored | yes, **500 included**, once the endpoint began | the same: "treat 500 as indeterminate" |
    /// | should retry | `Stripe-Should-Retry: true` or `false`; absent, the status decides | the same, and `stripe-ruby` `lib/stripe/api_requestor.rb` |
    ///
    /// A 429 may be a `lock_timeout` from inside the work, so it is in doubt.
    /// v2 of the API does the opposite with failures: [`Profile::stripe_v2`].
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::stripe()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn stripe() -> Self {
        Self::builder("stripe-v1")
            .key_format(KeyFormat::visible(1..=255))
            .keyed_methods([Method::POST])
            .replay_mark("idempotent-replayed", "true")
            .promises_mark(true)
            .rule(Matcher::new().status(409).code_at("error.code", "idempotency_key_in_use"), Meaning::InProgress)
            .rule(Matcher::new().status(400).code_at("error.type", "idempotency_error"), Meaning::KeyReused)
            .errors_stored(ErrorsStored::Always)
            .should_retry_header("stripe-should-retry")
            .preset()
    }
    /// Stripe API v2 (`/v2/...`), which is the opposite of v1 with failures.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | key | in `Idempotency-Key`, on POST and DELETE | `docs.stripe.com/api-v2-overview#idempotency` |
    /// | key format | up to 255 characters | `docs.stripe.com/api/idempotent_requests`: v1's; unsaid for v2 |
    /// | lifetime | 30 days | the first page |
    /// | replay mark | none documented: a success comes back with an **updated** body | the same |
    /// | errors stored | never: a failed request is carried out again under its key | the same |
    /// | key released | whether with another body is unsaid, so taken as no | |
    /// | in progress | unsaid, so requests must not overlap | |
    /// | key reused | unsaid | |
    /// | should retry | `Stripe-Should-Retry`, as in v1 | `stripe-ruby` `lib/stripe/api_requestor.rb` |
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::stripe_v2()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn stripe_v2() -> Self {
        Self::builder("stripe-v2")
            .key_format(KeyFormat::visible(1..=255))
            .keyed_methods([Method::POST, Method::DELETE])
            .key_lifetime(Duration::from_secs(30 * 86_400))
            .errors_stored(ErrorsStored::Never)
            .releases_key(false)
            .should_retry_header("stripe-should-retry")
            .overlap_is_safe(false)
            .preset()
    }
}
