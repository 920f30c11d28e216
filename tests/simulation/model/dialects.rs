use std::time::Duration;

use oncekey::profile::{ErrorsStored, Judgement, Matcher, Meaning, Profile};

use super::answers::{Library, Lines, Says, Shape, empty, json, page};

/// Whether replays are marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marks {
    Always,
    Maybe,
    Never,
}

/// What a server keeps under a key besides successes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stores {
    /// An error releases the key.
    Successes,
    Refusals,
    /// 5xx too.
    Everything,
}

/// An API as its server speaks it, beside the profile that reads it.
#[derive(Debug)]
pub(crate) struct Dialect {
    pub(crate) name: &'static str,
    pub(crate) profile: Profile,
    pub(crate) library: Library,
    pub(crate) lifetime: u64,
    pub(crate) marks: Marks,
    pub(crate) mark_count: usize,
    pub(crate) stores: &'static [Stores],
    pub(crate) in_progress: &'static [Shape],
    /// What it says of a key that it holds with another request, if anything.
    pub(crate) reused: Option<Shape>,
    /// What it says in the place of a stored answer, if anything.
    pub(crate) already: Option<Shape>,
    pub(crate) done: &'static [Shape],
    pub(crate) pending: &'static [Shape],
    pub(crate) refusals: &'static [Shape],
    pub(crate) limits_before_work: bool,
    pub(crate) says_again: bool,
}

