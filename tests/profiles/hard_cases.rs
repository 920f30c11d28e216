//! The hard cases: where a naive reading does the wrong thing. Each test bears
//! its case's number.

use http::header::HeaderMap;
use http::{Method, StatusCode};
use oncekey::engine::{Effect, Verdict, Why};
use oncekey::profile::{Answer, Asked, ErrorsStored, Exchange, Matcher, Meaning, Profile, ProfileBuilder, Replay};

use crate::vectors::{Earlier, KEY, advice, effect, preset, reach};

/// An answer as one reads it off a page.
struct Said {
    status: u16,
    headers: Vec<(&'static str, &'static str)>,
    body: &'static str,
}

fn said(status: u16, body: &'static str) -> Said {
    let kind = if body.starts_with('<') { "application/xml" } else { "application/json" };
    Said { status, headers: vec![("content-type", kind)], body }
}

impl Said {
    fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    fn headers(&self) -> HeaderMap {
        let mut map: HeaderMap =
            self.headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        map.insert("content-length", self.body.len().into());
        map
    }

    fn read_by(&self, profile: &Profile) -> Verdict {
        let (asked, headers) = (HeaderMap::new(), self.headers());
        let asked = Asked::new(&Method::POST, &asked).with_key(Some(KEY));
        let answer = Answer::new(StatusCode::from_u16(self.status).unwrap(), &headers, self.body.as_bytes());
        profile.read(&asked, &Exchange::Answered(answer))
    }

    fn original(&self, profile: &Profile) -> Option<String> {
        let headers = self.headers();
        let status = StatusCode::from_u16(self.status).unwrap();
        profile.original_id(&Answer::new(status, &headers, self.body.as_bytes()))
    }

    /// Reach, advice, and the effect without and with an earlier doubt.
    #[track_caller]
    fn is(&self, profile: &Profile, expected: (&str, &str), none: Effect, doubt: Effect) {
        let verdict = self.read_by(profile);
        let effects = (effect(verdict, Earlier::Nothing), effect(verdict, Earlier::Doubt));
        assert_eq!((reach(&verdict), advice(&verdict)), expected, "{} {}: {verdict:?}", self.status, self.body);
        assert_eq!(effects, (none, doubt), "{} {}: {verdict:?}", self.status, self.body);
    }

    #[track_caller]
    fn carried_out(&self, profile: &Profile) {
        self.is(profile, ("Applied", "Stop"), Effect::Applied, Effect::Applied);
    }

    #[track_caller]
    fn in_progress(&self, profile: &Profile) {
        self.is(profile, ("InProgress", "Retry"), Effect::Unknown, Effect::Unknown);
    }

    #[track_caller]
    fn refused(&self, profile: &Profile) {
        self.is(profile, ("Refused", "Stop"), Effect::NotApplied, Effect::Unknown);
    }

    #[track_caller]
    fn bound(&self, profile: &Profile) {
        self.is(profile, ("Rejected", "Stop"), Effect::NotApplied, Effect::NotApplied);
    }

    /// Nothing is settled and sending again cannot help.
    #[track_caller]
    fn unknown(&self, profile: &Profile, why: Why) {
        self.is(profile, ("Ambiguous", "Stop"), Effect::Unknown, Effect::Unknown);
        assert_eq!(self.read_by(profile).why(), why);
    }

    /// Nothing is settled, and it may be sent again under the same key.
    #[track_caller]
    fn again(&self, profile: &Profile) {
        self.is(profile, ("Ambiguous", "Retry"), Effect::Unknown, Effect::Unknown);
    }
}

fn own(id: &str, make: impl FnOnce(ProfileBuilder) -> ProfileBuilder) -> Profile {
    make(Profile::builder(id)).build().unwrap()
}

