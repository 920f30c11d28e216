use http::Method;

use super::{KeyFormat, Matcher, Meaning, Profile, UNPUBLISHED};

impl Profile {
    /// Mercado Pago, Orders API (`/v1/orders`).
    ///
    /// Source: its page "Possible errors" of the Orders API,
    /// `mercadopago.com.mx/developers/en/docs/order/status-errors/integration-errors`.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | key | up to 128 characters in `X-Idempotency-Key`, on POST | the page; the limit from `docs/checkout-pro-orders/payment-management/integration-errors` |
    /// | lifetime | 1 hour | an assumption: none was found |
    /// | replay mark | none documented | |
    /// | in progress | 423, code `resource_locked` | the page; where in the body is not printed (`errors[].code`, **from memory**), so the usual places are searched |
    /// | key reused | 409, code `idempotency_key_already_used`; whether the same body gets it too is not said, so it settles nothing | the page |
    /// | not to be retried | 500, code `idempotency_validation_failed`: the page says "a new key", which after a doubt may be a second payment; look it up | the page |
    /// | replays | unsaid, so taken as no | |
    /// | errors stored | unsaid | |
    ///
    /// Its other 409 codes (`cannot_refund_order`, ...) are states of an order.
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::mercado_pago()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn mercado_pago() -> Self {
        let says = |status, code: &'static str| Matcher::new().status(status).code(code);
        Self::builder("mercado-pago-orders")
            .key_header("x-idempotency-key")
            .key_format(KeyFormat::visible(1..=128))
            .keyed_methods([Method::POST])
            .key_lifetime(UNPUBLISHED)
            .rule(says(423, "resource_locked"), Meaning::InProgress)
            .rule(says(409, "idempotency_key_already_used"), Meaning::KeyReused)
            .rule(says(500, "idempotency_validation_failed"), Meaning::NotToBeRetried)
            .replays(false)
            .preset()
    }
}
