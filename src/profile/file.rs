use std::ops::Range;
use std::time::Duration;

use http::Method;
use serde::Deserialize;
use toml::Spanned;

use super::file_error::ProfileFileError;
use super::{ErrorsStored, KeyFormat, Matcher, Meaning, Profile, ProfileBuilder};

impl Profile {
    /// A profile written as TOML. What is left out is as in
    /// [`Profile::builder`]; a `judge` is code, and set on the client.
    ///
    /// ```
    /// use oncekey::Profile;
    ///
    /// let profile = Profile::from_toml(r#"
    /// id = "acme-v2"                          # visible characters; the only part that must be there
    /// version = 3                             # raise it when an answer is read otherwise
    /// min-delay = "2s"                        # between two requests under one key: ms, s, m, h, d
    /// should-retry-header = "Acme-Retry"      # says `true` or `false`
    /// code-paths = ["error.code"]             # where codes stand, instead of the usual places
    /// errors-stored = "never"                 # "always", "unsaid"
    /// releases-key = true                     # by an error, for a corrected body
    /// limits-before-work = false              # a 429 comes before any work
    /// promises-keys = false                   # on every route, so that a 202 may be polled by resending
    /// promises-mark = true                    # every replay is marked
    /// replays = true                          # a repeated request gets the original answer
    /// overlap-is-safe = false                 # two requests under one key may overlap
    ///
    /// [key]
    /// header = "Acme-Key"
    /// methods = ["POST", "PATCH"]             # none where the key is yours to put in the body
    /// lifetime = "6h"
    /// characters = "visible"                  # "word": letters, digits, hyphens; "uuid"
    /// length = [1, 64]
    /// quoted = false
    ///
    /// [[replay-mark]]
    /// name = "Acme-Replayed"
    /// is = ["true", "1"]                      # or `is-key = true`; neither: that it is there
    ///
    /// [[rule]]                                # the first that matches wins
    /// means = "in-progress"
    /// status = [409]                          # none: any 4xx or 5xx
    /// code = ["KEY_BUSY"]                     # any of these, of `code-prefix`, or the key (`code-is-key`)
    /// headers = [{ name = "Acme-Transient", is = ["true"] }]
    ///
    /// [[rule]]
    /// means = "already-processed"             # "key-reused", "key-reused-for-certain", "stored-failure",
    /// status = [409]                          # "key-expired", "not-to-be-retried"
    /// at = "errors[].type"                    # instead of `code-paths`
    /// code-prefix = ["urn:acme:seen"]
    /// present = ["resource.id"]
    /// headers = [{ name = "Acme-Transient", absent = true }]
    /// message = ["was used", "before"]        # words of the body, all of them
    /// original = "resource.id"                # see `Profile::original_id`
    ///
    /// [[settles]]                             # a refusal that holds for every attempt
    /// status = [402]
    /// code = ["card_declined"]
    /// "#)?;
    /// assert_eq!(profile.id(), "acme-v2");
    ///
    /// let error = Profile::from_toml("id = 'acme'\n[[rule]]\nmeans = 'in-progress'\nat = 'a..b'").unwrap_err();
    /// assert_eq!((error.line(), error.field()), (4, "rule.at"));
    /// # Ok::<(), oncekey::profile::ProfileFileError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ProfileFileError`], naming the line and the field: a field that is not
    /// known, of the wrong type, missing, or of no use.
    pub fn from_toml(text: &str) -> Result<Self, ProfileFileError> {
        let file: File = toml::from_str(text).map_err(|error| ProfileFileError::of_toml(text, error))?;
        file.build().map_err(|problem| ProfileFileError::new(text, problem.at.start, problem.field, problem.text))
    }
}

/// A problem, and where it stands.
struct Problem {
    at: Range<usize>,
    field: String,
    text: String,
}

