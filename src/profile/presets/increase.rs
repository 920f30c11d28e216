use http::Method;

use super::{KeyFormat, Matcher, Meaning, Profile, UNPUBLISHED};

impl Profile {
    /// Increase.
    ///
    /// Source: `increase.com/documentation/idempotency-keys`.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | key | up to 200 characters in `Idempotency-Key`, on POST | the page |
    /// | lifetime | 1 hour | an assumption: the key is bound to an object, for how long is not printed |
    /// | replay mark | `Idempotent-Replayed: true` | the page |
    /// | key reused | 409, `type` = `idempotency_key_already_used_error`. Its `resource_id` is another request's object, so it is not taken for the original | the page |
    /// | in progress | unsaid, so requests must not overlap | |
    /// | errors stored | unsaid | |
    ///
    /// What is in doubt can be looked up: every list takes `?idempotency_key=`.
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::increase()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn increase() -> Self {
        Self::builder("increase")
            .key_format(KeyFormat::visible(1..=200))
            .keyed_methods([Method::POST])
            .key_lifetime(UNPUBLISHED)
            .replay_mark("idempotent-replayed", "true")
            .promises_mark(true)
            .rule(Matcher::new().status(409).code_at("type", "idempotency_key_already_used_error"), Meaning::KeyReused)
            .overlap_is_safe(false)
            .preset()
    }
}
