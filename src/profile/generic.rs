use super::{KeyFormat, Matcher, Meaning, Profile};

/// In progress, under the names that published APIs and server middlewares use:
/// Verifika, Stripe v1, Toss Payments, BlindPay, payware, PayMongo, BlueSnap,
/// Shopify, node-idempotency, nestrs-idempotency.
const IN_PROGRESS: [&str; 15] = [
    "IDEMPOTENCY_IN_PROGRESS",
    "idempotency_in_progress",
    "IDEMPOTENCY_KEY_IN_PROGRESS",
    "idempotency_key_in_progress",
    "ERR_IDEMPOTENCY_KEY_IN_PROGRESS",
    "IDEMPOTENT_REQUEST_PROCESSING",
    "IDEMPOTENCY_CONCURRENT_REQUEST",
    "IDEMPOTENCY_IN_FLIGHT",
    "idempotency_key_in_flight",
    "idempotency_key_in_use",
    "REQUEST_IN_PROGRESS",
    "request_in_progress",
    "IDEMPOTENCY_REQUEST_IN_PROGRESS",
    "idempotency_request_in_progress",
    "REQUEST_WITH_SAME_IDEMPOTENCY_KEY_ALREADY_IN_PROGRESS",
];

/// The key came with another request: Verifika, Square, Mercado Pago, Shopify,
/// BlindPay, payware, node-idempotency (whose spelling it is).
const KEY_REUSED: [&str; 10] = [
    "IDEMPOTENCY_KEY_REUSED",
    "idempotency_key_reused",
    "ERR_IDEMPOTENCY_KEY_REUSED",
    "IDEMPOTENCY_KEY_ALREADY_USED",
    "idempotency_key_already_used",
    "IDEMPOTENCY_KEY_MISMATCH",
    "idempotency_key_mismatch",
    "IDEMPOTENCY_KEY_PARAMETER_MISMATCH",
    "idempotency_key_payload_mismatch",
    "IDEMPOTENCY_FINGERPRINT_MISSMATCH",
];

impl Profile {
    /// For an API without a preset: what most have in common, read with care.
    ///
    /// | field | value | why |
    /// |---|---|---|
    /// | key | lower-case UUID in `Idempotency-Key`, on POST and PATCH | fits every published length limit |
    /// | lifetime | 24 hours | the most common one; **some APIs forget sooner** (PayPal Vault 3 h, Orders 6 h, Qonto 30 min): shorten it with `ClientBuilder::key_lifetime` |
    /// | replay mark | `Idempotent-Replay`, `Idempotent-Replayed`, `Idempotency-Replayed`: `true` or `1` | Verifika, Stripe, Easypay and others; no mark proves nothing |
    /// | in progress | a 4xx with one of fifteen codes, in the usual places of a JSON body | the providers' own pages |
    /// | key reused | a 4xx with one of ten codes | never a refusal: on another API the same code may speak of our own earlier attempt |
    /// | errors stored | unsaid | a replayed 5xx is not sent again |
    pub fn generic() -> Self {
        let mut builder = Self::builder("generic").key_format(KeyFormat::uuid());
        for header in ["idempotent-replay", "idempotent-replayed", "idempotency-replayed"] {
            builder = builder.replay_mark(header, "true").replay_mark(header, "1");
        }
        let any_of = |codes: &[&'static str]| {
            codes.iter().fold(CLIENT_ERRORS.into_iter().fold(Matcher::new(), Matcher::status), |m, code| m.code(*code))
        };
        builder.rule(any_of(&IN_PROGRESS), Meaning::InProgress).rule(any_of(&KEY_REUSED), Meaning::KeyReused).preset()
    }
}

/// The statuses that published APIs give these codes with.
const CLIENT_ERRORS: [u16; 7] = [400, 409, 417, 422, 423, 425, 429];
