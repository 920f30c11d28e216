//! The bot of `docs/bots.md`, and that page: its code is the example's, its
//! table what `twelve` prints. `ONCEKEY_WRITE=1` writes both anew.
#![allow(clippy::disallowed_methods, reason = "the clock of other processes")]

use std::fmt::Write as _;
use std::path::Path;

use oncekey::sandbox::{Fault, Sandbox};

use crate::programs::{Ended, Running, example};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn run_twice_it_is_told_the_truth_and_sends_nothing_that_is_on_record() {
    let folder = tempfile::tempdir().unwrap();
    let ended = Running::start(example("subscriptions").env("TMPDIR", folder.path()))
        .end()
        .exits(0)
        .says("NOT PAID: {\"code\":\"INVALID_AMOUNT\"}")
        .says("12 subscriptions: 9 paid, 1 not paid, 2 unknown\n")
        .says("resumed sub_46:2026-12: paid, as a replay tells\n")
        .says("12 subscriptions: 11 paid, 1 not paid, 0 unknown\n")
        .says("ledger: 11 executions, 0 wrong\n");
    assert_eq!(ended.stderr, "");
    assert_eq!(ended.stdout.matches(": paid, from the record\n").count(), 10, "{ended:#?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "it leaves nothing behind");
}

#[test]
fn whatever_else_goes_wrong_it_is_told_the_truth() {
    for seed in 10..16 {
        let mut bot = example("subscriptions");
        Running::start(bot.args(["--seed", &seed.to_string()])).end().exits(0).says("11 executions, 0 wrong\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_on_the_same_journal_charges_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, table) = (folder.path().join("bot.db"), folder.path().join("table.csv"));
    for code in [0, 1] {
        Running::start(example("subscriptions").arg("--create").arg(&journal)).end().exits(code); // once
    }
    std::fs::write(&table, "id,customer,cents,currency\nsub_1,a@example.com,100,eur\nsub_2,b@example.com,200,eur\n")
        .unwrap();
    let sandbox = Sandbox::builder().require_authorization("Bearer from-the-environment").start().await.unwrap();
    sandbox.fail_next([Fault::answer_lost(), Fault::none(), Fault::redirect(302, "/login").executing()]);

    let first = charged(&sandbox, &journal, &table, "2026-12").await.exits(3);
    first.says("sub_1   a@example.com        100 eur: paid, as a replay tells\n").says("look up sub_2:2026-12, ");
    let again = charged(&sandbox, &journal, &table, "2026-12").await.exits(3);
    again.says("sub_1   a@example.com        100 eur: paid, from the record\n").says("UNKNOWN (unsettled)");
    assert_eq!((sandbox.executions(), sandbox.requests().len()), (2, 3), "the second run sends nothing");

    charged(&sandbox, &journal, &table, "2027-01").await.exits(0).says("2 paid, 0 not paid, 0 unknown\n");
    assert_eq!((sandbox.executions(), sandbox.requests().len()), (4, 5), "another month is another charge");

    std::fs::write(&table, "id,customer,cents,currency\nsub_1,z@example.com,900,eur\n").unwrap();
    let another = charged(&sandbox, &journal, &table, "2027-01").await.exits(0);
    another.says("900 eur: NOT SENT: the operation's id is on record with another request; it was carried out\n");
    assert_eq!(sandbox.requests().len(), 5);
}

/// One run against a server outside of it.
async fn charged(sandbox: &Sandbox, journal: &Path, table: &Path, month: &str) -> Ended {
    let mut bot = example("subscriptions");
    bot.args(["--url", &sandbox.url("/v1/incomes"), "--month", month]).arg("--journal").arg(journal);
    bot.arg("--table").arg(table).env("SUBSCRIPTIONS_TOKEN", "from-the-environment").env("SUBSCRIPTIONS_SECRET", "s");
    tokio::task::spawn_blocking(move || Running::start(&mut bot).end()).await.unwrap()
}

#[test]
fn it_says_how_it_is_used() {
    for arguments in [&["--url", "http://localhost/"][..], &["--twice"], &["--sed", "1"], &["--seed", "x"]] {
        Running::start(example("subscriptions").args(arguments)).end().exits(2).tells("usage: subscriptions");
    }
}

#[test]
fn without_its_journal_it_does_not_begin() {
    let folder = tempfile::tempdir().unwrap();
    let mut bot = example("subscriptions");
    bot.args(["--url", "http://127.0.0.1:9/"]).arg("--journal").arg(folder.path().join("lost.db"));
    Running::start(&mut bot).end().exits(1).tells("subscriptions: ");
}

#[test]
fn the_pages_code_is_the_example_s_and_their_table_is_what_twelve_prints() {
    let source = std::fs::read_to_string(format!("{ROOT}/examples/subscriptions.rs")).unwrap();
    let naive = std::fs::read_to_string(format!("{ROOT}/examples/twelve.rs")).unwrap();
    for (page, language) in [("bots.md", "en"), ("bots.es.md", "es")] {
        let path = format!("{ROOT}/docs/{page}");
        let page = std::fs::read_to_string(&path).unwrap();
        let fresh = || {
            let printed = Running::start(example("twelve").args(["--lang", language])).end().exits(0).stdout;
            filled(&page, |what| match what {
                "twelve" => printed.clone(),
                "loop" => region(&naive, what),
                _ => region(&source, what),
            })
        };
        if std::env::var_os("ONCEKEY_WRITE").is_some() {
            std::fs::write(&path, fresh()).unwrap();
            continue;
        }
        // On a machine under load an answer may be late: then, at last, all but the number of requests is held to.
        let is_fresh = (0..3).any(|_| page == fresh()) || (0..3).any(|_| without_sent(&page) == without_sent(&fresh()));
        assert!(is_fresh, "{path} is stale: run this test with ONCEKEY_WRITE=1. It must be:\n{}", fresh());
        assert_eq!(page.matches("<!-- from: ").count(), 10, "{path}");
    }
}

#[test]
fn the_pages_show_what_the_bot_prints() {
    let printed = Running::start(&mut example("subscriptions")).end().exits(0).stdout;
    for page in ["bots.md", "bots.es.md"] {
        let page = std::fs::read_to_string(format!("{ROOT}/docs/{page}")).unwrap();
        let (_, shown) = page.split_once("<!-- printed -->\n```text\n").unwrap();
        let (shown, _) = shown.split_once("```").unwrap();
        assert!(shown.lines().count() > 5, "{shown}");
        for line in shown.lines() {
            assert!(printed.lines().any(|printed| printed == line), "{line:?} is not in\n{printed}");
        }
    }
}

/// The page, with the columns of requests left out of its table.
fn without_sent(page: &str) -> String {
    let is_row = |line: &str| line.get(..3).is_some_and(|number| number.trim().parse::<u8>().is_ok());
    let is_sent = |column: usize| (44..49).contains(&column) || (74..79).contains(&column);
    let kept = |line: &str| line.chars().enumerate().filter(|(at, _)| !is_sent(*at)).map(|(_, shown)| shown).collect();
    page.lines().map(|line| if is_row(line) { kept(line) } else { line.to_owned() + "\n" }).collect()
}

/// The page, with each block after `<!-- from: what -->` made anew.
fn filled(page: &str, make: impl Fn(&str) -> String) -> String {
    let mut parts = page.split("<!-- from: ");
    let mut fresh = parts.next().unwrap().to_owned();
    for part in parts {
        let (what, rest) = part.split_once(" -->\n").unwrap();
        let (fence, rest) = rest.split_once('\n').unwrap();
        let (_, rest) = rest.split_once("```\n").unwrap();
        write!(fresh, "<!-- from: {what} -->\n{fence}\n{}```\n{rest}", make(what)).unwrap();
    }
    fresh
}

/// What stands between `// [name]` and `// [/name]`, as far to the left as it goes.
fn region(source: &str, name: &str) -> String {
    let (begin, end) = (format!("// [{name}]"), format!("// [/{name}]"));
    let lines: Vec<&str> =
        source.lines().skip_while(|line| line.trim() != begin).skip(1).take_while(|line| line.trim() != end).collect();
    assert!(!lines.is_empty(), "no {begin}");
    let indent = lines.iter().filter(|line| !line.is_empty()).map(|line| line.len() - line.trim_start().len()).min();
    lines.iter().map(|line| format!("{}\n", line.get(indent.unwrap()..).unwrap_or_default())).collect()
}
