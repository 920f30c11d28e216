//! The generic profile on every vector of every provider: a wrong reading is
//! an `Applied` or a `NotApplied` where the provider's own preset says otherwise.

use std::collections::BTreeMap;

use oncekey::Profile;
use serde_json::Value;

use crate::facts::facts;
use crate::vectors::{Earlier, Vector, advice, all, effect, reach, sent};

/// Wrong by definition, and why it cannot be otherwise.
pub(crate) const ARGUED: [(&[&str], &str, &str); 2] = [
    (
        &["verifika"],
        "replayed refusal",
        "a refusal with the replay mark, of a provider whose page says that errors are never stored. It contradicts \
         itself, so the preset believes nothing of it; everywhere else the mark is the layer's own word that the first \
         request was refused",
    ),
    (
        &["mollie", "checkout", "moov", "modern-treasury", "dwolla", "memo-bank", "idempotent-api"],
        "conflict of another kind",
        "a 409 whose own code says `OUT_OF_FUNDS`, of a provider that prints no code for its 409 of the idempotency \
         layer. The preset takes every 409 for that one, having the page's word for the status alone; without the page \
         the code is believed (rule 17). No page shows such an answer",
    ),
];

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Count {
    /// Same reach, advice and effect.
    pub(crate) exact: usize,
    /// Same effect, by another way.
    pub(crate) same_effect: usize,
    /// `Unknown` where the preset is certain.
    pub(crate) safe: usize,
    pub(crate) wrong: usize,
}

/// By preset, in their order.
pub(crate) fn counts() -> (Vec<(String, Count)>, Vec<String>) {
    let generic = Profile::generic();
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    let mut wrong = Vec::new();
    let vectors = all();
    for vector in vectors.iter().filter(|vector| vector.preset != "generic") {
        let count = counts.entry(vector.preset.clone()).or_default();
        for earlier in [Earlier::Nothing, Earlier::Doubt] {
            let verdict = vector.read_by(&generic);
            let read = format!("{:?}", effect(verdict, earlier));
            if read == vector.effect(earlier) {
                let exact = (reach(&verdict), advice(&verdict)) == (vector.reach.as_str(), vector.advice.as_str());
                *(if exact { &mut count.exact } else { &mut count.same_effect }) += 1;
            } else if read == "Unknown" {
                count.safe += 1;
            } else {
                count.wrong += 1;
                wrong.push((vector, earlier, read));
            }
        }
    }
    let ids = Profile::presets().into_iter().map(|profile| profile.id().to_owned());
    let counts = ids.filter_map(|id| counts.get(&id).map(|count| (id.clone(), *count))).collect();
    (counts, wrong.iter().filter(|(vector, ..)| !is_argued(vector)).map(|w| format!("{w:?}")).collect())
}

fn is_argued(vector: &Vector) -> bool {
    ARGUED.iter().any(|(presets, name, _)| presets.contains(&&*vector.preset) && vector.name == *name)
}

#[test]
fn the_generic_profile_is_never_wrong() {
    let (counts, wrong) = counts();
    let mut total = Count::default();
    for (_, count) in &counts {
        total.exact += count.exact;
        total.same_effect += count.same_effect;
        total.safe += count.safe;
        total.wrong += count.wrong;
    }
    println!("{} presets, {} vectors; the generic profile: {total:?}", counts.len() + 1, 2 * all().len());
    for (preset, count) in counts.iter().filter(|(_, count)| count.safe + count.wrong > 0) {
        println!("  {preset}: {count:?}");
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    // What is argued is still there, so that the list cannot rot: the marked refusal
    // with and without an earlier doubt, the conflicts without.
    assert_eq!(total.wrong, 2 + 7);
}

/// Strangers whose answers no careful reading without a preset gets right.
pub(crate) const UNREADABLE: [(&str, &str); 5] = [
    ("Worldpay WPG (XML)", "its failures come in a 200"),
    ("Shopify GraphQL Admin", "its failures come in a 200"),
    (
        "OpenPix / Woovi (Pix out)",
        "a sentence in Portuguese without the word; and the key is in the body, so none of ours",
    ),
    ("BVNK", "a 400 without a code or a word"),
    ("Paystack (transfers)", "a 400 without a code or a word; and the key is in the body, so none of ours"),
];

/// The answers of providers without a preset.
pub(crate) fn strangers() -> Vec<Value> {
    serde_json::from_str(include_str!("strangers.json")).unwrap()
}

#[test]
fn without_a_preset_no_strangers_answer_is_believed_too_much() {
    let rows = strangers();
    let generic = Profile::generic();
    let mut wrong = Vec::new();
    for row in &rows {
        let provider = row["provider"].as_str().unwrap();
        for (earlier, name) in [(Earlier::Nothing, "none"), (Earlier::Doubt, "doubt")] {
            let read = format!("{:?}", effect(sent(row).read_by(&generic), earlier));
            if !row["may"][name].as_array().unwrap().iter().any(|may| *may == read.as_str()) {
                wrong.push((provider.to_owned(), name, read));
            }
        }
    }
    println!("{} answers of strangers, too much believed: {wrong:#?}", rows.len());
    let unreadable = |provider: &str| UNREADABLE.iter().any(|(known, _)| *known == provider);
    assert!(wrong.iter().all(|(provider, ..)| unreadable(provider)), "{wrong:#?}");
    assert!(UNREADABLE.iter().all(|(known, _)| wrong.iter().any(|(provider, ..)| provider == known)));
    // A doubt is never resolved by them, but for a failure that calls itself a success.
    assert!(wrong.iter().all(|(_, earlier, read)| *earlier == "none" || read == "Applied"), "{wrong:#?}");
}

/// APIs that forget a key sooner than the generic profile believes.
pub(crate) fn forgets_sooner() -> Vec<(String, u64)> {
    let generic = Profile::generic().key_lifetime().as_secs();
    let mut found: Vec<_> = facts()
        .iter()
        .filter_map(|fact| Some((fact["name"].as_str()?.to_owned(), fact["retention_seconds"].as_u64()?)))
        .filter(|(_, seconds)| *seconds < generic)
        .collect();
    found.sort_by_key(|(_, seconds)| *seconds);
    found
}

#[test]
fn the_generic_profiles_docs_warn_of_each_that_forgets_sooner() {
    let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/profile/presets/generic.rs")).unwrap();
    let sooner = forgets_sooner();
    println!("{sooner:?}");
    assert_eq!(sooner.len(), 7, "{sooner:?}");
    for name in ["OASIS", "CyberSource", "Qonto", "Fiber", "PayPal Vault", "PayPal Orders", "TrueLayer"] {
        assert!(docs.contains(name), "{name}");
    }
}
