//! A process killed with SIGKILL at every boundary: one execution each, and
//! the resumed call returns the stored answer.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use oncekey::engine::{Entry, Owner};
use oncekey::journal::{Append, Doing, Journal, JournalError, NewOperation, Scope, Sqlite, Stored};
use oncekey::reqwest::dns::{Name, Resolve, Resolving};
use oncekey::sandbox::{Fault, Sandbox};
use oncekey::{Client, Effect, ErrorKind, OperationId, RequestBuilder};

use crate::support::{Folder, builder};

/// What the child is told, in its environment.
const AT: &str = "ONCEKEY_TEST_KILLED_AT";
const FILE: &str = "ONCEKEY_TEST_JOURNAL";
const URL: &str = "ONCEKEY_TEST_URL";

/// The child says so where it stands still to be killed.
fn stands_still() -> ! {
    println!("\nstands still");
    loop {
        std::thread::park();
    }
}

/// The journal of the child, which stands still at a boundary.
#[derive(Debug)]
struct Halting {
    inner: Sqlite,
    at: String,
}

impl Halting {
    fn halt(&self, boundary: &str) {
        if self.at == boundary {
            stands_still();
        }
    }
}

impl Journal for Halting {
    fn owner(&self) -> Owner {
        self.inner.owner()
    }

    fn fingerprint_key(&self) -> &[u8; 32] {
        self.inner.fingerprint_key()
    }

    fn insert(&self, operation: NewOperation, patience: Duration) -> Doing<'_, ()> {
        Box::pin(async move {
            self.halt("before the record");
            self.inner.insert(operation, patience).await?;
            self.halt("after the record");
            Ok(())
        })
    }

    fn append(&self, append: Append, patience: Duration) -> Doing<'_, ()> {
        Box::pin(async move {
            let ends = append.entries().iter().any(|entry| matches!(entry, Entry::Ended { .. }));
            if ends {
                self.halt("after the answer, before its record");
            }
            self.inner.append(append, patience).await?;
            if ends {
                self.halt("after the answer's record");
            }
            Ok(())
        })
    }

    fn load<'a>(&'a self, id: &'a OperationId) -> Doing<'a, Option<Stored>> {
        self.inner.load(id)
    }

    fn list<'a>(&'a self, scope: &'a Scope) -> Doing<'a, Vec<Stored>> {
        self.inner.list(scope)
    }

    fn is_alive(&self, owner: Owner) -> Doing<'_, bool> {
        self.inner.is_alive(owner)
    }

    fn release(&self, id: &OperationId) {
        self.inner.release(id);
    }

    fn flush(&self, patience: Duration) -> Doing<'_, ()> {
        self.inner.flush(patience)
    }

    fn prune(&self, older_than: Duration) -> Doing<'_, u64> {
        Journal::prune(&self.inner, older_than)
    }

    fn close(&self) -> Doing<'_, ()> {
        Journal::close(&self.inner)
    }
}

/// Looks a name up for ever: the attempt is on record, and no byte has left.
struct Nameless;

impl Resolve for Nameless {
    fn resolve(&self, _: Name) -> Resolving {
        stands_still();
    }
}

/// Long enough that its writing blocks while nobody reads.
const LONG: usize = 12_000_000;

fn payment(client: &Client, url: &str, at: &str) -> RequestBuilder {
    let length = if at == MIDDLE { LONG } else { 100 };
    client.post(url).operation("order-1").bearer_auth("token").body("x".repeat(length))
}

const MIDDLE: &str = "in the middle of the request";

/// Not a test of its own: what [`killed`] starts and kills.
#[tokio::test(flavor = "multi_thread")]
async fn child() {
    let (Ok(at), Ok(file), Ok(url)) = (std::env::var(AT), std::env::var(FILE), std::env::var(URL)) else {
        return;
    };
    let mut setup = builder();
    let mut url = url;
    if at == "before the first byte" {
        setup = setup.http(|http| http.dns_resolver(Arc::new(Nameless)));
        url = url.replace("127.0.0.1", "sandbox.test");
    }
    let inner = Sqlite::open(file).await.unwrap();
    let journal = Halting { inner, at: at.clone() };
    let client = setup.journal(journal).build().unwrap();
    let sent = payment(&client, &url, &at).send().await;
    println!("\nended: {sent:?}");
}