#[allow(clippy::needless_pass_by_value)] // an error, at its end
fn problem<T>(field: &str, value: &Spanned<T>, text: impl ToString) -> Problem {
    Problem { at: value.span(), field: field.to_owned(), text: text.to_string() }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    id: Spanned<String>,
    version: Option<u32>,
    min_delay: Option<Spanned<String>>,
    should_retry_header: Option<Spanned<String>>,
    code_paths: Option<Vec<Spanned<String>>>,
    errors_stored: Option<Stored>,
    releases_key: Option<bool>,
    limits_before_work: Option<bool>,
    promises_keys: Option<bool>,
    promises_mark: Option<bool>,
    replays: Option<bool>,
    overlap_is_safe: Option<bool>,
    #[serde(default)]
    key: Key,
    #[serde(default)]
    replay_mark: Vec<Header>,
    #[serde(default)]
    rule: Vec<Spanned<Rule>>,
    #[serde(default)]
    settles: Vec<Spanned<Rule>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Key {
    header: Option<Spanned<String>>,
    methods: Option<Vec<Spanned<String>>>,
    lifetime: Option<Spanned<String>>,
    characters: Option<Characters>,
    length: Option<Spanned<[usize; 2]>>,
    quoted: Option<bool>,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Characters {
    Uuid,
    Word,
    Visible,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Stored {
    Never,
    Always,
    Unsaid,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Means {
    InProgress,
    KeyReused,
    KeyReusedForCertain,
    AlreadyProcessed,
    StoredFailure,
    KeyExpired,
    NotToBeRetried,
}

impl Means {
    const fn meaning(self) -> Meaning {
        match self {
            Self::InProgress => Meaning::InProgress,
            Self::KeyReused => Meaning::KeyReused,
            Self::KeyReusedForCertain => Meaning::KeyReusedForCertain,
            Self::AlreadyProcessed => Meaning::AlreadyProcessed,
            Self::StoredFailure => Meaning::StoredFailure,
            Self::KeyExpired => Meaning::KeyExpired,
            Self::NotToBeRetried => Meaning::NotToBeRetried,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Header {
    name: Spanned<String>,
    is: Option<Spanned<Vec<String>>>,
    #[serde(default)]
    is_key: bool,
    #[serde(default)]
    absent: bool,
}

/// A pattern and, in a rule, what it means.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Rule {
    means: Option<Means>,
    original: Option<Spanned<String>>,
    #[serde(default)]
    status: Vec<Spanned<u16>>,
    #[serde(default)]
    code: Vec<String>,
    #[serde(default)]
    code_prefix: Vec<String>,
    #[serde(default)]
    code_is_key: bool,
    at: Option<Spanned<String>>,
    #[serde(default)]
    present: Vec<Spanned<String>>,
    #[serde(default)]
    headers: Vec<Header>,
    #[serde(default)]
    message: Vec<String>,
}

/// The builder, asked after each part whether it can still be used.
struct Checked(ProfileBuilder);

impl Checked {
    fn with<T>(
        self,
        field: &str,
        value: &Spanned<T>,
        set: impl FnOnce(ProfileBuilder) -> ProfileBuilder,
    ) -> Result<Self, Problem> {
        let builder = set(self.0);
        builder.clone().build().map_err(|error| problem(field, value, error))?;
        Ok(Self(builder))
    }

    fn set<T>(self, value: Option<T>, set: impl FnOnce(ProfileBuilder, T) -> ProfileBuilder) -> Self {
        match value {
            Some(value) => Self(set(self.0, value)),
            None => self,
        }
    }
}

impl File {
    fn build(self) -> Result<Profile, Problem> {
        let id = self.id.get_ref().clone();
        let mut made = Checked(Profile::builder(id)).with("id", &self.id, |builder| builder)?;
        made = self.key.apply(made)?;
        if let Some(delay) = &self.min_delay {
            let wait = duration(delay.get_ref()).map_err(|text| problem("min-delay", delay, text))?;
            made = made.set(Some(wait), ProfileBuilder::min_delay);
        }
        if let Some(name) = &self.should_retry_header {
            made = made.with("should-retry-header", name, |b| b.should_retry_header(name.get_ref().clone()))?;
        }
        if let Some(paths) = &self.code_paths {
            for path in paths {
                made = made.with("code-paths", path, |b| b.code_paths([path.get_ref().clone()]))?;
            }
            made.0 = made.0.code_paths(paths.iter().map(|path| path.get_ref().clone()));
        }
        for mark in &self.replay_mark {
            made = mark.mark(made)?;
        }
        for rule in &self.rule {
            made = apply_rule(rule, made)?;
        }
        for rule in &self.settles {
            let pattern = rule.get_ref();
            if pattern.means.is_some() || pattern.original.is_some() {
                return Err(problem("settles", rule, "a refusal that settles has neither `means` nor `original`"));
            }
            let matcher = pattern.matcher("settles")?;
            made = made.with("settles", rule, |b| b.settles(matcher))?;
        }
        let stored = self.errors_stored.map(|stored| match stored {
            Stored::Never => ErrorsStored::Never,
            Stored::Always => ErrorsStored::Always,
            Stored::Unsaid => ErrorsStored::Unsaid,
        });
        made.set(self.version, ProfileBuilder::version)
            .set(stored, ProfileBuilder::errors_stored)
            .set(self.releases_key, ProfileBuilder::releases_key)
            .set(self.limits_before_work, ProfileBuilder::limits_before_work)
            .set(self.promises_keys, ProfileBuilder::promises_keys)
            .set(self.promises_mark, ProfileBuilder::promises_mark)
            .set(self.replays, ProfileBuilder::replays)
            .set(self.overlap_is_safe, ProfileBuilder::overlap_is_safe)
            .0
            .build()
            .map_err(|error| problem("id", &self.id, error))
    }
}

impl Key {
    fn apply(&self, mut made: Checked) -> Result<Checked, Problem> {
        if let Some(methods) = &self.methods {
            let methods = methods.iter().map(method).collect::<Result<Vec<_>, _>>()?;
            made = made.set(Some(methods), ProfileBuilder::keyed_methods);
        }
        if let Some(name) = &self.header {
            made = made.with("key.header", name, |b| b.key_header(name.get_ref().clone()))?;
        }
        if let Some(lifetime) = &self.lifetime {
            let life = duration(lifetime.get_ref()).map_err(|text| problem("key.lifetime", lifetime, text))?;
            made = made.with("key.lifetime", lifetime, |b| b.key_lifetime(life))?;
        }
        let characters = self.characters.unwrap_or(Characters::Visible);
        let quoted = |format: KeyFormat| if self.quoted == Some(true) { format.quoted() } else { format };
        let Some(length) = &self.length else {
            let format = match characters {
                Characters::Uuid => KeyFormat::uuid(),
                Characters::Word => KeyFormat::word(1..=usize::MAX),
                Characters::Visible => KeyFormat::any(),
            };
            return Ok(made.set(Some(quoted(format)), ProfileBuilder::key_format));
        };
        let [min, max] = *length.get_ref();
        let format = match characters {
            Characters::Uuid => return Err(problem("key.length", length, "a UUID has a length of its own")),
            Characters::Word => KeyFormat::word(min..=max),
            Characters::Visible => KeyFormat::visible(min..=max),
        };
        made.with("key.length", length, |b| b.key_format(quoted(format)))
    }
}

fn apply_rule(rule: &Spanned<Rule>, made: Checked) -> Result<Checked, Problem> {
    let Rule { means, original, .. } = rule.get_ref();
    let Some(means) = means else {
        return Err(problem("rule.means", rule, "missing field `means`"));
    };
    let matcher = rule.get_ref().matcher("rule")?;
    match original {
        Some(path) if !matches!(means, Means::AlreadyProcessed) => {
            Err(problem("rule.original", path, "only what was already processed has an original"))
        }
        Some(path) => made.with("rule.original", path, |b| b.recovers(matcher, path.get_ref().clone())),
        None => made.with("rule", rule, |b| b.rule(matcher, means.meaning())),
    }
}

impl Rule {
    fn matcher(&self, table: &str) -> Result<Matcher, Problem> {
        let mut matcher = Matcher::new();
        for status in &self.status {
            matcher = checked(matcher.status(*status.get_ref()), &format!("{table}.status"), status)?;
        }
        if let Some(path) = &self.at {
            matcher = checked(matcher.at(path.get_ref().clone()), &format!("{table}.at"), path)?;
        }
        for path in &self.present {
            matcher = checked(matcher.present(path.get_ref().clone()), &format!("{table}.present"), path)?;
        }
        matcher = self.code.iter().cloned().fold(matcher, Matcher::code);
        matcher = self.code_prefix.iter().cloned().fold(matcher, Matcher::code_prefix);
        if self.code_is_key {
            matcher = matcher.code_is_key();
        }
        matcher = self.message.iter().cloned().fold(matcher, Matcher::message_contains);
        self.headers.iter().try_fold(matcher, |matcher, header| header.ask(matcher, &format!("{table}.headers")))
    }
}

impl Header {
    /// As a replay mark.
    fn mark(&self, mut made: Checked) -> Result<Checked, Problem> {
        let name = self.checked_name("replay-mark")?;
        if self.absent {
            return Err(problem("replay-mark.absent", &self.name, "what is not there marks nothing"));
        }
        let Some(values) = self.values("replay-mark")? else {
            let builder = if self.is_key { made.0.replay_mark_is_key(name) } else { made.0.replay_mark_present(name) };
            return Ok(Checked(builder));
        };
        for value in values.get_ref() {
            made = made.with("replay-mark.is", values, |b| b.replay_mark(name.clone(), value.clone()))?;
        }
        Ok(made)
    }

    /// As part of a pattern.
    fn ask(&self, mut matcher: Matcher, table: &str) -> Result<Matcher, Problem> {
        let name = self.checked_name(table)?;
        let Some(values) = self.values(table)? else {
            return match (self.is_key, self.absent) {
                (true, true) => Err(problem(&format!("{table}.absent"), &self.name, "not together with `is-key`")),
                (true, false) => Ok(matcher.header_is_key(name)),
                (false, true) => Ok(matcher.header_absent(name)),
                (false, false) => Ok(matcher.header_present(name)),
            };
        };
        for value in values.get_ref() {
            matcher = checked(matcher.header(name.clone(), value.clone()), &format!("{table}.is"), values)?;
        }
        Ok(matcher)
    }

    fn checked_name(&self, table: &str) -> Result<String, Problem> {
        let name = self.name.get_ref().clone();
        let _ = checked(Matcher::new().header_present(name.clone()), &format!("{table}.name"), &self.name)?;
        Ok(name)
    }

    /// The values that it must have, if it is about values.
    fn values(&self, table: &str) -> Result<Option<&Spanned<Vec<String>>>, Problem> {
        match &self.is {
            Some(values) if self.is_key || self.absent || values.get_ref().is_empty() => Err(problem(
                &format!("{table}.is"),
                values,
                "one value or more, and then neither `is-key` nor `absent`",
            )),
            values => Ok(values.as_ref()),
        }
    }
}

fn checked<T>(matcher: Matcher, field: &str, value: &Spanned<T>) -> Result<Matcher, Problem> {
    match matcher.compile() {
        Ok(_) => Ok(matcher),
        Err(error) => Err(problem(field, value, error)),
    }
}

/// Methods are compared to the letter, and one in lower case is another one.
fn method(name: &Spanned<String>) -> Result<Method, Problem> {
    let known = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    let found = known.into_iter().find(|method| method.as_str() == name.get_ref());
    found.ok_or_else(|| problem("key.methods", name, "a method is one of `POST`, `PUT`, `PATCH`, `DELETE`"))
}

/// Digits and a unit, as in `90s`.
fn duration(text: &str) -> Result<Duration, &'static str> {
    const FORM: &str = "a duration is digits and a unit, as in `250ms`, `90s`, `30m`, `24h`, `15d`";
    let (digits, unit) = text.split_at(text.bytes().take_while(u8::is_ascii_digit).count());
    let number: u64 = digits.parse().map_err(|_| FORM)?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(FORM),
    };
    Ok(Duration::from_millis(number.saturating_mul(millis)))
}