/// What a constructor's docs say.
fn docs(file: &str) -> String {
    std::fs::read_to_string(format!("{}/src/profile/presets/{file}.rs", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn hard_case_01_one_status_two_meanings_split_by_a_code() {
    let profile = Profile::verifika();
    said(409, r#"{"code":"IDEMPOTENCY_IN_PROGRESS"}"#).in_progress(&profile);
    said(409, r#"{"code":"IDEMPOTENCY_KEY_REUSED"}"#).refused(&profile);
    said(409, r#"{"code":"IDEMPOTENCY_SOMETHING"}"#).unknown(&profile, Why::Conflict);
    said(409, "no json").unknown(&profile, Why::Conflict);
}

#[test]
fn hard_case_02_one_status_one_code_two_meanings() {
    let busy = || Matcher::new().status(409).code("idempotency_key_in_use");
    let flowlix = own("flowlix", |b| {
        b.rule(busy().message_contains("currently being processed"), Meaning::InProgress)
            .rule(busy(), Meaning::KeyReused)
    });
    let running = r#"{"code":"idempotency_key_in_use","message":"A request with this idempotency key is currently being processed."}"#;
    said(409, running).in_progress(&flowlix);
    said(409, r#"{"code":"idempotency_key_in_use","message":"Used with another body."}"#)
        .unknown(&flowlix, Why::KeyReused);
}

#[test]
fn hard_case_03_the_same_words_mean_opposite_things() {
    let sinch = own("sinch", |b| {
        let kind =
            Matcher::new().at("type").code_prefix("https://developers.sinch.com/docs/errors/registry/idempotency-c");
        b.rule(kind, Meaning::InProgress)
    });
    let anyspend =
        own("anyspend", |b| b.rule(Matcher::new().status(409).code("idempotency_conflict"), Meaning::KeyReused));
    let still = r#"{"type":"https://developers.sinch.com/docs/errors/registry/idempotency-conflict"}"#;
    said(409, still).in_progress(&sinch);
    said(409, r#"{"code":"idempotency_conflict"}"#).unknown(&anyspend, Why::KeyReused);
    // No dialect's code is another's: without a preset neither is polled nor believed.
    said(409, still).unknown(&Profile::generic(), Why::Conflict);
    said(409, r#"{"code":"idempotency_conflict"}"#).unknown(&Profile::generic(), Why::Conflict);
}

#[test]
fn hard_case_04_a_stored_500_is_neither_failed_nor_retryable() {
    let replayed = said(500, "{}").with("idempotent-replayed", "true");
    replayed.unknown(&Profile::stripe(), Why::StoredError);
    replayed.unknown(&Profile::generic(), Why::StoredError);
    said(500, "{}").with("stripe-should-retry", "false").unknown(&Profile::stripe(), Why::ServerError);
    said(500, "{}").again(&Profile::stripe());
}

#[test]
fn hard_case_05_one_vendor_two_rules() {
    let (v1, v2) = (Profile::stripe(), Profile::stripe_v2());
    assert_eq!((v1.errors_stored(), v2.errors_stored()), (ErrorsStored::Always, ErrorsStored::Never));
    assert_eq!((v1.key_lifetime().as_secs(), v2.key_lifetime().as_secs()), (86_400, 30 * 86_400));
    assert_eq!((v1.keys(&Method::DELETE), v2.keys(&Method::DELETE)), (false, true));
    assert_ne!(v1.id(), v2.id());
    assert!(!v2.releases_key(), "that another body may follow is not printed");
}

#[test]
fn hard_case_06_a_replay_marked_by_its_status() {
    let paypal = Profile::paypal();
    for status in [200, 201] {
        said(status, r#"{"id":"5O1"}"#).carried_out(&paypal);
        // 200 is also the first answer of other routes.
        assert_eq!(paypal.replay(&said(status, "{}").read_by(&paypal)), Replay::Unmarked);
    }
    // One of its pages says 202 of a processed duplicate, which is no more than accepted.
    said(202, r#"{"id":"pay_1"}"#).is(&Profile::checkout(), ("Accepted", "Retry"), Effect::Unknown, Effect::Unknown);
    let judging = own("checkout-judged", |b| b.judge(|_| oncekey::profile::Judgement::Final));
    said(202, r#"{"id":"pay_1"}"#).carried_out(&judging);
}

#[test]
fn hard_case_07_a_201_that_says_nothing_of_a_replay() {
    for profile in [Profile::open_banking_uk(), Profile::dwolla()] {
        for status in [200, 201] {
            said(status, "{}").carried_out(&profile);
            assert_eq!(profile.replay(&said(status, "{}").read_by(&profile)), Replay::Unmarked);
        }
    }
}

#[test]
fn hard_case_08_a_replay_with_another_body_is_a_replay() {
    for profile in [Profile::paypal(), Profile::open_banking_uk(), Profile::open_finance_brasil(), Profile::stripe_v2()]
    {
        assert!(profile.replays(), "today's state can be had again: {}", profile.id());
        let read = |body| said(200, body).read_by(&profile);
        assert_eq!(read(r#"{"status":"CREATED"}"#), read(r#"{"status":"COMPLETED","links":[]}"#));
    }
}

#[test]
fn hard_case_09_a_replayed_success_is_a_4xx_with_the_id() {
    let primer = own("primer", |b| {
        b.recovers(
            Matcher::new().status(400).code_at("error.errorId", "TransactionRequestIdempotencyKeyAlreadyExists"),
            "error.paymentId",
        )
    });
    let purse = own("purse", |b| {
        b.recovers(Matcher::new().status(409).code_at("type", "urn:eu.purse:write-conflict"), "resource_id")
    });
    let answers = [
        (
            Profile::gocardless(),
            409,
            r#"{"error":{"type":"invalid_state","errors":[{"reason":"idempotent_creation_conflict","links":{"conflicting_resource_id":"PM1"}}]}}"#,
            "PM1",
        ),
        (
            primer,
            400,
            r#"{"error":{"errorId":"TransactionRequestIdempotencyKeyAlreadyExists","paymentId":"6gHJ","paymentStatus":"SETTLED"}}"#,
            "6gHJ",
        ),
        (
            purse,
            409,
            r#"{"type":"urn:eu.purse:write-conflict","title":"Idempotency violation","resource_id":"r-1"}"#,
            "r-1",
        ),
    ];
    for (profile, status, body, id) in answers {
        let answer = said(status, body);
        answer.unknown(&profile, Why::AlreadyProcessed);
        assert_eq!(answer.original(&profile).as_deref(), Some(id));
        assert_eq!(effect(answer.read_by(&Profile::generic()), Earlier::Nothing), Effect::Unknown, "{body}");
    }
    assert!(!Profile::gocardless().replays());
    assert!(docs("gocardless").contains("compare what is fetched"));
}

#[test]
fn hard_case_10_the_id_in_prose_alone() {
    let bank = own("banking-circle", |b| {
        b.rule(Matcher::new().status(400).message_contains("was already used at"), Meaning::AlreadyProcessed)
    });
    let answer =
        said(400, r#"{"error":{"message":"IdempotencyKey k was already used at 2024-05-01 creating entity e-1."}}"#);
    answer.unknown(&bank, Why::AlreadyProcessed);
    assert_eq!(answer.original(&bank), None, "a sentence is no place for an id");
    answer.unknown(&Profile::generic(), Why::Other);
}

#[test]
fn hard_case_11_already_processed_without_an_id() {
    said(409, "").unknown(&Profile::moov(), Why::AlreadyProcessed);
    said(409, r#"{"error":"transfer was previously created with that key"}"#)
        .unknown(&Profile::moov(), Why::AlreadyProcessed);
    assert_eq!(said(409, r#"{"id":"t1"}"#).original(&Profile::moov()), None);
    for body in [
        r#"{"code":"duplicate_request"}"#,
        r#"{"code":"request_id_duplicate"}"#,
        r#"{"status":"ERROR","status_code":"BP-DR-0"}"#,
    ] {
        said(400, body).unknown(&Profile::generic(), Why::AlreadyProcessed);
    }
    let bvnk = own("bvnk", |b| {
        b.rule(Matcher::new().status(400).message_contains("this ID already exists"), Meaning::AlreadyProcessed)
    });
    said(400, r#"{"message":"a request with this ID already exists"}"#).unknown(&bvnk, Why::AlreadyProcessed);
}

#[test]
fn hard_case_12_behind_a_second_call_and_failures_burn_the_key() {
    let (mangopay, gocardless) = (Profile::mangopay(), Profile::gocardless());
    let answer = said(409, r#"{"Type":"idempotent_creation_conflict","Message":"..."}"#);
    answer.unknown(&mangopay, Why::AlreadyProcessed);
    assert_eq!(answer.original(&mangopay), None, "its first answer may be a failure");
    assert_eq!(mangopay.errors_stored(), ErrorsStored::Always);
    assert!(!mangopay.replays() && !mangopay.releases_key());
    // The same words at another place are not the other provider's.
    answer.unknown(&gocardless, Why::Conflict);
}

#[test]
fn hard_case_13_an_error_status_with_the_original_success() {
    let interchecks = own("interchecks", |b| {
        b.rule(Matcher::new().status(102), Meaning::InProgress)
            .rule(Matcher::new().status(409), Meaning::AlreadyProcessed)
    });
    said(409, r#"{"id":"pay_1","status":"PAID"}"#).unknown(&interchecks, Why::AlreadyProcessed);
    said(102, "").in_progress(&interchecks);
    // Without a preset the original body is no refusal either.
    said(409, r#"{"id":"pay_1","status":"PAID"}"#).unknown(&Profile::generic(), Why::Conflict);
    said(102, "").unknown(&Profile::generic(), Why::Other);
}

#[test]
fn hard_case_14_in_progress_is_not_409() {
    let adyen = said(422, r#"{"status":422,"errorCode":"704","message":"request already processed or in progress"}"#);
    adyen.unknown(&Profile::generic(), Why::AlreadyProcessed);
    adyen.with("transient-error", "true").in_progress(&Profile::adyen());
    said(423, r#"{"errors":[{"code":"resource_locked"}]}"#).in_progress(&Profile::mercado_pago());
    said(429, "{}").again(&Profile::checkout());
    let gem = own("qonto-gem", |b| {
        b.rule(Matcher::new().status(429).code("Concurrent requests detected"), Meaning::InProgress)
    });
    said(429, r#"{"error":"Concurrent requests detected"}"#).in_progress(&gem);
    said(429, "{}").again(&gem);
}

#[test]
fn hard_case_15_a_429_that_is_no_rate_limit() {
    said(409, "").in_progress(&Profile::checkout());
    said(429, r#"{"error":{"code":"lock_timeout"}}"#).again(&Profile::stripe());
    // No preset has a provider's promise that a 429 comes before the work.
    for profile in Profile::presets() {
        let verdict = said(429, "{}").read_by(&profile);
        assert_eq!(effect(verdict, Earlier::Nothing), Effect::Unknown, "{}", profile.id());
    }
}

#[test]
fn hard_case_16_a_header_outranks_the_status() {
    let (adyen, stripe) = (Profile::adyen(), Profile::stripe());
    said(500, "{}").with("transient-error", "true").again(&adyen);
    said(500, "{}").with("transient-error", "false").unknown(&adyen, Why::ServerError);
    said(500, "{}").unknown(&adyen, Why::Other);
    said(503, "{}").with("stripe-should-retry", "true").again(&stripe);
    said(503, "{}").with("stripe-should-retry", "false").unknown(&stripe, Why::ServerError);
    said(503, "{}").again(&stripe);
}

#[test]
fn hard_case_17_already_processed_or_in_progress_in_one_code() {
    for status in [422, 409] {
        let answer = said(status, r#"{"errorCode":"704"}"#);
        answer.unknown(&Profile::adyen(), Why::AlreadyProcessed);
        answer.with("transient-error", "false").unknown(&Profile::adyen(), Why::AlreadyProcessed);
    }
}

#[test]
fn hard_case_18_a_5xx_that_says_use_a_new_key() {
    let profile = Profile::mercado_pago();
    said(500, r#"{"errors":[{"code":"idempotency_validation_failed"}]}"#).unknown(&profile, Why::Other);
    said(500, r#"{"errors":[{"code":"internal_error"}]}"#).again(&profile);
    for code in [r#"{"errors":[{"code":"cannot_refund_order"}]}"#, r#"{"errors":[{"code":"cannot_capture_order"}]}"#] {
        said(409, code).refused(&profile);
    }
    said(409, r#"{"errors":[{"code":"order_already_refunded"}]}"#).unknown(&profile, Why::Conflict);
}

#[test]
fn hard_case_19_it_worked_but_the_answer_is_gone() {
    let auriko = own("auriko", |b| {
        b.rule(Matcher::new().status(409).code("idempotency_conflict"), Meaning::KeyReused)
            .rule(Matcher::new().status(409).code("idempotency_replay_unavailable"), Meaning::AlreadyProcessed)
    });
    let answer = said(409, r#"{"code":"idempotency_replay_unavailable"}"#);
    answer.unknown(&auriko, Why::AlreadyProcessed);
    answer.unknown(&Profile::generic(), Why::Conflict);
}

#[test]
fn hard_case_20_reuse_that_is_never_reported() {
    // Another body would get the first answer: none goes out under the key, not even a corrected one.
    for (id, file) in [
        ("toss", "toss"),
        ("paymongo", "paymongo"),
        ("fiber", "fiber"),
        ("asgi-idempotency-header", "asgi_idempotency_header"),
    ] {
        assert!(!preset(id).releases_key(), "{id}");
        assert!(docs(file).contains("another body gets the first answer"), "{id}");
    }
    assert!(docs("modern_treasury").contains("even on another route, gets the first answer"));
}

#[test]
fn hard_case_21_reuse_that_executes() {
    // Under the key of a profile that knows nothing no second body goes out.
    assert!(!own("rapyd", |b| b).releases_key());
    assert!(!Profile::generic().releases_key());
}

#[test]
fn hard_case_22_a_concurrent_duplicate_that_executes() {
    assert!(!Profile::paypal().overlap_is_safe());
    assert!(!own("computop", |b| b.overlap_is_safe(false)).overlap_is_safe());
    assert!(Profile::verifika().overlap_is_safe() && Profile::stripe().overlap_is_safe());
}

#[test]
fn hard_case_23_lifetimes_from_minutes_to_forever() {
    let hours = |profile: Profile| profile.key_lifetime().as_secs_f64() / 3600.0;
    assert_eq!(hours(Profile::paypal()), 6.0);
    assert_eq!(hours(Profile::fiber()), 0.5);
    assert_eq!(hours(Profile::adyen()), 7.0 * 24.0);
    assert_eq!(hours(Profile::toss()), 15.0 * 24.0);
    assert_eq!(hours(Profile::blindpay()), 24.0, "from its first use, though it counts from the completion");
    assert_eq!(hours(Profile::mercado_pago()), 1.0, "none is printed");
    assert!(docs("paypal").contains("Vault v3 3 h"));
}

#[test]
fn hard_case_24_an_expired_key_is_an_error() {
    let bridge = own("bridge", |b| b.rule(Matcher::new().status(422).message_contains("expired"), Meaning::KeyExpired));
    said(422, r#"{"message":"The idempotency key has expired"}"#).unknown(&bridge, Why::Other);
    // Where no rule knows it, it says nothing about an earlier attempt.
    said(422, r#"{"message":"no longer valid"}"#).refused(&bridge);
}

#[test]
fn hard_case_25_identical_bytes_required_or_forbidden() {
    said(422, r#"{"code":"idempotency_key_payload_mismatch"}"#).unknown(&Profile::blindpay(), Why::KeyReused);
    // A bank that refuses the repeated JWT has not refused the first one.
    said(403, r#"{"errors":[{"code":"JTI_USED"}]}"#).refused(&Profile::open_finance_brasil());
    assert!(
        docs("open_finance_brasil").contains("This crate sends the same bytes again, which this API does not want")
    );
}

#[test]
fn hard_case_26_correct_and_reuse_or_never_reuse() {
    let released: Vec<_> =
        Profile::presets().into_iter().filter(Profile::releases_key).map(|profile| profile.id().to_owned()).collect();
    assert_eq!(released, ["verifika", "checkout"]);
    said(422, "{}").with("idempotent-replayed", "true").bound(&Profile::memo_bank());
}

#[test]
fn hard_case_27_the_marks_value_is_not_always_true() {
    let marked = |profile: &Profile, name, value| {
        let verdict = said(402, "{}").with(name, value).read_by(profile);
        assert_eq!(verdict.marked(), reach(&verdict) == "Rejected");
        verdict.marked()
    };
    let easypay = own("easypay", |b| b.replay_mark("idempotency-replay", "1"));
    assert!(marked(&easypay, "idempotency-replay", "1") && !marked(&easypay, "idempotency-replay", "0"));
    let worldline = own("worldline", |b| b.replay_mark_present("x-gcs-idempotence-request-timestamp"));
    assert!(marked(&worldline, "x-gcs-idempotence-request-timestamp", "1717171717171"));
    let laravel = Profile::laravel();
    assert!(marked(&laravel, "idempotency-relayed", KEY) && !marked(&laravel, "idempotency-relayed", "other"));
    let integrated = own("integrated", |b| b.replay_mark("x-idempotency-status", "replayed"));
    assert!(marked(&integrated, "x-idempotency-status", "replayed"));
    assert!(!marked(&integrated, "x-idempotency-status", "processed"));
    // The key that comes back in first answers too is no mark.
    assert!(!marked(&Profile::express_idempotency(), "idempotency-key", KEY));
    assert!(!marked(&Profile::adyen(), "idempotency-key", KEY));
}

#[test]
fn hard_case_28_a_replay_is_told_from_a_fresh_payment() {
    let replay = |profile: &Profile, answer: Said| profile.replay(&answer.read_by(profile));
    let marked = || said(200, "{}").with("idempotent-replayed", "true");
    assert_eq!(replay(&Profile::stripe(), marked()), Replay::Yes);
    assert_eq!(replay(&Profile::stripe(), said(200, "{}")), Replay::No);
    assert_eq!(replay(&Profile::generic(), marked()), Replay::Yes);
    assert_eq!(replay(&Profile::generic(), said(200, "{}")), Replay::Unmarked);
    assert_eq!(replay(&Profile::toss(), said(200, "{}")), Replay::Unmarked);
}

#[test]
fn hard_case_29_a_failure_inside_a_200() {
    let place = "data.inventoryAdjustQuantities.userErrors[].code";
    let shopify = own("shopify", |b| {
        let says = |code: &'static str| Matcher::new().status(200).code_at(place, code);
        b.rule(says("IDEMPOTENCY_CONCURRENT_REQUEST"), Meaning::InProgress)
            .rule(says("IDEMPOTENCY_KEY_PARAMETER_MISMATCH"), Meaning::KeyReused)
    });
    let errors = r#"{"data":{"inventoryAdjustQuantities":{"userErrors":[{"code":"IDEMPOTENCY_CONCURRENT_REQUEST"}]}}}"#;
    said(200, errors).in_progress(&shopify);
    let mismatch =
        r#"{"data":{"inventoryAdjustQuantities":{"userErrors":[{"code":"IDEMPOTENCY_KEY_PARAMETER_MISMATCH"}]}}}"#;
    said(200, mismatch).unknown(&shopify, Why::KeyReused);
    said(200, r#"{"data":{"inventoryAdjustQuantities":{"userErrors":[]}}}"#).carried_out(&shopify);
    let worldpay = own("worldpay", |b| {
        b.rule(Matcher::new().status(200).message_contains("Request in progress"), Meaning::InProgress)
            .rule(Matcher::new().status(200).message_contains("Invalid idempotency-key"), Meaning::NotToBeRetried)
    });
    said(200, r#"<reply><error code="9"><![CDATA[Request in progress]]></error></reply>"#).in_progress(&worldpay);
    said(200, r#"<reply><error code="9"><![CDATA[Invalid idempotency-key]]></error></reply>"#)
        .unknown(&worldpay, Why::Other);
    // Without a profile it cannot be told, and the docs say so.
    assert!(docs("generic").contains("says a failure in a 200"));
}

#[test]
fn hard_case_30_422_is_not_always_reuse() {
    said(422, r#"{"detail":"header value must be formatted as a v4 UUID"}"#)
        .refused(&Profile::asgi_idempotency_header());
    said(422, r#"{"errors":[{"code":"SALDO_INSUFICIENTE"}]}"#).refused(&Profile::open_finance_brasil());
    said(422, r#"{"errors":[{"code":"ERRO_IDEMPOTENCIA"}]}"#).unknown(&Profile::open_finance_brasil(), Why::KeyReused);
    said(417, r#"{"message":"Misuse of the idempotency key. Please check your request."}"#)
        .unknown(&Profile::express_idempotency(), Why::KeyReused);
    said(400, r#"{"message":"The Idempotency header key value 'k' was used in a different request."}"#)
        .unknown(&Profile::idempotent_api(), Why::KeyReused);
    said(400, r#"{"title":"Bad Request"}"#).refused(&Profile::mollie());
}

#[test]
fn hard_case_31_quoted_or_bare() {
    for profile in Profile::presets() {
        let quoted = profile.key_format().to_string().contains("double quotes");
        assert_eq!(quoted, profile.id() == "ietf-06", "{}", profile.id());
        profile.key_format().check(&format!("\"{KEY}\"")).unwrap_err();
    }
}

#[test]
fn hard_case_32_a_uuid_fits_everywhere_and_a_prefixed_one_does_not() {
    for profile in Profile::presets() {
        profile.key_format().check(KEY).unwrap_or_else(|error| panic!("{}: {error}", profile.id()));
    }
    let prefixed = format!("order-123:{KEY}");
    let refusing = Profile::presets().into_iter().filter(|profile| profile.key_format().check(&prefixed).is_err());
    assert!(refusing.count() > 10);
    Profile::open_banking_uk().key_format().check(&prefixed).unwrap_err();
    Profile::stripe().key_format().check(&prefixed).unwrap();
}

#[test]
fn hard_case_33_keys_belong_to_a_region_or_a_credential() {
    assert!(docs("adyen").contains("Keys are not shared between regions"));
    assert!(docs("modern_treasury").contains("Keys belong to the API key that sent them"));
}

#[test]
fn hard_case_34_the_server_that_waits() {
    for profile in [Profile::fiber(), Profile::laravel()] {
        let headers = HeaderMap::new();
        let asked = Asked::new(&Method::POST, &headers).with_key(Some(KEY));
        let verdict = profile.read(&asked, &Exchange::NoHead);
        assert_eq!((reach(&verdict), advice(&verdict)), ("Ambiguous", "Retry"), "{}", profile.id());
        assert!(!profile.overlap_is_safe(), "{}", profile.id());
        said(409, "").unknown(&profile, Why::Conflict);
    }
}
