use http::Method;

use super::{KeyFormat, Matcher, Meaning, Profile};

impl Profile {
    /// Mollie.
    ///
    /// Source: `mollie/api-documentation` at 3088762 (2023),
    /// `source/overview/api-idempotency.rst`.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | key | in `Idempotency-Key`, on POST | the page |
    /// | key format | up to 36 letters, digits and hyphens | an assumption: "UUID4" is recommended, no limit is printed |
    /// | lifetime | 24 hours; then the key counts as new | the page |
    /// | replay mark | `Idempotent-Replayed: true` | the page |
    /// | in progress | 409, by its status alone | the page |
    /// | key reused | a plain 400, also for another route: a refusal like any other, which says nothing about an earlier attempt | the page |
    /// | errors stored | unsaid | |
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::mollie()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn mollie() -> Self {
        Self::builder("mollie")
            .key_format(KeyFormat::word(1..=36))
            .keyed_methods([Method::POST])
            .replay_mark("idempotent-replayed", "true")
            .promises_mark(true)
            .rule(Matcher::new().status(409), Meaning::InProgress)
            .preset()
    }
}
