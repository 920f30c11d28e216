use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Executor, Row};

use super::fault;
use crate::journal::{JournalError, JournalErrorKind};
use crate::runtime;

/// "onky": tells a journal's file from any other database.
const APPLICATION: i64 = 0x6f6e_6b79;

/// The steps from one version of the tables to the next; the file's
/// `user_version` counts those that were taken.
///
/// `op` is updated only where a corrected request is pruned, and grows at its
/// end: a row with a random key of its own as its place would cost a page for
/// every operation. `name` stands for the id in the one index whose pages are
/// written at random, where it is half as long as a UUID's text. `live` holds
/// the few that have no end, so that lists do not read the many that have.
const MIGRATIONS: [&str; 1] = ["
    CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE op (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        -- the first 16 bytes of the id's SHA-256
        name BLOB NOT NULL UNIQUE,
        profile TEXT NOT NULL,
        profile_version INTEGER NOT NULL,
        account TEXT NOT NULL,
        -- 0: none, 1: in `key`, 2: the id is the key
        keyed INTEGER NOT NULL,
        key TEXT,
        key_lifetime_ms INTEGER NOT NULL,
        fingerprint BLOB NOT NULL,
        created_at INTEGER NOT NULL
    );
    CREATE UNIQUE INDEX op_key ON op (key, profile, account) WHERE key IS NOT NULL;
    -- `form`: 0 as it is, 1 sealed
    CREATE TABLE request (op INTEGER PRIMARY KEY, form INTEGER NOT NULL, data BLOB NOT NULL);
    CREATE TABLE amendment (
        op INTEGER NOT NULL,
        version INTEGER NOT NULL,
        fingerprint BLOB NOT NULL,
        form INTEGER NOT NULL,
        data BLOB NOT NULL,
        PRIMARY KEY (op, version)
    );
    CREATE TABLE entry (op INTEGER NOT NULL, pos INTEGER NOT NULL, data TEXT NOT NULL, PRIMARY KEY (op, pos)) WITHOUT ROWID;
    CREATE TABLE answer (op INTEGER PRIMARY KEY, form INTEGER NOT NULL, data BLOB NOT NULL);
    -- `owner`: who works on it, if somebody does
    CREATE TABLE live (op INTEGER PRIMARY KEY, owner BLOB);
    INSERT INTO meta VALUES ('flush', 0);
"];

/// What to do with a file that has no tables.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tables {
    MustBeThere,
    MayBeMade,
}

/// Brings the file's tables to this version, and gives its fingerprint key.
pub(super) async fn prepare(connection: &mut SqliteConnection, made: Tables) -> Result<[u8; 32], JournalError> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(|error| fault::of(&error))?;
    let application = number(&mut transaction, "PRAGMA application_id").await?;
    let version = number(&mut transaction, "PRAGMA user_version").await?;
    let tables = number(&mut transaction, "SELECT count(*) FROM sqlite_schema").await?;
    let is_new = application == 0 && version == 0 && tables == 0;
    if application != APPLICATION && !is_new {
        let what = "the file is a database of something else, not a journal: give the path of a journal";
        return Err(JournalError::new(JournalErrorKind::Corrupt, what));
    }
    let taken = usize::try_from(version).unwrap_or(usize::MAX);
    if is_new && made == Tables::MustBeThere {
        let what = "the file is empty, and an empty journal has forgotten every operation: correct the path, or remove \
                    the file and `create` one if this is the first run";
        return Err(JournalError::new(JournalErrorKind::Corrupt, what));
    }
    let Some(missing) = MIGRATIONS.get(taken..) else {
        let what =
            format!("the journal has version {version}, and this program reads up to {}: upgrade it", MIGRATIONS.len());
        return Err(JournalError::new(JournalErrorKind::Newer, what));
    };
    if !missing.is_empty() {
        for step in missing {
            transaction.execute(*step).await.map_err(|error| fault::of(&error))?;
        }
        // A pragma takes no parameters; these are numbers of our own.
        let marks = format!("PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {}", MIGRATIONS.len());
        transaction.execute(sqlx::AssertSqlSafe(marks)).await.map_err(|error| fault::of(&error))?;
    }
    // SQLite opens what it cannot write, and there even this transaction only reads.
    transaction.execute("UPDATE meta SET value = value WHERE false").await.map_err(|error| fault::of(&error))?;
    let key = fingerprint_key(&mut transaction).await?;
    transaction.commit().await.map_err(|error| fault::of(&error))?;
    Ok(key)
}

async fn number(connection: &mut SqliteConnection, sql: &'static str) -> Result<i64, JournalError> {
    let row = connection.fetch_one(sql).await.map_err(|error| fault::of(&error))?;
    row.try_get(0).map_err(|error| fault::of(&error))
}

/// Drawn once for each file, which is not written to where it is known.
async fn fingerprint_key(connection: &mut SqliteConnection) -> Result<[u8; 32], JournalError> {
    let known = connection
        .fetch_optional("SELECT value FROM meta WHERE name = 'fingerprint_key'")
        .await
        .map_err(|error| fault::of(&error))?;
    if let Some(row) = known {
        let key: Vec<u8> = row.try_get(0).map_err(|error| fault::of(&error))?;
        let what =
            "the journal's fingerprint key is damaged: put a backup in its place and look up all that was sent since";
        return key.try_into().map_err(|_| JournalError::new(JournalErrorKind::Corrupt, what));
    }
    let mut drawn = [0; 32];
    for half in drawn.chunks_mut(16) {
        half.copy_from_slice(&runtime::random_bytes().map_err(no_random)?);
    }
    sqlx::query("INSERT INTO meta VALUES ('fingerprint_key', ?)")
        .bind(&drawn[..])
        .execute(connection)
        .await
        .map_err(|error| fault::of(&error))?;
    Ok(drawn)
}

pub(super) fn no_random(error: getrandom::Error) -> JournalError {
    JournalError::new(JournalErrorKind::Io, "the operating system's random generator failed").with_source(error)
}
