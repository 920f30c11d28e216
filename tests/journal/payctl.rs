//! `payctl` as a person runs it.
#![allow(clippy::disallowed_methods, reason = "the waits of other processes")]

use std::process::{Command, Stdio};
use std::time::Duration;

use oncekey::Profile;
use oncekey::sandbox::{Fault, Sandbox};
use serde_json::{Value, json};

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
        self.run_with(&[], arguments).await
    }

    /// With another environment; a name without a value is one that is not there.
    async fn run_with(&self, environment: &[(&str, &str)], arguments: &[&str]) -> Ended {
        let mut payctl = self.payctl(arguments);
        for (name, value) in environment {
            if value.is_empty() {
                payctl.env_remove(name)
            } else {
                payctl.env(name, value)
            };
        }
        ended(move || Running::start(&mut payctl).end()).await
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn home(&self) -> String {
        self.folder.path().to_str().unwrap().to_owned()
    }

    fn headers(&self, name: &str) -> Vec<String> {
        let requests = self.sandbox.requests();
        requests.iter().filter_map(|seen| Some(seen.headers().get(name)?.to_str().unwrap().to_owned())).collect()
    }

    async fn pay(&self, id: &str, more: &[&str]) -> Ended {
        let url = self.sandbox.url("/v1/payments");
        self.run(&[&order(id, "4500", &url), more].concat()).await
    }
}

fn order<'a>(id: &'a str, amount: &'a str, url: &'a str) -> [&'a str; 9] {
    ["pay", "--id", id, "--amount", amount, "--to", "landlord", "--url", url]
}

