use std::time::Duration;

use http::Method;

use super::{ErrorsStored, KeyFormat, Profile};

impl Profile {
    /// Servers with Fiber's `idempotency` middleware (Go).
    ///
    /// Source: `gofiber/fiber` at c344047, `middleware/idempotency/config.go`, `idempotency.go`.
    ///
    /// | field | value | source |
    /// |---|---|---|
    /// | key | exactly 36 characters in `X-Idempotency-Key`, on POST, PUT, PATCH and DELETE | `config.go` |
    /// | lifetime | **30 minutes** | `config.go`: a default of the server's |
    /// | replay mark | none | |
    /// | in progress | never said: the second request **waits** for the first, so an attempt's timeout must be longer than the handler | `idempotency.go` |
    /// | key reused | never reported: **another body gets the first answer** | `idempotency.go` |
    /// | errors stored | yes, every answer that a handler wrote; an error that it returned is not | `idempotency.go` |
    /// | overlap | the lock is one process's by default, so taken as not safe | |
    ///
    /// ```
    /// let client = oncekey::Client::builder().profile(oncekey::Profile::fiber()).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn fiber() -> Self {
        Self::builder("fiber")
            .key_header("x-idempotency-key")
            .key_format(KeyFormat::visible(36..=36))
            .keyed_methods([Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
            .key_lifetime(Duration::from_secs(1800))
            .errors_stored(ErrorsStored::Always)
            .overlap_is_safe(false)
            .preset()
    }
}
