use super::{ErrorsStored, KeyFormat, Matcher, Meaning, Profile};

impl Profile {
    /// Servers with `asgi-idempotency-header` (FastAPI, Starlette).
    ///
    /// Source: `snok/asgi-idempotency-header` at 8f89a5c,
    /// `idempotency_header_middleware/middleware.py`.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | key | UUID in `Idempotency-Key`, on POST and PATCH | the file; a server may insist on v4, else 422 |
    /// | lifetime | 24 hours | the file: a default of the server's |
    /// | replay mark | `Idempotent-Replayed: true` | the file |
    /// | in progress | 409, `detail` begins `Request already pending for idempotency key` | the file |
    /// | key reused | never reported: **another body gets the first answer**; a 422 is about the key's form | the file |
    /// | errors stored | yes, of any status, but only JSON | the file |
    /// | overlap | whether its store locks is up to the server, so taken as not safe | |
    ///
    /// If a handler dies before it answers, its key stays pending.
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::asgi_idempotency_header()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn asgi_idempotency_header() -> Self {
        let pending = Matcher::new().status(409).at("detail");
        Self::builder("asgi-idempotency-header")
            .key_format(KeyFormat::uuid())
            .replay_mark("idempotent-replayed", "true")
            .rule(pending.code_prefix("Request already pending for idempotency key"), Meaning::InProgress)
            .errors_stored(ErrorsStored::Always)
            .overlap_is_safe(false)
            .preset()
    }
}
