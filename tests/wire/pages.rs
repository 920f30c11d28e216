//! The pages for harness authors: their programs are those under test, their
//! commands are run, and what they show is what comes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use oncekey::engine::Why;
use oncekey::{Attempt, IdempotencyKey, Profile};

use crate::*;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

pub(crate) fn page(name: &str) -> String {
    std::fs::read_to_string(format!("{ROOT}/docs/{name}")).unwrap()
}

/// The code blocks of that language.
pub(crate) fn blocks(page: &str, language: &str) -> Vec<String> {
    let (fence, mut found, mut open) = (format!("```{language}"), Vec::new(), None::<String>);
    for line in page.lines() {
        match &mut open {
            None if line == fence => open = Some(String::new()),
            None => {}
            Some(block) if line == "```" => {
                found.push(std::mem::take(block));
                open = None;
            }
            Some(block) => {
                block.push_str(line);
                block.push('\n');
            }
        }
    }
    found
}

/// The parts of a test file that a page shows, without what a module indents
/// and hides.
fn shown(file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(format!("{ROOT}/tests/wire/{file}")).unwrap();
    let (mut found, mut open) = (Vec::new(), None::<(usize, String)>);
    for line in text.lines() {
        match (&mut open, line.trim()) {
            (None, "// page") => open = Some((line.len() - line.trim_start().len(), String::new())),
            (None, _) => {}
            (Some((_, block)), "// end") => {
                found.push(std::mem::take(block));
                open = None;
            }
            (Some((indent, block)), _) => {
                block.push_str(&line.get(*indent..).unwrap_or_default().replace("pub(super) ", ""));
                block.push('\n');
            }
        }
    }
    found
}

/// Without what differs from run to run: keys drawn at random, ports, process
/// ids, and all that the table of attempts shows of time.
pub(crate) fn masked(text: &str) -> String {
    let (mut out, mut in_table) = (String::new(), false);
    for line in text.lines() {
        in_table = line.starts_with(" # kind") || (in_table && !line.is_empty());
        let line = if in_table { line.get(..TIMELESS).unwrap_or(line).trim_end() } else { line };
        let key = |word: &str| word.strip_suffix('…').is_some_and(|key| key.len() == 8);
        let words = line.split(' ').map(|word| if key(word) { "00000000…" } else { word });
        out.push_str(&after(&words.collect::<Vec<_>>().join(" "), &["_ms\":", "127.0.0.1:", "\"pid\":"]));
        out.push('\n');
    }
    out
}

/// The columns of the table of attempts before its times.
const TIMELESS: usize = 47;

/// The numbers after these become a zero.
fn after(line: &str, marks: &[&str]) -> String {
    marks.iter().fold(line.to_owned(), |line, mark| {
        let mut parts = line.split(mark);
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |out, part| format!("{out}{mark}0{}", part.trim_start_matches(|c: char| c.is_ascii_digit())))
    })
}

/// The example `sandbox`, ended by its own process id when dropped.
struct Process {
    child: Child,
    line: String,
}

fn example() -> std::path::PathBuf {
    let path = std::env::current_exe().unwrap().with_file_name("").join("../examples/sandbox");
    assert!(path.exists(), "build it first: cargo build --example sandbox --features sandbox");
    path
}

