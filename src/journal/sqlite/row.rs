use sha2::{Digest, Sha256};

use crate::engine::{Entry, KeyOrigin};
use crate::fingerprint::Fingerprint;
use crate::journal::{
    Append, Durability, JournalError, JournalErrorKind, NewOperation, Seal, Status, StoredAnswer, StoredBody,
    StoredRequest, codec,
};
use crate::submission::OperationId;

/// What may be stored, and how.
pub(super) struct Form {
    pub(super) seal: Option<Box<dyn Seal>>,
    pub(super) store_bodies: bool,
    pub(super) fingerprint_key: [u8; 32],
}

/// Bytes as they are written, and whether they are sealed.
pub(super) struct Blob {
    pub(super) sealed: bool,
    pub(super) data: Vec<u8>,
}

/// What stands for an operation's id in the index.
pub(super) fn name(id: &OperationId) -> Vec<u8> {
    let digest = Sha256::digest(id.as_str());
    digest[..16].to_vec()
}

impl Form {
    fn blob(&self, context: &str, plain: Vec<u8>) -> Result<Blob, JournalError> {
        let Some(seal) = &self.seal else {
            return Ok(Blob { sealed: false, data: plain });
        };
        let data = seal.seal(context, &plain).map_err(|error| {
            JournalError::new(JournalErrorKind::Seal, "the `Seal` hook could not seal it").with_source(error)
        })?;
        Ok(Blob { sealed: true, data })
    }

    pub(super) fn open(&self, context: &str, blob: Blob) -> Result<Vec<u8>, JournalError> {
        if !blob.sealed {
            return Ok(blob.data);
        }
        let Some(seal) = &self.seal else {
            let what = "the record is sealed, and this journal was opened without a `Seal` hook: give the one it was made with";
            return Err(JournalError::new(JournalErrorKind::Seal, what));
        };
        seal.open(context, &blob.data).map_err(|error| {
            JournalError::new(JournalErrorKind::Seal, "the `Seal` hook could not open what it had sealed")
                .with_source(error)
        })
    }

    fn request(&self, id: &OperationId, request: &StoredRequest) -> Result<Blob, JournalError> {
        let encoded = match &request.body {
            StoredBody::Kept(body) if !self.store_bodies => {
                let body = StoredBody::LeftOut(Fingerprint::of_body(&self.fingerprint_key, body));
                codec::encode_request(&StoredRequest { body, ..request.clone() })
            }
            StoredBody::Kept(_) | StoredBody::None | StoredBody::LeftOut(_) => codec::encode_request(request),
        };
        self.blob(&request_context(id), encoded)
    }

    fn answer(&self, id: &OperationId, answer: &StoredAnswer) -> Result<Option<Blob>, JournalError> {
        if !self.store_bodies {
            return Ok(None);
        }
        self.blob(&answer_context(id), codec::encode_answer(answer)).map(Some)
    }
}

pub(super) fn request_context(id: &OperationId) -> String {
    format!("request of {}", id.as_str())
}

pub(super) fn answer_context(id: &OperationId) -> String {
    format!("answer of {}", id.as_str())
}

/// One write, encoded by whoever asks for it, so that the writer only writes.
pub(super) struct Row {
    pub(super) id: OperationId,
    pub(super) new: Option<NewRow>,
    pub(super) position: i64,
    pub(super) entries: Vec<String>,
    pub(super) answer: Option<Blob>,
    /// The answer on record is an earlier one's, and this one's is not kept.
    pub(super) outdates: bool,
    pub(super) amendment: Option<Amendment>,
    pub(super) status: Status,
    pub(super) flushed: bool,
}

pub(super) struct NewRow {
    pub(super) profile: Box<str>,
    pub(super) account: Box<str>,
    pub(super) profile_version: i64,
    pub(super) keyed: i64,
    pub(super) key: Option<Box<str>>,
    /// A key that nobody drew here may be another operation's id.
    pub(super) look_for: Option<Box<str>>,
    pub(super) key_lifetime_ms: i64,
    pub(super) fingerprint: [u8; 32],
    pub(super) created_at: i64,
    pub(super) request: Blob,
}

pub(super) struct Amendment {
    pub(super) version: i64,
    pub(super) fingerprint: [u8; 32],
    pub(super) request: Blob,
}

impl Row {
    pub(super) fn inserting(operation: &NewOperation, form: &Form) -> Result<Self, JournalError> {
        let identity = &operation.identity;
        let key_is_id = identity.key.as_deref() == Some(identity.id.as_str());
        let (drawn, created_at) = match operation.entries.first() {
            Some(Entry::Created { key, at, .. }) => (*key == KeyOrigin::Drawn, at.as_millis()),
            _ => (false, 0),
        };
        let new = NewRow {
            profile: identity.scope.profile().into(),
            account: identity.scope.account().into(),
            profile_version: identity.profile_version.into(),
            keyed: match (&identity.key, key_is_id) {
                (None, _) => 0,
                (Some(_), false) => 1,
                (Some(_), true) => 2,
            },
            key: identity.key.clone().filter(|_| !key_is_id),
            look_for: identity.key.clone().filter(|_| !drawn),
            key_lifetime_ms: integer(u64::try_from(identity.key_lifetime.as_millis()).unwrap_or(u64::MAX)),
            fingerprint: *identity.fingerprint.as_bytes(),
            created_at: integer(created_at),
            request: form.request(&identity.id, &operation.request)?,
        };
        Ok(Self {
            id: identity.id.clone(),
            new: Some(new),
            position: 0,
            entries: operation.entries.iter().map(codec::encode_entry).collect(),
            answer: None,
            outdates: false,
            amendment: None,
            status: operation.status,
            flushed: true,
        })
    }

    pub(super) fn appending(append: &Append, form: &Form) -> Result<Self, JournalError> {
        let amendment = append
            .amended
            .as_ref()
            .map(|(fingerprint, request)| {
                let version = append.entries.iter().find_map(|entry| match entry {
                    Entry::Amended { version, .. } => Some(i64::from(*version)),
                    _ => None,
                });
                let version = version.ok_or_else(|| {
                    JournalError::new(JournalErrorKind::Setting, "a corrected request came without its `Amended` entry")
                })?;
                let request = form.request(&append.id, request)?;
                Ok(Amendment { version, fingerprint: *fingerprint.as_bytes(), request })
            })
            .transpose()?;
        let answer = append.answer.as_ref().map(|answer| form.answer(&append.id, answer)).transpose()?.flatten();
        // What names a status resource is all that it can be asked after by.
        let is_linked =
            append.entries.iter().any(|entry| matches!(entry, Entry::Ended { verdict, .. } if verdict.linked()));
        Ok(Self {
            id: append.id.clone(),
            new: None,
            position: integer(append.position as u64),
            entries: append.entries.iter().map(codec::encode_entry).collect(),
            outdates: append.answer.is_some() && answer.is_none() && !is_linked,
            answer,
            amendment,
            status: append.status,
            flushed: append.durability == Durability::Flushed,
        })
    }
}

/// SQLite's integers are signed.
pub(super) fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
