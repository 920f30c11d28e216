use std::time::Duration;

use http::Method;

use super::{ErrorsStored, KeyFormat, Matcher, Meaning, Profile};

impl Profile {
    /// Checkout.com.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | key | in `Cko-Idempotency-Key`, on POST of the listed routes | `checkout.com/docs/payments/manage-payments/idempotency` (updated 2025-02-12) |
    /// | key format | up to 36 letters, digits and hyphens | an assumption: "V4 UUIDs" are recommended, no limit is printed |
    /// | lifetime | 24 hours; then the key counts as new | the same; **configurable by merchant in production** |
    /// | replay mark | none | |
    /// | in progress | 409 | `support.checkout.com` 24570669653010: it replaced 429, so a 429 is in doubt |
    /// | replay | the first answer again; by `support.checkout.com` 26763450855186 a 202. A 202 is read as unfinished, so set a `judge` | both pages |
    /// | errors stored | never: 2xx only, and the payment is attempted again | the docs page |
    /// | key reused | unsaid | |
    /// | shortest delay | 30 seconds | `checkout.com/docs/payments/manage-payments/retry-a-payment` |
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::checkout()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn checkout() -> Self {
        Self::builder("checkout")
            .key_header("cko-idempotency-key")
            .key_format(KeyFormat::word(1..=36))
            .keyed_methods([Method::POST])
            .rule(Matcher::new().status(409), Meaning::InProgress)
            .errors_stored(ErrorsStored::Never)
            .min_delay(Duration::from_secs(30))
            .preset()
    }
}
