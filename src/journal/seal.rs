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
    /// ```
    /// use oncekey::journal::Seal;
    /// # mod aead {
    /// #     pub fn encrypt(plain: &[u8], bound: &[u8]) -> Vec<u8> {
    /// #         [bound, b"|", plain].concat().iter().map(|byte| !byte).collect()
    /// #     }
    /// #     pub fn decrypt(sealed: &[u8], bound: &[u8]) -> Option<Vec<u8>> {
    /// #         let plain: Vec<u8> = sealed.iter().map(|byte| !byte).collect();
    /// #         Some(plain.strip_prefix(bound)?.strip_prefix(b"|")?.to_vec())
    /// #     }
    /// # }
    /// # type Failure = Box<dyn std::error::Error + Send + Sync>;
    ///
    /// struct Vault;
    ///
    /// impl Seal for Vault {
    ///     fn seal(&self, context: &str, plain: &[u8]) -> Result<Vec<u8>, Failure> {
    ///         Ok(aead::encrypt(plain, context.as_bytes())) // yours, with the context as associated data
    ///     }
    /// #   fn open(&self, context: &str, sealed: &[u8]) -> Result<Vec<u8>, Failure> {
    /// #       aead::decrypt(sealed, context.as_bytes()).ok_or_else(|| "sealed for another".into())
    /// #   }
    /// }
    ///
    /// let sealed = Vault.seal("answer of order-7", b"4111 1111 1111 1111")?;
    /// assert!(!sealed.windows(4).any(|bytes| bytes == b"4111"));
    /// # Ok::<(), Failure>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Any: nothing is sent then.
    fn seal(&self, context: &str, plain: &[u8]) -> Result<Vec<u8>, Box<dyn StdError + Send + Sync>>;

    /// What was sealed.
    ///
    /// ```
    /// use oncekey::journal::Seal;
    /// # mod aead {
    /// #     pub fn encrypt(plain: &[u8], bound: &[u8]) -> Vec<u8> {
    /// #         [bound, b"|", plain].concat().iter().map(|byte| !byte).collect()
    /// #     }
    /// #     pub fn decrypt(sealed: &[u8], bound: &[u8]) -> Option<Vec<u8>> {
    /// #         let plain: Vec<u8> = sealed.iter().map(|byte| !byte).collect();
    /// #         Some(plain.strip_prefix(bound)?.strip_prefix(b"|")?.to_vec())
    /// #     }
    /// # }
    /// # type Failure = Box<dyn std::error::Error + Send + Sync>;
    ///
    /// # struct Vault;
    /// impl Seal for Vault {
    /// #   fn seal(&self, context: &str, plain: &[u8]) -> Result<Vec<u8>, Failure> {
    /// #       Ok(aead::encrypt(plain, context.as_bytes()))
    /// #   }
    ///     fn open(&self, context: &str, sealed: &[u8]) -> Result<Vec<u8>, Failure> {
    ///         aead::decrypt(sealed, context.as_bytes()).ok_or_else(|| "sealed for another operation".into())
    ///     }
    /// }
    ///
    /// let sealed = Vault.seal("answer of order-7", b"paid")?;
    /// assert_eq!(Vault.open("answer of order-7", &sealed)?, b"paid");
    /// assert!(Vault.open("answer of order-8", &sealed).is_err());
    /// # Ok::<(), Failure>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Any: the record then counts as unreadable, and the effect as unknown.
    fn open(&self, context: &str, sealed: &[u8]) -> Result<Vec<u8>, Box<dyn StdError + Send + Sync>>;
}
