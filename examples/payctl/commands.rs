use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use clap::{ArgMatches, CommandFactory};
use oncekey::journal::{JournalError, JournalErrorKind, Sqlite};
use oncekey::{Client, Effect, Error, ErrorKind, OperationRecord, RecordState, Response, Retry};

use crate::Exit;
use crate::args::{Args, Command, Pay, Resume};
use crate::config::Settings;
use crate::json;
use crate::problem::Problem;
use crate::progress::{Progress, interrupted};
use crate::show;
use crate::words::{self, Hints, note, say};

pub(crate) type Done = Result<Exit, Problem>;

pub(crate) async fn run(args: &Args, typed: &ArgMatches) -> Done {
    match &args.command {
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(clap_complete::Shell::from(*shell), &mut Args::command(), "payctl", &mut script);
            return Ok(printed(&script));
        }
        Command::Man { command } => return Ok(printed(&manual(command.as_deref())?)),
        #[cfg(feature = "sandbox")]
        Command::Sandbox { lose } => return serve(*lose).await.map_err(|error| words::chain(&error).into()),
        _ => {}
    }
    let settings = Settings::read(args)?;
    let progress = Arc::new(Progress::new(args.quiet));
    let desk = Desk {
        client: client(&settings, args.create, &progress).await?,
        hints: Hints::new(&settings, typed),
        settings,
        progress,
        is_json: args.json,
    };
    match &args.command {
        Command::Pay(pay) => desk.pay(pay).await,
        Command::List => desk.list().await,
        Command::Show { id } => desk.show(id).await,
        Command::Resume(Resume { id: Some(id), .. }) => desk.resume(id).await,
        Command::Resume(_) => desk.resume_all().await,
        Command::Resolve { id, effect, by, note } => {
            desk.settled(id, desk.client.resolve(id.as_str(), (*effect).into(), by, note).await).await
        }
        Command::Abandon { id } => desk.settled(id, desk.client.abandon(id.as_str()).await).await,
        Command::Completion { .. } | Command::Man { .. } => unreachable!("it was printed above"),
        #[cfg(feature = "sandbox")]
        Command::Sandbox { .. } => unreachable!("it was served above"),
    }
}

/// What every command works with.
struct Desk {
    client: Client,
    settings: Settings,
    hints: Hints,
    progress: Arc<Progress>,
    is_json: bool,
}

impl Desk {
    async fn pay(&self, pay: &Pay) -> Done {
        let Some(url) = self.settings.url.clone() else {
            return Err("where to? Give --url, PAYCTL_URL, or `url` in the configuration".to_owned().into());
        };
        let body = serde_json::json!({ "amount": pay.amount, "to": pay.to, "reference": pay.id });
        let mut request = self.client.post(url).operation(pay.id.as_str()).json(&body);
        if let Some(token) = &self.settings.token {
            request = request.bearer_auth(token);
        }
        self.carry(&pay.id, request.send()).await
    }

    async fn resume(&self, id: &str) -> Done {
        let mut resume = self.client.resume(id);
        if let Some(token) = &self.settings.token {
            resume = resume.bearer_auth(token);
        }
        self.carry(id, resume.send()).await
    }

    /// Until it has an end or is interrupted. Meanwhile the client's hook shows how it goes.
    async fn carry(&self, id: &str, sending: impl Future<Output = Result<Response, Error>>) -> Done {
        // Another process is waited for, and no event tells so.
        if self.lookup(id).await.is_some_and(|record| record.state() == RecordState::Running) {
            self.progress.waits(id);
        }
        let mut sending = Box::pin(sending);
        let ended = tokio::select! {
            biased;
            ended = &mut sending => Some(ended),
            () = interrupted() => None,
        };
        // What was dropped is free at once, and the record tells how far it came.
        drop(sending);
        self.progress.clear();
        match ended {
            Some(Ok(response)) => Ok(self.applied(id, &response)),
            Some(Err(error)) => self.failed(id, &error).await,
            None => Ok(self.stopped(id).await),
        }
    }