/// Starts a child and gives it back when it stands still, or when `until` holds.
fn started(folder: &Folder, at: &str, url: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kills::child", "--nocapture"])
        .env(AT, at)
        .env(FILE, folder.file())
        .env(URL, url)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn wait_until_it_stands_still(child: &mut Child) {
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    while let Some(Ok(line)) = lines.next() {
        assert!(!line.starts_with("ended"), "it was not to end: {line}");
        if line == "stands still" {
            return;
        }
    }
    panic!("the child ended");
}

/// Kills it, in the way that no process can notice.
fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Killed at a boundary, then resumed.
async fn killed(at: &str, fault: Option<Fault>, reached: impl Fn(&Sandbox) -> bool, requests: usize) {
    let folder = Folder::new();
    folder.journal().await.close().await.unwrap();
    let sandbox = Sandbox::builder().max_body(64 * 1024 * 1024).start().await.unwrap();
    sandbox.fail_next(fault.clone());
    let mut child = started(&folder, at, &sandbox.url("/payments"));
    if fault.is_some() {
        let mut looks = tokio::time::interval(Duration::from_millis(5));
        while !reached(&sandbox) {
            looks.tick().await;
        }
    } else {
        let (alive, back) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            wait_until_it_stands_still(&mut child);
            alive.send(child).unwrap();
        });
        child = tokio::task::spawn_blocking(move || back.recv().unwrap()).await.unwrap();
    }
    kill(child);
    sandbox.clear_faults();

    let client = builder().journal(folder.journal().await).build().unwrap();
    let url = sandbox.url("/payments");
    let on_record = client.lookup("order-1").await.unwrap();
    let answer = if at == "before the record" {
        assert!(on_record.is_none());
        assert_eq!(client.resume("order-1").send().await.unwrap_err().kind(), ErrorKind::Journal);
        payment(&client, &url, at).send().await.unwrap()
    } else {
        let on_record = on_record.unwrap();
        let name = if on_record.url().unwrap().host_str() == Some("sandbox.test") { "sandbox.test" } else { "" };
        if name.is_empty() {
            client.resume("order-1").bearer_auth("fresh").send().await.unwrap()
        } else {
            // The name that nobody could resolve, resolved.
            let address = sandbox.addr();
            let resolving = builder()
                .http(move |http| http.resolve("sandbox.test", address))
                .journal(folder.journal().await)
                .build()
                .unwrap();
            resolving.resume("order-1").bearer_auth("fresh").send().await.unwrap()
        }
    };
    assert_eq!(answer.status(), 201, "{at}");
    let again = client.resume("order-1").send().await.unwrap();
    assert_eq!((again.bytes(), again.key()), (answer.bytes(), answer.key()), "{at}: it is on record");
    let seen = sandbox.requests();
    assert_eq!((sandbox.executions(), seen.len()), (1, requests), "{at}");
    let whole: Vec<_> = seen.iter().filter(|request| request.is_complete()).collect();
    assert!(whole.iter().all(|request| request.body() == whole[0].body() && request.key() == whole[0].key()), "{at}");
    assert_eq!(client.lookup("order-1").await.unwrap().unwrap().effect(), Effect::Applied);
    assert!(client.unfinished().await.unwrap().is_empty(), "{at}");
}

fn never(_: &Sandbox) -> bool {
    false
}

#[tokio::test]
async fn before_the_record() {
    killed("before the record", None, never, 1).await;
}

/// CRASH-01, a.
#[tokio::test]
async fn crash_01_after_the_record() {
    killed("after the record", None, never, 1).await;
}

#[tokio::test]
async fn before_the_first_byte() {
    killed("before the first byte", None, never, 1).await;
}

#[tokio::test]
async fn in_the_middle_of_the_request() {
    let fault = Fault::stall_before_reading();
    killed(MIDDLE, Some(fault), |sandbox| sandbox.requests().len() == 1, 2).await;
}

/// CRASH-01, b.
#[tokio::test]
async fn crash_01_after_execution_before_the_answer() {
    let fault = Fault::stall_after_executing();
    killed("after execution", Some(fault), |sandbox| sandbox.executions() == 1, 2).await;
}

/// CRASH-01, c.
#[tokio::test]
async fn crash_01_after_the_answer_before_its_record() {
    killed("after the answer, before its record", None, never, 2).await;
}

#[tokio::test]
async fn after_the_answers_record() {
    killed("after the answer's record", None, never, 1).await;
}

/// What a wrapper returns goes through as it is.
#[tokio::test]
async fn a_journal_of_ones_own_may_wrap_another() {
    let folder = Folder::new();
    let sandbox = Sandbox::start().await.unwrap();
    let journal = Halting { inner: folder.journal().await, at: String::new() };
    let client = builder().journal(journal).build().unwrap();
    let sent: Result<_, oncekey::Error> = client.post(sandbox.url("/payments")).operation("a").body("x").send().await;
    assert_eq!(sent.unwrap().status(), 201);
    let _: Result<Option<_>, JournalError> = client.lookup("a").await;
}
