use std::collections::HashMap;

use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnection};
use sqlx::{AssertSqlSafe, Executor, Row as _};

use super::fault;
use super::row::{Blob, NewRow, Row, name};
use crate::engine::Owner;
use crate::journal::{JournalError, JournalErrorKind, Status};
use crate::submission::OperationId;

/// Where the operations that this process works on stand in the file: a row
/// that is not known here is looked up first.
#[derive(Default)]
pub(super) struct Places(HashMap<OperationId, Place>);

#[derive(Clone, Copy)]
struct Place {
    seq: i64,
    /// How many entries there are, unless somebody else wrote.
    entries: i64,
    status: Status,
}

impl Places {
    pub(super) fn forget(&mut self, id: &OperationId) {
        self.0.remove(id);
    }

    /// After a commit.
    pub(super) fn keep(&mut self, row: &Row, seq: i64) {
        // What nobody works on is looked up again, should it be: there may be many of them.
        if matches!(row.status, Status::Running(_)) {
            let entries = row.position + row.entries.len() as i64;
            self.0.insert(row.id.clone(), Place { seq, entries, status: row.status });
        } else {
            self.0.remove(&row.id);
        }
    }
}

/// The rows of a batch with their places.
type Placed<'a> = (&'a Row, i64);

/// Writes all rows in the transaction that is open, and gives their places. An
/// error of a constraint means that some row cannot be written: see [`one`].
pub(super) async fn all(
    connection: &mut SqliteConnection,
    rows: &[&Row],
    places: &Places,
) -> Result<Vec<i64>, sqlx::Error> {
    let seqs = place(connection, rows, places).await?;
    let placed: Vec<Placed<'_>> = rows.iter().copied().zip(seqs.iter().copied()).collect();
    let new: Vec<(&NewRow, Placed<'_>)> =
        placed.iter().filter_map(|placed| placed.0.new.as_ref().map(|new| (new, *placed))).collect();
    insert(connection, "INSERT INTO op VALUES", 11, &new, |query, (new, (row, seq))| {
        query
            .bind(*seq)
            .bind(row.id.as_str())
            .bind(name(&row.id))
            .bind(&*new.profile)
            .bind(new.profile_version)
            .bind(&*new.account)
            .bind(new.keyed)
            .bind(new.key.as_deref())
            .bind(new.key_lifetime_ms)
            .bind(&new.fingerprint[..])
            .bind(new.created_at)
    })
    .await?;
    let requests: Vec<(i64, &Blob)> = new.iter().map(|(new, (_, seq))| (*seq, &new.request)).collect();
    blobs(connection, "INSERT INTO request VALUES", &requests).await?;
    let entries: Vec<(i64, i64, &str)> = placed
        .iter()
        .flat_map(|(row, seq)| (row.position..).zip(&row.entries).map(|(pos, entry)| (*seq, pos, entry.as_str())))
        .collect();
    insert(connection, "INSERT INTO entry VALUES", 3, &entries, |query, (seq, pos, entry)| {
        query.bind(*seq).bind(*pos).bind(*entry)
    })
    .await?;
    for (row, seq) in &placed {
        if let Some(amendment) = &row.amendment {
            sqlx::query("INSERT INTO amendment VALUES (?, ?, ?, ?, ?)")
                .bind(*seq)
                .bind(amendment.version)
                .bind(&amendment.fingerprint[..])
                .bind(i64::from(amendment.request.sealed))
                .bind(&amendment.request.data[..])
                .execute(&mut *connection)
                .await?;
        }
    }
    let answers: Vec<(i64, &Blob)> =
        placed.iter().filter_map(|(row, seq)| row.answer.as_ref().map(|answer| (*seq, answer))).collect();
    blobs(connection, "INSERT OR REPLACE INTO answer VALUES", &answers).await?;
    let outdated: Vec<i64> = placed.iter().filter(|(row, _)| row.outdates).map(|(_, seq)| *seq).collect();
    chunked(connection, "DELETE FROM answer WHERE op IN (VALUES ", ")", 1, &outdated, |query, seq| query.bind(*seq))
        .await?;
    statuses(connection, &placed, places).await?;
    Ok(seqs)
}

async fn statuses(
    connection: &mut SqliteConnection,
    placed: &[Placed<'_>],
    places: &Places,
) -> Result<(), sqlx::Error> {
    let changes = |row: &Row| places.0.get(&row.id).is_none_or(|place| place.status != row.status);
    let owner = |status: Status| match status {
        Status::Running(owner) => Some(Some(owner)),
        Status::Open => Some(None),
        Status::Closed => None,
    };
    let open: Vec<(i64, Option<[u8; 16]>)> = placed
        .iter()
        .filter(|(row, _)| changes(row))
        .filter_map(|(row, seq)| owner(row.status).map(|owner| (*seq, owner.map(encode_owner))))
        .collect();
    insert(connection, "INSERT OR REPLACE INTO live VALUES", 2, &open, |query, (seq, owner)| {
        query.bind(*seq).bind(owner.as_ref().map(|owner| &owner[..]))
    })
    .await?;
    let closed: Vec<i64> = placed
        .iter()
        .filter(|(row, _)| row.status == Status::Closed && row.new.is_none())
        .map(|(_, seq)| *seq)
        .collect();
    chunked(connection, "DELETE FROM live WHERE op IN (VALUES ", ")", 1, &closed, |query, seq| query.bind(*seq)).await
}

/// Where each row goes: new ones at the end.
async fn place(connection: &mut SqliteConnection, rows: &[&Row], places: &Places) -> Result<Vec<i64>, sqlx::Error> {
    let mut last = 0;
    if rows.iter().any(|row| row.new.is_some()) {
        last = connection.fetch_one("SELECT coalesce(max(seq), 0) FROM op").await?.try_get(0)?;
    }
    let mut seqs = Vec::with_capacity(rows.len());
    for row in rows {
        if row.new.is_some() {
            last += 1;
            seqs.push(last);
            continue;
        }
        let seq = match places.0.get(&row.id) {
            Some(place) if place.entries == row.position => place.seq,
            Some(_) | None => look_up(connection, row).await?,
        };
        seqs.push(seq);
    }
    Ok(seqs)
}

/// The place of a row, if its record is as long as its writer believes.
async fn look_up(connection: &mut SqliteConnection, row: &Row) -> Result<i64, sqlx::Error> {
    let found = sqlx::query("SELECT seq, (SELECT count(*) FROM entry WHERE op = seq) FROM op WHERE name = ?")
        .bind(name(&row.id))
        .fetch_optional(&mut *connection)
        .await?;
    match found {
        Some(found) if found.try_get::<i64, _>(1)? == row.position => found.try_get(0),
        Some(_) | None => Err(sqlx::Error::RowNotFound),
    }
}

/// Writes one row on its own, behind a savepoint: the outer error is the
/// file's, the inner one the row's.
pub(super) async fn one(
    connection: &mut SqliteConnection,
    row: &Row,
    places: &Places,
) -> Result<Result<i64, JournalError>, sqlx::Error> {
    connection.execute("SAVEPOINT one").await?;
    let written = match taken(connection, row).await? {
        Some(kind) => Err(refusal(kind)),
        None => match all(connection, &[row], places).await {
            Ok(seqs) => Ok(seqs.first().copied().unwrap_or_default()),
            Err(error) if is_the_rows(&error) => Err(refusal(JournalErrorKind::Conflict)),
            Err(error) => return Err(error),
        },
    };
    if written.is_err() {
        connection.execute("ROLLBACK TO one").await?;
    }
    connection.execute("RELEASE one").await?;
    Ok(written)
}

/// Whether it is a row that cannot be written, and not the file.
pub(super) fn is_the_rows(error: &sqlx::Error) -> bool {
    fault::is_constraint(error) || matches!(error, sqlx::Error::RowNotFound)
}

/// Whether a new operation's id or key is somebody else's.
async fn taken(connection: &mut SqliteConnection, row: &Row) -> Result<Option<JournalErrorKind>, sqlx::Error> {
    let Some(new) = &row.new else {
        return Ok(None);
    };
    let id = sqlx::query("SELECT 1 FROM op WHERE name = ?").bind(name(&row.id));
    if id.fetch_optional(&mut *connection).await?.is_some() {
        return Ok(Some(JournalErrorKind::IdTaken));
    }
    let Some(key) = new.key.as_deref().or(new.look_for.as_deref()) else {
        return Ok(None);
    };
    let held = sqlx::query(
        "SELECT 1 FROM op WHERE key = ?1 AND profile = ?2 AND account = ?3
         UNION ALL SELECT 1 FROM op WHERE name = ?4 AND keyed = 2 AND profile = ?2 AND account = ?3",
    )
    .bind(key)
    .bind(&*new.profile)
    .bind(&*new.account)
    .bind(name(&OperationId::from(key)));
    Ok(held.fetch_optional(connection).await?.map(|_| JournalErrorKind::KeyTaken))
}

/// Whether a batch holds a row that only [`one`] checks well enough.
pub(super) fn needs_a_look(row: &Row) -> bool {
    row.new.as_ref().is_some_and(|new| new.look_for.is_some())
}

fn refusal(kind: JournalErrorKind) -> JournalError {
    let what = match kind {
        JournalErrorKind::IdTaken => "the operation's id is taken",
        JournalErrorKind::KeyTaken => "another operation holds the key",
        _ => "somebody else wrote to the operation's record",
    };
    JournalError::new(kind, what)
}

pub(super) const fn encode_owner(owner: Owner) -> [u8; 16] {
    owner.id().to_be_bytes()
}

type Statement<'q> = Query<'q, Sqlite, SqliteArguments>;

async fn blobs(connection: &mut SqliteConnection, head: &str, rows: &[(i64, &Blob)]) -> Result<(), sqlx::Error> {
    insert(connection, head, 3, rows, |query, (seq, blob)| {
        query.bind(*seq).bind(i64::from(blob.sealed)).bind(&blob.data[..])
    })
    .await
}

async fn insert<'q, T>(
    connection: &mut SqliteConnection,
    head: &str,
    columns: usize,
    rows: &'q [T],
    bind: impl Fn(Statement<'q>, &'q T) -> Statement<'q>,
) -> Result<(), sqlx::Error> {
    chunked(connection, head, "", columns, rows, bind).await
}

/// One statement for many rows, in chunks of powers of two: each length is
/// prepared once, and a statement costs more than a row.
async fn chunked<'q, T>(
    connection: &mut SqliteConnection,
    head: &str,
    tail: &str,
    columns: usize,
    mut rows: &'q [T],
    bind: impl Fn(Statement<'q>, &'q T) -> Statement<'q>,
) -> Result<(), sqlx::Error> {
    while !rows.is_empty() {
        let size = 1 << rows.len().min(64).ilog2();
        let (chunk, rest) = rows.split_at(size);
        rows = rest;
        let one = format!("({})", vec!["?"; columns].join(","));
        let text = format!("{head} {}{tail}", vec![one.as_str(); size].join(","));
        let query = chunk.iter().fold(sqlx::query(AssertSqlSafe(text)), &bind);
        query.execute(&mut *connection).await?;
    }
    Ok(())
}
