//! `payctl` as a person runs it.
#![allow(clippy::disallowed_methods, reason = "the waits of other processes")]

use std::process::Command;
use std::time::Duration;

use oncekey::sandbox::{Fault, Sandbox};

use crate::programs::{Ended, Running, example};
use crate::support::Folder;

const TOKEN: &str = "tok-never-to-be-seen";

struct Desk {
    folder: Folder,
    sandbox: Sandbox,
}

impl Desk {
    async fn new() -> Self {
        let sandbox = Sandbox::builder().require_authorization(format!("Bearer {TOKEN}")).start().await.unwrap();
        let folder = Folder::new();
        drop(folder.journal().await);
        Self { folder, sandbox }
    }

    fn payctl(&self, arguments: &[&str]) -> Command {
        let mut payctl = example("payctl");
        payctl.args(arguments).current_dir(self.folder.path());
        payctl.env("PAYCTL_TOKEN", TOKEN).env("PAYCTL_JOURNAL", "payments.db");
        payctl
    }

    async fn run(&self, arguments: &[&str]) -> Ended {
        let mut payctl = self.payctl(arguments);
        ended(move || Running::start(&mut payctl).end()).await
    }

    async fn pay(&self, id: &str, more: &[&str]) -> Ended {
        let url = self.sandbox.url("/v1/payments");
        self.run(&[&order(id, "4500", &url), more].concat()).await
    }
}

fn order<'a>(id: &'a str, amount: &'a str, url: &'a str) -> [&'a str; 9] {
    ["pay", "--id", id, "--amount", amount, "--to", "landlord", "--url", url]
}

/// The sandbox goes on meanwhile.
async fn ended(wait: impl FnOnce() -> Ended + Send + 'static) -> Ended {
    let ended = tokio::task::spawn_blocking(wait).await.unwrap();
    assert!(!format!("{ended:?}").contains(TOKEN), "{ended:#?}");
    ended
}

#[tokio::test]
async fn a_payment_is_made_once() {
    let desk = Desk::new().await;
    let first = desk.pay("rent", &[]).await.exits(0);
    assert_eq!(first.stdout, "rent: applied, 201\n{\"id\":\"pay_1\",\"status\":\"captured\",\"amount\":4500}\n");
    assert_eq!(first.stderr, "");
    desk.pay("rent", &[]).await.exits(0).says("rent: applied, 201, from the record\n{\"id\":\"pay_1\"");
    desk.pay("rent", &["--profile", "stripe-v1"]).await.exits(2).tells("another profile or account");
    let url = desk.sandbox.url("/v1/payments");
    desk.run(&order("rent", "1", &url)).await.exits(2).tells("on record with another request; see `payctl show rent`");
    assert_eq!((desk.sandbox.executions(), desk.sandbox.requests().len()), (1, 1));
    let body: serde_json::Value = serde_json::from_slice(desk.sandbox.requests()[0].body()).unwrap();
    assert_eq!(body, serde_json::json!({ "amount": 4500, "to": "landlord", "reference": "rent" }));
}

