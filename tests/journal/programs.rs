//! The examples as real processes. `cargo test` builds them beside this test;
//! `cargo test --test journal` alone takes them as they are.
#![allow(clippy::disallowed_methods, reason = "the clock of other processes")]

use std::env::consts::EXE_SUFFIX;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// An example that is to be run, with nothing of this process's environment that it reads.
pub(crate) fn example(name: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    let built: PathBuf =
        test.parent().and_then(|deps| deps.parent()).unwrap().join("examples").join(format!("{name}{EXE_SUFFIX}"));
    assert!(built.exists(), "{} is not built: run the whole of `cargo test --features full` once", built.display());
    let mut command = Command::new(built);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PAYCTL_")) {
        command.env_remove(name);
    }
    command.env_remove("XDG_CONFIG_HOME").env_remove("HOME").env("NO_PROXY", "*");
    command
}

/// What a program printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.stdout.contains(text), "no {text:?} in {self:#?}");
        self
    }

    #[track_caller]
    pub(crate) fn tells(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "no {text:?} in {self:#?}");
        self
    }
}

/// A program under way, which does not outlive this value.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }

    /// The first line that it prints.
    #[cfg(target_os = "linux")]
    pub(crate) fn first_line(&mut self) -> String {
        let (mut line, mut byte) = (String::new(), [0]);
        let out = self.0.stdout.as_mut().unwrap();
        while out.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
            line.push(char::from(byte[0]));
        }
        line
    }

    /// Sends it a signal, as a person at its terminal would.
    #[cfg(unix)]
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.0.id().to_string()).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for its end, but not for ever.
    pub(crate) fn end(mut self) -> Ended {
        let status = self.status();
        let mut ended = Ended { code: status.code(), stdout: String::new(), stderr: String::new() };
        self.0.stdout.take().unwrap().read_to_string(&mut ended.stdout).unwrap();
        self.0.stderr.take().unwrap().read_to_string(&mut ended.stderr).unwrap();
        ended
    }

    // What they print fits a pipe, so that they end before it is read.
    fn status(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < Duration::from_secs(120), "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
