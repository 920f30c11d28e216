use std::path::Path;

use crate::journal::{JournalError, JournalErrorKind};

/// Primary result codes of SQLite (`sqlite.org/rescode.html`).
const BUSY: i32 = 5;
const LOCKED: i32 = 6;
const READONLY: i32 = 8;
const IOERR: i32 = 10;
const CORRUPT: i32 = 11;
const FULL: i32 = 13;
const CANTOPEN: i32 = 14;
const CONSTRAINT: i32 = 19;
const NOTADB: i32 = 26;

/// What a failure of SQLite means. Nothing was written, unless it was the
/// commit that failed, which the caller knows.
pub(super) fn of(error: &sqlx::Error) -> JournalError {
    let (kind, what) = match code(error) {
        Some(BUSY | LOCKED) => (JournalErrorKind::Locked, "the journal is locked by another process"),
        Some(READONLY) => {
            (JournalErrorKind::ReadOnly, "the journal cannot be written: its file or folder is read-only")
        }
        Some(FULL) => (JournalErrorKind::Full, "the journal cannot be written: the disk is full"),
        Some(CORRUPT | NOTADB) => (
            JournalErrorKind::Corrupt,
            "the journal's file is damaged or is no database: correct the path, or put a backup in its place and \
             look up all that was sent since",
        ),
        Some(CANTOPEN) => {
            (JournalErrorKind::Io, "the journal's file cannot be opened: look at its rights and its folder's")
        }
        Some(IOERR) => (JournalErrorKind::Io, "the journal's disk failed or is full"),
        Some(CONSTRAINT) => (JournalErrorKind::Conflict, "somebody else wrote to the operation's record"),
        Some(_) | None => (JournalErrorKind::Io, "the journal failed"),
    };
    JournalError::new(kind, what).with_source(error.to_string())
}

/// The same where it names the file.
pub(super) fn opening(path: &Path, error: &sqlx::Error) -> JournalError {
    match code(error) {
        Some(CANTOPEN) => {
            let what = format!("the journal {} cannot be opened: look at its rights and its folder's", path.display());
            JournalError::new(JournalErrorKind::ReadOnly, what).with_source(error.to_string())
        }
        Some(_) | None => of(error),
    }
}

pub(super) fn is_busy(error: &sqlx::Error) -> bool {
    matches!(code(error), Some(BUSY | LOCKED))
}

pub(super) fn is_constraint(error: &sqlx::Error) -> bool {
    code(error) == Some(CONSTRAINT)
}

/// Whether a commit that failed so certainly wrote nothing.
pub(super) fn is_certain(error: &sqlx::Error) -> bool {
    matches!(code(error), Some(BUSY | LOCKED | READONLY | FULL | CONSTRAINT))
}

/// The primary code: the low byte of the extended one.
fn code(error: &sqlx::Error) -> Option<i32> {
    let sqlx::Error::Database(error) = error else {
        return None;
    };
    error.code()?.parse::<i32>().ok().map(|code| code & 0xff)
}