    fn applied(&self, id: &str, response: &Response) -> Exit {
        if self.is_json {
            json::print(&json::Payment::applied(id, response));
        } else {
            let replay = if response.is_replay() { ", a replay: it was paid before that" } else { "" };
            let how = match response.attempts().last().map(|last| last.number()) {
                None => ", from the record".to_owned(),
                Some(1) => replay.to_owned(),
                Some(number) => format!(", at attempt {number}{replay}"),
            };
            say(format!("{}: applied, {}{how}", words::line(id), response.status().as_u16()));
            print_body(response.bytes());
        }
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
                let message = format!("{what}; {see}. Another payment needs another --id");
                return Err(Problem::of(error, id, message));
            }
            ErrorKind::Request if record.is_none() => return Err(Problem::of(error, id, what)),
            ErrorKind::Journal if is_missing(error) => return Err(self.nobody(id)),
            _ => {}
        }
        if self.is_json {
            json::print(&json::Payment::failed(id, error));
        } else {
            say(format!("{}: {}, {}", words::line(id), error.effect(), what));
            if let Some(response) = error.response() {
                print_body(response.bytes());
            }
        }
        if let Some(cause) = std::error::Error::source(error) {
            note(format!("Cause: {}", words::chain(cause)));
        }
        note(self.hints.after(id, error.effect(), Some(error), record.as_ref()));
        Ok(error.effect().into())
    }

    async fn stopped(&self, id: &str) -> Exit {
        let found = self.client.lookup(id).await;
        let (effect, text) = match &found {
            Ok(Some(record)) => (record.effect(), format!("stopped after {}", words::attempts(record))),
            Ok(None) => (Effect::NotApplied, "stopped before anything was sent".to_owned()),
            Err(_) => (Effect::Unknown, "stopped, and its record cannot be read".to_owned()),
        };
        let record = found.as_ref().ok().and_then(Option::as_ref);
        if self.is_json {
            json::print(&json::Payment::stopped(id, effect, record, &self.progress.ended(id)));
        } else {
            say(format!("{}: {effect}, {text}", words::line(id)));
        }
        match &found {
            Ok(Some(record)) => note(self.hints.after(id, effect, None, Some(record))),
            Ok(None) => {}
            Err(error) => note(format!("Cause: {}", words::chain(error))),
        }
        effect.into()
    }

    async fn resume_all(&self) -> Done {
        let mut all = self.client.resume_all();
        if let Some(token) = &self.settings.token {
            all = all.bearer_auth(token);
        }
        let (begun, _) = self.open().await?;
        let mut ends = all.start().await.map_err(|error| Problem::journal(words::chain(&error)))?;
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
            refused |= end.as_ref().is_err_and(|error| error.effect() == Effect::NotApplied);
            self.progress.beside(|| self.one_of_all(id.as_str(), &end));
        }
        drop(ends);
        self.progress.clear();
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

    fn one_of_all(&self, id: &str, end: &Result<Response, Error>) {
        match end {
            Ok(response) if self.is_json => json::print(&json::Payment::applied(id, response)),
            Ok(response) => say(format!("{}: applied, {}", words::line(id), response.status().as_u16())),
            Err(error) if self.is_json => json::print(&json::Payment::failed(id, error)),
            Err(error) => say(format!("{}: {}, {}", words::line(id), error.effect(), words::what(error))),
        }
        if let Some(cause) = end.as_ref().err().and_then(std::error::Error::source) {
            note(format!("Cause: {}", words::chain(cause)));
        }
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
        if self.is_json {
            records.iter().for_each(|record| json::print(&json::Record::listed(record)));
        } else {
            say(show::table(&records));
        }
        Ok(Exit::Applied)
    }

    async fn show(&self, id: &str) -> Done {
        match self.client.lookup(id).await.map_err(|error| Problem::journal(words::chain(&error)))? {
            Some(record) if self.is_json => json::print(&json::Record::whole(&record)),
            Some(record) => say(show::whole(&record, &self.hints)),
            None => return Err(self.nobody(id)),
        }
        Ok(Exit::Applied)
    }

    async fn settled(&self, id: &str, outcome: Result<(), Error>) -> Done {
        match outcome {
            Ok(()) => {
                if !self.is_json {
                    say(format!("{}: settled; see `{}`", words::line(id), self.hints.show(id)));
                } else if let Some(record) = self.lookup(id).await {
                    json::print(&json::Record::whole(&record));
                }
                Ok(Exit::Applied)
            }
            Err(error) if is_missing(&error) => Err(self.nobody(id)),
            Err(error) => {
                let what = words::what(&error);
                let message = format!("{}: {what}; the effect on record is: {}", words::line(id), error.effect());
                Err(Problem::of(&error, id, message))
            }
        }
    }

    async fn open(&self) -> Result<(Vec<OperationRecord>, Vec<OperationRecord>), Problem> {
        let failed = |error: JournalError| Problem::journal(words::chain(&error));
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

    fn nobody(&self, id: &str) -> Problem {
        let message = format!(
            "no payment {} is on record with {}: look at id, --journal, --profile and --account",
            words::line(id),
            self.hints.scope()
        );
        Problem { kind: "missing", id: Some(id.to_owned()), effect: None, message }
    }
}

fn printed(page: &[u8]) -> Exit {
    say(page.strip_suffix(b"\n").unwrap_or(page));
    Exit::Applied
}

fn manual(of: Option<&str>) -> Result<Vec<u8>, String> {
    let mut command = Args::command();
    command.build();
    let page = match of {
        None => command,
        Some(name) => command
            .find_subcommand(name)
            .cloned()
            .ok_or_else(|| format!("there is no command {}", words::line(name)))?,
    };
    let mut text = Vec::new();
    let source = concat!("payctl ", env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(page).manual("").source(source).render(&mut text).map_err(|error| error.to_string())?;
    Ok(text)
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

async fn client(settings: &Settings, create: bool, progress: &Arc<Progress>) -> Result<Client, Problem> {
    let progress = Arc::clone(progress);
    let builder = Client::builder()
        .profile(settings.profile.clone())
        .account(settings.account.as_deref().unwrap_or_default())
        .http(|http| http.user_agent(concat!("payctl/", env!("CARGO_PKG_VERSION"))))
        .retry(Retry::default().max_attempts(settings.attempts))
        .attempt_timeout(settings.attempt_timeout)
        .deadline(settings.deadline)
        .on_event(move |event| progress.tell(event))
        .journal(journal(&settings.journal, create).await.map_err(Problem::journal)?);
    builder.build().map_err(|error| words::chain(&error).into())
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
