use http::Method;

use super::{ErrorsStored, KeyFormat, Matcher, Meaning, Profile};

impl Profile {
    /// Open Finance Brasil, payments.
    ///
    /// Source: `OpenBanking-Brasil/areadesenvolvedor` at d6770df,
    /// `documentation/source/swagger/parts/_open_banking_fase3_apis_part.yml`, lines 42 to 80.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | key | up to 40 characters in `x-idempotency-key`, on POST | `parameters/XIdempotencyKey.yaml` |
    /// | lifetime | 24 hours | the part |
    /// | replay mark | none: the resource with its **current** status | the part |
    /// | key reused | 422, `errors[].code` = `ERRO_IDEMPOTENCIA`; in v1 (2022) the catch-all `NAO_INFORMADO`, which is a refusal like any other | later versions; the part |
    /// | errors stored | payments: 201 and 422; consents: 201 alone | the part |
    /// | in progress | unsaid, so requests must not overlap | |
    ///
    /// **This crate sends the same bytes again, which this API does not want:**
    /// the body is a signed JWT that must be signed anew (`jti`, `iat`) on each
    /// try; the bank compares its `data` alone. A repeated request may so be
    /// refused, which settles nothing: what is in doubt stays `Unknown`. A code
    /// inside a JWT is not read; it counts as a refusal of this attempt.
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::open_finance_brasil()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn open_finance_brasil() -> Self {
        Self::builder("open-finance-brasil")
            .key_header("x-idempotency-key")
            .key_format(KeyFormat::visible(1..=40))
            .keyed_methods([Method::POST])
            .rule(Matcher::new().status(422).code_at("errors[].code", "ERRO_IDEMPOTENCIA"), Meaning::KeyReused)
            .errors_stored(ErrorsStored::Always)
            .overlap_is_safe(false)
            .preset()
    }
}
