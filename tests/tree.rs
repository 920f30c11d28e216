//! The architecture's rules, as absences: what each module must not name.

#![allow(clippy::unwrap_used)] // helpers of tests

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn sources(under: &str) -> Vec<PathBuf> {
    let path = root().join(under);
    if path.is_file() {
        return vec![path];
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(&path).unwrap() {
        let entry = entry.unwrap().path();
        let inner = entry.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        if entry.is_dir() {
            found.extend(sources(&inner));
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            found.push(entry);
        }
    }
    found
}

/// The lines of code of a file or folder, comments and its own tests apart.
fn code(under: &str) -> Vec<(PathBuf, usize, String)> {
    let mut lines = Vec::new();
    for file in sources(under) {
        if file.components().any(|part| part.as_os_str() == "tests") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let own = text.split("\n#[cfg(test)]\nmod ").next().unwrap();
        for (index, line) in own.lines().enumerate() {
            let line = line.split("//").next().unwrap().trim();
            if !line.is_empty() {
                lines.push((file.clone(), index + 1, line.to_owned()));
            }
        }
    }
    assert!(!lines.is_empty(), "{under} holds no code");
    lines
}

#[track_caller]
fn names_none_of(under: &str, words: &[&str]) {
    for (file, number, line) in code(under) {
        for word in words {
            assert!(!line.contains(word), "{}:{number} names {word}: {line}", file.display());
        }
    }
}

/// Every path into the crate goes to one of these modules.
#[track_caller]
fn uses_only(under: &str, modules: &[&str]) {
    for (file, number, line) in code(under) {
        for rest in line.split("crate::").skip(1) {
            let module = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
            assert!(modules.contains(&module), "{}:{number} uses crate::{module}", file.display());
        }
    }
}

#[test]
fn the_engine_is_pure() {
    names_none_of("src/engine", &["std::", "crate::", "tokio", "reqwest", "http::", "async "]);
    for (file, number, line) in code("src/engine") {
        if let Some(path) = line.strip_prefix("use ") {
            let root = path.split("::").next().unwrap();
            assert!(["core", "alloc", "super"].contains(&root), "{}:{number}: {line}", file.display());
        }
    }
}

#[test]
fn a_profile_reads_answers_and_knows_nothing_else() {
    uses_only("src/profile", &["engine"]);
    names_none_of("src/profile", &["History", "Entry", "Policy", "tokio", "reqwest", "Instant", "SystemTime::now"]);
}

#[test]
fn a_journal_stores_and_decides_nothing() {
    uses_only("src/journal", &["engine", "fingerprint", "journal", "runtime", "submission"]);
    names_none_of("src/journal", &["History", "Policy", "reqwest", "Profile"]);
}

#[test]
fn the_transport_knows_no_earlier_attempt() {
    uses_only("src/transport.rs", &["attempt", "engine", "error", "profile", "runtime", "submission"]);
    names_none_of("src/transport.rs", &["History", "Entry", "journal", "Vec<Attempt>", "Operation"]);
}

#[test]
fn only_the_transport_sends() {
    for (file, number, line) in code("src") {
        let sends = line.contains(".execute(") || line.contains("reqwest::get(");
        // The journal's statements go to a file.
        let elsewhere = ["sandbox", "sqlite"];
        let place = file.ends_with("src/transport.rs")
            || file.components().any(|part| elsewhere.iter().any(|name| part.as_os_str() == *name));
        assert!(!sends || place, "{}:{number}: {line}", file.display());
    }
}

#[test]
fn the_driver_decides_nothing() {
    names_none_of("src/driver.rs", &["Reach::", "Advice::", "StatusCode", "Why::", "Effect::"]);
    assert!(code("src/driver.rs").len() < 90, "the loop is growing");
}

#[test]
fn the_sandbox_shares_no_code_with_what_it_tests() {
    names_none_of("src/sandbox", &["crate::", "oncekey", "reqwest"]);
}

/// The public methods of a type.
fn methods(under: &[&str], of: &str) -> BTreeSet<String> {
    let (mut found, mut inside) = (BTreeSet::new(), false);
    for (_, _, line) in under.iter().flat_map(|under| code(under)) {
        if line.starts_with("impl") {
            inside = line == format!("impl {of} {{");
        }
        let line = line.replace("async ", "").replace("const ", "");
        if let Some(rest) = line.strip_prefix("pub fn ").filter(|_| inside) {
            found.insert(rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap().to_owned());
        }
    }
    assert!(!found.is_empty(), "{of} has no method in {under:?}");
    found
}

#[test]
fn the_blocking_surface_is_the_async_one_and_wraps_it() {
    for of in ["Client", "ClientBuilder", "RequestBuilder", "Resume", "ResumeAll"] {
        let here = methods(
            &[
                "src/client/mod.rs",
                "src/client/builder.rs",
                "src/request.rs",
                "src/recover/mod.rs",
                "src/recover/resume.rs",
            ],
            of,
        );
        assert_eq!(methods(&["src/blocking"], of), here, "{of}");
    }
    names_none_of("src/blocking", &["crate::transport", "crate::driver", "crate::desk", "crate::call", "History"]);
}

/// Each public function's place and signature, with the docs and attributes above it.
fn public_functions() -> Vec<(String, Vec<String>)> {
    let (mut found, mut above) = (Vec::new(), Vec::new());
    for file in sources("src") {
        for line in fs::read_to_string(&file).unwrap().lines().map(str::trim) {
            if line.starts_with("//") || line.starts_with("#[") {
                above.push(line.to_owned());
                continue;
            }
            let above = std::mem::take(&mut above);
            if ["pub fn ", "pub async fn ", "pub const fn "].iter().any(|start| line.starts_with(start)) {
                found.push((format!("{}: {line}", file.display()), above));
            }
        }
    }
    assert!(found.len() > 500, "only {} public functions were found", found.len());
    found
}

#[test]
fn every_public_function_has_an_example() {
    let is_doc = |line: &String| line.starts_with("///") || line.starts_with("#[doc");
    let has_none = |above: &[String]| !above.iter().any(|line| is_doc(line) && line.contains("```"));
    let without: Vec<_> = public_functions().into_iter().filter(|(_, above)| has_none(above)).collect();
    assert!(without.is_empty(), "no example: {without:#?}");
}

/// Whoever gave a wrong argument is to see the line where it stands.
#[test]
fn what_panics_names_its_caller() {
    let mut panics = public_functions();
    panics.retain(|(function, above)| {
        // An async function has no caller's line to show, and a hook's own panic is passed on.
        let is_left_out = function.contains("pub async fn ") || function.contains("pub fn send(self)");
        !is_left_out && above.iter().any(|line| line == "/// # Panics")
    });
    assert!(panics.len() > 15, "only {} functions that panic were found", panics.len());
    panics.retain(|(_, above)| !above.iter().any(|line| line == "#[track_caller]"));
    assert!(panics.is_empty(), "no `#[track_caller]`: {panics:#?}");
}

#[test]
fn there_is_one_clock_one_timer_and_one_source_of_randomness() {
    let words = ["SystemTime::now", "Instant::now", "tokio::time", "getrandom::fill", "getrandom::u64"];
    for (file, number, line) in code("src") {
        let own = file.ends_with("src/runtime.rs") || file.components().any(|part| part.as_os_str() == "sandbox");
        assert!(own || !words.iter().any(|word| line.contains(word)), "{}:{number}: {line}", file.display());
    }
}

#[test]
fn files_stay_small() {
    let mut sizes: Vec<usize> = Vec::new();
    for file in sources("src") {
        let lines = fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines <= 600, "{} has {lines} lines", file.display());
        sizes.push(lines);
    }
    sizes.sort_unstable();
    assert!(sizes[sizes.len() / 2] < 200, "the median file has {} lines", sizes[sizes.len() / 2]);
}

