use http::Method;

use super::{ErrorsStored, KeyFormat, Profile};

impl Profile {
    /// Servers with `square1/laravel-idempotency`.
    ///
    /// Source: `square1-io/laravel-idempotency` at 7d5a57b,
    /// `src/Http/Middleware/IdempotencyMiddleware.php`.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | key | in `Idempotency-Key`, on POST, PUT, PATCH and DELETE | the file |
    /// | key format | up to 36 letters, digits and hyphens | an assumption: it has no limit |
    /// | lifetime | 24 hours | its configuration: a default of the server's |
    /// | replay mark | `Idempotency-Relayed`, whose value is **the key** | the file |
    /// | in progress | never said: the second request **waits**, and then fails with an exception, a 500 unless the server maps it | the file |
    /// | key reused | by the path alone; another body gets the first answer | the file |
    /// | errors stored | yes, of any status | the file |
    /// | overlap | whether its store locks is up to the server, so taken as not safe | |
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::laravel()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn laravel() -> Self {
        Self::builder("laravel-idempotency")
            .key_format(KeyFormat::word(1..=36))
            .keyed_methods([Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
            .replay_mark_is_key("idempotency-relayed")
            .promises_mark(true)
            .errors_stored(ErrorsStored::Always)
            .overlap_is_safe(false)
            .preset()
    }
}
