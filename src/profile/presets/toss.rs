use std::time::Duration;

use http::Method;

use super::{KeyFormat, Matcher, Meaning, Profile};

impl Profile {
    /// Toss Payments.
    ///
    /// Source: `docs.tosspayments.com/reference/using-api/authorization` and
    /// `docs.tosspayments.com/guides/using-api/idempotency-key`.
    ///
    /// | field | value |
    /// |---|---|
    /// | key | up to 300 characters in `Idempotency-Key`, on POST |
    /// | lifetime | 15 days from the first use |
    /// | replay mark | none documented |
    /// | in progress | 409, `code` = `IDEMPOTENT_REQUEST_PROCESSING` |
    /// | key reused | never reported: **another body gets the first answer** |
    /// | errors stored | unsaid |
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::toss()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn toss() -> Self {
        Self::builder("toss")
            .key_format(KeyFormat::visible(1..=300))
            .keyed_methods([Method::POST])
            .key_lifetime(Duration::from_secs(15 * 86_400))
            .rule(Matcher::new().status(409).code_at("code", "IDEMPOTENT_REQUEST_PROCESSING"), Meaning::InProgress)
            .preset()
    }
}
