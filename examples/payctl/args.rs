use std::path::PathBuf;

use clap::{ArgGroup, Args as Group, Parser, Subcommand, ValueEnum};
use oncekey::{Effect, Profile};
use url::Url;

const EXITS: &str = "\
Exit codes:
  0  applied (also if its answer is missing, which is said); or the command is done
  1  not applied
  2  the command is wrong or could not be carried out, and sent nothing
  3  unknown: it may be applied, now or later

Environment:
  PAYCTL_TOKEN    sent as `Authorization: Bearer`; never printed, never stored
  PAYCTL_JOURNAL  the default of --journal";

const GLOBAL: &str = "Options of every command";

/// Payments that are made once: each has an id, and the same id again pays nothing twice.
#[derive(Debug, Parser)]
#[command(name = "payctl", version, after_help = EXITS, max_term_width = 100)]
pub(crate) struct Args {
    /// The file in which payments are on record
    #[arg(help_heading = GLOBAL, long, global = true, env = "PAYCTL_JOURNAL", default_value = "payctl.db", value_name = "PATH")]
    pub(crate) journal: PathBuf,
    /// Make the journal if there is none: an empty one has forgotten every payment
    #[arg(help_heading = GLOBAL, long, global = true)]
    pub(crate) create: bool,
    /// How the API treats idempotency keys
    #[arg(help_heading = GLOBAL, long, global = true, value_enum, default_value_t)]
    pub(crate) profile: ProfileName,
    /// The account at the provider; payments of other accounts are not seen
    #[arg(help_heading = GLOBAL, long, global = true, value_name = "NAME")]
    pub(crate) account: Option<String>,
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
    #[arg(long, value_parser = endpoint)]
    pub(crate) url: Url,
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
#[derive(Clone, Copy, Debug, Group)]
pub(crate) struct Limits {
    /// How many attempts, the first included
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) attempts: u32,
    /// Seconds for all of it, waits included
    #[arg(long, default_value_t = 300, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) deadline: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { attempts: 12, deadline: 300 }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileName {
    #[default]
    Generic,
    Verifika,
    Stripe,
    Ietf,
    Toss,
}

impl ProfileName {
    pub(crate) fn profile(self) -> Profile {
        match self {
            Self::Generic => Profile::generic(),
            Self::Verifika => Profile::verifika(),
            Self::Stripe => Profile::stripe(),
            Self::Ietf => Profile::ietf(),
            Self::Toss => Profile::toss(),
        }
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::Verifika => "verifika",
            Self::Stripe => "stripe",
            Self::Ietf => "ietf",
            Self::Toss => "toss",
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

fn endpoint(text: &str) -> Result<Url, &'static str> {
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
