use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Connection, Executor, Row};
use tokio::sync::{mpsc, oneshot};

use super::fault;
use super::row::{Blob, Form, answer_context, name, request_context};
use crate::engine::Owner;
use crate::fingerprint::Fingerprint;
use crate::journal::{Identity, JournalError, JournalErrorKind, Scope, Status, Stored, codec};
use crate::submission::OperationId;

/// What is asked of the reader.
pub(super) enum Query {
    Load(OperationId, oneshot::Sender<Result<Option<Raw>, JournalError>>),
    List(Scope, oneshot::Sender<Result<Vec<Raw>, JournalError>>),
}

/// An operation as it stands in the file.
pub(super) struct Raw {
    id: String,
    name: Vec<u8>,
    profile: String,
    profile_version: i64,
    account: String,
    keyed: i64,
    key: Option<String>,
    key_lifetime_ms: i64,
    fingerprint: Vec<u8>,
    /// None of them where it is closed; an owner where somebody works on it.
    live: Option<Option<Vec<u8>>>,
    entries: Vec<String>,
    request: Option<Blob>,
    answer: Option<Blob>,
}

/// Reads beside the writer, which WAL lets it.
pub(super) async fn run(mut connection: SqliteConnection, mut queries: mpsc::UnboundedReceiver<Query>) {
    while let Some(query) = queries.recv().await {
        match query {
            Query::Load(id, reply) => {
                let _ = reply.send(load(&mut connection, &id).await.map_err(|error| fault::of(&error)));
            }
            Query::List(scope, reply) => {
                let _ = reply.send(list(&mut connection, &scope).await.map_err(|error| fault::of(&error)));
            }
        }
    }
    let _ = connection.close().await;
}

/// The columns of [`raw`].
const COLUMNS: &str = "seq, id, name, profile, profile_version, account, keyed, key, key_lifetime_ms, fingerprint,
    live.op IS NOT NULL, live.owner";

fn raw(row: &SqliteRow) -> Result<(i64, Raw), sqlx::Error> {
    let is_live: bool = row.try_get(10)?;
    let raw = Raw {
        id: row.try_get(1)?,
        name: row.try_get(2)?,
        profile: row.try_get(3)?,
        profile_version: row.try_get(4)?,
        account: row.try_get(5)?,
        keyed: row.try_get(6)?,
        key: row.try_get(7)?,
        key_lifetime_ms: row.try_get(8)?,
        fingerprint: row.try_get(9)?,
        live: if is_live { Some(row.try_get(11)?) } else { None },
        entries: Vec::new(),
        request: None,
        answer: None,
    };
    Ok((row.try_get(0)?, raw))
}

async fn load(connection: &mut SqliteConnection, id: &OperationId) -> Result<Option<Raw>, sqlx::Error> {
    // One transaction: all of it as it was at one moment.
    let mut snapshot = connection.begin().await?;
    let by_id = sqlx::query(sqlx::AssertSqlSafe(format!(
        "SELECT {COLUMNS} FROM op LEFT JOIN live ON live.op = op.seq WHERE name = ?"
    )))
    .bind(name(id));
    let Some(row) = by_id.fetch_optional(&mut *snapshot).await? else {
        return Ok(None);
    };
    let (seq, mut raw) = raw(&row)?;
    let entries = sqlx::query("SELECT data FROM entry WHERE op = ? ORDER BY pos").bind(seq);
    for row in entries.fetch_all(&mut *snapshot).await? {
        raw.entries.push(row.try_get(0)?);
    }
    raw.request = blob(&mut snapshot, "SELECT form, data FROM request WHERE op = ?", seq).await?;
    let amended =
        sqlx::query("SELECT fingerprint, form, data FROM amendment WHERE op = ? ORDER BY version DESC LIMIT 1");
    if let Some(row) = amended.bind(seq).fetch_optional(&mut *snapshot).await? {
        raw.fingerprint = row.try_get(0)?;
        raw.request = Some(Blob { sealed: row.try_get::<i64, _>(1)? == 1, data: row.try_get(2)? });
    }
    raw.answer = blob(&mut snapshot, "SELECT form, data FROM answer WHERE op = ?", seq).await?;
    snapshot.commit().await?;
    Ok(Some(raw))
}

