//! Public fault reports, played against the crate over real sockets.
//!
//! `../reports.json` holds the reports and the data of each: what the server
//! does, how the client is set up, what must come of it. Its variants, and what
//! only its prose asks for, are code here, one function per report.

#![allow(clippy::unwrap_used)] // helpers of tests

mod busy;
mod checks;
mod class;
mod data;
mod dates;
#[cfg(feature = "http2")]
mod frames;
#[cfg(feature = "http2")]
mod http2;
mod keys;
mod lost;
mod record;
mod run;
mod scene;
mod script;
mod storm;
#[cfg(feature = "rustls")]
mod tls;
mod waits;
mod wire;

use std::collections::BTreeSet;

use data::Report;
use run::{Name, Run};

macro_rules! played {
    ($($(#[$only:meta])? $id:literal $name:ident $runs:path,)*) => {
        $(
            $(#[$only])?
            #[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                run::play($id, $runs).await;
            }
        )*

        const PLAYED: &[(&str, fn(&Report) -> Vec<Run>)] = &[$($(#[$only])? ($id, $runs)),*];
    };
}

played! {
    "KEY-01" key_01_one_key_for_all_attempts keys::key_01,
    "KEY-05" key_05_malformed_keys_are_refused keys::key_05,
    "KEY-06" key_06_letter_case keys::key_06,
    "LOST-01" lost_01_closed_on_a_kept_connection lost::lost_01,
    "LOST-02" lost_02_error_after_execution lost::lost_02,
    "LOST-03" lost_03_timeout_hides_a_success lost::lost_03,
    "LOST-05" lost_05_truncated_body lost::lost_05,
    "LOST-06" lost_06_page_for_data lost::lost_06,
    "BUSY-01" busy_01_in_progress_is_polled busy::busy_01,
    "BUSY-02" busy_02_in_progress_for_ever busy::busy_02,
    "BUSY-03" busy_03_final_refusals busy::busy_03,
    "BUSY-04" busy_04_conflict_with_ourselves busy::busy_04,
    "BUSY-06" busy_06_stored_error busy::busy_06,
    "WAIT-01" wait_01_retry_after_date waits::wait_01,
    "WAIT-02" wait_02_retry_after_too_long waits::wait_02,
    "WAIT-03" wait_03_retry_after_unusable waits::wait_03,
    "WAIT-05" wait_05_retry_after_missing waits::wait_05,
    "TIME-01" time_01_many_attempts waits::time_01,
    "TIME-03" time_03_wait_beyond_the_deadline waits::time_03,
    "TIME-04" time_04_deadline_over_all_attempts waits::time_04,
    "REDIR-01" redir_01_not_followed wire::redir_01,
    "REDIR-02" redir_02_not_followed_elsewhere wire::redir_02,
    "PROXY-01" proxy_01_own_duplicate_in_progress wire::proxy_01,
    "BODY-01" body_01_same_bytes wire::body_01,
    "STORM-01" storm_01_spread_out storm::storm_01,
    "CLASS-01" class_01_never_sent_or_perhaps class::class_01,
    "CLASS-02" class_02_unauthorized_in_the_middle class::class_02,
    #[cfg(feature = "http2")] "H2-01" h2_01_refused_stream_is_one_attempt http2::h2_01,
    #[cfg(feature = "http2")] "H2-03" h2_03_goaway http2::h2_03,
    #[cfg(feature = "http2")] "H2-04" h2_04_dead_connection_is_left http2::h2_04,
}

/// Reports, or variants of one, that are not played here, and why.
const ELSEWHERE: &[(&str, Option<&str>, &str)] = &[
    ("KEY-03", None, ON_RECORD),
    #[cfg(not(feature = "http2"))]
    ("LOST-05", Some("e: h2 RST NO_ERROR mid-body"), "needs the feature `http2`"),
    #[cfg(not(feature = "http2"))]
    ("H2-01", None, "needs the feature `http2`"),
    #[cfg(not(feature = "http2"))]
    ("H2-03", None, "needs the feature `http2`"),
    #[cfg(not(feature = "http2"))]
    ("H2-04", None, "needs the feature `http2`"),
    ("CRASH-01", None, ON_RECORD),
    ("CRASH-02", None, ON_RECORD),
    ("CRASH-03", None, ON_RECORD),
    ("CRASH-04", None, ON_RECORD),
    ("CRASH-06", None, ON_RECORD),
    ("CANCEL-01", None, ON_RECORD),
    ("CLOCK-01", None, ON_RECORD),
    ("CLOCK-02", None, ON_RECORD),
];

/// Played with a journal, in a test of the report's own name.
const ON_RECORD: &str = "played in tests/journal";

#[test]
fn what_needs_a_journal_is_played_with_one() {
    let played: String = ["kills", "processes", "reports"]
        .map(|file| std::fs::read_to_string(format!("{}/tests/journal/{file}.rs", env!("CARGO_MANIFEST_DIR"))).unwrap())
        .concat();
    for (id, _, _) in ELSEWHERE.iter().filter(|(_, _, why)| *why == ON_RECORD) {
        let name = format!("fn {}_", id.to_lowercase().replace('-', "_"));
        assert!(played.contains(&name), "no test begins with {name}");
    }
}

#[test]
fn every_report_is_played_or_said_not_to_be() {
    let all: BTreeSet<String> = data::ids().into_iter().collect();
    let played: BTreeSet<&str> = PLAYED.iter().map(|(id, _)| *id).collect();
    let elsewhere: BTreeSet<&str> = ELSEWHERE.iter().filter(|left| left.1.is_none()).map(|left| left.0).collect();
    assert!(played.is_disjoint(&elsewhere));
    let found: BTreeSet<String> = played.union(&elsewhere).map(|id| (*id).to_owned()).collect();
    assert_eq!(found, all);
    for (id, variant, why) in ELSEWHERE {
        println!("{id} {}: {why}", variant.unwrap_or("whole"));
    }
}

#[test]
fn every_variant_has_code_and_nothing_is_named_that_is_none() {
    for (id, runs) in PLAYED {
        let report = data::report(id);
        let left_out = ELSEWHERE.iter().filter(|left| left.0 == *id).filter_map(|left| left.1);
        let runs = runs(&report);
        let coded = runs.iter().filter_map(|run| match &run.name {
            Name::Variant(label) => Some(*label),
            Name::AsGiven | Name::Also(_) => None,
        });
        let coded: Vec<&str> = coded.chain(left_out).collect();
        let distinct: BTreeSet<&str> = coded.iter().copied().collect();
        assert_eq!(distinct.len(), coded.len(), "{id}: a label twice");
        assert_eq!(distinct, report.variants.iter().map(String::as_str).collect(), "{id}");
    }
}
