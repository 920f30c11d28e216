use http::Method;

use super::{ErrorsStored, KeyFormat, Matcher, Meaning, Profile};

impl Profile {
    /// Mangopay.
    ///
    /// Source: `docs.mangopay.com/api-reference/overview/idempotency`.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | key | 16 to 36 letters, digits and hyphens in `Idempotency-Key`, on POST | the page |
    /// | lifetime | 24 hours | the page |
    /// | replay mark | none: a repeated request is an **error** | the page |
    /// | already processed | 409, `Type` = `idempotent_creation_conflict`, whatever the first answer was and whatever the body | the page |
    /// | errors stored | yes: a failure burns the key | the page |
    /// | in progress | unsaid, so requests must not overlap | |
    ///
    /// The 409 does **not** mean that it succeeded. The first answer is at
    /// `GET /v2.01/{ClientId}/responses/{key}` for 24 hours, and its
    /// `StatusCode` may be an error.
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::mangopay()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn mangopay() -> Self {
        Self::builder("mangopay")
            .key_format(KeyFormat::word(16..=36))
            .keyed_methods([Method::POST])
            .rule(Matcher::new().status(409).code_at("Type", "idempotent_creation_conflict"), Meaning::AlreadyProcessed)
            .errors_stored(ErrorsStored::Always)
            .replays(false)
            .overlap_is_safe(false)
            .preset()
    }
}
