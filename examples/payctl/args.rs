use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{ArgGroup, Args as Group, Parser, Subcommand, ValueEnum, ValueHint};
use oncekey::{Effect, Profile};
use url::Url;

const EXITS: &str = "\
Exit codes:
  0  applied (also if its answer is missing, which is said); or the command is done
  1  not applied
  2  the command is wrong or could not be carried out, and sent nothing
  3  unknown: it may be applied, now or later

Environment:
  PAYCTL_TOKEN  sent as `Authorization: Bearer`; never printed, never stored
  PAYCTL_*      the defaults of the options, over those of the configuration

Configuration: --config, or else $XDG_CONFIG_HOME/payctl.toml or ~/.config/payctl.toml
  journal, profile, account, url, attempts, attempt_timeout, deadline, token_file";

const GLOBAL: &str = "Options of every command";

/// Payments that are made once: each has an id, and the same id again pays nothing twice.
#[derive(Debug, Parser)]
#[command(name = "payctl", version, after_help = EXITS, max_term_width = 100)]
pub(crate) struct Args {
    /// The configuration, a TOML file
    #[arg(help_heading = GLOBAL, long, global = true, env = "PAYCTL_CONFIG", value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// The file in which payments are on record [default: payctl.db]
    #[arg(help_heading = GLOBAL, long, global = true, env = "PAYCTL_JOURNAL", value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) journal: Option<PathBuf>,
    /// Make the journal if there is none: an empty one has forgotten every payment
    #[arg(help_heading = GLOBAL, long, global = true)]
    pub(crate) create: bool,
    /// How the API treats idempotency keys: a preset's id, or a profile's file [default: generic]
    #[arg(help_heading = GLOBAL, long, global = true, env = "PAYCTL_PROFILE", value_name = "ID|PATH", value_parser = ProfileName, hide_possible_values = true)]
    pub(crate) profile: Option<String>,
    /// The account at the provider; payments of other accounts are not seen
    #[arg(help_heading = GLOBAL, long, global = true, env = "PAYCTL_ACCOUNT", value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// Print each result as one line of JSON
    #[arg(help_heading = GLOBAL, long, global = true)]
    pub(crate) json: bool,
    /// Show no progress
    #[arg(help_heading = GLOBAL, long, short, global = true)]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Pay, or go on with the payment of this id, or give its answer from the record
    ///
    /// Prints the result, then the server's answer.
    Pay(Pay),
    /// List what is unfinished and what is in doubt
    List,
    /// Show all that is on record of a payment
    Show {
        /// The payment's id
        id: String,
    },
    /// Go on with a payment, or with all that are unfinished and due
    Resume(Resume),
    /// Settle a payment by what you found at the provider
    Resolve {
        /// The payment's id
        id: String,
        /// What you found
        #[arg(long, value_enum)]
        effect: Found,
        /// Who decides
        #[arg(long, value_name = "NAME")]
        by: String,
        /// On what evidence
        #[arg(long, value_name = "TEXT")]
        note: String,
    },
    /// Give up a payment that is not applied: it is never sent again
    Abandon {
        /// The payment's id
        id: String,
    },
    /// Print a script that completes this command's words in a shell
    Completion {
        /// Which shell
        shell: Shell,
    },
    /// Print the manual page, or that of a command
    Man {
        /// Which command
        command: Option<String>,
    },
    /// Serve a provider to try all this against, until Ctrl-C
    #[cfg(feature = "sandbox")]
    Sandbox {
        /// Carry out the first N payments and lose their answers
        #[arg(long, default_value_t = 0, value_name = "N")]
        lose: usize,
    },
}

#[derive(Debug, Group)]
pub(crate) struct Pay {
    /// Your name for this payment, such as an invoice number
    #[arg(long)]
    pub(crate) id: String,
    /// How much, in the smallest unit of the currency
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) amount: u64,
    /// Who gets it
    #[arg(long)]
    pub(crate) to: String,
    /// Where payments are posted to
    #[arg(long, env = "PAYCTL_URL", value_parser = endpoint, value_hint = ValueHint::Url)]
    pub(crate) url: Option<Url>,
    #[command(flatten)]
    pub(crate) limits: Limits,
}

#[derive(Debug, Group)]
#[command(group(ArgGroup::new("which").required(true).args(["id", "all"])))]
pub(crate) struct Resume {
    /// The payment's id
    pub(crate) id: Option<String>,
    /// All that are unfinished and due
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) limits: Limits,
}

/// Of this run alone.
#[derive(Clone, Copy, Debug, Default, Group)]
pub(crate) struct Limits {
    /// How many attempts, the first included [default: 12]
    #[arg(long, env = "PAYCTL_ATTEMPTS", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) attempts: Option<u32>,
    /// Seconds for one attempt [default: 60]
    #[arg(long, env = "PAYCTL_ATTEMPT_TIMEOUT", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(SECONDS))]
    pub(crate) attempt_timeout: Option<u64>,
    /// Seconds for all of it, waits included [default: 300]
    #[arg(long, env = "PAYCTL_DEADLINE", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(SECONDS))]
    pub(crate) deadline: Option<u64>,
}

/// A second to a day.
pub(crate) const SECONDS: std::ops::RangeInclusive<u64> = 1..=86_400;

/// Anything, since it may be a file; the presets are what a shell completes.
#[derive(Clone)]
struct ProfileName;

impl TypedValueParser for ProfileName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Profile::presets().into_iter().map(|preset| PossibleValue::new(preset.id().to_owned()))))
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl From<Shell> for clap_complete::Shell {
    fn from(shell: Shell) -> Self {
        match shell {
            Shell::Bash => Self::Bash,
            Shell::Zsh => Self::Zsh,
            Shell::Fish => Self::Fish,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Found {
    Applied,
    NotApplied,
}

impl From<Found> for Effect {
    fn from(found: Found) -> Self {
        match found {
            Found::Applied => Self::Applied,
            Found::NotApplied => Self::NotApplied,
        }
    }
}

pub(crate) fn endpoint(text: &str) -> Result<Url, &'static str> {
    let Ok(url) = Url::parse(text) else {
        return Err("not a URL: it begins with https:// and a host");
    };
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err("it must begin with http:// or https:// and a host");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("user and password do not belong in a URL: put a token into PAYCTL_TOKEN");
    }
    Ok(url)
}
