use super::{ErrorsStored, KeyFormat, Matcher, Meaning, Profile, UNPUBLISHED};

impl Profile {
    /// Servers with `express-idempotency`.
    ///
    /// Source: `VilledeMontreal/express-idempotency` at e1e429e,
    /// `src/services/idempotencyService.ts`, lines 60 to 136.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | key | in `Idempotency-Key`, on POST and PATCH | the file; the methods are an assumption |
    /// | key format | up to 36 letters, digits and hyphens | an assumption: it has no limit |
    /// | lifetime | 1 hour | an assumption: it is up to the server's store |
    /// | replay mark | none: the key comes back in `Idempotency-Key`, in **first** answers too | the file |
    /// | in progress | 409, `A previous request is still in progress for this key.` | the file; its place is up to the server |
    /// | key reused | 417, `Misuse of the idempotency key.` | the same |
    /// | errors stored | never: 2xx by default, but a server may say otherwise, so a corrected body does not go out under the key | the file |
    /// | overlap | whether its store locks is up to the server, so taken as not safe | |
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::express_idempotency()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn express_idempotency() -> Self {
        let says = |status, words: &'static str| Matcher::new().status(status).message_contains(words);
        Self::builder("express-idempotency")
            .key_format(KeyFormat::word(1..=36))
            .key_lifetime(UNPUBLISHED)
            .rule(says(409, "A previous request is still in progress for this key"), Meaning::InProgress)
            .rule(says(417, "Misuse of the idempotency key"), Meaning::KeyReused)
            .errors_stored(ErrorsStored::Never)
            .releases_key(false)
            .overlap_is_safe(false)
            .preset()
    }
}
