use std::time::Duration;

use http::Method;

use super::{KeyFormat, Matcher, Meaning, Profile};

impl Profile {
    /// PayPal, Orders v2.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | key | 1 to 108 characters in `PayPal-Request-Id`, on POST | `paypal/paypal-rest-api-specifications` at ec4d8f3, `openapi/checkout_orders_v2.json` |
    /// | lifetime | 6 hours | the same; by API: **Vault v3 3 h**, Subscriptions 72 h, Payouts 30 d, Payments v2 45 d |
    /// | replay mark | none: 200 instead of 201, with the **latest** status; other routes answer 200 at first | the same |
    /// | in progress | 409, `details[].issue` = `PREVIOUS_REQUEST_IN_PROGRESS` | `developer.paypal.com/api/payments/v2/errors/previous_request_in_progress` |
    /// | key reused | 422, `details[].issue` = `PAYPAL_REQUEST_ID_PREVIOUSLY_USED`, and `name` = `DUPLICATE_REQUEST_ID`: of other APIs, unsaid for Orders | `developer.paypal.com/api/payment-tokens/v3/errors`, `/api/deprecated/payments/v1/errors` |
    /// | overlap | not safe: of two at once "the second might fail" | `developer.paypal.com/reference/guidelines/idempotency` |
    /// | errors stored | unsaid | |
    ///
    /// Not every route looks at the header. For Vault shorten the lifetime with
    /// `ClientBuilder::key_lifetime`.
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::paypal()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn paypal() -> Self {
        Self::builder("paypal-orders-v2")
            .key_header("paypal-request-id")
            .key_format(KeyFormat::visible(1..=108))
            .keyed_methods([Method::POST])
            .key_lifetime(Duration::from_secs(6 * 3600))
            .rule(
                Matcher::new().status(409).code_at("details[].issue", "PREVIOUS_REQUEST_IN_PROGRESS"),
                Meaning::InProgress,
            )
            .rule(Matcher::new().code_at("details[].issue", "PAYPAL_REQUEST_ID_PREVIOUSLY_USED"), Meaning::KeyReused)
            .rule(Matcher::new().code_at("name", "DUPLICATE_REQUEST_ID"), Meaning::KeyReused)
            .overlap_is_safe(false)
            .preset()
    }
}
