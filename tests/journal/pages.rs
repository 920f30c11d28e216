//! The pages' commands print what the pages say. Keys, times and counts of
//! attempts that chance decides are masked.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::programs::{Ended, Running, example};

/// A command and what it prints.
#[derive(Debug)]
struct Step {
    command: String,
    printed: String,
}

/// The fenced blocks that begin with a prompt.
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for block in blocks(page).filter(|(_, text)| text.starts_with("$ ")).map(|(_, text)| text) {
        for line in block.lines() {
            match line.strip_prefix("$ ") {
                Some(command) => steps.push(Step { command: command.to_owned(), printed: String::new() }),
                None => steps.last_mut().unwrap().printed += &format!("{line}\n"),
            }
        }
    }
    steps
}

/// With the language that each is said to be.
fn blocks(page: &str) -> impl Iterator<Item = (&str, &str)> {
    page.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'))
}

/// A person's folder, shell and test provider.
struct Person {
    folder: tempfile::TempDir,
    url: String,
    _sandbox: Running,
    code: i32,
    /// `payctl` as the shell knows it.
    alias: &'static str,
}

impl Person {
    fn new(lose: &str, alias: &'static str) -> Self {
        let mut sandbox = Running::start(example("payctl").args(["sandbox", "--lose", lose]));
        let url = sandbox.first_line();
        Self { folder: tempfile::tempdir().unwrap(), url, _sandbox: sandbox, code: 0, alias }
    }

    fn home(&self) -> &Path {
        self.folder.path()
    }

    /// Both outputs as one, as a terminal shows them.
    fn run(&mut self, command: &str) -> Ended {
        let payctl = example("payctl");
        let programs = Path::new(payctl.get_program()).parent().unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec 2>&1; {}\n(exit {}); {command}", self.alias, self.code)]);
        shell.envs(payctl.get_envs().filter_map(|(name, value)| Some((name, value?))));
        for (name, _) in payctl.get_envs().filter(|(_, value)| value.is_none()) {
            shell.env_remove(name);
        }
        shell.env("PATH", path).env("HOME", self.home()).env("URL", &self.url).current_dir(self.home());
        if self.alias.is_empty() {
            shell.env("PAYCTL_URL", &self.url);
        }
        let mut ended = Running::start(shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped())).end();
        self.code = ended.code.unwrap();
        ended.stdout = ended.stdout.replace(self.home().to_str().unwrap(), "~");
        ended
    }

    fn follow(&mut self, page: &str) {
        let steps = steps(page);
        assert!(steps.len() > 3, "the page has commands");
        for Step { command, printed } in steps {
            let ended = self.run(&command);
            let (told, object) = parts(&ended.stdout, &command);
            let (page, example) = parts(&printed, &command);
            assert_eq!(masked(told), masked(page), "$ {command}\n{ended:#?}");
            assert_eq!(objects(object), objects(example), "$ {command}\n{ended:#?}");
        }
    }
}

/// What is for people, and what is for machines.
fn parts<'a>(printed: &'a str, command: &str) -> (&'a str, &'a str) {
    let is_json = command.contains("--json");
    let at = printed.match_indices('{').map(|(at, _)| at).find(|at| *at == 0 || printed[..*at].ends_with('\n'));
    printed.split_at(at.filter(|_| is_json).unwrap_or(printed.len()))
}

fn objects(text: &str) -> Vec<Value> {
    let read: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(text).into_iter().collect();
    let mut objects = read.unwrap_or_else(|error| panic!("{error}: {text}"));
    objects.iter_mut().for_each(mask);
    objects
}

/// Times and keys, if they are there.
fn mask(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let is_chance =
                    name.ends_with("_at") || name.ends_with("_ms") || name.ends_with("_date") || name == "key";
                if is_chance && !value.is_null() {
                    *value = Value::from("masked");
                } else {
                    mask(value);
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(mask),
        _ => {}
    }
}

fn masked(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| {
        let line = line.replace("; next at once", "; next");
        let mut words: Vec<&str> = line.split_whitespace().map(mask_word).collect();
        // It is said only if there is still something to be waited for.
        while let Some(at) = words.windows(2).position(|pair| pair == ["in", "TIME"]) {
            words.drain(at..at + 2);
        }
        while let Some(at) = words.windows(2).position(|pair| pair == ["in", "TIME:"]) {
            words.drain(at..at + 2);
            words[at - 1] = "it:";
        }
        words.join(" ")
    });
    // A run that has nothing to wait for says nothing of it.
    lines.filter(|line| line != "rent: next").map(|line| counted(&line)).collect()
}

fn mask_word(word: &str) -> &str {
    let bare = word.trim_end_matches(':');
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let is_time = bare.strip_suffix(['s', 'm', 'h', 'd']).is_some_and(is_number);
    match (is_time, word.ends_with(':')) {
        (true, true) => "TIME:",
        (true, false) => "TIME",
        (false, _) if word.len() == 8 && word.chars().all(|c| c.is_ascii_hexdigit()) => "KEY",
        (false, _) => word,
    }
}

/// How often an interrupted run tried is chance.
fn counted(line: &str) -> String {
    match line.split_once("stopped after ") {
        Some((before, _)) => format!("{before}stopped after some"),
        None => line.to_owned(),
    }
}

#[test]
fn the_page_on_command_lines_is_true() {
    let page = include_str!("../../docs/cli.md");
    let mut person = Person::new("2", "");
    let files: BTreeMap<&str, &str> = blocks(page).filter(|(language, _)| *language == "toml").collect();
    let config = person.home().join(".config");
    std::fs::create_dir(&config).unwrap();
    std::fs::write(config.join("payctl.toml"), files["toml"]).unwrap();
    std::fs::write(config.join("payctl.token"), "tok-of-the-page\n").unwrap();
    std::fs::set_permissions(config.join("payctl.token"), std::fs::Permissions::from_mode(0o600)).unwrap();
    person.follow(page);
    assert!(config.join("payments.db").exists(), "the journal is beside its configuration");
}

/// There as on a terminal, where progress is erased.
#[test]
fn the_readmes_capture_is_true() {
    let mut person = Person::new("2", r#"payctl() { command payctl --quiet "$@"; }"#);
    person.follow(include_str!("../../README.md"));
}

#[test]
fn the_page_names_every_field_of_the_configuration() {
    let mut person = Person::new("0", "");
    std::fs::write(person.home().join("wrong.toml"), "x = 1").unwrap();
    let told = person.run("payctl --config wrong.toml list").stdout;
    let fields = told.split("expected one of ").nth(1).unwrap().split(", ").map(|field| field.trim().trim_matches('`'));
    let page = include_str!("../../docs/cli.md");
    let help = person.run("payctl --help").stdout;
    for field in fields {
        assert!(page.contains(&format!("\n{field} = ")), "{field}");
        assert!(help.contains(field), "{field}");
    }
}
