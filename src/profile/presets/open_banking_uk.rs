use std::time::Duration;

use http::Method;

use super::{KeyFormat, Profile};

impl Profile {
    /// Open Banking UK, Read/Write API v3.1 to v4.0.
    ///
    /// Source: `OpenBankingUK/read-write-api-docs-pub` at ab19be9,
    /// `docs/v4.0/profiles/read-write-data-api-profile.md`, lines 361, 382, 488 to 506.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | key | up to 40 characters in `x-idempotency-key`, on POST | line 382; longer is a 400 |
    /// | lifetime | 24 hours | lines 488 to 506 |
    /// | replay mark | none: first and repeated answers are 201 alike, the later with the **current** status | the same |
    /// | in progress | no code is defined, so requests must not overlap | |
    /// | key reused | no code is defined; the bank may take it for fraud | the same |
    /// | errors stored | unsaid | |
    /// | shortest delay | 1 second, and a GET comes first | the same |
    ///
    /// Routes that are not listed as idempotent **ignore** the key: send those
    /// with `.without_key()`. Keys must not be used for polling.
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::open_banking_uk()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn open_banking_uk() -> Self {
        Self::builder("open-banking-uk")
            .key_header("x-idempotency-key")
            .key_format(KeyFormat::visible(1..=40))
            .keyed_methods([Method::POST])
            .overlap_is_safe(false)
            .min_delay(Duration::from_secs(1))
            .preset()
    }
}
