use super::{ErrorsStored, KeyFormat, Matcher, Meaning, Profile};

impl Profile {
    /// Servers with `IdempotentAPI` (.NET).
    ///
    /// Source: `ikyriak/IdempotentAPI` at 2b3be8f, `README.md` lines 360 to 369,
    /// `src/IdempotentAPI/Core/Idempotency.cs` lines 261 to 287.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | key | in `IdempotencyKey`, **without a hyphen**, on POST and PATCH | the README |
    /// | key format | up to 36 letters, digits and hyphens | an assumption: no limit is printed |
    /// | lifetime | 24 hours | the README: a default of the server's |
    /// | replay mark | none | |
    /// | in progress | 409, by its status alone (its body is empty) | `Idempotency.cs` |
    /// | key reused | 400, `... was used in a different request.` | the same |
    /// | errors stored | never, by default: a server may say otherwise, so a corrected body does not go out under the key | `CHANGELOG.md` lines 182 to 190 |
    /// | overlap | whether its store locks is up to the server, so taken as not safe | |
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::idempotent_api()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn idempotent_api() -> Self {
        Self::builder("idempotent-api")
            .key_header("idempotencykey")
            .key_format(KeyFormat::word(1..=36))
            .rule(Matcher::new().status(409), Meaning::InProgress)
            .rule(Matcher::new().status(400).message_contains("was used in a different request"), Meaning::KeyReused)
            .errors_stored(ErrorsStored::Never)
            .releases_key(false)
            .overlap_is_safe(false)
            .preset()
    }
}
