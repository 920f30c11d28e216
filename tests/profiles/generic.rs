//! The generic profile on every vector of every provider: a wrong reading is
//! an `Applied` or a `NotApplied` where the provider's own preset says otherwise.

use std::collections::BTreeMap;

use oncekey::Profile;

use crate::facts::facts;
use crate::vectors::{Earlier, Vector, advice, all, effect, reach};

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
