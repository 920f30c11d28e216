//! `docs/profiles.md` is made from the presets and their docs; this test fails
//! when it is stale, and `ONCEKEY_WRITE=1` writes it anew.

use std::fmt::Write as _;
use std::time::Duration;

use http::Method;
use oncekey::Profile;
use oncekey::profile::ErrorsStored;

use crate::generic::{ARGUED, UNREADABLE, counts, forgets_sooner, strangers};
use crate::vectors::all;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

const INTRO: &str = "# Profiles

How each API does idempotency, as far as its pages say. Made from the presets by `ONCEKEY_WRITE=1 cargo test --test profiles`.

A fact that is missing takes the careful reading, and says so. **Never a new key on the caller's behalf, even where a provider's page advises one.**

- *replays*: a repeated request gets the answer again. Where it does not, a lost answer must be looked up.
- *overlap*: two requests under one key may be on their way at once. Where they may not, a resumed operation first waits until the interrupted attempt's time is over.
- *released*: an error releases the key, so that a corrected body may follow under it.
";

fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let whole = |unit| seconds.is_multiple_of(unit).then(|| seconds / unit);
    match (whole(86_400), whole(3600), whole(60)) {
        _ if seconds == 0 => "-".to_owned(),
        (Some(days), ..) if days > 1 => format!("{days} d"),
        (_, Some(hours), _) => format!("{hours} h"),
        (_, _, Some(minutes)) => format!("{minutes} min"),
        _ => format!("{seconds} s"),
    }
}

fn row(profile: &Profile) -> String {
    let methods = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    let methods: Vec<_> = methods.iter().filter(|method| profile.keys(method)).map(Method::as_str).collect();
    let yes = |yes| if yes { "yes" } else { "no" };
    let stored = match profile.errors_stored() {
        ErrorsStored::Never => "never",
        ErrorsStored::Always => "yes",
        ErrorsStored::Unsaid => "unsaid",
    };
    format!(
        "| `{}` | `{}` | {} | {} | {} | {} | {stored} | {} | {} | {} |\n",
        profile.id(),
        profile.key_header(),
        profile.key_format(),
        methods.join(", "),
        span(profile.key_lifetime()),
        yes(profile.replays()),
        yes(profile.releases_key()),
        yes(profile.overlap_is_safe()),
        span(profile.min_delay()),
    )
}

/// The docs of every preset's constructor, as they stand in its file.
fn docs() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let folder = std::fs::read_dir(format!("{ROOT}/src/profile/presets")).unwrap();
    let mut files: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files.iter().filter(|file| !file.ends_with("mod.rs")) {
        let text = std::fs::read_to_string(file).unwrap();
        let mut docs = String::new();
        for line in text.lines().map(str::trim) {
            if let Some(line) = line.strip_prefix("///") {
                let _ = writeln!(docs, "{}", line.strip_prefix(' ').unwrap_or(line));
            } else if let Some(name) = line.strip_prefix("pub fn ").and_then(|rest| rest.strip_suffix("() -> Self {")) {
                // The example is for the crate's documentation.
                let docs = std::mem::take(&mut docs);
                let prose = docs.split("\n```").next().unwrap_or_default();
                found.push((name.to_owned(), format!("{}\n", prose.trim_end())));
            } else {
                docs.clear();
            }
        }
    }
    found
}

fn page() -> String {
    let mut page = INTRO.to_owned();
    page.push_str("\n| id | header | key | methods | lifetime | replays | errors stored | released | overlap | shortest delay |\n|---|---|---|---|--:|---|---|---|---|--:|\n");
    for profile in Profile::presets() {
        page.push_str(&row(&profile));
    }
    let (counts, _) = counts();
    page.push_str("\n## How the generic profile reads them\n\n");
    let _ = writeln!(
        page,
        "{} answers, each with and without an earlier attempt in doubt (`tests/profiles/vectors.json`). *Exact*: the same reach, advice and effect as the provider's own preset; *same effect*: by another way, as a stop instead of a poll; *safe*: `Unknown` where the preset is certain; *wrong*: certain of something else.\n",
        all().len()
    );
    page.push_str("| id | exact | same effect | safe | wrong |\n|---|--:|--:|--:|--:|\n");
    for (id, count) in counts {
        let _ =
            writeln!(page, "| `{id}` | {} | {} | {} | {} |", count.exact, count.same_effect, count.safe, count.wrong);
    }
    page.push_str("\nThe wrong ones, none of which a page shows:\n\n");
    for (presets, _, argument) in ARGUED {
        let _ = writeln!(page, "- {}: {argument}.", presets.join(", "));
    }
    let _ = writeln!(
        page,
        "\nOf the providers without a preset every answer of the idempotency layer that was found ({}, `strangers.json`) is read so that nothing is believed too much, but for these:\n",
        strangers().len()
    );
    for (provider, why) in UNREADABLE {
        let _ = writeln!(page, "- {provider}: {why}.");
    }
    page.push_str("\nThese forget a key sooner than the generic 24 hours, after which it pays again:\n\n");
    for (name, seconds) in forgets_sooner() {
        let _ = writeln!(page, "- {name}: {}", span(Duration::from_secs(seconds)));
    }
    for (name, docs) in docs() {
        let docs = docs.replace("[`", "`").replace("`]", "`");
        let _ = write!(page, "\n## `Profile::{name}()`\n\n{docs}");
    }
    page
}

#[test]
fn every_preset_has_a_table_with_its_sources() {
    let docs = docs();
    assert_eq!(docs.len(), Profile::presets().len());
    for (name, docs) in docs {
        let head = docs.lines().any(|line| line.starts_with("| field | value |"));
        assert!(head, "{name} has no table of fields");
        let sourced = docs.contains("Source")
            || docs.lines().any(|line| line.ends_with("| source |") || line.ends_with("| why |"));
        assert!(sourced, "{name} names no source");
        for field in ["key", "lifetime", "replay mark", "in progress", "errors stored"] {
            assert!(docs.contains(&format!("| {field} |")), "{name} says nothing of: {field}");
        }
    }
}

#[test]
fn the_page_of_profiles_is_what_the_presets_say() {
    let path = format!("{ROOT}/docs/profiles.md");
    let fresh = page();
    if std::env::var_os("ONCEKEY_WRITE").is_some() {
        std::fs::write(&path, &fresh).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap();
    let differing = kept.lines().zip(fresh.lines()).find(|(kept, fresh)| kept != fresh);
    assert!(kept == fresh, "write it anew with ONCEKEY_WRITE=1; first difference: {differing:#?}");
}
