use std::ops::RangeBounds;
use std::path::{Path, PathBuf};
use std::time::Duration;

use oncekey::Profile;
use serde::Deserialize;
use toml::Spanned;
use url::Url;

use crate::args::{Args, Command, Limits, SECONDS, endpoint};
use crate::token::token;
use crate::words;

/// What a command goes by: its arguments over the environment, that over the
/// configuration.
pub(crate) struct Settings {
    pub(crate) journal: PathBuf,
    pub(crate) profile: Profile,
    pub(crate) account: Option<String>,
    pub(crate) url: Option<Url>,
    pub(crate) attempts: u32,
    pub(crate) attempt_timeout: Duration,
    pub(crate) deadline: Duration,
    pub(crate) token: Option<String>,
}

impl Settings {
    pub(crate) fn read(args: &Args) -> Result<Self, String> {
        let path = match &args.config {
            Some(path) => Some(path.clone()),
            None => usual().filter(|path| path.exists()),
        };
        let file = path.as_deref().map(Checked::read).transpose()?.unwrap_or_default();
        // What a file names is beside it, wherever the command is given.
        let beside = |name: PathBuf| path.as_deref().and_then(Path::parent).unwrap_or_else(|| Path::new("")).join(name);
        let (url, limits) = match &args.command {
            Command::Pay(pay) => (pay.url.clone(), pay.limits),
            Command::Resume(resume) => (None, resume.limits),
            _ => (None, Limits::default()),
        };
        let profile = match (&args.profile, file.profile) {
            (Some(name), _) => profile(name, Path::new(name))?,
            (None, Some((name, place))) => {
                profile(&name, &beside(PathBuf::from(&name))).map_err(|problem| format!("{place}: {problem}"))?
            }
            (None, None) => Profile::generic(),
        };
        Ok(Self {
            journal: args.journal.clone().or_else(|| file.journal.map(beside)).unwrap_or_else(|| "payctl.db".into()),
            profile,
            account: args.account.clone().or(file.account),
            url: url.or(file.url),
            attempts: limits.attempts.or(file.attempts).unwrap_or(12),
            attempt_timeout: Duration::from_secs(limits.attempt_timeout.or(file.attempt_timeout).unwrap_or(60)),
            deadline: Duration::from_secs(limits.deadline.or(file.deadline).unwrap_or(300)),
            token: token(file.token_file.map(beside).as_deref())?,
        })
    }
}

/// `$XDG_CONFIG_HOME/payctl.toml`, or the same in `~/.config`.
fn usual() -> Option<PathBuf> {
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let configs = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
    Some(configs.join("payctl.toml"))
}

/// A preset's id; else a file.
fn profile(name: &str, path: &Path) -> Result<Profile, String> {
    let presets = Profile::presets();
    if let Some(preset) = presets.iter().find(|preset| preset.id() == name) {
        return Ok(preset.clone());
    }
    match std::fs::read_to_string(path) {
        Ok(text) => Profile::from_toml(&text).map_err(|error| format!("the profile {}, {error}", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let ids: Vec<&str> = presets.iter().map(Profile::id).collect();
            let name = words::line(name);
            Err(format!("no profile `{name}`: there is no such file, and the presets are {}", ids.join(", ")))
        }
        Err(error) => Err(format!("the profile {}: {error}", path.display())),
    }
}

/// The file as it is written.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    journal: Option<PathBuf>,
    profile: Option<Spanned<String>>,
    account: Option<String>,
    url: Option<Spanned<String>>,
    attempts: Option<Spanned<u32>>,
    attempt_timeout: Option<Spanned<u64>>,
    deadline: Option<Spanned<u64>>,
    token_file: Option<PathBuf>,
}

#[derive(Default)]
struct Checked {
    journal: Option<PathBuf>,
    /// With the place to blame.
    profile: Option<(String, String)>,
    account: Option<String>,
    url: Option<Url>,
    attempts: Option<u32>,
    attempt_timeout: Option<u64>,
    deadline: Option<u64>,
    token_file: Option<PathBuf>,
}

impl Checked {
    fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let source = Source { path, text: &text };
        let written: Written = toml::from_str(&text).map_err(|error| source.of_toml(&error))?;
        let url = written.url.map(|url| endpoint(url.as_ref()).map_err(|problem| source.problem(&url, "url", problem)));
        Ok(Self {
            journal: written.journal,
            profile: written.profile.map(|name| (name.as_ref().clone(), source.place(name.span().start, "profile"))),
            account: written.account,
            url: url.transpose()?,
            attempts: source.within(written.attempts, "attempts", 1.., "at least 1")?,
            attempt_timeout: source.seconds(written.attempt_timeout, "attempt_timeout")?,
            deadline: source.seconds(written.deadline, "deadline")?,
            token_file: written.token_file,
        })
    }
}

/// What errors point into. None of them repeats a line of it, which may hold a
/// secret at the wrong place.
struct Source<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Source<'_> {
    fn seconds(&self, value: Option<Spanned<u64>>, field: &str) -> Result<Option<u64>, String> {
        self.within(value, field, SECONDS, "1 to 86400 seconds")
    }

    fn within<T: Copy + PartialOrd>(
        &self,
        value: Option<Spanned<T>>,
        field: &str,
        range: impl RangeBounds<T>,
        rule: &str,
    ) -> Result<Option<T>, String> {
        match value {
            Some(value) if !range.contains(value.as_ref()) => Err(self.problem(&value, field, rule)),
            value => Ok(value.map(Spanned::into_inner)),
        }
    }

    fn problem<T>(&self, value: &Spanned<T>, field: &str, problem: &str) -> String {
        format!("{}: {problem}", self.place(value.span().start, field))
    }

    fn place(&self, at: usize, field: &str) -> String {
        format!("{}, line {}, `{field}`", self.path.display(), self.line(at))
    }

    fn line(&self, at: usize) -> usize {
        1 + self.text.bytes().take(at).filter(|byte| *byte == b'\n').count()
    }

    fn of_toml(&self, error: &toml::de::Error) -> String {
        let at = error.span().map_or(0, |span| span.start);
        let line = self.line(at);
        let written = self.text.lines().nth(line - 1).unwrap_or_default();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let field = written.split_once('=').map(|(field, _)| field.trim()).filter(|field| field.chars().all(is_plain));
        let message = error.message().lines().next().unwrap_or_default();
        let problem = match (field, message.rsplit_once(", expected ")) {
            (Some("token"), _) => {
                "a token does not belong here: name its file with `token_file`, or set PAYCTL_TOKEN".to_owned()
            }
            // The rest of it would be the value.
            (_, Some((_, expected))) if message.starts_with("invalid type") || message.starts_with("invalid value") => {
                format!("another type of value, expected {expected}")
            }
            _ => message.to_owned(),
        };
        match field {
            Some(field) => format!("{}: {problem}", self.place(at, field)),
            None => format!("{}, line {line}: {problem}", self.path.display()),
        }
    }
}