const DONE: &[Shape] = &[
    json(201, r#"{"id":"pay_1","amount":4999}"#, Says::Done),
    json(200, r#"{"id":"pay_1","amount":4999}"#, Says::Done),
    empty(204, Says::Done),
    empty(200, Says::Done),
];
const PENDING: &[Shape] = &[json(202, r#"{"id":"pay_1","state":"queued"}"#, Says::Pending), empty(202, Says::Pending)];
const REFUSALS: &[Shape] = &[
    json(400, r#"{"code":"AMOUNT_INVALID"}"#, Says::Refusal),
    json(402, r#"{"error":{"code":"card_declined","type":"card_error"}}"#, Says::Refusal),
    json(422, r#"{"errors":[{"code":"REFERENCE_MISSING"}]}"#, Says::Refusal),
    json(409, r#"{"code":"OUT_OF_FUNDS"}"#, Says::Refusal),
];
const NO_REUSED: Option<Shape> = None;

/// Answers that say nothing about the key in words that a profile knows.
pub(crate) const VAGUE: &[Shape] = &[
    json(409, r#"{"message":"this request is being handled"}"#, Says::Vague),
    json(409, r#"{"code":"RESOURCE_LOCKED"}"#, Says::Vague),
    json(409, r#"{"code":"DUPLICATE_REQUEST"}"#, Says::Vague),
    json(423, r#"{"code":"RUNNING"}"#, Says::Vague),
    page(409),
    empty(409, Says::Vague),
];

/// Every API under test.
pub(crate) fn dialects() -> Vec<Dialect> {
    vec![generic(), verifika(), stripe(), ietf(), toss(), acme()]
}

fn plain(name: &'static str, profile: Profile, marks: Lines, again: Option<&'static str>) -> Dialect {
    Dialect {
        name,
        lifetime: u64::try_from(profile.key_lifetime().as_millis()).unwrap_or(u64::MAX),
        profile,
        library: Library::new(marks, again),
        marks: Marks::Never,
        mark_count: marks.len(),
        stores: &[Stores::Successes, Stores::Refusals, Stores::Everything],
        in_progress: VAGUE,
        reused: NO_REUSED,
        already: None,
        done: DONE,
        pending: PENDING,
        refusals: REFUSALS,
        limits_before_work: false,
        says_again: again.is_some(),
    }
}

fn generic() -> Dialect {
    const MARKS: Lines =
        &[("idempotent-replay", "true"), ("idempotent-replayed", "True"), ("idempotency-replayed", "1")];
    Dialect {
        marks: Marks::Maybe,
        in_progress: const {
            &[
                json(409, r#"{"code":"IDEMPOTENCY_IN_PROGRESS"}"#, Says::InProgress),
                json(409, r#"{"error":{"code":"request_in_progress"}}"#, Says::InProgress),
                json(425, r#"{"errors":[{"code":"REQUEST_IN_PROGRESS"}]}"#, Says::InProgress),
                json(422, r#"{"code":"idempotency_key_in_progress"}"#, Says::InProgress),
                json(400, r#"{"error":"request_in_progress"}"#, Says::InProgress),
            ]
        },
        reused: Some(json(422, r#"{"error_code":"idempotency_key_reused"}"#, Says::Reused)),
        ..plain("generic", Profile::generic(), MARKS, None)
    }
}

fn verifika() -> Dialect {
    Dialect {
        marks: Marks::Always,
        stores: &[Stores::Successes],
        in_progress: const {
            &[json(409, r#"{"code":"IDEMPOTENCY_IN_PROGRESS","message":"in progress"}"#, Says::InProgress)]
        },
        reused: Some(json(409, r#"{"code":"IDEMPOTENCY_KEY_REUSED"}"#, Says::Reused)),
        ..plain("verifika", Profile::verifika(), &[("idempotent-replay", "true")], None)
    }
}

fn stripe() -> Dialect {
    Dialect {
        marks: Marks::Always,
        stores: &[Stores::Everything],
        in_progress: const { &[json(409, r#"{"error":{"code":"idempotency_key_in_use"}}"#, Says::InProgress)] },
        reused: Some(json(400, r#"{"error":{"type":"idempotency_error"}}"#, Says::Reused)),
        ..plain("stripe", Profile::stripe(), &[("idempotent-replayed", "true")], Some("stripe-should-retry"))
    }
}

fn ietf() -> Dialect {
    Dialect {
        stores: &[Stores::Refusals, Stores::Everything],
        in_progress: const {
            &[json(409, r#"{"title":"A request is outstanding for this Idempotency-Key"}"#, Says::InProgress)]
        },
        reused: Some(json(422, r#"{"title":"Idempotency-Key is already used"}"#, Says::Reused)),
        ..plain("ietf", Profile::ietf(), &[], None)
    }
}

fn toss() -> Dialect {
    Dialect {
        in_progress: const { &[json(409, r#"{"code":"IDEMPOTENT_REQUEST_PROCESSING"}"#, Says::InProgress)] },
        ..plain("toss", Profile::toss(), &[], None)
    }
}

/// One of our own, which uses what the presets leave out.
fn acme() -> Dialect {
    let profile = Profile::builder("acme")
        .key_lifetime(Duration::from_secs(6 * 3600))
        .replay_mark("acme-replayed", "true")
        .promises_mark(true)
        .rule(Matcher::new().status(409).code("KEY_BUSY"), Meaning::InProgress)
        .rule(Matcher::new().status(409).code("ALREADY_DONE"), Meaning::AlreadyProcessed)
        .settles(Matcher::new().status(422).code("ORDER_VOID"))
        .errors_stored(ErrorsStored::Always)
        .limits_before_work(true)
        .should_retry_header("acme-retry")
        .judge(|answer| match answer.body() {
            body if body.starts_with(br#"{"status":"done""#) => Judgement::Final,
            body if body.starts_with(br#"{"status":"pending""#) => Judgement::Pending,
            body if body.starts_with(br#"{"status":"declined""#) => Judgement::Refused,
            _ => Judgement::Unclear,
        })
        .build()
        .expect("its parts are constants");
    Dialect {
        marks: Marks::Always,
        stores: &[Stores::Refusals, Stores::Everything],
        in_progress: const { &[json(409, r#"{"code":"KEY_BUSY"}"#, Says::InProgress)] },
        already: Some(json(409, r#"{"code":"ALREADY_DONE"}"#, Says::Already)),
        done: const { &[json(200, r#"{"status":"done","order":7}"#, Says::Done)] },
        pending: const {
            &[
                json(200, r#"{"status":"pending","order":7}"#, Says::Pending),
                json(202, r#"{"status":"pending","order":7}"#, Says::Pending),
            ]
        },
        refusals: const {
            &[
                json(422, r#"{"code":"ORDER_VOID"}"#, Says::Refusal),
                json(400, r#"{"code":"AMOUNT_INVALID"}"#, Says::Refusal),
                json(200, r#"{"status":"declined"}"#, Says::Refusal),
            ]
        },
        limits_before_work: true,
        ..plain("acme", profile, &[("acme-replayed", "true")], Some("acme-retry"))
    }
}