async fn blob(connection: &mut SqliteConnection, sql: &'static str, seq: i64) -> Result<Option<Blob>, sqlx::Error> {
    let row = sqlx::query(sql).bind(seq).fetch_optional(connection).await?;
    row.map(|row| Ok(Blob { sealed: row.try_get::<i64, _>(0)? == 1, data: row.try_get(1)? })).transpose()
}

async fn list(connection: &mut SqliteConnection, scope: &Scope) -> Result<Vec<Raw>, sqlx::Error> {
    let mut snapshot = connection.begin().await?;
    let live = sqlx::query(sqlx::AssertSqlSafe(format!(
        "SELECT {COLUMNS} FROM live CROSS JOIN op ON op.seq = live.op
         WHERE profile = ? AND account = ? ORDER BY live.op"
    )));
    let rows = live.bind(scope.profile()).bind(scope.account()).fetch_all(&mut *snapshot).await?;
    let mut found = rows.iter().map(raw).collect::<Result<Vec<_>, _>>()?;
    let entries = snapshot.fetch_all("SELECT op, data FROM live CROSS JOIN entry USING (op) ORDER BY op, pos").await?;
    let mut at = 0;
    for row in entries {
        let seq: i64 = row.try_get(0)?;
        // Both are in the order of their places.
        while found.get(at).is_some_and(|(place, _)| *place < seq) {
            at += 1;
        }
        if let Some((place, raw)) = found.get_mut(at)
            && *place == seq
        {
            raw.entries.push(row.try_get(1)?);
        }
    }
    snapshot.commit().await?;
    Ok(found.into_iter().map(|(_, raw)| raw).collect())
}

impl Raw {
    pub(super) fn decoded(self, form: &Form) -> Result<Stored, JournalError> {
        let id = OperationId::from(self.id);
        if self.name != name(&id) {
            return Err(JournalError::new(JournalErrorKind::Corrupt, "an operation's id is damaged"));
        }
        let key = match self.keyed {
            0 => None,
            1 => self.key.map(String::into_boxed_str),
            _ => Some(id.as_str().into()),
        };
        // An id that is the key is abbreviated where it is printed.
        let id = if self.keyed == 2 { id.known_as_key() } else { id };
        let fingerprint = <[u8; 32]>::try_from(self.fingerprint)
            .map_err(|_| JournalError::new(JournalErrorKind::Corrupt, "a fingerprint is damaged"))?;
        let lifetime = std::time::Duration::from_millis(u64::try_from(self.key_lifetime_ms).unwrap_or_default());
        let request =
            self.request.map(|blob| codec::decode_request(&form.open(&request_context(&id), blob)?)).transpose()?;
        let answer =
            self.answer.map(|blob| codec::decode_answer(&form.open(&answer_context(&id), blob)?)).transpose()?;
        let entries = self.entries.iter().map(|entry| codec::decode_entry(entry)).collect::<Result<_, _>>()?;
        let identity = Identity::new(id, Scope::new(self.profile, self.account), Fingerprint::from_bytes(fingerprint))
            .with_key(key, lifetime)
            .with_profile_version(u32::try_from(self.profile_version).unwrap_or(u32::MAX));
        let status = match self.live {
            None => Status::Closed,
            Some(None) => Status::Open,
            Some(Some(owner)) => Status::Running(decode_owner(&owner)?),
        };
        Ok(Stored::new(identity, entries, status).with_exchange(request, answer))
    }
}

fn decode_owner(bytes: &[u8]) -> Result<Owner, JournalError> {
    let bytes = <[u8; 16]>::try_from(bytes)
        .map_err(|_| JournalError::new(JournalErrorKind::Corrupt, "the name of an owner is damaged"))?;
    Ok(Owner::new(u128::from_be_bytes(bytes)))
}
