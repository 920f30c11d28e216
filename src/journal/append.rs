use super::{Status, StoredAnswer, StoredRequest};
use crate::engine::Entry;
use crate::fingerprint::Fingerprint;
use crate::submission::OperationId;

/// Entries to be added to an operation, and what comes with them.
#[derive(Clone, Debug)]
pub struct Append {
    pub(crate) id: OperationId,
    pub(crate) position: usize,
    pub(crate) entries: Vec<Entry>,
    pub(crate) answer: Option<StoredAnswer>,
    pub(crate) amended: Option<(Fingerprint, StoredRequest)>,
    pub(crate) status: Status,
    pub(crate) durability: Durability,
}

impl Append {
    /// These entries, behind the first `position` ones, after which the
    /// operation stands at `status`. Flushed.
    ///
    /// ```
    /// use oncekey::journal::{Append, Status};
    /// # use oncekey::engine::{Entry, Time};
    ///
    /// # let interrupted = Entry::Interrupted { attempt: 1, at: Time::from_millis(1_767_225_600_000) };
    /// // The operation has three entries, and this one is the fourth.
    /// let append = Append::new("order-7".into(), 3, vec![interrupted], Status::Open);
    /// assert_eq!(append.position(), 3);
    /// assert!(append.answer().is_none() && append.amended().is_none());
    /// ```
    pub const fn new(id: OperationId, position: usize, entries: Vec<Entry>, status: Status) -> Self {
        Self { id, position, entries, answer: None, amended: None, status, durability: Durability::Flushed }
    }

    /// The same with the answer that takes the place of an earlier one.
    ///
    /// ```
    /// use oncekey::journal::{Append, Status, StoredAnswer};
    /// # use oncekey::engine::{Advice, Entry, Reach, Time, Verdict, Why};
    /// use oncekey::reqwest::{StatusCode, header::HeaderMap};
    ///
    /// # let verdict = Verdict::new(Reach::Applied, Advice::Stop, Why::Success);
    /// # let ended = Entry::Ended { attempt: 1, verdict, at: Time::from_millis(1_767_225_600_000), next_at: None };
    /// let answer = StoredAnswer::new(StatusCode::CREATED, HeaderMap::new(), br#"{"id":"pay_7"}"#.to_vec());
    /// let append = Append::new("order-7".into(), 3, vec![ended], Status::Closed).with_answer(Some(answer));
    /// assert_eq!(append.answer().unwrap().status(), 201);
    /// ```
    #[must_use]
    pub fn with_answer(mut self, answer: Option<StoredAnswer>) -> Self {
        self.answer = answer;
        self
    }

