//! Profiles as TOML.

use std::time::Duration;

use http::Method;
use oncekey::Profile;
use oncekey::profile::ErrorsStored;

use crate::vectors::all;

const VERIFIKA: &str = r#"
id = "verifika"
errors-stored = "never"
promises-mark = true
[key]
methods = ["POST"]
characters = "uuid"
lifetime = "24h"
[[replay-mark]]
name = "Idempotent-Replay"
is = ["true"]
[[rule]]
means = "in-progress"
status = [409]
code = ["IDEMPOTENCY_IN_PROGRESS"]
[[rule]]
means = "key-reused-for-certain"
status = [409]
code = ["IDEMPOTENCY_KEY_REUSED"]
"#;

const ADYEN: &str = r#"
id = "adyen"
should-retry-header = "transient-error"
[key]
header = "idempotency-key"
methods = ["POST"]
length = [1, 64]
lifetime = "7d"
[[rule]]
means = "in-progress"
status = [409, 422]
at = "errorCode"
code = ["704"]
headers = [{ name = "transient-error", is = ["true"] }]
[[rule]]
means = "already-processed"
status = [409, 422]
at = "errorCode"
code = ["704"]
[[rule]]
means = "not-to-be-retried"
status = [408, 429, 500, 502, 503, 504]
headers = [{ name = "transient-error", absent = true }]
"#;

const GOCARDLESS: &str = r#"
id = "gocardless"
replays = false
overlap-is-safe = false
[key]
methods = ["POST"]
characters = "word"
length = [1, 36]
lifetime = "1h"
[[rule]]
means = "already-processed"
status = [409]
at = "error.errors[].reason"
code = ["idempotent_creation_conflict"]
original = "error.errors[].links.conflicting_resource_id"
"#;

const LARAVEL: &str = r#"
id = "laravel-idempotency"
errors-stored = "always"
promises-mark = true
overlap-is-safe = false
[key]
methods = ["POST", "PUT", "PATCH", "DELETE"]
characters = "word"
length = [1, 36]
[[replay-mark]]
name = "Idempotency-Relayed"
is-key = true
"#;

#[test]
fn a_file_reads_as_the_preset_that_it_spells_out() {
    for (text, preset) in [
        (VERIFIKA, Profile::verifika()),
        (ADYEN, Profile::adyen()),
        (GOCARDLESS, Profile::gocardless()),
        (LARAVEL, Profile::laravel()),
    ] {
        let file = Profile::from_toml(text).unwrap_or_else(|error| panic!("{}: {error}", preset.id()));
        assert_eq!(file.id(), preset.id());
        assert_eq!(file.key_header(), preset.key_header());
        assert_eq!(file.key_format(), preset.key_format());
        assert_eq!(file.key_lifetime(), preset.key_lifetime());
        assert_eq!(file.errors_stored(), preset.errors_stored());
        assert_eq!(file.releases_key(), preset.releases_key());
        assert_eq!((file.replays(), file.overlap_is_safe()), (preset.replays(), preset.overlap_is_safe()));
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            assert_eq!(file.keys(&method), preset.keys(&method), "{method}");
        }
        for vector in all() {
            let verdict = vector.read_by(&preset);
            assert_eq!(vector.read_by(&file), verdict, "{}: {vector:?}", preset.id());
            assert_eq!(file.original_id(&vector.answer()), preset.original_id(&vector.answer()));
            assert_eq!(file.replay(&verdict), preset.replay(&verdict));
        }
    }
}

#[test]
fn every_field_arrives() {
    let text = "id = 'acme'\nversion = 7\nmin-delay = '1500ms'\nerrors-stored = 'always'\nreleases-key = true\nreplays = false\n\
                [key]\nheader = 'Acme-Key'\nmethods = []\nlifetime = '90s'\nlength = [4, 8]\nquoted = true\n";
    let profile = Profile::from_toml(text).unwrap();
    assert_eq!((profile.version(), profile.min_delay()), (7, Duration::from_millis(1500)));
    assert_eq!((profile.errors_stored(), profile.releases_key()), (ErrorsStored::Always, true));
    assert!(!profile.replays() && profile.overlap_is_safe() && !profile.keys(&Method::POST));
    assert_eq!(profile.key_header(), "acme-key");
    assert_eq!(profile.key_lifetime(), Duration::from_secs(90));
    assert_eq!(profile.key_format().to_string(), "4 to 8 visible characters, in double quotes");
    let least = Profile::from_toml("id = 'acme'").unwrap();
    assert_eq!(least.key_format(), Profile::builder("acme").build().unwrap().key_format());
    assert!(least.keys(&Method::PATCH) && least.replays());
}

