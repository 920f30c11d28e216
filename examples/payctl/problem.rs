use oncekey::{Effect, Error};

/// Why a command was not carried out. It sent nothing.
pub(crate) struct Problem {
    /// A word for machines.
    pub(crate) kind: &'static str,
    pub(crate) id: Option<String>,
    /// Of what is on record under the id.
    pub(crate) effect: Option<Effect>,
    pub(crate) message: String,
}

impl Problem {
    pub(crate) fn of(error: &Error, id: &str, message: String) -> Self {
        Self { kind: error.kind().code(), id: Some(id.to_owned()), effect: Some(error.effect()), message }
    }

    pub(crate) const fn journal(message: String) -> Self {
        Self { kind: "journal", id: None, effect: None, message }
    }
}

impl From<String> for Problem {
    fn from(message: String) -> Self {
        Self { kind: "usage", id: None, effect: None, message }
    }
}
