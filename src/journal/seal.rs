use std::error::Error as StdError;

/// Encrypts requests and answers before they are written, and opens them again.
///
/// What is given is the whole of a request (method, URL, headers, body) or of
/// an answer; ids, keys, effects and times stay readable. `context` names the
/// operation and what it is of it; to bind it in as associated data keeps two
/// rows from being exchanged.
///
/// Use an AEAD (XChaCha20-Poly1305, AES-256-GCM-SIV) with a key from your
/// key management, and a fresh nonce each time.
pub trait Seal: Send + Sync {
    /// The sealed form.
    ///
    /// # Errors
    ///
    /// Any: nothing is sent then.
    fn seal(&self, context: &str, plain: &[u8]) -> Result<Vec<u8>, Box<dyn StdError + Send + Sync>>;

    /// What was sealed.
    ///
    /// # Errors
    ///
    /// Any: the record then counts as unreadable, and the effect as unknown.
    fn open(&self, context: &str, sealed: &[u8]) -> Result<Vec<u8>, Box<dyn StdError + Send + Sync>>;
}