#[test]
fn an_error_names_its_line_and_its_field() {
    for (text, line, field, word) in [
        ("", 1, "id", "missing"),
        ("id = 'a", 1, "", ""),
        ("id = 'a b'", 1, "id", "visible"),
        ("id = 'a'\n\ncolour = 'red'", 3, "colour", "unknown field"),
        ("id = 'a'\nversion = 'one'", 2, "version", "u32"),
        ("id = 'a'\nversion = -1", 2, "version", "u32"),
        ("id = 'a'\nmin-delay = '2 weeks'", 2, "min-delay", "90s"),
        ("id = 'a'\nmin-delay = 2", 2, "min-delay", "string"),
        ("id = 'a'\nshould-retry-header = 'a b'", 2, "should-retry-header", "header name"),
        ("id = 'a'\ncode-paths = [\n'code',\n'a..b']", 4, "code-paths", "a..b"),
        ("id = 'a'\nerrors-stored = 'maybe'", 2, "errors-stored", "maybe"),
        ("id = 'a'\n[key]\nheader = ''", 3, "key.header", "header name"),
        ("id = 'a'\n[key]\nmethods = ['POST', 'post']", 3, "key.methods", "POST"),
        ("id = 'a'\n[key]\nlifetime = '0s'", 3, "key.lifetime", "longer than zero"),
        ("id = 'a'\n[key]\nlifetime = '-1h'", 3, "key.lifetime", "90s"),
        ("id = 'a'\n[key]\nlength = [1, 32]", 3, "key.length", "36 characters"),
        ("id = 'a'\n[key]\nlength = [40, 30]", 3, "key.length", "shortest"),
        ("id = 'a'\n[key]\nlength = [1]", 3, "key.length", "2"),
        ("id = 'a'\n[key]\ncharacters = 'uuid'\nlength = [1, 36]", 4, "key.length", "UUID"),
        ("id = 'a'\n[key]\ncolour = 1", 3, "key.colour", "unknown field"),
        ("id = 'a'\n[[replay-mark]]\nname = 'a b'", 3, "replay-mark.name", "header name"),
        ("id = 'a'\n[[replay-mark]]\nname = 'x'\nis = []", 4, "replay-mark.is", "one value"),
        ("id = 'a'\n[[replay-mark]]\nname = 'x'\nis = [\"a\\nb\"]", 4, "replay-mark.is", "x"),
        ("id = 'a'\n[[replay-mark]]\nname = 'x'\nabsent = true", 3, "replay-mark.absent", "nothing"),
        ("id = 'a'\n[[rule]]\nstatus = [409]", 2, "rule.means", "means"),
        ("id = 'a'\n[[rule]]\nmeans = 'busy'", 3, "rule.means", "busy"),
        ("id = 'a'\n[[rule]]\nmeans = 'in-progress'\nstatus = [409, 42]", 4, "rule.status", "42"),
        ("id = 'a'\n[[rule]]\nmeans = 'in-progress'\nat = 'a[0]'", 4, "rule.at", "a[0]"),
        ("id = 'a'\n[[rule]]\nmeans = 'in-progress'\npresent = ['a', '']", 4, "rule.present", "place"),
        ("id = 'a'\n[[rule]]\nmeans = 'in-progress'\nheaders = [{ name = '' }]", 4, "rule.headers.name", "header name"),
        (
            "id = 'a'\n[[rule]]\nmeans = 'in-progress'\nheaders = [{ name = 'x', is-key = true, absent = true }]",
            4,
            "rule.headers.absent",
            "is-key",
        ),
        (
            "id = 'a'\n[[rule]]\nmeans = 'in-progress'\nheaders = [{ name = 'x', colour = 1 }]",
            4,
            "rule.headers.colour",
            "unknown",
        ),
        ("id = 'a'\n[[rule]]\nmeans = 'in-progress'\noriginal = 'id'", 4, "rule.original", "already processed"),
        ("id = 'a'\n[[rule]]\nmeans = 'already-processed'\noriginal = 'a..b'", 4, "rule.original", "a..b"),
        ("id = 'a'\n[[settles]]\nstatus = [200]", 2, "settles", "refusals"),
        ("id = 'a'\n[[settles]]\nmeans = 'in-progress'", 2, "settles", "means"),
    ] {
        let error = Profile::from_toml(text).unwrap_err();
        assert_eq!((error.line(), error.field()), (line, field), "{text:?}: {error}");
        let shown = error.to_string();
        assert!(shown.contains(word) && shown.contains(&format!("line {line}")), "{text:?}: {shown}");
        assert!(!shown.contains('\n'), "{shown}");
    }
}

#[test]
fn no_text_makes_it_panic() {
    let whole = [VERIFIKA, ADYEN, GOCARDLESS, LARAVEL].join("\n");
    let mut seen = 0;
    for text in [VERIFIKA, ADYEN, GOCARDLESS, LARAVEL, &whole] {
        for cut in 0..text.len() {
            seen += usize::from(Profile::from_toml(&text[..cut]).is_err());
            let swapped = format!("{}\u{e9}{}", &text[..cut], &text[cut..]);
            let _ = Profile::from_toml(&swapped);
        }
    }
    assert!(seen > 100);
    Profile::from_toml(&"[".repeat(100_000)).unwrap_err();
    Profile::from_toml("id = 'a'\n[key]\nlifetime = '99999999999999999999d'").unwrap_err();
    Profile::from_toml("id = 'a'\n[key]\nlifetime = '9999999999999999999d'").unwrap();
}
