use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Executor};
use tokio::sync::{mpsc, oneshot};

use super::batch::{self, Places};
use super::fault;
use super::instance::Instance;
use super::row::{Row, name};
use crate::journal::{JournalError, JournalErrorKind};
use crate::runtime;
use crate::submission::OperationId;

/// What is asked of the writer.
pub(super) enum Job {
    Write(Box<Write>),
    Release(OperationId),
    Flush(oneshot::Sender<Result<(), JournalError>>),
    Prune(i64, oneshot::Sender<Result<u64, JournalError>>),
    Close(oneshot::Sender<Result<(), JournalError>>),
}

pub(super) struct Write {
    pub(super) row: Row,
    pub(super) ticket: Ticket,
    pub(super) reply: oneshot::Sender<Result<(), JournalError>>,
}

/// Whether a write was begun or withdrawn: one of the two, never both.
#[derive(Clone, Default)]
pub(super) struct Ticket(Arc<AtomicU8>);

const QUEUED: u8 = 0;
const BEGUN: u8 = 1;
const WITHDRAWN: u8 = 2;

impl Ticket {
    /// Whether it is certain now that it will never be written.
    pub(super) fn withdraw(&self) -> bool {
        self.0.compare_exchange(QUEUED, WITHDRAWN, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn begin(&self) -> bool {
        self.0.compare_exchange(QUEUED, BEGUN, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn is_withdrawn(&self) -> bool {
        self.0.load(Ordering::Acquire) == WITHDRAWN
    }
}

/// How long a write that only has to be visible may take to reach the disk.
const LATEST_FLUSH: Duration = Duration::from_millis(100);

/// How often the file's lock is tried for at close, and for pruning.
const PATIENT: Tries = Tries::AtMost(5000);

/// Between two looks at a lock. SQLite's own busy handler sleeps up to 100 ms,
/// and starves under load.
const LOCK_PAUSE: Duration = Duration::from_millis(1);

/// For how long, at most, a batch waits for one more caller.
const MOMENT: Duration = Duration::from_micros(40);
const MOMENTS: u32 = 5;

/// For how long a lock is tried for.
#[derive(Clone, Copy)]
enum Tries {
    /// As long as somebody waits for what is queued.
    WhileAsked,
    AtMost(u32),
}

/// The one writer of an open journal: whatever is queued goes into one
/// transaction, and so shares its flush.
pub(super) struct Writer {
    connection: SqliteConnection,
    instance: Arc<Instance>,
    jobs: mpsc::UnboundedReceiver<Job>,
    queue: VecDeque<Job>,
    /// What nobody here works on any more; kept until it is on record.
    released: Vec<OperationId>,
    places: Places,
    /// The connection's `synchronous`.
    flushes: Option<bool>,
    /// Something was committed that may not be on the disk.
    unflushed: bool,
    /// How many may ask next: those that the last commit answered, and those
    /// that waited meanwhile.
    expected: usize,
    /// What needs no flush was let go first, by the last batch.
    eased: bool,
}

impl Writer {
    pub(super) fn new(
        connection: SqliteConnection,
        instance: Arc<Instance>,
        jobs: mpsc::UnboundedReceiver<Job>,
    ) -> Self {
        Self {
            connection,
            instance,
            jobs,
            queue: VecDeque::new(),
            released: Vec::new(),
            places: Places::default(),
            flushes: None,
            unflushed: false,
            expected: 0,
            eased: false,
        }
    }

    pub(super) async fn run(mut self) {
        while self.wait().await {
            self.gather();
            self.batch().await;
            if let Some(Job::Close(_)) = self.queue.front() {
                break;
            }
        }
        // Whatever its owner leaves is free.
        self.released.clear();
        let flushed = self.flush(PATIENT).await;
        let closed = self.connection.close().await.map_err(|error| fault::of(&error));
        // Whoever asks anything after this finds the channel closed.
        self.jobs.close();
        // Here, since whoever asked for the end may not wait for it.
        self.instance.give_up();
        while let Ok(job) = self.jobs.try_recv() {
            self.queue.push_back(job);
        }
        for job in self.queue {
            match job {
                Job::Close(reply) => {
                    let outcome = flushed.as_ref().map_or_else(|error| Err(error.again()), |()| told(&closed));
                    let _ = reply.send(outcome);
                }
                Job::Write(write) => {
                    let _ = write.reply.send(Err(super::closed()));
                }
                Job::Flush(reply) => {
                    let _ = reply.send(told(&flushed));
                }
                Job::Prune(_, reply) => {
                    let _ = reply.send(Err(super::closed()));
                }
                Job::Release(_) => {}
            }
        }
    }

    /// Waits for something to do; false when nobody is left to ask for anything.
    async fn wait(&mut self) -> bool {
        if !self.queue.is_empty() {
            return true;
        }
        let job = if self.unflushed || !self.released.is_empty() {
            match runtime::within(LATEST_FLUSH, self.jobs.recv()).await {
                Ok(job) => job,
                Err(_) => {
                    // Tried again after the next pause, should the file be locked.
                    let _ = self.flush(Tries::AtMost(1)).await;
                    return true;
                }
            }
        } else {
            self.jobs.recv().await
        };
        let more = job.is_some();
        self.queue.extend(job);
        more
    }

    /// Takes what is queued. Callers that a commit has just answered ask for
    /// their next write at once: a moment is given to all that there are, since a
    /// flush costs far more, and so they stay in one cohort.
    fn gather(&mut self) {
        let mut idle = 0;
        loop {
            let before = self.queue.len();
            while let Ok(job) = self.jobs.try_recv() {
                self.queue.push_back(job);
            }
            idle = if self.queue.len() == before { idle + 1 } else { 0 };
            if self.queue.len() >= self.expected || idle > MOMENTS {
                return;
            }
            std::thread::sleep(MOMENT);
        }
    }

    async fn batch(&mut self) {
        self.drop_withdrawn();
        match self.queue.front() {
            None | Some(Job::Close(_)) => {}
            Some(Job::Prune(..)) => self.prune().await,
            Some(Job::Write(_) | Job::Release(_) | Job::Flush(_)) => self.write().await,
        }
    }

    fn drop_withdrawn(&mut self) {
        self.queue.retain(|job| match job {
            Job::Write(write) => !write.ticket.is_withdrawn(),
            Job::Flush(reply) => !reply.is_closed(),
            Job::Release(_) | Job::Prune(..) | Job::Close(_) => true,
        });
    }

    async fn write(&mut self) {
        // All that was written before them is on the disk already.
        while !self.unflushed
            && let Some(Job::Flush(_)) = self.queue.front()
        {
            if let Some(Job::Flush(reply)) = self.queue.pop_front() {
                let _ = reply.send(Ok(()));
            }
        }
        if self.queue.is_empty() {
            return;
        }
        let wants_flush = |job: &Job| match job {
            Job::Write(write) => write.row.flushed,
            Job::Flush(_) => true,
            Job::Release(_) | Job::Prune(..) | Job::Close(_) => false,
        };
        let is_ease = |job: &Job| matches!(job, Job::Write(write) if !write.row.flushed);
        let is_barrier = |job: &Job| matches!(job, Job::Prune(..) | Job::Close(_));
        let ready = |queue: &VecDeque<Job>| queue.iter().position(is_barrier).unwrap_or(queue.len());
        let asked = ready(&self.queue);
        let wants = self.queue.range(..asked).any(wants_flush);
        // What needs no flush goes first, once: whoever is answered comes back with what
        // does, and so as many as there are share one.
        let flushed = wants && (self.eased || !self.queue.range(..asked).any(is_ease));
        self.eased = wants && !flushed;
        if let Err(error) = self.begin(flushed, Tries::WhileAsked).await {
            self.fail(&error);
            return;
        }
        let (mut taken, mut others, mut left) = (Vec::new(), Vec::new(), VecDeque::new());
        let rest = self.queue.split_off(ready(&self.queue));
        for job in std::mem::replace(&mut self.queue, rest) {
            match job {
                Job::Release(id) => self.released.push(id),
                // A transaction that is not flushed must not take what has to be.
                job if !flushed && wants_flush(&job) => left.push_back(job),
                Job::Write(write) if write.ticket.begin() => taken.push(write),
                Job::Write(_) => {}
                other => others.push(other),
            }
        }
        left.append(&mut self.queue);
        self.queue = left;
        let answered = taken.len();
        let outcomes = self.transact(&taken, flushed).await;
        self.expected = answered + self.queue.len() + self.jobs.len();
        for (write, outcome) in taken.into_iter().zip(outcomes.writes) {
            let _ = write.reply.send(outcome);
        }
        for job in others {
            if let Job::Flush(reply) = job {
                let _ = reply.send(told(&outcomes.rest));
            }
        }
    }

    /// Opens a transaction that has the write lock. Meanwhile more may be
    /// queued, and all of what is queued may be withdrawn.
    async fn begin(&mut self, flushed: bool, tries: Tries) -> Result<(), JournalError> {
        if self.flushes != Some(flushed) {
            let pragma = if flushed { "PRAGMA synchronous = FULL" } else { "PRAGMA synchronous = NORMAL" };
            self.connection.execute(pragma).await.map_err(|error| fault::of(&error))?;
            self.flushes = Some(flushed);
        }
        let mut tried = 0_u32;
        loop {
            match self.connection.execute("BEGIN IMMEDIATE").await {
                Ok(_) => return Ok(()),
                Err(error) if fault::is_busy(&error) => {}
                Err(error) => return Err(fault::of(&error)),
            }
            tried = tried.saturating_add(1);
            let goes_on = match tries {
                Tries::AtMost(most) => tried < most,
                Tries::WhileAsked => {
                    self.gather();
                    self.drop_withdrawn();
                    self.queue.iter().any(|job| matches!(job, Job::Write(_) | Job::Flush(_)))
                }
            };
            if !goes_on {
                return Err(locked());
            }
            runtime::sleep(LOCK_PAUSE).await;
        }
    }

    /// Writes and commits; the transaction is closed in any case.
    async fn transact(&mut self, writes: &[Box<Write>], flushed: bool) -> Outcomes {
        let written = self.write_all(writes, flushed).await;
        let (seqs, committed) = match written {
            Ok(seqs) => match self.connection.execute("COMMIT").await {
                Ok(_) => (seqs, Ok(())),
                Err(error) if fault::is_certain(&error) => (seqs, Err(fault::of(&error))),
                Err(error) => (seqs, Err(fault::of(&error).unclear())),
            },
            Err(error) => (Vec::new(), Err(fault::of(&error))),
        };
        if let Err(error) = committed {
            // Where the commit closed it, there is nothing to roll back.
            let _ = self.connection.execute("ROLLBACK").await;
            for write in writes {
                self.places.forget(&write.row.id);
            }
            return Outcomes { writes: writes.iter().map(|_| Err(error.again())).collect(), rest: Err(error) };
        }
        self.unflushed = !flushed;
        let mut outcomes = Vec::with_capacity(writes.len());
        for (write, seq) in writes.iter().zip(seqs) {
            match seq {
                Ok(seq) => self.places.keep(&write.row, seq),
                Err(_) => self.places.forget(&write.row.id),
            }
            outcomes.push(seq.map(|_| ()));
        }
        self.released.clear();
        Outcomes { writes: outcomes, rest: Ok(()) }
    }

    async fn write_all(
        &mut self,
        writes: &[Box<Write>],
        flushed: bool,
    ) -> Result<Vec<Result<i64, JournalError>>, sqlx::Error> {
        // First, since the writes may be of those who took it up next.
        let owner = batch::encode_owner(self.instance.owner());
        for id in &self.released {
            self.places.forget(id);
            sqlx::query("UPDATE live SET owner = NULL WHERE owner = ? AND op = (SELECT seq FROM op WHERE name = ?)")
                .bind(&owner[..])
                .bind(name(id))
                .execute(&mut self.connection)
                .await?;
        }
        let rows: Vec<&Row> = writes.iter().map(|write| &write.row).collect();
        self.connection.execute("SAVEPOINT batch").await?;
        let at_once = if rows.iter().any(|row| batch::needs_a_look(row)) {
            None
        } else {
            match batch::all(&mut self.connection, &rows, &self.places).await {
                Ok(seqs) => Some(seqs),
                Err(error) if batch::is_the_rows(&error) => {
                    // The lock is kept: only what was written goes.
                    self.connection.execute("ROLLBACK TO batch").await?;
                    None
                }
                Err(error) => return Err(error),
            }
        };
        let seqs = match at_once {
            Some(seqs) => seqs.into_iter().map(Ok).collect(),
            None => {
                let mut seqs = Vec::with_capacity(rows.len());
                for row in rows {
                    seqs.push(batch::one(&mut self.connection, row, &self.places).await?);
                }
                seqs
            }
        };
        if flushed && seqs.iter().all(Result::is_err) {
            // A commit that writes nothing flushes nothing.
            self.connection.execute("UPDATE meta SET value = value + 1 WHERE name = 'flush'").await?;
        }
        Ok(seqs)
    }

    /// Nothing of what is queued can be written now.
    fn fail(&mut self, error: &JournalError) {
        let failed = std::mem::take(&mut self.queue);
        for job in failed {
            match job {
                Job::Write(write) => {
                    write.ticket.begin();
                    let _ = write.reply.send(Err(error.again()));
                }
                Job::Flush(reply) => {
                    let _ = reply.send(Err(error.again()));
                }
                Job::Release(id) => self.released.push(id),
                Job::Prune(..) | Job::Close(_) => self.queue.push_back(job),
            }
        }
    }

    async fn flush(&mut self, tries: Tries) -> Result<(), JournalError> {
        if !self.unflushed && self.released.is_empty() {
            return Ok(());
        }
        self.begin(true, tries).await?;
        self.transact(&[], true).await.rest
    }

    async fn prune(&mut self) {
        let Some(Job::Prune(before, reply)) = self.queue.pop_front() else {
            return;
        };
        let _ = reply.send(self.prune_before(before).await);
    }

    /// In steps, so that others get at the lock in between.
    async fn prune_before(&mut self, before: i64) -> Result<u64, JournalError> {
        const STEP: i64 = 500;
        let mut pruned = 0;
        let mut after = 0;
        loop {
            self.begin(false, PATIENT).await?;
            self.unflushed = true;
            let step = prune_step(&mut self.connection, before, after, STEP).await;
            let step = match step {
                Ok(step) => self.connection.execute("COMMIT").await.map(|_| step),
                Err(error) => Err(error),
            };
            match step {
                Ok(Some((last, count))) => {
                    pruned += count;
                    after = last;
                }
                Ok(None) => break,
                Err(error) => {
                    let _ = self.connection.execute("ROLLBACK").await;
                    return Err(fault::of(&error));
                }
            }
            // So do the callers of this process.
            self.gather();
            self.drop_withdrawn();
            if let Some(Job::Write(_) | Job::Release(_) | Job::Flush(_)) = self.queue.front() {
                self.write().await;
            }
        }
        self.flush(PATIENT).await?;
        // What was dropped must not linger in the write-ahead log.
        let _ = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").await;
        Ok(pruned)
    }
}

/// Prunes among the next rows; gives the last one looked at and how many were pruned.
async fn prune_step(
    connection: &mut SqliteConnection,
    before: i64,
    after: i64,
    step: i64,
) -> Result<Option<(i64, u64)>, sqlx::Error> {
    use sqlx::Row as _;
    let last = sqlx::query("SELECT max(seq) FROM (SELECT seq FROM op WHERE seq > ? ORDER BY seq LIMIT ?)")
        .bind(after)
        .bind(step)
        .fetch_one(&mut *connection)
        .await?;
    let Some(last) = last.try_get::<Option<i64>, _>(0)? else {
        return Ok(None);
    };
    let old = "op IN (SELECT seq FROM op WHERE seq > ?1 AND seq <= ?2 AND created_at <= ?3
               AND NOT EXISTS (SELECT 1 FROM live WHERE live.op = seq))";
    let mut pruned = 0;
    // Of a corrected request the fingerprint stays: by it the operation is told from another.
    let newest = "SELECT fingerprint FROM amendment WHERE op = op.seq ORDER BY version DESC LIMIT 1";
    let kept = format!("UPDATE op SET fingerprint = ({newest}) WHERE seq IN (SELECT op FROM amendment WHERE {old})");
    sqlx::query(sqlx::AssertSqlSafe(kept)).bind(after).bind(last).bind(before).execute(&mut *connection).await?;
    for (table, counts) in [("request", true), ("amendment", false), ("answer", false)] {
        let done = sqlx::query(sqlx::AssertSqlSafe(format!("DELETE FROM {table} WHERE {old}")))
            .bind(after)
            .bind(last)
            .bind(before)
            .execute(&mut *connection)
            .await?;
        pruned += if counts { done.rows_affected() } else { 0 };
    }
    Ok(Some((last, pruned)))
}

struct Outcomes {
    writes: Vec<Result<(), JournalError>>,
    rest: Result<(), JournalError>,
}

/// The same outcome for one more caller.
fn told(outcome: &Result<(), JournalError>) -> Result<(), JournalError> {
    outcome.as_ref().copied().map_err(JournalError::again)
}

pub(super) fn locked() -> JournalError {
    JournalError::new(JournalErrorKind::Locked, "the journal stayed locked by another process for too long")
}
