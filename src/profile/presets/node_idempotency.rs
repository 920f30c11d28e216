use super::{ErrorsStored, KeyFormat, Matcher, Meaning, Profile};

impl Profile {
    /// Servers with `node-idempotency` (Express, Fastify, Nest).
    ///
    /// Source: `mahendraHegde/node-idempotency` at 622b33f, `packages/shared/src/http.ts`,
    /// `packages/core/src/{constants,error}.ts`.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | key | up to 256 characters in `idempotency-key`, on POST and PATCH | `constants.ts`; the methods are an assumption |
    /// | lifetime | 24 hours | `constants.ts`: a default of the server's |
    /// | replay mark | `Idempotent-Replayed: true` | `http.ts` |
    /// | in progress | 409, `REQUEST_IN_PROGRESS`, with `Retry-After: 1` | `error.ts`; its place is up to the server, so the usual places are searched |
    /// | key reused | 422, `IDEMPOTENCY_FINGERPRINT_MISSMATCH` | the same |
    /// | errors stored | yes | |
    /// | overlap | whether its store locks is up to the server, so taken as not safe | |
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::node_idempotency()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn node_idempotency() -> Self {
        Self::builder("node-idempotency")
            .key_format(KeyFormat::visible(1..=256))
            .replay_mark("idempotent-replayed", "true")
            .promises_mark(true)
            .rule(Matcher::new().status(409).code("REQUEST_IN_PROGRESS"), Meaning::InProgress)
            .rule(Matcher::new().status(422).code("IDEMPOTENCY_FINGERPRINT_MISSMATCH"), Meaning::KeyReused)
            .errors_stored(ErrorsStored::Always)
            .overlap_is_safe(false)
            .preset()
    }
}