impl Process {
    fn start<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Self {
        let mut command = Command::new(example());
        let mut child = command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, line }
    }

    fn url(&self, name: &str) -> String {
        let line: Value = serde_json::from_str(&self.line).unwrap();
        line[name].as_str().unwrap().to_owned()
    }

    fn curl(&self, arguments: &[&str]) -> String {
        let output = Command::new("curl").args(["-s", "--noproxy", "*"]).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Within a while; one that does not is killed.
    #[allow(clippy::disallowed_methods)] // another process's end is waited for
    fn ends(mut self) -> bool {
        for _ in 0..1000 {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.success();
            }
            std::thread::sleep(ms(10));
        }
        false
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_programs_of_the_pages_are_those_that_are_tested() {
    for (name, file) in [("testing.md", "harness.rs"), ("composition.md", "composition.rs")] {
        let (page, shown) = (blocks(&page(name), "rust"), shown(file));
        assert!(!shown.is_empty());
        for (page, shown) in page.iter().zip(&shown) {
            assert_eq!(page, shown, "docs/{name} against tests/wire/{file}");
        }
        assert_eq!(page.len(), shown.len(), "docs/{name}");
    }
}

/// Each `$` line of the page's `console` blocks, in order, against one process.
#[test]
fn the_commands_of_the_page_say_what_the_page_shows() {
    let page = page("testing.md");
    let mut process = None;
    let mut run = 0;
    for block in blocks(&page, "console") {
        for step in block.split("$ ").skip(1) {
            let (command, expected) = step.split_once('\n').unwrap();
            run += 1;
            if let Some(arguments) = command.strip_prefix("cargo run --example sandbox --features sandbox -- ") {
                let started = Process::start(arguments.split(' '));
                assert_eq!(masked(&started.line), masked(expected), "{command}");
                process = Some(started);
                continue;
            }
            let process = process.as_ref().expect("the page starts it first");
            let output = Command::new("sh")
                .args(["-c", command])
                .env("NO_PROXY", "*")
                .env("SANDBOX", process.url("sandbox"))
                .env("CONTROL", process.url("control"))
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
            assert_eq!(masked(&said), masked(expected), "{command}\n{said}");
        }
    }
    assert!(run >= 10, "{run} commands");
    assert!(process.unwrap().ends(), "the page's last command stops it");
}

/// Without a Python there is nothing to run it with.
#[test]
fn the_pages_python_passes() {
    let program = &blocks(&page("testing.md"), "python")[0];
    let Ok(mut python) = Command::new("python3")
        .args(["-", example().to_str().unwrap()])
        .env("NO_PROXY", "*")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
    else {
        return;
    };
    python.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "paid once, in 2 requests\n");
}

