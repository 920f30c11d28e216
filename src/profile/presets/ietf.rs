use super::{ErrorsStored, KeyFormat, Matcher, Meaning, Profile};

impl Profile {
    /// The IETF draft `draft-ietf-httpapi-idempotency-key-header`, read at -06.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | key | UUID **between double quotes** in `Idempotency-Key`, on POST and PATCH | sections 1 and 2.1: a structured-field string |
    /// | lifetime | 24 hours | an assumption: 2.3 leaves it to the server's published policy |
    /// | replay mark | none | the draft defines none |
    /// | in progress | 409, `title` = `A request is outstanding for this Idempotency-Key` | 2.7, the example of a SHOULD |
    /// | key reused | 422, `title` = `Idempotency-Key is already used` | 2.7, the example of a SHOULD: never read as a refusal |
    /// | errors stored | yes | 2.6: "success or an error" |
    ///
    /// Most deployed APIs want the key bare: for them use [`Profile::generic`].
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::ietf()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn ietf() -> Self {
        Self::builder("ietf-06")
            .key_format(KeyFormat::uuid().quoted())
            .rule(
                Matcher::new().status(409).code_at("title", "A request is outstanding for this Idempotency-Key"),
                Meaning::InProgress,
            )
            .rule(Matcher::new().status(422).code_at("title", "Idempotency-Key is already used"), Meaning::KeyReused)
            .errors_stored(ErrorsStored::Always)
            .preset()
    }
}
