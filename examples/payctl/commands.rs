use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::{Duration, SystemTime};

use oncekey::journal::{JournalError, JournalErrorKind, Sqlite};
use oncekey::{Client, Effect, Error, ErrorKind, OperationRecord, RecordState, Response, Retry};
use reqwest::header::HeaderValue;

use crate::Exit;
use crate::args::{Args, Command, Limits, Pay, Resume};
use crate::progress::{Progress, interrupted};
use crate::show;
use crate::words::{self, Hints, note, say};

pub(crate) type Done = Result<Exit, String>;

pub(crate) async fn run(args: &Args) -> Done {
    #[cfg(feature = "sandbox")]
    if let Command::Sandbox { lose } = args.command {
        return serve(lose).await.map_err(|error| words::chain(&error));
    }
    let token = token()?;
    let limits = match &args.command {
        Command::Pay(pay) => pay.limits,
        Command::Resume(resume) => resume.limits,
        _ => Limits::default(),
    };
    let desk = Desk { client: client(args, limits).await?, token, hints: Hints::new(args) };
    match &args.command {
        Command::Pay(pay) => desk.pay(pay).await,
        Command::List => desk.list().await,
        Command::Show { id } => desk.show(id).await,
        Command::Resume(Resume { id: Some(id), .. }) => desk.resume(id).await,
        Command::Resume(_) => desk.resume_all().await,
        Command::Resolve { id, effect, by, note } => {
            desk.settled(id, desk.client.resolve(id.as_str(), (*effect).into(), by, note).await)
        }
        Command::Abandon { id } => desk.settled(id, desk.client.abandon(id.as_str()).await),
        #[cfg(feature = "sandbox")]
        Command::Sandbox { .. } => unreachable!("it was served above"),
    }
}

/// What every command works with.
struct Desk {
    client: Client,
    token: Option<String>,
    hints: Hints,
}

impl Desk {
    async fn pay(&self, pay: &Pay) -> Done {
        let body = serde_json::json!({ "amount": pay.amount, "to": pay.to, "reference": pay.id });
        let mut request = self.client.post(pay.url.clone()).operation(pay.id.as_str()).json(&body);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        self.carry(&pay.id, request.send()).await
    }

    async fn resume(&self, id: &str) -> Done {
        let mut resume = self.client.resume(id);
        if let Some(token) = &self.token {
            resume = resume.bearer_auth(token);
        }
        self.carry(id, resume.send()).await
    }

    /// Shows how it goes until it has an end or is interrupted.
    async fn carry(&self, id: &str, sending: impl Future<Output = Result<Response, Error>>) -> Done {
        let mut progress = Progress::new(id);
        let mut sending = Box::pin(sending);
        let mut stop = Box::pin(interrupted());
        let ended = loop {
            tokio::select! {
                biased;
                ended = &mut sending => break Some(ended),
                () = &mut stop => break None,
                () = progress.tick() => progress.show(self.lookup(id).await.as_ref()),
            }
        };
        // What was dropped is free at once, and the record tells how far it came.
        drop(sending);
        progress.clear();
        match ended {
            Some(Ok(response)) => Ok(self.applied(id, &response)),
            Some(Err(error)) => self.failed(id, &error).await,
            None => Ok(self.stopped(id).await),
        }
    }

    fn applied(&self, id: &str, response: &Response) -> Exit {
        let replay = if response.is_replay() { ", a replay: it was paid before that" } else { "" };
        let how = match response.attempts().last().map(|last| last.number()) {
            None => ", from the record".to_owned(),
            Some(1) => replay.to_owned(),
            Some(number) => format!(", at attempt {number}{replay}"),
        };
        say(format!("{}: applied, {}{how}", words::line(id), response.status().as_u16()));
        print_body(response.bytes());
        if let Err(error) = response.recorded() {
            note(format!("It is paid, but that could not be written down: {}", words::chain(error)));
        }
        Exit::Applied
    }

