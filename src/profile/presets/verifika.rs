use http::Method;

use super::{ErrorsStored, KeyFormat, Matcher, Meaning, Profile};

impl Profile {
    /// Verifika, `https://api.verifika.tech/v1`.
    ///
    /// Source of every line: its documentation page "Idempotencia".
    ///
    /// | field | value |
    /// |---|---|
    /// | key | lower-case UUID in `Idempotency-Key`, on POST |
    /// | lifetime | 24 hours; then the key counts as new |
    /// | replay mark | `Idempotent-Replay: true`, on every replay |
    /// | in progress | 409, `code` = `IDEMPOTENCY_IN_PROGRESS`: again in a few seconds |
    /// | key reused | 409, `code` = `IDEMPOTENCY_KEY_REUSED`, which means nothing else |
    /// | errors stored | never: an error releases the key |
    ///
    /// Unknown: whether a 429 comes before any work (read as: it may not).
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::verifika()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn verifika() -> Self {
        Self::builder("verifika")
            .key_format(KeyFormat::uuid())
            .keyed_methods([Method::POST])
            .replay_mark("idempotent-replay", "true")
            .promises_mark(true)
            .rule(Matcher::new().status(409).code_at("code", "IDEMPOTENCY_IN_PROGRESS"), Meaning::InProgress)
            .rule(Matcher::new().status(409).code_at("code", "IDEMPOTENCY_KEY_REUSED"), Meaning::KeyReusedForCertain)
            .errors_stored(ErrorsStored::Never)
            .preset()
    }
}