    /// The same with the corrected request and its fingerprint.
    ///
    /// ```
    /// use oncekey::engine::{Entry, Time};
    /// use oncekey::journal::{Append, Fingerprint, Status, StoredBody, StoredRequest};
    /// # use oncekey::reqwest::Method;
    ///
    /// # let url = "https://api.example/payments".parse()?;
    /// # let corrected = StoredRequest::new(Method::POST, url, vec![], StoredBody::Kept(r#"{"amount":450}"#.into()));
    /// # let (print, at) = (Fingerprint::from_bytes([8; 32]), Time::from_millis(1_767_225_600_000));
    /// // A corrected request comes with the entry that says so.
    /// let append = Append::new("order-7".into(), 5, vec![Entry::Amended { at, version: 2 }], Status::Open)
    ///     .with_request(Some((print, corrected.clone())));
    /// assert_eq!(append.amended(), Some(&(print, corrected)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_request(mut self, amended: Option<(Fingerprint, StoredRequest)>) -> Self {
        self.amended = amended;
        self
    }

    /// The same with this durability.
    ///
    /// ```
    /// use oncekey::journal::{Append, Durability, Status};
    /// # use oncekey::engine::{Entry, Time};
    ///
    /// # let interrupted = Entry::Interrupted { attempt: 1, at: Time::from_millis(1_767_225_600_000) };
    /// let append = Append::new("order-7".into(), 3, vec![interrupted], Status::Open);
    /// assert_eq!(append.durability(), Durability::Flushed);
    /// assert_eq!(append.with_durability(Durability::Visible).durability(), Durability::Visible);
    /// ```
    #[must_use]
    pub const fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// The operation's id.
    ///
    /// ```
    /// use oncekey::journal::{Append, Status};
    /// # use oncekey::engine::{Entry, Time};
    ///
    /// # let interrupted = Entry::Interrupted { attempt: 1, at: Time::from_millis(1_767_225_600_000) };
    /// let append = Append::new("order-7".into(), 3, vec![interrupted], Status::Open);
    /// assert_eq!(append.id().as_str(), "order-7");
    /// ```
    pub const fn id(&self) -> &OperationId {
        &self.id
    }

    /// How many entries the record must hold.
    ///
    /// ```
    /// use oncekey::journal::{Append, Status};
    /// # use oncekey::engine::{Entry, Time};
    ///
    /// # let interrupted = Entry::Interrupted { attempt: 1, at: Time::from_millis(1_767_225_600_000) };
    /// # let on_record = [interrupted.clone(), interrupted.clone()];
    /// let append = Append::new("order-7".into(), 3, vec![interrupted], Status::Open);
    /// // What a `Journal` of your own compares before it writes.
    /// assert_ne!(append.position(), on_record.len()); // a conflict
    /// ```
    pub const fn position(&self) -> usize {
        self.position
    }

    /// The entries to add.
    ///
    /// ```
    /// use oncekey::journal::{Append, Status};
    /// # use oncekey::engine::{Entry, Time};
    ///
    /// # let interrupted = Entry::Interrupted { attempt: 1, at: Time::from_millis(1_767_225_600_000) };
    /// let append = Append::new("order-7".into(), 3, vec![interrupted], Status::Open);
    /// for (position, entry) in (append.position()..).zip(append.entries()) {
    ///     let row = (position, oncekey::journal::codec::encode_entry(entry));
    ///     assert_eq!(row.0, 3);
    /// }
    /// ```
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The answer to keep.
    ///
    /// ```
    /// use oncekey::journal::{Append, Status};
    /// # use oncekey::engine::{Entry, Time};
    ///
    /// # let interrupted = Entry::Interrupted { attempt: 1, at: Time::from_millis(1_767_225_600_000) };
    /// # let mut kept = Some("the answer of attempt 1");
    /// let append = Append::new("order-7".into(), 3, vec![interrupted], Status::Open);
    /// // Without one, what is kept stays.
    /// if append.answer().is_some() {
    ///     kept = None;
    /// }
    /// assert!(kept.is_some());
    /// ```
    pub const fn answer(&self) -> Option<&StoredAnswer> {
        self.answer.as_ref()
    }

    /// The corrected request and its fingerprint.
    ///
    /// ```
    /// use oncekey::journal::{Append, Fingerprint, Status, StoredBody, StoredRequest};
    /// # use oncekey::engine::{Entry, Time};
    /// # use oncekey::reqwest::Method;
    ///
    /// # let url = "https://api.example/payments".parse()?;
    /// # let corrected = StoredRequest::new(Method::POST, url, vec![], StoredBody::Kept(r#"{"amount":450}"#.into()));
    /// # let entries = vec![Entry::Amended { at: Time::from_millis(1_767_225_600_000), version: 2 }];
    /// # let append = Append::new("order-7".into(), 5, entries, Status::Open);
    /// # let append = append.with_request(Some((Fingerprint::from_bytes([8; 32]), corrected)));
    /// if let Some((fingerprint, request)) = append.amended() {
    ///     // Both take the place of what is on record.
    ///     assert_eq!(fingerprint, &Fingerprint::from_bytes([8; 32]));
    ///     assert_eq!(request.url().path(), "/payments");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn amended(&self) -> Option<&(Fingerprint, StoredRequest)> {
        self.amended.as_ref()
    }

    /// Where the operation stands then.
    ///
    /// ```
    /// use oncekey::engine::Owner;
    /// use oncekey::journal::{Append, Status};
    /// # use oncekey::engine::{Entry, Time};
    ///
    /// # let interrupted = Entry::Interrupted { attempt: 1, at: Time::from_millis(1_767_225_600_000) };
    /// let append = Append::new("order-7".into(), 3, vec![interrupted], Status::Running(Owner::new(1)));
    /// let working = match append.status() {
    ///     Status::Running(owner) => Some(owner.id()),
    ///     Status::Open | Status::Closed => None,
    /// };
    /// assert_eq!(working, Some(1));
    /// ```
    pub const fn status(&self) -> Status {
        self.status
    }

    /// When it must be on the disk.
    ///
    /// ```
    /// use oncekey::journal::{Append, Durability, Status};
    /// # use oncekey::engine::{Entry, Time};
    ///
    /// # let interrupted = Entry::Interrupted { attempt: 1, at: Time::from_millis(1_767_225_600_000) };
    /// let append = Append::new("order-7".into(), 3, vec![interrupted], Status::Open);
    /// let pragma = match append.durability() {
    ///     Durability::Flushed => "synchronous = FULL",
    ///     Durability::Visible => "synchronous = NORMAL",
    /// };
    /// assert_eq!(pragma, "synchronous = FULL");
    /// ```
    pub const fn durability(&self) -> Durability {
        self.durability
    }
}

/// When a write must be on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums)] // complete by definition
pub enum Durability {
    /// Before the call returns.
    Flushed,
    /// Soon; every process sees it before the call returns.
    Visible,
}