    async fn failed(&self, id: &str, error: &Error) -> Done {
        let record = self.lookup(id).await;
        let what = words::what(error);
        match error.kind() {
            // Nothing was done: the effect, if any, is that of what is on record.
            ErrorKind::Mismatch => {
                let see = match record {
                    Some(_) => format!("see `{}`", self.hints.show(id)),
                    None => "it may be under another --profile or --account".to_owned(),
                };
                return Err(format!("{what}; {see}. Another payment needs another --id"));
            }
            ErrorKind::Request if record.is_none() => return Err(what),
            ErrorKind::Journal if is_missing(error) => return Err(self.nobody(id)),
            _ => {}
        }
        say(format!("{}: {}, {}", words::line(id), error.effect(), what));
        if let Some(response) = error.response() {
            print_body(response.bytes());
        }
        if let Some(cause) = std::error::Error::source(error) {
            note(format!("Cause: {}", words::chain(cause)));
        }
        note(self.hints.after(id, error.effect(), Some(error), record.as_ref()));
        Ok(error.effect().into())
    }

    async fn stopped(&self, id: &str) -> Exit {
        let record = match self.client.lookup(id).await {
            Ok(Some(record)) => record,
            Ok(None) => {
                say(format!("{}: not applied, stopped before anything was sent", words::line(id)));
                return Exit::NotApplied;
            }
            Err(error) => {
                say(format!("{}: unknown, stopped, and its record cannot be read", words::line(id)));
                note(format!("Cause: {}", words::chain(&error)));
                return Exit::Unknown;
            }
        };
        say(format!("{}: {}, stopped after {}", words::line(id), record.effect(), words::attempts(&record)));
        note(self.hints.after(id, record.effect(), None, Some(&record)));
        record.effect().into()
    }

    async fn resume_all(&self) -> Done {
        let mut all = self.client.resume_all();
        if let Some(token) = &self.token {
            all = all.bearer_auth(token);
        }
        let (begun, _) = self.open().await?;
        let mut ends = all.start().await.map_err(|error| words::chain(&error))?;
        let mut stop = Box::pin(interrupted());
        let mut done = 0;
        let (mut stopped, mut refused) = (false, false);
        loop {
            let (id, end) = tokio::select! {
                biased;
                () = &mut stop => {
                    stopped = true;
                    break;
                }
                end = ends.next() => match end {
                    Some(end) => end,
                    None => break,
                },
            };
            done += 1;
            match end {
                Ok(response) => {
                    say(format!("{}: applied, {}", words::line(id.as_str()), response.status().as_u16()));
                }
                Err(error) => {
                    refused |= error.effect() == Effect::NotApplied;
                    say(format!("{}: {}, {}", words::line(id.as_str()), error.effect(), words::what(&error)));
                    if let Some(cause) = std::error::Error::source(&error) {
                        note(format!("Cause: {}", words::chain(cause)));
                    }
                }
            }
        }
        drop(ends);
        if stopped {
            note("Stopped.");
            self.freed(&begun).await;
        }
        let (unfinished, doubtful) = self.open().await?;
        if done == 0 && unfinished.is_empty() {
            note("Nothing to resume.");
        }
        if !unfinished.is_empty() {
            let number = words::count(unfinished.len(), "payment");
            let next = unfinished.iter().filter_map(OperationRecord::resume_at).min();
            let wait = next.and_then(|at| at.duration_since(SystemTime::now()).ok());
            let when = wait.map_or_else(String::new, |wait| format!(", the first not due for {}", words::span(wait)));
            note(format!("{number} left unfinished{when}: see `{}`.", self.hints.list()));
        }
        if !doubtful.is_empty() {
            let number = words::count(doubtful.len(), "payment");
            note(format!("{number} in doubt, which cannot be sent again: see `{}`.", self.hints.list()));
        }
        let left = || unfinished.iter().chain(&doubtful);
        if left().any(|record| record.effect() == Effect::Unknown) {
            return Ok(Exit::Unknown);
        }
        refused |= left().any(|record| record.effect() == Effect::NotApplied);
        Ok(if refused { Exit::NotApplied } else { Exit::Applied })
    }

    async fn list(&self) -> Done {
        let (unfinished, doubtful) = self.open().await?;
        if unfinished.is_empty() && doubtful.is_empty() {
            note(format!("Nothing unfinished, nothing in doubt ({}).", self.hints.scope()));
            return Ok(Exit::Applied);
        }
        let mut records = Vec::with_capacity(unfinished.len() + doubtful.len());
        for record in unfinished.into_iter().chain(doubtful) {
            // Lists come without answers.
            records.push(self.lookup(record.id().as_str()).await.unwrap_or(record));
        }
        say(show::table(&records));
        Ok(Exit::Applied)
    }

