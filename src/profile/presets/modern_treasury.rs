use http::Method;

use super::{ErrorsStored, KeyFormat, Matcher, Meaning, Profile};

impl Profile {
    /// Modern Treasury.
    ///
    /// Source: `docs.moderntreasury.com/reference/idempotent-requests`.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | key | in `Idempotency-Key`, on POST | the page |
    /// | key format | up to 36 letters, digits and hyphens | an assumption: no limit is printed |
    /// | lifetime | 24 hours | the page |
    /// | replay mark | none documented | |
    /// | in progress | 409, by its status alone | the page |
    /// | key reused | never reported: **another body, even on another route, gets the first answer** | the page |
    /// | errors stored | never | the page: "only saved if the request successfully executed" |
    /// | key released | whether for another body is unsaid, so taken as no | |
    ///
    /// Keys belong to the API key that sent them: after changing it, a retry is
    /// a second payment.
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::modern_treasury()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn modern_treasury() -> Self {
        Self::builder("modern-treasury")
            .key_format(KeyFormat::word(1..=36))
            .keyed_methods([Method::POST])
            .rule(Matcher::new().status(409), Meaning::InProgress)
            .errors_stored(ErrorsStored::Never)
            .releases_key(false)
            .preset()
    }
}
