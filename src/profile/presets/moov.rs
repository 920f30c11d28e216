use std::time::Duration;

use http::Method;

use super::{KeyFormat, Matcher, Meaning, Profile};

impl Profile {
    /// Moov.
    ///
    /// Source: `docs.moov.io/guides/money-movement/idempotency` and
    /// `docs.moov.io/guides/developer-tools/idempotency`.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | key | up to 36 characters in `X-Idempotency-Key`, on POST | the pages; the newer one wants UUID v4, so letters, digits and hyphens |
    /// | lifetime | a year: "never expires" | the pages |
    /// | replay mark | none: a repeated request is an **error** | the pages |
    /// | already processed | 409, by its status alone, without the original's id and whatever the body | the pages |
    /// | in progress | unsaid, so requests must not overlap | |
    /// | errors stored | unsaid | |
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::moov()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn moov() -> Self {
        Self::builder("moov")
            .key_header("x-idempotency-key")
            .key_format(KeyFormat::word(1..=36))
            .keyed_methods([Method::POST])
            .key_lifetime(Duration::from_secs(365 * 86_400))
            .rule(Matcher::new().status(409), Meaning::AlreadyProcessed)
            .replays(false)
            .overlap_is_safe(false)
            .preset()
    }
}