    async fn show(&self, id: &str) -> Done {
        match self.client.lookup(id).await.map_err(|error| words::chain(&error))? {
            Some(record) => {
                say(show::whole(&record, &self.hints));
                Ok(Exit::Applied)
            }
            None => Err(self.nobody(id)),
        }
    }

    fn settled(&self, id: &str, outcome: Result<(), Error>) -> Done {
        match outcome {
            Ok(()) => {
                say(format!("{}: settled; see `{}`", words::line(id), self.hints.show(id)));
                Ok(Exit::Applied)
            }
            Err(error) if is_missing(&error) => Err(self.nobody(id)),
            Err(error) => Err(format!("{}: {}; the effect on record is: {}", id, words::what(&error), error.effect())),
        }
    }

    async fn open(&self) -> Result<(Vec<OperationRecord>, Vec<OperationRecord>), String> {
        let failed = |error: JournalError| words::chain(&error);
        let unfinished = self.client.unfinished().await.map_err(failed)?;
        Ok((unfinished, self.client.in_doubt().await.map_err(failed)?))
    }

    /// Waits until nothing that was dropped counts as worked on: tasks that are
    /// aborted end a little later.
    async fn freed(&self, records: &[OperationRecord]) {
        for record in records {
            for _ in 0..100 {
                let state = self.lookup(record.id().as_str()).await.map(|record| record.state());
                if state != Some(RecordState::Running) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }

    async fn lookup(&self, id: &str) -> Option<OperationRecord> {
        self.client.lookup(id).await.ok().flatten()
    }

    fn nobody(&self, id: &str) -> String {
        format!(
            "no payment {} is on record with {}: look at id, --journal, --profile and --account",
            words::line(id),
            self.hints.scope()
        )
    }
}

#[cfg(feature = "sandbox")]
async fn serve(lose: usize) -> io::Result<Exit> {
    use oncekey::sandbox::{Fault, Sandbox};

    let sandbox = Sandbox::start().await?;
    sandbox.fail_next([Fault::answer_lost().times(lose)]);
    say(sandbox.url("/v1/payments"));
    interrupted().await;
    let (executions, requests) = (sandbox.executions(), sandbox.requests().len());
    note(format!("{}, {}", words::count(executions, "execution"), words::count(requests, "request")));
    Ok(Exit::Applied)
}

/// Whether the journal has no payment of that id.
fn is_missing(error: &Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<JournalError>());
    error.kind() == ErrorKind::Journal && cause.is_some_and(|cause| cause.kind() == JournalErrorKind::Missing)
}

/// Never by an argument, which every user of the machine can read.
fn token() -> Result<Option<String>, String> {
    let Some(token) = std::env::var_os("PAYCTL_TOKEN").filter(|token| !token.is_empty()) else {
        return Ok(None);
    };
    let token = token.into_string().ok().filter(|token| HeaderValue::try_from(format!("Bearer {token}")).is_ok());
    token
        .map(Some)
        .ok_or_else(|| "PAYCTL_TOKEN holds a character that a header cannot: is there a newline in it?".to_owned())
}

async fn client(args: &Args, limits: Limits) -> Result<Client, String> {
    let builder = Client::builder()
        .profile(args.profile.profile())
        .account(args.account.as_deref().unwrap_or_default())
        .http(|http| http.user_agent(concat!("payctl/", env!("CARGO_PKG_VERSION"))))
        .retry(Retry::default().max_attempts(limits.attempts))
        .deadline(Duration::from_secs(limits.deadline))
        .journal(journal(&args.journal, args.create).await?);
    builder.build().map_err(|error| words::chain(&error))
}

async fn journal(path: &Path, create: bool) -> Result<Sqlite, String> {
    let opened = if create { Sqlite::open_or_create(path).await } else { Sqlite::open(path).await };
    opened.map_err(|error| match error.kind() {
        JournalErrorKind::Missing
            if !create && path.parent().is_none_or(|folder| folder.as_os_str().is_empty() || folder.is_dir()) =>
        {
            format!(
                "there is no journal at {}: correct --journal, or add --create if this is the first run \
                 (an empty journal has forgotten every payment)",
                path.display()
            )
        }
        _ => words::chain(&error),
    })
}

/// As it came into a pipe; on a terminal without what could steer it.
fn print_body(body: &[u8]) {
    let body = body.strip_suffix(b"\n").unwrap_or(body);
    match body {
        [] => {}
        _ if io::stdout().is_terminal() => say(words::harmless(body)),
        _ => say(body),
    }
}
