use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;

/// What a journal could not do.
///
/// [`JournalError::is_certain`] says whether something may have been written
/// all the same.
pub struct JournalError {
    kind: JournalErrorKind,
    what: Cow<'static, str>,
    certain: bool,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// What went wrong in a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum JournalErrorKind {
    /// The record is not as it was when it was read: somebody else wrote to it.
    Conflict,
    /// The id is taken by another operation.
    IdTaken,
    /// The key is taken by an operation of another id.
    KeyTaken,
    /// The database was locked for longer than the caller could wait.
    Locked,
    /// The file or its folder cannot be written.
    ReadOnly,
    /// The disk is full.
    Full,
    /// The file is damaged, or is none of a journal's.
    Corrupt,
    /// It was written by a newer version of this crate.
    Newer,
    /// There is no such file, or no such folder.
    Missing,
    /// There is such a file already.
    Exists,
    /// The journal was closed.
    Closed,
    /// What was sealed cannot be opened, or not be sealed.
    Seal,
    /// A setting that cannot be used.
    Setting,
    /// Anything else.
    Io,
}

impl JournalError {
    /// An error of this kind, in words: lower case, naming what was wrong and
    /// what to do. Nothing was written.
    ///
    /// ```
    /// use oncekey::journal::{JournalError, JournalErrorKind};
    ///
    /// let error = JournalError::new(JournalErrorKind::Full, "the disk is full");
    /// assert!(error.is_certain());
    /// ```
    pub fn new(kind: JournalErrorKind, what: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, what: what.into(), certain: true, source: None }
    }

    /// The same with its cause.
    ///
    /// ```
    /// use std::error::Error;
    /// use oncekey::journal::{JournalError, JournalErrorKind};
    ///
    /// let cause = std::io::Error::from(std::io::ErrorKind::StorageFull);
    /// let error = JournalError::new(JournalErrorKind::Full, "no room on the disk of the journal").with_source(cause);
    /// assert_eq!(error.to_string(), "no room on the disk of the journal");
    /// assert_eq!(error.source().unwrap().to_string(), "no storage space");
    /// ```
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The same where it is not known whether it was written.
    ///
    /// ```
    /// use oncekey::journal::{JournalError, JournalErrorKind};
    ///
    /// let error = JournalError::new(JournalErrorKind::Io, "the commit failed").unclear();
    /// assert!(!error.is_certain());
    /// ```
    #[must_use]
    pub const fn unclear(mut self) -> Self {
        self.certain = false;
        self
    }

    /// What went wrong.
    ///
    /// ```
    /// use oncekey::Client;
    /// use oncekey::journal::{JournalErrorKind, Memory};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let journal = Memory::new();
    /// let client = Client::builder().journal(journal.clone()).build()?;
    /// journal.close().await?;
    /// let error = client.unfinished().await.unwrap_err();
    /// assert_eq!(error.kind(), JournalErrorKind::Closed);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn kind(&self) -> JournalErrorKind {
        self.kind
    }

    /// Whether it is certain that nothing was written.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::engine::{Entry, StopReason, Time};
    /// use oncekey::journal::{Append, Journal, JournalErrorKind, Memory, Status};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (journal, patience) = (Memory::new(), Duration::from_secs(1));
    /// let stopped = Entry::Stopped { reason: StopReason::Deadline, at: Time::from_millis(1_767_225_600_000) };
    /// let append = Append::new("nobody's".into(), 1, vec![stopped], Status::Open);
    /// let error = journal.append(append, patience).await.unwrap_err();
    /// assert_eq!(error.kind(), JournalErrorKind::Conflict);
    /// assert!(error.is_certain()); // nothing was written: it may be read anew and tried again
    /// # Ok(())
    /// # }
    /// ```
    pub const fn is_certain(&self) -> bool {
        self.certain
    }

    /// The same for one more caller, its cause in words.
    pub(crate) fn again(&self) -> Self {
        let source = self.source.as_ref().map(|source| source.to_string().into());
        Self { kind: self.kind, what: self.what.clone(), certain: self.certain, source }
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl fmt::Debug for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournalError")
            .field("kind", &self.kind)
            .field("what", &self.what)
            .field("certain", &self.certain)
            .field("source", &self.source)
            .finish()
    }
}

impl StdError for JournalError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_ref().map(|source| &**source as _)
    }
}
