use super::verdict::Reach;

/// Did the operation take effect? The one question that every error answers.
///
/// It belongs to the whole operation, folded over all of its attempts, never
/// to the last attempt alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums)] // complete by definition
#[must_use = "whether the operation took effect decides what may be done next"]
pub enum Effect {
    /// It was not carried out, and nothing sent so far can still carry it out.
    NotApplied,
    /// The server carried it out; only its answer is missing.
    Applied,
    /// It may have been carried out, now or later. Ask again under the same
    /// key, or look it up at the provider; never send it under a new key.
    Unknown,
}

impl Effect {
    /// A word for a log line: `not applied`, `applied` or `unknown`.
    ///
    /// ```
    /// use oncekey::Effect;
    ///
    /// assert_eq!(Effect::NotApplied.as_str(), "not applied");
    /// assert_eq!(Effect::Unknown.to_string(), Effect::Unknown.as_str());
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotApplied => "not applied",
            Self::Applied => "applied",
            Self::Unknown => "unknown",
        }
    }
}

impl core::fmt::Display for Effect {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(self.as_str())
    }
}

/// Where an operation stands after everything that happened to it: the fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Standing {
    /// No attempt can have been carried out.
    Clean,
    /// Some attempt may have been.
    Doubt,
    /// One was.
    Applied,
    /// The idempotency layer bound the key to a refusal.
    Bound,
    /// Two answers that cannot both be true.
    Contradicted,
}

impl Standing {
    /// The fold table of the module docs, row by row.
    pub(super) const fn after(self, reach: Reach) -> Self {
        match reach {
            Reach::Unsent | Reach::Refused => self,
            Reach::Ambiguous | Reach::Accepted { .. } => match self {
                Self::Clean | Self::Doubt => Self::Doubt,
                Self::Applied | Self::Bound | Self::Contradicted => self,
            },
            Reach::AppliedUnread | Reach::Applied => match self {
                Self::Clean | Self::Doubt | Self::Applied => Self::Applied,
                Self::Bound | Self::Contradicted => Self::Contradicted,
            },
            Reach::Rejected => match self {
                Self::Clean | Self::Doubt | Self::Bound => Self::Bound,
                Self::Applied | Self::Contradicted => Self::Contradicted,
            },
        }
    }

    pub(super) const fn effect(self) -> Effect {
        match self {
            Self::Clean | Self::Bound => Effect::NotApplied,
            Self::Applied => Effect::Applied,
            Self::Doubt | Self::Contradicted => Effect::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fold_table_row_by_row() {
        use Standing::{Applied, Bound, Clean, Contradicted, Doubt};
        let rows: [(&[Reach], [Standing; 5]); 4] = [
            (&[Reach::Unsent, Reach::Refused], [Clean, Doubt, Applied, Bound, Contradicted]),
            (
                &[Reach::Ambiguous, Reach::Accepted { knows_key: true }, Reach::Accepted { knows_key: false }],
                [Doubt, Doubt, Applied, Bound, Contradicted],
            ),
            (&[Reach::AppliedUnread, Reach::Applied], [Applied, Applied, Applied, Contradicted, Contradicted]),
            (&[Reach::Rejected], [Bound, Bound, Contradicted, Bound, Contradicted]),
        ];
        for (reaches, after) in rows {
            for reach in reaches {
                let folded = [Clean, Doubt, Applied, Bound, Contradicted].map(|standing| standing.after(*reach));
                assert_eq!(folded, after, "{reach:?}");
            }
        }
        let effects = [Clean, Doubt, Applied, Bound, Contradicted].map(Standing::effect);
        assert_eq!(
            effects,
            [Effect::NotApplied, Effect::Unknown, Effect::Applied, Effect::NotApplied, Effect::Unknown]
        );
    }
}
