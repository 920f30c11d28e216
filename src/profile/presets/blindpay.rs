use http::Method;

use super::{KeyFormat, Matcher, Meaning, Profile};

impl Profile {
    /// BlindPay.
    ///
    /// Source: `blindpay.com/resources/more/stablecoin-api-idempotency-keys`.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | key | in `Idempotency-Key`, on POST | by the page's context: it does not print the header's name |
    /// | key format | up to 36 letters, digits and hyphens | an assumption: no limit is printed |
    /// | lifetime | 24 hours, which it counts from the **completion**; here from the first use | the page |
    /// | replay mark | none documented | |
    /// | in progress | 409, code `idempotency_key_in_flight`, with `Retry-After` | the page; where in the body is not printed, so the usual places are searched |
    /// | key reused | 422, code `idempotency_key_payload_mismatch`: a hash of the raw bytes | the same |
    /// | replays | unsaid, so taken as no | |
    /// | errors stored | unsaid | |
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::blindpay()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn blindpay() -> Self {
        Self::builder("blindpay")
            .key_format(KeyFormat::word(1..=36))
            .keyed_methods([Method::POST])
            .rule(Matcher::new().status(409).code("idempotency_key_in_flight"), Meaning::InProgress)
            .rule(Matcher::new().status(422).code("idempotency_key_payload_mismatch"), Meaning::KeyReused)
            .replays(false)
            .preset()
    }
}
