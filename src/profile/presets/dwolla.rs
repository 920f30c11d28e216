use http::Method;

use super::{KeyFormat, Matcher, Meaning, Profile};

impl Profile {
    /// Dwolla.
    ///
    /// Source: `Dwolla/dev-portal` at 1645fc7, `api-fundamentals/idempotency-key.mdx`.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | key | in `Idempotency-Key`, on POST | the page |
    /// | key format | up to 36 letters, digits and hyphens | an assumption: "UUID" is recommended, no limit is printed |
    /// | lifetime | 24 hours | the page |
    /// | replay mark | none: a replay is the 201 again | the page |
    /// | in progress | 409, by its status alone. After a 500 it may go on for the key's 24 hours; then polling ends, and the effect is unknown | the page; `status.dwolla.com` incidents of 2025-02-07 and 2025-03-21, which advise to look first, and then a new key |
    /// | key reused | unsaid: protection is promised for an exact match of the body | the page |
    /// | errors stored | unsaid | |
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::dwolla()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn dwolla() -> Self {
        Self::builder("dwolla")
            .key_format(KeyFormat::word(1..=36))
            .keyed_methods([Method::POST])
            .rule(Matcher::new().status(409), Meaning::InProgress)
            .preset()
    }
}
