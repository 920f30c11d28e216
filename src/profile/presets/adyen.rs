use std::time::Duration;

use http::Method;

use super::{KeyFormat, Matcher, Meaning, Profile};

impl Profile {
    /// Adyen.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | key | up to 64 characters in `idempotency-key`, on POST | `docs.adyen.com/development-resources/api-idempotency` (its date: 2020-07-30) |
    /// | lifetime | 7 days, "minimum" | the same; older text of it says 31 |
    /// | replay mark | none that can be relied on: the key comes back as a header, and no page says whether in first answers too | the same |
    /// | in progress | 422 or 409, `errorCode` = `704`, with `transient-error: true` | the same |
    /// | already processed | `errorCode` = `704` without it: "already processed **or** in progress", so it settles nothing | the same, and a published 409 body |
    /// | should retry | `transient-error`: `true`, again under the same key; `false` or absent, never again. So a 408, 429 or 5xx without it is not sent again | the same |
    /// | errors stored | unsaid | |
    /// | key reused | unsaid | |
    ///
    /// Keys are not shared between regions: a retry at another region's address
    /// is a second payment. If the store of keys is down (503, `errorCode` 703)
    /// the page allows sending without a key; this crate never does.
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::adyen()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn adyen() -> Self {
        let busy = || Matcher::new().status(409).status(422).code_at("errorCode", "704");
        let silent = [408, 429, 500, 502, 503, 504].into_iter().fold(Matcher::new(), Matcher::status);
        Self::builder("adyen")
            .key_header("idempotency-key")
            .key_format(KeyFormat::visible(1..=64))
            .keyed_methods([Method::POST])
            .key_lifetime(Duration::from_secs(7 * 86_400))
            .rule(busy().header("transient-error", "true"), Meaning::InProgress)
            .rule(busy(), Meaning::AlreadyProcessed)
            .rule(silent.header_absent("transient-error"), Meaning::NotToBeRetried)
            .should_retry_header("transient-error")
            .preset()
    }
}