#[tokio::test]
async fn a_refusal_is_not_applied() {
    let desk = Desk::new().await;
    desk.sandbox.fail_next([Fault::status(402).json(r#"{"code":"DECLINED"}"#)]);
    let refused = desk.pay("rent", &[]).await.exits(1).tells("Nothing was paid");
    assert_eq!(
        refused.stdout,
        "rent: not applied, the server refused it (last answer: 402)\n{\"code\":\"DECLINED\"}\n"
    );
    desk.run(&["abandon", "rent"]).await.exits(0);
    desk.pay("rent", &[]).await.exits(1).tells("use another --id");
    desk.run(&["show", "rent"]).await.exits(0).says("settled as not applied by abandoned");
    assert_eq!(desk.sandbox.executions(), 0);
}

#[tokio::test]
async fn a_command_that_is_wrong_sends_nothing() {
    let desk = Desk::new().await;
    desk.run(&[]).await.exits(2).tells("Usage: payctl");
    desk.run(&["pay", "--id", "rent"]).await.exits(2).tells("--amount");
    desk.run(&["resume"]).await.exits(2).tells("<ID|--all>");
    desk.pay("rent", &["--attempts", "0"]).await.exits(2);
    desk.pay(" rent", &[]).await.exits(2).tells("space at an end");
    desk.run(&["pay", "--id", "a", "--amount", "1", "--to", "b", "--url", "https://me:pw@host/"])
        .await
        .exits(2)
        .tells("PAYCTL_TOKEN");
    desk.run(&["show", "nobody"]).await.exits(2).tells("no payment nobody is on record");
    desk.run(&["resume", "nobody"]).await.exits(2).tells("no payment nobody is on record");
    desk.run(&["list", "--journal", "elsewhere.db"])
        .await
        .exits(2)
        .tells("no journal at elsewhere.db")
        .tells("--create");
    assert!(!desk.folder.path().join("elsewhere.db").exists());
    let mut broken = desk.payctl(&["list"]);
    broken.env("PAYCTL_TOKEN", format!("{TOKEN}\nmore"));
    ended(move || Running::start(&mut broken).end()).await.exits(2).tells("PAYCTL_TOKEN holds");
    assert_eq!(desk.sandbox.requests().len(), 0);
}

#[tokio::test]
async fn what_ends_in_doubt_is_listed_shown_and_resumed() {
    let desk = Desk::new().await;
    desk.sandbox.fail_next([Fault::answer_lost().times(2)]);
    let unknown = desk
        .pay("rent", &["--attempts", "2"])
        .await
        .exits(3)
        .tells("never pay it under another id")
        .tells("`payctl resume rent`");
    assert_eq!(unknown.stdout, "rent: unknown, all attempts failed\n");
    let key = desk.sandbox.requests()[0].key().unwrap().to_owned();

    let list = desk
        .run(&["list"])
        .await
        .exits(0)
        .says("rent  unfinished  unknown")
        .says(&key[..8])
        .says("in doubt, no answer");
    assert!(!list.stdout.contains(&key), "a list has short keys: {list:#?}");
    desk.run(&["list", "--account", "other"]).await.exits(0).tells("account other");
    let show = desk
        .run(&["show", "rent"])
        .await
        .exits(0)
        .says(&key)
        .says("attempt 2 (retry) begins")
        .says("all attempts were used");
    assert!(show.stdout.starts_with("rent: unknown, unfinished\n"), "{show:#?}");
    desk.run(&["abandon", "rent"]).await.exits(2).tells("may have been carried out");

    desk.run(&["resume", "rent"]).await.exits(0).says("rent: applied, 201, at attempt 3, a replay");
    desk.run(&["list"]).await.exits(0).tells("Nothing unfinished, nothing in doubt");
    desk.run(&["resume", "--all"]).await.exits(0).tells("Nothing to resume");
    let refused = ["resolve", "rent", "--effect", "not-applied", "--by", "ana", "--note", "gone"];
    desk.run(&refused).await.exits(2).tells("its answer is on record");
    assert_eq!(desk.sandbox.executions(), 1);
}

/// Whoever reads the output may be gone, and the full disk is not the payment's.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn output_that_goes_nowhere_does_not_change_the_exit() {
    let desk = Desk::new().await;
    let url = desk.sandbox.url("/v1/payments");
    let mut pay = desk.payctl(&order("rent", "4500", &url));
    let nowhere = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let status = tokio::task::spawn_blocking(move || pay.stdout(nowhere()).stderr(nowhere()).status()).await.unwrap();
    assert_eq!(status.unwrap().code(), Some(0));
    assert_eq!(desk.sandbox.executions(), 1);
}

#[tokio::test]
async fn all_are_resumed_that_may_be_and_the_rest_is_settled_by_hand() {
    let desk = Desk::new().await;
    for id in ["one", "two"] {
        desk.sandbox.fail_next([Fault::answer_lost()]);
        desk.pay(id, &["--attempts", "1"]).await.exits(3);
    }
    // A redirect settles nothing, and is never followed.
    desk.sandbox.fail_next([Fault::redirect(307, "/elsewhere")]);
    desk.pay("three", &[])
        .await
        .exits(3)
        .tells("must not be sent again")
        .tells("payctl resolve three --effect applied|not-applied");
    tokio::time::sleep(Duration::from_millis(500)).await; // the longest first delay
    let all = desk.run(&["resume", "--all"]).await.exits(3).says("one: applied, 201\n").says("two: applied, 201\n");
    assert!(all.stderr.contains("1 payment in doubt"), "{all:#?}");
    desk.run(&["list"]).await.says("three  in doubt  unknown").says("resolve");
    let found = ["resolve", "three", "--effect", "not-applied", "--by", "ana", "--note", "not in the statement"];
    desk.run(&found).await.exits(0);
    desk.run(&["show", "three"]).await.says("settled as not applied by ana: not in the statement");
    desk.run(&["resume", "--all"]).await.exits(0);
    desk.pay("three", &[]).await.exits(1);
    assert_eq!(desk.sandbox.executions(), 2);
}

#[tokio::test]
#[cfg(unix)]
async fn stopped_in_the_middle_it_says_the_truth_and_can_be_resumed() {
    let desk = Desk::new().await;
    desk.sandbox.fail_next([Fault::stall_after_executing()]);
    let url = desk.sandbox.url("/v1/payments");
    let mut pay = desk.payctl(&order("rent", "4500", &url));
    let running = Running::start(&mut pay);
    desk.sandbox.until(|sandbox| sandbox.executions() == 1).await;
    desk.run(&["show", "rent"]).await.exits(0).says("rent: unknown, being worked on");
    running.signal("INT");
    let stopped = ended(move || running.end()).await.exits(3).tells("Go on with it: `payctl resume rent`");
    assert_eq!(stopped.stdout, "rent: unknown, stopped after 1 attempt\n");
    desk.run(&["resume", "rent"]).await.exits(0).says("rent: applied, 201, at attempt 2, a replay");
    desk.run(&["show", "rent"]).await.exits(0).says("nobody saw attempt 1 end");
    assert_eq!(desk.sandbox.executions(), 1);
}

#[tokio::test]
#[cfg(unix)]
async fn stopped_while_all_are_resumed_it_counts_what_is_left() {
    let desk = Desk::new().await;
    for id in ["one", "two", "three"] {
        desk.sandbox.fail_next([Fault::answer_lost()]);
        desk.pay(id, &["--attempts", "1"]).await.exits(3);
    }
    tokio::time::sleep(Duration::from_millis(500)).await; // the longest first delay
    // What was refused in doubt stays unknown.
    desk.sandbox.fail_next([Fault::status(402)]);
    desk.run(&["resume", "one"]).await.exits(3).tells("Correct what it was refused for, then go on with it");
    desk.sandbox.fail_next([Fault::stall_before_executing().times(3)]);
    let running = Running::start(&mut desk.payctl(&["resume", "--all"]));
    desk.sandbox.until(|sandbox| sandbox.requests().len() == 7).await;
    running.signal("INT");
    ended(move || running.end()).await.exits(3).tells("Stopped.\n3 payments left unfinished: see `payctl list`");
    desk.run(&["resume", "--all"]).await.exits(0).says("three: applied, 201\n");
    assert_eq!(desk.sandbox.executions(), 3);
    for file in std::fs::read_dir(desk.folder.path()).unwrap().flatten().filter(|file| file.path().is_file()) {
        let bytes = std::fs::read(file.path()).unwrap();
        assert!(!bytes.windows(TOKEN.len()).any(|part| part == TOKEN.as_bytes()), "{:?}", file.path());
    }
}

#[tokio::test]
#[cfg(unix)]
async fn stopped_before_anything_was_sent_it_is_not_applied() {
    let desk = Desk::new().await;
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/v1/payments");
    let mut pay = desk.payctl(&order("rent", "4500", &url));
    let running = Running::start(&mut pay);
    tokio::time::sleep(Duration::from_secs(1)).await; // a dozen attempts take minutes
    running.signal("TERM");
    ended(move || running.end()).await.exits(1).says("rent: not applied, stopped").tells("`payctl abandon rent`");
    desk.run(&["list"]).await.exits(0).says("rent  unfinished  not applied").says("not sent, no connection");
    desk.run(&["abandon", "rent"]).await.exits(0);
    desk.run(&["list"]).await.exits(0).tells("Nothing unfinished");
}
