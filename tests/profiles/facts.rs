//! Each preset's data against the copy of the facts that were found.

use http::Method;
use oncekey::Profile;
use serde_json::Value;

use crate::vectors::{KEY, preset};

/// A preset's id, and its entry among the facts.
const ENTRIES: [(&str, &str); 27] = [
    ("verifika", "Verifika (baseline)"),
    ("ietf-06", "IETF draft-ietf-httpapi-idempotency-key-header-06"),
    ("stripe-v1", "Stripe API v1"),
    ("stripe-v2", "Stripe API v2"),
    ("toss", "Toss Payments"),
    ("adyen", "Adyen"),
    ("gocardless", "GoCardless"),
    ("mollie", "Mollie"),
    ("checkout", "Checkout.com"),
    ("mangopay", "Mangopay"),
    ("mercado-pago-orders", "Mercado Pago Orders API (/v1/orders)"),
    ("paypal-orders-v2", "PayPal Orders v2"),
    ("increase", "Increase"),
    ("moov", "Moov"),
    ("modern-treasury", "Modern Treasury"),
    ("dwolla", "Dwolla"),
    ("open-banking-uk", "Open Banking UK (OBIE R/W v3.1.x - v4.0)"),
    ("open-finance-brasil", "Open Finance Brasil (payments)"),
    ("paymongo", "PayMongo (money movement)"),
    ("memo-bank", "Memo Bank"),
    ("blindpay", "BlindPay"),
    ("node-idempotency", "node-idempotency (express/fastify/nest)"),
    ("express-idempotency", "express-idempotency"),
    ("asgi-idempotency-header", "asgi-idempotency-header (FastAPI/Starlette)"),
    ("idempotent-api", "IdempotentAPI (.NET)"),
    ("fiber", "gofiber idempotency middleware (Go)"),
    ("laravel-idempotency", "square1/laravel-idempotency"),
];

pub(crate) fn facts() -> Vec<Value> {
    serde_json::from_str(include_str!("facts.json")).unwrap()
}

pub(crate) fn pairs() -> Vec<(Profile, Value)> {
    let facts = facts();
    let find = |name| facts.iter().find(|fact| fact["name"] == name).unwrap_or_else(|| panic!("no fact of {name}"));
    ENTRIES.iter().map(|(id, name)| (preset(id), find(*name).clone())).collect()
}

#[test]
fn every_preset_but_the_generic_one_rests_on_facts() {
    let ids: Vec<_> = Profile::presets().iter().map(|profile| profile.id().to_owned()).collect();
    assert_eq!(ids[0], "generic");
    assert_eq!(ids.len(), ENTRIES.len() + 1);
    assert!(ids[1..].iter().all(|id| ENTRIES.iter().any(|(known, _)| known == id)), "{ids:?}");
}

#[test]
fn the_key_goes_where_the_page_says() {
    for (profile, fact) in pairs() {
        let header = fact["header_name"].as_str().unwrap();
        assert_eq!(profile.key_header().as_str(), header.to_ascii_lowercase(), "{}", profile.id());
        let Some(methods) = fact["applies_to_methods"].as_array() else { continue };
        for method in [Method::POST, Method::PATCH, Method::PUT, Method::DELETE] {
            let named = methods.iter().any(|name| name == method.as_str());
            assert_eq!(profile.keys(&method), named, "{} {method}", profile.id());
        }
    }
}

#[test]
fn no_key_is_longer_or_shorter_than_the_page_allows() {
    for (profile, fact) in pairs() {
        let format = &fact["key_format"];
        let takes = |length| profile.key_format().check(&"k".repeat(length)).is_ok();
        profile.key_format().check(KEY).unwrap();
        assert_eq!(profile.key_format().to_string().contains("quotes"), format["quoted"] == true, "{}", profile.id());
        if format["uuid_only"] == true {
            assert!(!takes(36), "{}", profile.id());
            continue;
        }
        let most = usize::try_from(format["max_len"].as_u64().unwrap_or(300)).unwrap();
        assert!(!takes(most + 1), "{}", profile.id());
        if let Some(least) = format["min_len"].as_u64().filter(|least| *least > 1) {
            assert!(!takes(usize::try_from(least).unwrap() - 1), "{}", profile.id());
        }
    }
}

#[test]
fn no_lifetime_is_longer_than_what_was_found() {
    for (profile, fact) in pairs() {
        let lifetime = profile.key_lifetime().as_secs();
        match (profile.id(), fact["retention_seconds"].as_u64()) {
            // "Never expires".
            ("moov", None) => assert_eq!(lifetime, 365 * 86_400),
            // The draft leaves it to the server.
            ("ietf-06", None) => assert_eq!(lifetime, 86_400),
            // v1's, printed for both.
            (id, None) => assert_eq!(lifetime, 3600, "{id}"),
            (id, Some(found)) => assert_eq!(lifetime, found, "{id}"),
        }
    }
}

#[test]
fn what_is_stored_is_what_the_page_says() {
    use oncekey::profile::ErrorsStored::{Always, Never, Unsaid};
    for (profile, fact) in pairs() {
        let stored = (fact["stored"]["client_error"].as_bool(), fact["stored"]["server_error"].as_bool());
        let expected = match (profile.id(), stored) {
            // "Inferred", says the fact; and a success or an error, says the draft.
            ("gocardless", _) => Unsaid,
            (_, (Some(false), Some(false))) => Never,
            (_, (Some(true), _) | (_, Some(true))) => Always,
            (_, (Some(false) | None, Some(false) | None)) => Unsaid,
        };
        assert_eq!(profile.errors_stored(), expected, "{}", profile.id());
        if profile.releases_key() {
            assert_eq!(expected, Never, "{}", profile.id());
        }
    }
}

#[test]
fn only_an_answer_that_can_be_had_again_is_called_replayed() {
    for (profile, fact) in pairs() {
        let again = matches!(
            (profile.id(), fact["on_completed_duplicate"].as_str()),
            (_, Some("original_response" | "current_state"))
        );
        assert_eq!(profile.replays(), again, "{}", profile.id());
    }
}

#[test]
fn requests_may_overlap_only_where_the_page_says_what_a_second_one_gets() {
    for (profile, fact) in pairs() {
        let has_a_word = fact["in_progress"].as_array().is_some_and(|said| !said.is_empty());
        if profile.overlap_is_safe() {
            assert!(has_a_word, "{}", profile.id());
        }
    }
    for id in ["paypal-orders-v2", "fiber", "laravel-idempotency", "gocardless", "moov", "stripe-v2"] {
        assert!(!preset(id).overlap_is_safe(), "{id}");
    }
}

#[test]
fn the_shortest_delays_are_the_printed_ones() {
    let named: Vec<_> = Profile::presets()
        .iter()
        .filter(|profile| !profile.min_delay().is_zero())
        .map(|profile| (profile.id().to_owned(), profile.min_delay().as_secs()))
        .collect();
    assert_eq!(named, [("checkout".to_owned(), 30), ("open-banking-uk".to_owned(), 1)]);
}