#[test]
fn bad_input_is_named_and_changes_nothing() {
    let process = Process::start([]);
    let control = process.url("control");
    let cases = [
        (
            "/faults",
            r#"["none","lose-answr"]"#,
            r#"no fault is called \"lose-answr\"; there are: none[:TIMES], lose-answer"#,
        ),
        ("/faults", r#"["status"]"#, "status needs an argument; it is status:STATUS[:TIMES]"),
        ("/faults", r#"["status:99"]"#, r#"status: STATUS must be a number from 100 to 999, not \"99\""#),
        ("/faults", r#"["lose-answer:0"]"#, r#"lose-answer: TIMES must be a number from 1 to 1000, not \"0\""#),
        ("/faults", r#"["html:200:1:1"]"#, r#"html: \"1\" is one too many; it is html[:STATUS][:TIMES]"#),
        ("/faults", r#"["stall,lasting=-1"]"#, "lasting: MS must be a number from 0 to"),
        ("/faults", r#"["none,sometimes"]"#, r#"no modifier is called \"sometimes\"; there are: executing"#),
        ("/faults", r#"["status:503,retry-after=\n"]"#, "no modifier is called"),
        ("/faults", r#"{"a":1}"#, "the body must be a JSON list of faults"),
        ("/faults", "", "the body must be a JSON list of faults"),
        ("/clock", r#"{"advance_ms":-1}"#, r#"the body must be {\"advance_ms\":N}"#),
        ("/clock", r#"{"advance":1}"#, r#"the body must be {\"advance_ms\":N}"#),
        ("/clock", "[]", r#"the body must be {\"advance_ms\":N}"#),
        ("/nowhere", "", "there is no POST /nowhere; there are: POST /faults"),
    ];
    for (path, body, error) in cases {
        let url = format!("{control}{path}");
        let said = process.curl(&["-w", "%{http_code}", "-d", body, &url]);
        let status = if path == "/nowhere" { "404" } else { "400" };
        assert!(said.starts_with(&format!("{{\"error\":\"{error}")) && said.ends_with(status), "{path} {body}: {said}");
    }
    let many = format!("[{}]", [r#""none:1000""#; 11].join(","));
    let said = process.curl(&["-d", &many, &format!("{control}/faults")]);
    assert!(said.contains("at most 10000 faults may wait, and these would make 11000"), "{said}");
    let long = process.curl(&["-d", &" ".repeat(70_000), &format!("{control}/faults")]);
    assert!(long.contains("the body is longer than 65536 bytes"), "{long}");
    assert_eq!(process.curl(&["-X", "DELETE", &format!("{control}/faults")]), "{\"faults_left\":0}\n");
    // The furthest that the clock goes is no panic either.
    let far = process.curl(&["-d", r#"{"advance_ms":18446744073709551615}"#, &format!("{control}/clock")]);
    assert!(far.starts_with("{\"now_ms\":"), "{far}");
}

#[test]
fn every_fault_that_an_error_names_is_one() {
    let process = Process::start([]);
    let url = format!("{}/faults", process.url("control"));
    let said: Value = serde_json::from_str(&process.curl(&["-d", r#"["?"]"#, &url])).unwrap();
    let list = said["error"].as_str().unwrap().split_once("there are: ").unwrap().1;
    let faults: Vec<String> = list
        .split(", ")
        .map(|usage| usage.replace(":STATUS", ":418").replace(":BYTES", ":7").replace(":TIMES", ":2"))
        .map(|usage| usage.replace(":MS", ":3").replace(":CODE", ":11").replace(['[', ']'], ""))
        .collect();
    assert!(faults.len() > 30);
    let sent = serde_json::to_string(&faults).unwrap();
    assert_eq!(process.curl(&["-d", &sent, &url]), format!("{{\"faults_left\":{}}}\n", 2 * faults.len()));
}

#[tokio::test]
async fn each_profiles_server_is_one_that_its_own_client_understands() {
    // Toss's server looks at the key alone.
    let profiles = [Profile::generic(), Profile::verifika(), Profile::stripe(), Profile::toss(), Profile::ietf()];
    for profile in profiles {
        let name = profile.id().split('-').next().unwrap().to_owned();
        let process = Process::start(["--profile", &name, "--fault", "in-progress"]);
        let url = format!("{}/v1/payments", process.url("sandbox"));
        let client = builder().profile(profile).build().unwrap();
        let key = IdempotencyKey::random();
        let pay = |amount: u32| client.post(&url).json(&json!({"amount": amount})).idempotency_key(&key).send();
        let paid = pay(1).await.unwrap();
        let read = |attempts: &[Attempt]| attempts.iter().map(|a| a.verdict().unwrap().why()).collect::<Vec<_>>();
        assert_eq!(read(paid.attempts()), [Why::InProgress, Why::Success], "{name}");
        match pay(2).await {
            Ok(first) => assert_eq!((first.bytes(), name.as_str()), (paid.bytes(), "toss")),
            Err(error) => assert_eq!((read(error.attempts()), error.effect()), (vec![Why::KeyReused], Effect::Unknown)),
        }
    }
}

#[test]
fn a_port_may_be_chosen_and_may_be_taken() {
    let first = Process::start([]);
    let (sandbox, control) = (first.url("sandbox"), first.url("control"));
    let port = |url: &str| url.rsplit(':').next().unwrap().to_owned();
    let ports = ["--port", &port(&sandbox), "--control-port", &port(&control)].map(str::to_owned);
    let taken = Command::new(example()).args(&ports).output().unwrap();
    assert!(taken.status.code() == Some(1) && taken.stdout.is_empty());
    assert!(String::from_utf8_lossy(&taken.stderr).contains("in use"));
    first.curl(&["-X", "POST", &format!("{control}/stop")]);
    assert!(first.ends());
    let second = Process::start(ports.iter().map(String::as_str));
    assert_eq!((second.url("sandbox"), second.url("control")), (sandbox, control));
}

#[test]
fn it_ends_with_its_harness_and_by_itself() {
    let mut orphan = Process::start([]);
    drop(orphan.child.stdin.take());
    assert!(orphan.ends(), "its standard input closed");
    assert!(Process::start(["--lifetime", "1"]).ends(), "its time was over");
    let told = Process::start([]);
    let pid = told.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert!(told.ends(), "it was told to, by SIGTERM");
    // A client that keeps its connection open keeps nothing alive.
    let stopped = Process::start([]);
    let mut open = std::net::TcpStream::connect(stopped.url("control").trim_start_matches("http://")).unwrap();
    open.write_all(b"POST /stop HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n").unwrap();
    assert!(stopped.ends(), "it was told to, over a connection that stays open");
    let output = Command::new(example()).args(["--fault", "nothing"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("no fault is called \"nothing\""), "{said}");
}
