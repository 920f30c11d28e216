use http::Method;

use super::{KeyFormat, Matcher, Profile, UNPUBLISHED};

impl Profile {
    /// GoCardless.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | key | in `Idempotency-Key`, on POST | `gocardless.com/blog/idempotency-keys` (edited 2024-06) |
    /// | key format | up to 36 letters, digits and hyphens | an assumption: no limit is printed |
    /// | lifetime | 1 hour | an assumption: none was found |
    /// | replay mark | none: a repeated request is an **error** | |
    /// | already processed | 409, `error.errors[].reason` = `idempotent_creation_conflict`, the original's id in `error.errors[].links.conflicting_resource_id` ([`Profile::original_id`]) | the same, and `gocardless-pro-ruby` |
    /// | key reused | the same answer: compare what is fetched | the same |
    /// | in progress | unsaid, so requests must not overlap | |
    /// | errors stored | unsaid; "a resource has already been created" suggests none | the same |
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::gocardless()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn gocardless() -> Self {
        Self::builder("gocardless")
            .key_format(KeyFormat::word(1..=36))
            .keyed_methods([Method::POST])
            .key_lifetime(UNPUBLISHED)
            .recovers(
                Matcher::new().status(409).code_at("error.errors[].reason", "idempotent_creation_conflict"),
                "error.errors[].links.conflicting_resource_id",
            )
            .replays(false)
            .overlap_is_safe(false)
            .preset()
    }
}
