use std::time::Duration;

use clap::ValueEnum;
use oncekey::sandbox::{Sandbox, SandboxBuilder};

/// Whose rules the server plays by, as far as their pages tell (`docs/profiles.md`).
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Provider {
    Generic,
    Verifika,
    Stripe,
    Toss,
    Ietf,
}

impl Provider {
    pub(crate) fn rules(self) -> SandboxBuilder {
        let rules = Sandbox::builder();
        let only_post = |rules: SandboxBuilder| rules.keyed(|method, _| method.as_str() == "POST");
        match self {
            Self::Generic => rules,
            Self::Verifika => only_post(rules),
            Self::Stripe => only_post(rules)
                .replay_header("idempotent-replayed", "true")
                .in_progress_json(r#"{"error":{"code":"idempotency_key_in_use"}}"#)
                .reuse_status(400)
                .reuse_json(r#"{"error":{"type":"idempotency_error"}}"#)
                .store_errors(true),
            Self::Toss => only_post(rules)
                .no_replay_header()
                .key_lifetime(Duration::from_secs(15 * 86_400))
                .in_progress_json(r#"{"code":"IDEMPOTENT_REQUEST_PROCESSING"}"#)
                .compare_requests(false),
            Self::Ietf => rules
                .no_replay_header()
                .in_progress_json(r#"{"title":"A request is outstanding for this Idempotency-Key"}"#)
                .reuse_status(422)
                .reuse_json(r#"{"title":"Idempotency-Key is already used"}"#)
                .store_errors(true),
        }
    }
}
