use http::Method;

use super::{ErrorsStored, KeyFormat, Matcher, Meaning, Profile};

impl Profile {
    /// Memo Bank.
    ///
    /// Source: `docs.api.memo.bank/topic/topic-idempotent-requests`.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | key | in `Idempotency-Key`, on POST, PUT and PATCH | the page excludes GET and DELETE alone |
    /// | key format | up to 36 letters, digits and hyphens | an assumption: "V4 UUID" is recommended, no limit is printed |
    /// | lifetime | 24 hours | the page |
    /// | replay mark | `Idempotent-Replayed: true` | the page |
    /// | in progress | 409, by its status alone | the page |
    /// | key reused | 422 without a code of its own: a refusal like any other, which says nothing about an earlier attempt | the page |
    /// | errors stored | 4xx, but for 409 and 429; 5xx never | the page: "we will always send the same result" |
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::memo_bank()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn memo_bank() -> Self {
        Self::builder("memo-bank")
            .key_format(KeyFormat::word(1..=36))
            .keyed_methods([Method::POST, Method::PUT, Method::PATCH])
            .replay_mark("idempotent-replayed", "true")
            .promises_mark(true)
            .rule(Matcher::new().status(409), Meaning::InProgress)
            .errors_stored(ErrorsStored::Always)
            .preset()
    }
}