/// Each line of standard output.
fn objects(ended: &Ended) -> Vec<Value> {
    ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{ended:#?}"))).collect()
}

fn object(ended: &Ended) -> Value {
    let mut objects = objects(ended);
    assert_eq!(objects.len(), 1, "{ended:#?}");
    objects.remove(0)
}

fn fields(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

const COMMANDS: [&str; 9] = ["pay", "list", "show", "resume", "resolve", "abandon", "completion", "man", "sandbox"];

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
    let body: Value = serde_json::from_slice(desk.sandbox.requests()[0].body()).unwrap();
    assert_eq!(body, json!({ "amount": 4500, "to": "landlord", "reference": "rent" }));
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
    desk.run(&["abandon", "rent"]).await.exits(2).tells("cannot be abandoned before it is looked up");

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
async fn a_second_command_says_that_it_waits_for_the_first() {
    let desk = Desk::new().await;
    desk.sandbox.fail_next([Fault::stall_after_executing()]);
    let url = desk.sandbox.url("/v1/payments");
    let running = Running::start(&mut desk.payctl(&order("rent", "4500", &url)));
    desk.sandbox.until(|sandbox| sandbox.executions() == 1).await;
    let second = desk.pay("rent", &["--deadline", "1"]).await.exits(3);
    let lines: Vec<&str> = second.stderr.lines().collect();
    assert_eq!(lines[0], "rent: another process works on it; waiting for its end", "{second:#?}");
    assert!(lines[1].starts_with("Another process works on it. Ask again later"), "{second:#?}");
    let quiet = desk.pay("rent", &["--deadline", "1", "--quiet"]).await.exits(3);
    assert!(!quiet.stderr.contains("waiting"), "{quiet:#?}");
    running.signal("INT");
    ended(move || running.end()).await.exits(3);
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

/// What docs/cli.md promises: these names, for good.
#[tokio::test]
async fn each_result_is_a_line_of_json() {
    const PAYMENT: [&str; 10] =
        ["answer", "attempts", "effect", "id", "key", "kind", "replay", "resume_at", "status", "type"];
    const RECORD: [&str; 10] =
        ["created_at", "effect", "id", "key", "key_expires_at", "resume_at", "state", "status", "tries", "type"];
    let desk = Desk::new().await;
    desk.sandbox.fail_next([Fault::answer_lost().times(2)]);
    let unknown = desk.pay("rent", &["--attempts", "2", "--json"]).await.exits(3).tells("`payctl resume rent`");
    let key = desk.sandbox.requests()[0].key().unwrap().to_owned();
    let told = object(&unknown);
    assert_eq!(fields(&told), PAYMENT);
    assert_eq!(
        (&told["type"], &told["id"], &told["effect"], &told["kind"], &told["key"]),
        (&json!("payment"), &json!("rent"), &json!("unknown"), &json!("exhausted"), &json!(key[..8]))
    );
    assert_eq!((&told["status"], &told["answer"], &told["replay"]), (&Value::Null, &Value::Null, &json!(false)));
    let attempts = told["attempts"].as_array().unwrap();
    let kinds: Vec<_> = attempts.iter().map(|attempt| (&attempt["number"], &attempt["failure"])).collect();
    assert_eq!(kinds, [(&json!(1), &json!("broken")), (&json!(2), &json!("broken"))]);
    assert!(told["resume_at"].as_str().unwrap().ends_with('Z'), "{told}");

    let listed = object(&desk.run(&["list", "--json"]).await.exits(0));
    assert_eq!(fields(&listed), RECORD);
    assert_eq!(
        (&listed["type"], &listed["state"], &listed["effect"], &listed["tries"], &listed["resume_at"]),
        (&json!("record"), &json!("unfinished"), &json!("unknown"), &json!(2), &told["resume_at"])
    );

    let resumed = desk.run(&["--json", "resume", "rent"]).await.exits(0);
    let paid = object(&resumed);
    assert_eq!(fields(&paid), PAYMENT);
    assert_eq!((&paid["effect"], &paid["kind"], &paid["status"]), (&json!("applied"), &Value::Null, &json!(201)));
    assert_eq!((&paid["replay"], &paid["attempts"][0]["number"]), (&json!(true), &json!(3)));
    assert_eq!(paid["answer"], json!({ "id": "pay_1", "status": "captured", "amount": 4500 }));
    let again = object(&desk.pay("rent", &["--json"]).await.exits(0));
    assert_eq!((&again["attempts"], &again["answer"]), (&json!([]), &paid["answer"]));

    let shown = object(&desk.run(&["show", "rent", "--json"]).await.exits(0));
    let mut whole = [&RECORD[..], &["answer", "entries", "method", "url"]].concat();
    whole.sort_unstable();
    assert_eq!(fields(&shown), whole);
    assert_eq!((&shown["state"], &shown["method"]), (&json!("settled"), &json!("POST")));
    assert_eq!((&shown["answer"], &shown["entries"][0]["entry"]), (&paid["answer"], &json!("created")));
    assert!(!format!("{unknown:?}{resumed:?}{shown}{listed}").contains(&key), "keys are cut short");
}

#[tokio::test]
async fn problems_and_answers_of_any_kind_are_json_too() {
    let desk = Desk::new().await;
    let problem = |ended: &Ended| {
        let problem = object(ended);
        assert_eq!(fields(&problem), ["effect", "id", "kind", "message", "type"]);
        assert_eq!(problem["type"], json!("error"));
        assert!(
            ended.stderr.contains(problem["message"].as_str().unwrap().trim_start_matches("error: ")),
            "{ended:#?}"
        );
        problem["kind"].as_str().unwrap().to_owned()
    };
    // Every digit is kept, and one line is one line.
    let body = "{\n  \"code\": \"DECLINED\",\n\t\"left\": 12345678901234567890.10\n}\n";
    desk.sandbox.fail_next([Fault::status(402).json(body)]);
    let refused = desk
        .pay("one", &["--json"])
        .await
        .exits(1)
        .says(r#""answer":{  "code": "DECLINED","left": 12345678901234567890.10}"#);
    assert_eq!(object(&refused)["effect"], json!("not_applied"));
    desk.sandbox.fail_next([Fault::status(402).body("text/plain", "no\u{9b}31m\nmoney")]);
    let refused = desk.pay("two", &["--json"]).await.exits(1);
    assert_eq!(object(&refused)["answer"], json!("no\u{9b}31m\nmoney"));
    assert!(!refused.stdout.contains('\u{9b}'), "it could steer a terminal");

    assert_eq!(problem(&desk.run(&["show", "nobody", "--json"]).await.exits(2)), "missing");
    assert_eq!(problem(&desk.run(&["--json", "pay", "--id"]).await.exits(2)), "usage");
    assert_eq!(problem(&desk.run(&["list", "--json", "--journal", "elsewhere.db"]).await.exits(2)), "journal");
    desk.pay("rent", &[]).await.exits(0);
    let url = desk.sandbox.url("/v1/payments");
    let another = desk.run(&[&order("rent", "1", &url)[..], &["--json"]].concat()).await.exits(2);
    assert_eq!((problem(&another), &object(&another)["effect"]), ("mismatch".to_owned(), &json!("applied")));
    let found = ["resolve", "rent", "--effect", "not-applied", "--by", "ana", "--note", "gone", "--json"];
    assert_eq!(object(&desk.run(&found).await.exits(2))["id"], json!("rent"));
    let given_up = object(&desk.run(&["abandon", "one", "--json"]).await.exits(0));
    assert_eq!((&given_up["state"], &given_up["effect"]), (&json!("settled"), &json!("not_applied")));
    assert_eq!(desk.run(&["list", "--json", "--account", "other"]).await.exits(0).stdout, "");
}

#[tokio::test]
#[cfg(unix)]
async fn stopped_it_is_json_with_the_attempts_that_ended() {
    let desk = Desk::new().await;
    desk.sandbox.fail_next([Fault::status(503), Fault::stall_after_executing()]);
    let url = desk.sandbox.url("/v1/payments");
    let running = Running::start(&mut desk.payctl(&[&order("rent", "4500", &url)[..], &["--json"]].concat()));
    desk.sandbox.until(|sandbox| sandbox.executions() == 1).await;
    running.signal("INT");
    let told = object(&ended(move || running.end()).await.exits(3));
    assert_eq!((&told["effect"], &told["kind"]), (&json!("unknown"), &json!("stopped")));
    let attempts = told["attempts"].as_array().unwrap();
    assert_eq!((attempts.len(), &attempts[0]["status"]), (1, &json!(503)));
    for id in ["a", "b"] {
        desk.sandbox.fail_next([Fault::answer_lost()]);
        desk.pay(id, &["--attempts", "1"]).await.exits(3);
    }
    tokio::time::sleep(Duration::from_millis(500)).await; // the longest first delay
    let all = objects(&desk.run(&["resume", "--all", "--json"]).await.exits(0));
    let mut ids: Vec<_> =
        all.iter().map(|one| (one["id"].as_str().unwrap(), one["effect"].as_str().unwrap())).collect();
    ids.sort_unstable();
    assert_eq!(ids, [("a", "applied"), ("b", "applied"), ("rent", "applied")]);
}

/// In a pipe: a line for each attempt but the last, also for one too short for whoever looks at the
/// record from time to time.
#[tokio::test]
async fn progress_is_what_the_events_tell() {
    let desk = Desk::new().await;
    desk.sandbox.fail_next([Fault::answer_lost().times(2), Fault::status(503).retry_after("1"), Fault::in_progress()]);
    let paid = desk.pay("rent", &["--json"]).await.exits(0);
    let told = object(&paid);
    let attempts = told["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 5);
    assert_eq!(attempts[2]["retry_after_ms"], json!(1000));
    let lines: Vec<&str> = paid.stderr.lines().collect();
    let readings = ["in doubt, no answer", "in doubt, no answer", "503, in doubt, server error", "409, in progress"];
    assert_eq!(lines.len(), readings.len(), "{paid:#?}");
    for ((line, reading), attempt) in lines.iter().zip(readings).zip(attempts) {
        assert!(line.starts_with(&format!("rent: attempt {}: {reading}", attempt["number"])), "{paid:#?}");
        let wait = Duration::from_millis(attempt["wait_ms"].as_u64().unwrap()).as_secs_f64();
        // Chance may leave nothing to be waited for.
        let next = line.rsplit_once("; next ").unwrap().1.trim_start_matches("in ").trim_end_matches('s');
        let shown: f64 = if next == "at once" { 0.0 } else { next.parse().unwrap() };
        let asked = attempt["retry_after_ms"].as_u64().map_or(0.0, |ms| Duration::from_millis(ms).as_secs_f64());
        assert!(shown >= asked, "what the server asked for: {line}");
        // A busy machine wakes up later than it was told to.
        assert!(shown < wait + 0.06, "{line}: {wait}");
    }
    desk.sandbox.fail_next([Fault::status(503)]);
    assert_eq!(desk.pay("food", &["--quiet"]).await.exits(0).stderr, "");
}

/// `script` gives it a terminal.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn on_a_terminal_progress_is_a_line_that_is_gone_at_the_end() {
    let desk = Desk::new().await;
    let program = desk.payctl(&[]).get_program().to_str().unwrap().to_owned();
    let command =
        format!("{program} pay --id rent --amount 4500 --to landlord --url {}", desk.sandbox.url("/v1/payments"));
    if Command::new("script").arg("--version").output().is_err() {
        return; // there is no terminal to be had
    }
    let run = async |command: String| {
        let mut script = Command::new("script");
        script.args(["-qec", &command, "/dev/null"]).current_dir(desk.folder.path()).env("TERM", "xterm");
        let payctl = desk.payctl(&[]);
        script.envs(payctl.get_envs().filter_map(|(name, value)| Some((name, value?))));
        script.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        ended(move || Running::start(&mut script).end()).await
    };
    desk.sandbox.fail_next([Fault::status(503).retry_after("1")]);
    let shown = run(command.clone()).await.exits(0);
    assert!(shown.stdout.contains("rent: attempt 1 under way"), "{shown:#?}");
    assert!(shown.stdout.contains("rent: attempt 1: 503, in doubt, server error; next in 1."), "{shown:#?}");
    let last = shown.stdout.rsplit('\r').find(|part| part.contains("applied")).unwrap();
    assert!(last.starts_with("\u{1b}[2Krent: applied, 201, at attempt 2"), "the line is erased first: {shown:#?}");
    desk.sandbox.fail_next([Fault::status(503)]);
    let quiet = run(command.replace("rent", "food") + " -q").await.exits(0);
    assert!(!quiet.stdout.contains("attempt 1") && !quiet.stdout.contains('\u{1b}'), "{quiet:#?}");
}

#[tokio::test]
async fn arguments_are_over_the_environment_and_that_over_the_configuration() {
    let desk = Desk::new().await;
    let url = desk.sandbox.url("/v1/payments");
    let settings = format!(
        "# beside this file\njournal = \"book.db\"\nprofile = \"acme.toml\"\naccount = \"filed\"\nurl = \"{url}\"\nattempts = 1\n"
    );
    desk.write("xdg/payctl.toml", &settings);
    desk.write("xdg/acme.toml", "id = \"acme\"\n");
    desk.write(".config/payctl.toml", "journal = \"home.db\"\n");
    desk.write("typed.toml", "journal = \"typed.db\"\n");
    let home = desk.home();
    let xdg = format!("{home}/xdg");
    let at = |more: &[(&'static str, &'static str)]| {
        let mut environment = vec![("PAYCTL_JOURNAL", ""), ("HOME", ""), ("XDG_CONFIG_HOME", "")];
        environment.extend(more.iter().filter(|(name, _)| !name.is_empty()));
        environment
    };
    let mut usual = at(&[]);
    usual[1].1 = &home;
    // Which file is read.
    desk.run_with(&usual, &["list"]).await.exits(2).tells(&format!("no journal at {home}/.config/home.db"));
    usual[2].1 = &xdg;
    desk.run_with(&usual, &["list"]).await.exits(2).tells(&format!("no journal at {xdg}/book.db"));
    let with = |more: &[(&'static str, &'static str)]| [&usual[..], more].concat();
    desk.run_with(&with(&[("PAYCTL_CONFIG", "typed.toml")]), &["list"]).await.exits(2).tells("no journal at typed.db");
    desk.run_with(&with(&[("PAYCTL_CONFIG", "absent.toml")]), &["list", "--config", "typed.toml"])
        .await
        .exits(2)
        .tells("no journal at typed.db");
    desk.run_with(&with(&[("PAYCTL_CONFIG", "absent.toml")]), &["list"]).await.exits(2).tells("absent.toml: ");
    desk.run_with(&at(&[]), &["list"]).await.exits(2).tells("no journal at payctl.db");
    // Journal.
    desk.run_with(&with(&[("PAYCTL_JOURNAL", "env.db")]), &["list"]).await.exits(2).tells("no journal at env.db");
    desk.run_with(&with(&[("PAYCTL_JOURNAL", "env.db")]), &["list", "--journal", "arg.db"])
        .await
        .exits(2)
        .tells("no journal at arg.db");
    // Account and profile.
    let pay = ["pay", "--create", "--amount", "1", "--to", "me", "--id"];
    let list = |found: Ended| found.exits(0).stderr.lines().next().unwrap().to_owned();
    desk.run_with(&usual, &[&pay[..], &["one"]].concat()).await.exits(0);
    assert!(list(desk.run_with(&usual, &["list"]).await).contains("profile acme, account filed"));
    let environment = with(&[("PAYCTL_ACCOUNT", "env"), ("PAYCTL_PROFILE", "toss")]);
    assert!(list(desk.run_with(&environment, &["list"]).await).contains("profile toss, account env"));
    let typed = ["list", "--account", "arg", "--profile", "verifika"];
    assert!(list(desk.run_with(&environment, &typed).await).contains("profile verifika, account arg"));
    // Attempts: how many are sent.
    for (environment, more, sent) in [
        (with(&[]), &["two"][..], 1),
        (with(&[("PAYCTL_ATTEMPTS", "2")]), &["three"][..], 2),
        (with(&[("PAYCTL_ATTEMPTS", "2")]), &["four", "--attempts", "1"][..], 1),
    ] {
        let before = desk.sandbox.requests().len();
        desk.sandbox.fail_next([Fault::answer_lost().times(sent)]);
        desk.run_with(&environment, &[&pay[..], more].concat()).await.exits(3);
        assert_eq!(desk.sandbox.requests().len() - before, sent, "{more:?}");
    }
    // Where to.
    let elsewhere = format!("{}?by=env", desk.sandbox.url("/env"));
    let mut environment = with(&[]);
    environment.push(("PAYCTL_URL", &elsewhere));
    desk.run_with(&environment, &[&pay[..], &["five"]].concat()).await.exits(0);
    let third = desk.sandbox.url("/arg");
    desk.run_with(&environment, &[&pay[..], &["six", "--url", &third]].concat()).await.exits(0);
    let seen: Vec<String> = desk.sandbox.requests().iter().rev().take(2).map(|seen| seen.path().to_owned()).collect();
    assert_eq!((seen[0].as_str(), seen[1].starts_with("/env")), ("/arg", true), "{seen:?}");
    desk.run_with(&at(&[]), &[&pay[..], &["six"]].concat()).await.exits(2).tells("where to?");
}

#[tokio::test]
async fn times_come_from_the_configuration_too() {
    let desk = Desk::new().await;
    desk.write("payctl.toml", "attempt_timeout = 30\ndeadline = 18\n");
    let environment = [("PAYCTL_CONFIG", "payctl.toml")];
    desk.sandbox.fail_next([Fault::status(503).retry_after("20")]);
    let url = desk.sandbox.url("/v1/payments");
    desk.run_with(&environment, &order("rent", "1", &url)).await.exits(3);
    let shown = desk.run(&["show", "rent"]).await.exits(0);
    let left = shown.stdout.split("begins, for ").nth(1).and_then(|rest| rest.split("s at most").next()).unwrap();
    assert!((10..=18).contains(&left.parse::<u32>().unwrap()), "what is left of the deadline: {shown:#?}");
    desk.run_with(&environment, &[&order("food", "1", &url)[..], &["--deadline", "90"]].concat()).await.exits(0);
    desk.run(&["show", "food"]).await.exits(0).says("begins, for 30s at most");
}

#[tokio::test]
async fn what_is_wrong_in_a_configuration_is_named_with_line_and_field() {
    let desk = Desk::new().await;
    desk.write("bad.toml", "id = \"bad\"\nspeed = 9\n");
    for (text, line, problem) in [
        ("account = \"a\"\njurnal = \"x.db\"\n", "line 2, `jurnal`: ", "expected one of `journal`, `profile`"),
        ("attempts = 0\n", "line 1, `attempts`: ", "at least 1"),
        ("\nattempts = -1\n", "line 2, `attempts`: ", "another type of value, expected u32"),
        ("\n\ndeadline = \"tok-never-to-be-seen\"\n", "line 3, `deadline`: ", "another type of value, expected u64"),
        ("attempt_timeout = 90000\n", "line 1, `attempt_timeout`: ", "1 to 86400 seconds"),
        ("url = \"ftp://host/\"\n", "line 1, `url`: ", "http:// or https://"),
        ("url = \"https://me:tok-never-to-be-seen@host/\"\n", "line 1, `url`: ", "PAYCTL_TOKEN"),
        ("account = 1\naccount = 2\n", "line 2, `account`: ", "duplicate key"),
        (
            "profile = \"stripe\"\n",
            "line 1, `profile`: ",
            "no profile `stripe`: there is no such file, and the presets are generic, ",
        ),
        ("profile = \"bad.toml\"\n", "line 1, `profile`: ", "bad.toml, line 2, `speed`: unknown field"),
        ("token = \"tok-never-to-be-seen\"\n", "line 1, `token`: ", "name its file with `token_file`"),
        ("tok-never-to-be-seen\n", "line 1: ", "expected `=`"),
        ("account = \"tok-never-to-be-seen\n", "line 1, `account`: ", "invalid basic string"),
    ] {
        desk.write("payctl.toml", text);
        let told = desk.run(&["list", "--config", "payctl.toml"]).await.exits(2).tells(problem);
        assert!(told.stderr.starts_with(&format!("payctl: payctl.toml, {line}")), "{told:#?}");
        assert_eq!(told.stderr.lines().count(), 1, "{told:#?}");
    }
    desk.run(&["list", "--profile", "bad.toml"]).await.exits(2).tells("the profile bad.toml, line 2, `speed`");
}

#[tokio::test]
async fn every_preset_can_be_selected() {
    let desk = Desk::new().await;
    for preset in Profile::presets() {
        let id = preset.id();
        desk.run(&["list", "--profile", id]).await.exits(0).tells(&format!("profile {id}, no account"));
    }
}

#[tokio::test]
#[cfg(unix)]
async fn a_token_comes_from_the_environment_or_from_a_file_of_ones_own() {
    use std::os::unix::fs::PermissionsExt;

    let desk = Desk::new().await;
    let url = desk.sandbox.url("/v1/payments");
    desk.write("conf/payctl.toml", "token_file = \"token\"\n");
    desk.write("conf/token", &format!("{TOKEN}\n"));
    let token = desk.folder.path().join("conf/token");
    let set_mode = |mode| std::fs::set_permissions(&token, std::fs::Permissions::from_mode(mode)).unwrap();
    let filed = [("PAYCTL_TOKEN", ""), ("PAYCTL_CONFIG", "conf/payctl.toml")];
    for mode in [0o644, 0o640, 0o604, 0o620] {
        set_mode(mode);
        desk.run_with(&filed, &order("rent", "1", &url)).await.exits(2).tells("`chmod 600` it").tells("conf/token");
    }
    set_mode(0o600);
    desk.run_with(&filed, &[&order("rent", "1", &url)[..], &["--json"]].concat()).await.exits(0);
    desk.sandbox.fail_next([Fault::answer_lost()]);
    desk.run_with(&filed, &[&order("food", "1", &url)[..], &["--attempts", "1"]].concat()).await.exits(3);
    desk.run_with(&filed, &["show", "food"]).await.exits(0);
    desk.run_with(&filed, &["resume", "food", "--json"]).await.exits(0);
    assert_eq!(desk.headers("authorization"), vec![format!("Bearer {TOKEN}"); 3]);
    for text in ["", "\n", &format!("{TOKEN}\nmore\n"), &TOKEN.repeat(1000)] {
        desk.write("conf/token", text);
        desk.run_with(&filed, &["list"]).await.exits(2).tells("token_file conf/token: it ");
    }
    desk.run(&["list", "--config", "conf/payctl.toml"]).await.exits(0);
    std::fs::remove_file(&token).unwrap();
    desk.run_with(&filed, &["list"]).await.exits(2).tells("token_file conf/token: No such file");
    let other = [("PAYCTL_TOKEN", "other"), ("PAYCTL_CONFIG", "conf/payctl.toml")];
    desk.run_with(&other, &[&order("tax", "1", &url)[..], &["--attempts", "1"]].concat()).await.exits(1);
    assert_eq!(desk.headers("authorization").last().unwrap(), "Bearer other");
    for flag in ["--token", "--token=x", "--password"] {
        desk.run(&[flag, "list"]).await.exits(2).tells("unexpected argument");
    }
    desk.run(&["--help"]).await.exits(0).says("PAYCTL_TOKEN");
    let mut files = vec![desk.folder.path().to_owned()];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.windows(TOKEN.len()).any(|part| part == TOKEN.as_bytes()), "{path:?}");
    }
}

#[tokio::test]
async fn completion_and_manual_know_every_command() {
    let desk = Desk::new().await;
    for shell in ["bash", "zsh", "fish"] {
        let script = desk.run(&["completion", shell]).await.exits(0);
        for command in COMMANDS {
            assert!(script.stdout.contains(command), "{shell}: {command}");
        }
        for word in ["--json", "--config", "verifika", "not-applied", "fiber"] {
            assert!(script.stdout.contains(word.trim_start_matches("--")), "{shell}: {word}");
        }
        assert_eq!(script.stderr, "");
    }
    desk.run(&["completion", "tcsh"]).await.exits(2).tells("[possible values: bash, zsh, fish]");
    let page = desk.run(&["man"]).await.exits(0).says(".TH payctl 1").says("Exit codes").says("PAYCTL_TOKEN");
    for command in COMMANDS {
        assert!(page.stdout.contains(&format!("payctl\\-{command}(1)")), "{command}: {}", page.stdout);
        desk.run(&["man", command]).await.exits(0).says(&format!(".TH payctl-{command} 1"));
    }
    desk.run(&["man", "fly"]).await.exits(2).tells("there is no command fly");
    desk.run_with(&[("PAYCTL_CONFIG", "absent.toml")], &["man"]).await.exits(0);
}
