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

/// What published APIs say of a key whose request they have had before, most of
/// them to the same request too: Adyen, Airwallex, EBANX, PayPal, Open Finance
/// Brasil, Stripe v1, Increase.
const SEEN_BEFORE: [&str; 10] = [
    "704",
    "duplicate_request",
    "request_id_duplicate",
    "BP-DR-0",
    "DUPLICATE_REQUEST_ID",
    "PAYPAL_REQUEST_ID_PREVIOUSLY_USED",
    "ERRO_IDEMPOTENCIA",
    "idempotency_error",
    "idempotency_key_already_used_error",
    "idempotent_creation_conflict",
];

/// Where they say it, besides the usual places.
const UNUSUAL_PLACES: [&str; 6] = ["error.type", "type", "Type", "name", "status_code", "details[].issue"];

/// What speaks in prose of a key and of an earlier request: Primer, Banking
/// Circle, BlueSnap, express-idempotency, IdempotentAPI. A key that is missing
/// or malformed is a plain refusal.
const IN_PROSE: [(&str, &str); 13] = [
    ("lready", "ALREADY"),
    ("used", "USED"),
    ("isuse", "MISUSE"),
    ("uplicat", "DUPLICAT"),
    ("xists", "EXISTS"),
    ("onflict", "CONFLICT"),
    ("ifferent", "DIFFERENT"),
    ("ismatch", "MISMATCH"),
    ("rogress", "PROGRESS"),
    ("rocessing", "PROCESSING"),
    ("eing processed", "BEING PROCESSED"),
    ("oncurren", "CONCURREN"),
    ("flight", "FLIGHT"),
];

impl Profile {
    /// For an API without a preset: what most have in common, read with care.
    ///
    /// | field | value | why |
    /// |---|---|---|
    /// | key | lower-case UUID in `Idempotency-Key`, on POST and PATCH | fits every published length limit |
    /// | lifetime | 24 hours | the most common one; **some APIs forget sooner**, see below |
    /// | replay mark | `Idempotent-Replay`, `Idempotent-Replayed`, `Idempotency-Replayed`: `true` or `1` | Verifika, Stripe, Easypay and others; no mark proves nothing |
    /// | in progress | a 4xx with one of fifteen codes, in the usual places of a JSON body | the providers' own pages |
    /// | key reused | a 4xx with one of ten codes | never a refusal: on another API the same code may speak of our own earlier attempt |
    /// | already processed | a 4xx with one of ten codes | Adyen, Airwallex, EBANX, PayPal and others: it settles nothing |
    /// | not to be retried | a 400, 417 or 422 that speaks of idempotency and of an earlier request (`already`, `used`, `duplicate`, `in progress`, ...) | APIs that answer a repeated request with an error, in prose (Primer, Banking Circle): it settles nothing |
    /// | errors stored | unsaid | a replayed 5xx is not sent again |
    ///
    /// **These forget a key sooner than 24 hours**, after which it pays again:
    /// OASIS/Azure Repeatable Requests (5 minutes), CyberSource (15 minutes),
    /// Qonto and Fiber (30 minutes), PayPal Vault (3 hours), PayPal Orders and,
    /// by its older page, TrueLayer (6 hours). Checkout.com's is configured by
    /// merchant. Square, Razorpay, Mercado Pago and others print none. Shorten
    /// it with `ClientBuilder::key_lifetime`.
    ///
    /// **An API that says a failure in a 200** (GraphQL, XML) cannot be read
    /// without a `judge`. `docs/profiles.md` counts how this profile reads the
    /// answers of every preset's provider.
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::generic()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn generic() -> Self {
        let mut builder = Self::builder("generic").version(2).key_format(KeyFormat::uuid());
        for header in ["idempotent-replay", "idempotent-replayed", "idempotency-replayed"] {
            builder = builder.replay_mark(header, "true").replay_mark(header, "1");
        }
        builder = builder
            .rule(any_of(&CLIENT_ERRORS, &IN_PROGRESS), Meaning::InProgress)
            .rule(any_of(&CLIENT_ERRORS, &KEY_REUSED), Meaning::KeyReused)
            .rule(any_of(&REFUSALS, &SEEN_BEFORE), Meaning::AlreadyProcessed);
        for place in UNUSUAL_PLACES {
            builder = builder.rule(any_of(&CLIENT_ERRORS, &SEEN_BEFORE).at(place), Meaning::AlreadyProcessed);
        }
        for (lower, upper) in IN_PROSE {
            // A code in capitals may stand beside a message that is not.
            for (word, part) in [("dempot", lower), ("DEMPOT", upper), ("DEMPOT", lower), ("dempot", upper)] {
                let says = any_of(&REFUSALS, &[]).message_contains(word).message_contains(part);
                builder = builder.rule(says, Meaning::NotToBeRetried);
            }
        }
        builder.preset()
    }
}

fn any_of(statuses: &[u16], codes: &[&'static str]) -> Matcher {
    let matcher = statuses.iter().copied().fold(Matcher::new(), Matcher::status);
    codes.iter().copied().fold(matcher, Matcher::code)
}

/// The statuses that published APIs give these codes with.
const CLIENT_ERRORS: [u16; 7] = [400, 409, 417, 422, 423, 425, 429];

/// The ones that would otherwise count as a plain refusal; a 409 does not.
const REFUSALS: [u16; 3] = [400, 417, 422];