#[test]
fn the_map_names_every_module() {
    let map = read("ARCHITECTURE.md");
    for entry in fs::read_dir(root().join("src")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(map.contains(&name), "ARCHITECTURE.md does not name src/{name}");
    }
}

#[test]
fn the_readmes_test_command_is_the_one_that_ci_runs() {
    let command = "cargo test --features full";
    for page in ["README.md", "README.es.md", "CONTRIBUTING.md", ".ci/run"] {
        assert!(read(page).lines().any(|line| line.trim() == command), "{page} does not run `{command}`");
    }
}

/// The default features add at most six crates to reqwest's own tree.
#[test]
fn the_tree_stays_small() {
    let tree = |package: &str| -> BTreeSet<String> {
        let output = Command::new(env!("CARGO"))
            .args(["tree", "--offline", "--prefix", "none", "--edges", "normal,build", "--package", package])
            .current_dir(root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines()
            .filter_map(|line| line.split(' ').next())
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect()
    };
    // Its `json` feature is serde and serde_json, which are ours directly.
    let reqwests = &(&tree("reqwest") | &tree("serde_json")) | &tree("serde");
    let mut added = &tree("oncekey") - &reqwests;
    assert!(added.remove("oncekey"));
    assert!(added.len() <= 6, "{added:?}");
}

#[test]
fn the_unmaintained_crate_comes_only_if_asked_for() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--prefix", "none", "--edges", "normal,build"])
        .current_dir(root())
        .output()
        .unwrap();
    let tree = String::from_utf8(output.stdout).unwrap();
    assert!(!tree.contains("backoff v") && !tree.contains("instant v"), "{tree}");
    let deny = read("deny.toml");
    assert!(deny.contains("RUSTSEC-2025-0012"), "the exception is written down");
}
