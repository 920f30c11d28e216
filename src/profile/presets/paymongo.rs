use http::Method;

use super::{KeyFormat, Matcher, Meaning, Profile};

impl Profile {
    /// PayMongo, money movement.
    ///
    /// Source: `developers.paymongo.com/docs/money-movement-best-practices`.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | key | in `Idempotency-Key`, on POST, PUT and PATCH | the page |
    /// | key format | up to 36 letters, digits and hyphens | an assumption: no limit is printed there; `reference/idempotent-requests` says 255 |
    /// | lifetime | 24 hours: "~24 hours" | the page |
    /// | replay mark | none documented | |
    /// | in progress | 409, code `idempotency_in_progress` | the page; where in the body is not printed, so the usual places are searched |
    /// | key reused | never reported: **another body gets the first answer** | the page; `reference/idempotent-requests` says that it is rejected |
    /// | errors stored | unsaid there; `reference/idempotent-requests` says yes | |
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::paymongo()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn paymongo() -> Self {
        Self::builder("paymongo")
            .key_format(KeyFormat::word(1..=36))
            .keyed_methods([Method::POST, Method::PUT, Method::PATCH])
            .rule(Matcher::new().status(409).code("idempotency_in_progress"), Meaning::InProgress)
            .preset()
    }
}
