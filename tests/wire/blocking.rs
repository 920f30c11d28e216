//! The blocking client: the same promises from threads, and errors inside a runtime.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;

use http::Method;
use oncekey::blocking::{self, Client};
use oncekey::sandbox::{Fault, Sandbox};
use oncekey::{Attempt, Effect, Error, ErrorKind, IdempotencyKey, Parts, Response, Retry};
use tokio::runtime::{Builder, Runtime};

use crate::{fails, ms, payment};

type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// The sandboxes' own.
static SERVERS: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap());

fn sandbox(faults: impl IntoIterator<Item = Fault>) -> Sandbox {
    SERVERS.block_on(crate::sandbox(faults))
}

fn builder() -> blocking::ClientBuilder {
    crate::builder().into()
}

fn client() -> Client {
    builder().build().unwrap()
}

fn pay(client: &Client, sandbox: &Sandbox) -> Result<Response, Error> {
    client.post(sandbox.url("/v1/payments")).json(&payment()).send()
}

/// In a task of a runtime of either kind.
fn in_runtimes(work: impl Fn() + Copy + Send + Sync + 'static) {
    Builder::new_current_thread().enable_all().build().unwrap().block_on(async { work() });
    let threads = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    threads.block_on(threads.spawn(async move { work() })).unwrap();
}

#[test]
fn a_lost_answer_is_had_under_the_same_key() {
    let sandbox = sandbox([
        Fault::closed_without_executing(),
        Fault::answer_lost(),
        Fault::status(503),
        Fault::in_progress().times(2),
    ]);
    let response = pay(&client(), &sandbox).unwrap();
    assert_eq!((response.status().as_u16(), response.is_replay()), (201, true));
    assert_eq!(response.json::<serde_json::Value>().unwrap()["status"], "captured");
    let requests = sandbox.requests();
    let keys: HashSet<_> = requests.iter().map(|request| request.keys().to_vec()).collect();
    assert_eq!(keys, HashSet::from([vec![response.key().unwrap().as_str().to_owned()]]));
    assert_eq!((sandbox.executions(), requests.len(), response.attempts().len()), (1, 6, 6));
}

#[test]
fn the_effect_is_folded_over_all_attempts() {
    let here = sandbox([Fault::status(400)]);
    fails(pay(&client(), &here), ErrorKind::Refused, Effect::NotApplied);
    let here = sandbox([Fault::answer_lost(), Fault::status(400)]);
    fails(pay(&client(), &here), ErrorKind::Refused, Effect::Unknown);
    let error = client().post("ftp://127.0.0.1/").send().unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Request, Effect::NotApplied));
}

/// What one sends, the other sends: every method and setter.
#[test]
fn the_same_requests_leave_as_of_the_async_client() {
    macro_rules! written {
        ($client:expr, $url:expr, $key:expr) => {{
            let (client, url, key) = (&$client, $url, || IdempotencyKey::parse($key).unwrap());
            let headers = http::HeaderMap::from_iter([(http::header::ACCEPT, "text/plain".parse().unwrap())]);
            vec![
                client.get(url).header("x-a", "1").header("x-a", "2").headers(headers).bearer_auth("token"),
                client.head(url).basic_auth("user", Some("password")),
                client.post(url).idempotency_key(key()).json(&payment()),
                client.post(url).without_key().form(&[("amount", "4999"), ("note", "a b")]),
                client.patch(url).idempotency_key(key()).body("plain"),
                client.put(url).query(&[("expand", "all")]).attempt_timeout(ms(1500)).deadline(ms(9000)),
                client.delete(url).gone_is_done(),
                client.delete(url).gone_is_done(),
                client.request(Method::OPTIONS, url),
            ]
        }};
    }
    let key = IdempotencyKey::random();
    let one = sandbox([]);
    let ends: Vec<_> =
        written!(client(), &one.url("/v1/things"), key.as_str()).into_iter().map(|request| request.send()).collect();
    let other = sandbox([]);
    let async_ends: Vec<_> = SERVERS.block_on(async {
        let mut ends = Vec::new();
        for request in written!(crate::client(), &other.url("/v1/things"), key.as_str()) {
            ends.push(request.send().await);
        }
        ends
    });
    let told = |ends: &[Result<Response, Error>]| -> Vec<_> {
        let end = |end: &Result<Response, Error>| match end {
            Ok(response) => format!("{} {:?}", response.status(), response.replay()),
            Err(error) => error.to_string(),
        };
        ends.iter().map(end).collect()
    };
    assert_eq!(told(&ends), told(&async_ends));
    let seen = |sandbox: &Sandbox| -> Vec<_> {
        let line = |request: &oncekey::sandbox::SeenRequest| {
            let mut headers = request.headers().clone();
            headers.remove(http::header::HOST);
            (request.method().clone(), request.path().to_owned(), headers, request.body().clone())
        };
        sandbox.requests().iter().map(line).collect()
    };
    assert_eq!(seen(&one), seen(&other));
    assert_eq!(seen(&one).len(), 9);
}

#[test]
fn the_limits_of_a_request_are_its_own() {
    let sandbox = sandbox([Fault::stall_after_executing(), Fault::stall_after_executing()]);
    let client = builder().retry(Retry::default().max_attempts(1)).build().unwrap();
    let request = || client.post(sandbox.url("/pay")).json(&payment());
    let error = fails(request().attempt_timeout(ms(100)).send(), ErrorKind::Exhausted, Effect::Unknown);
    assert!(error.attempts()[0].duration() < ms(1500), "{}", Attempt::table(error.attempts()));
    let error = fails(request().deadline(ms(100)).send(), ErrorKind::Exhausted, Effect::Unknown);
    assert!(error.attempts()[0].duration() < ms(1500), "{}", Attempt::table(error.attempts()));
}

#[test]
fn many_threads_share_one_client() {
    let sandbox = SERVERS.block_on(Sandbox::builder().chaos(7, 300).start()).unwrap();
    let client = builder()
        .retry(Retry::default().max_attempts(40).base_delay(ms(2)).max_delay(ms(20)))
        .attempt_timeout(ms(400))
        .build()
        .unwrap();
    let keys = Mutex::new(HashSet::new());
    thread::scope(|scope| {
        for _ in 0..16 {
            let client = client.clone();
            let (sandbox, keys) = (&sandbox, &keys);
            scope.spawn(move || {
                for _ in 0..8 {
                    let end = pay(&client, sandbox);
                    let key = match &end {
                        Ok(response) => response.key().unwrap().as_str().to_owned(),
                        Err(error) => error.key().unwrap().as_str().to_owned(),
                    };
                    let done = sandbox.executions_of(&key);
                    match end.as_ref().map_or_else(Error::effect, |_| Effect::Applied) {
                        Effect::NotApplied => assert_eq!(done, 0, "{end:?}"),
                        Effect::Applied => assert_eq!(done, 1, "{end:?}"),
                        Effect::Unknown => assert!(done <= 1, "{end:?}"),
                    }
                    keys.lock().unwrap().insert(key);
                }
            });
        }
    });
    assert_eq!(keys.lock().unwrap().len(), 128);
}

#[test]
fn calls_do_not_wait_for_each_other() {
    let sandbox = sandbox([Fault::stall_after_executing()]);
    let client = builder().attempt_timeout(ms(500)).build().unwrap();
    thread::scope(|scope| {
        let slow = scope.spawn(|| pay(&client, &sandbox));
        SERVERS.block_on(sandbox.until(|sandbox| sandbox.executions() == 1));
        assert!(!pay(&client, &sandbox).unwrap().is_replay());
        assert!(!slow.is_finished(), "it stalls for an attempt's timeout");
        assert!(slow.join().unwrap().unwrap().is_replay());
    });
}

thread_local! {
    static LEAVING: std::cell::RefCell<Option<Leaving>> = const { std::cell::RefCell::new(None) };
}

/// Tells that its thread has ended.
struct Leaving(Arc<AtomicBool>);

impl Drop for Leaving {
    fn drop(&mut self) {
        // Who does not wait for it is told apart.
        thread::sleep(ms(30));
        self.0.store(true, Ordering::SeqCst);
    }
}

/// To be told when this thread ends.
fn watch(ended: &Arc<AtomicBool>) {
    LEAVING.with_borrow_mut(|leaving| {
        leaving.get_or_insert_with(|| Leaving(Arc::clone(ended)));
    });
}

/// A client of whose thread `ended` tells the end.
fn watched(ended: &Arc<AtomicBool>) -> Client {
    let ended = Arc::clone(ended);
    let hook = move |_: &mut Parts<'_>| -> Outcome {
        watch(&ended);
        Ok(())
    };
    builder().authorize(hook).build().unwrap()
}

#[test]
fn the_thread_ends_with_the_last_clone() {
    let (ended, sandbox) = (Arc::new(AtomicBool::new(false)), sandbox([]));
    let client = watched(&ended);
    let (request, clone) = (client.get(sandbox.url("/")), client.clone());
    let _ = pay(&client, &sandbox).unwrap();
    drop(client);
    drop(clone);
    assert!(!ended.load(Ordering::SeqCst), "a request holds it");
    assert_eq!(request.send().unwrap().status(), 200);
    assert!(ended.load(Ordering::SeqCst), "nobody waited for the thread's end");
}

#[test]
fn dropping_a_client_inside_a_runtime_is_allowed() {
    let (ended, sandbox) = (Arc::new(AtomicBool::new(false)), sandbox([]));
    let client = watched(&ended);
    let _ = pay(&client, &sandbox).unwrap();
    let request = client.get(sandbox.url("/"));
    let builder = builder();
    Runtime::new().unwrap().block_on(async move {
        drop((client, request, builder));
    });
    assert!(ended.load(Ordering::SeqCst));
}

#[track_caller]
fn refused(result: Result<Response, Error>, effect: Effect) {
    let error = fails(result, ErrorKind::Request, effect);
    assert!(error.to_string().starts_with("a blocking call inside a tokio runtime"), "{error}");
    assert!(error.attempts().is_empty());
}

#[test]
fn inside_a_runtime_a_call_is_an_error() {
    static HERE: LazyLock<(Client, Sandbox)> = LazyLock::new(|| (client(), sandbox([])));
    let (client, sandbox) = &*HERE;
    in_runtimes(|| {
        let (client, sandbox) = &*HERE;
        let error = builder().build().unwrap_err();
        assert!(error.to_string().starts_with("a blocking call inside a tokio runtime"), "{error}");
        let url = &sandbox.url("/v1/payments");
        for request in [client.get(url), client.head(url), client.put(url), client.delete(url)] {
            refused(request.send(), Effect::NotApplied);
        }
        refused(client.post(url).json(&payment()).send(), Effect::NotApplied);
        refused(client.patch(url).without_key().send(), Effect::NotApplied);
        // A key that may have been sent leaves its doubt, and a fresh one stays fresh.
        let fresh = IdempotencyKey::random();
        refused(client.post(url).idempotency_key(&fresh).send(), Effect::NotApplied);
        refused(client.post(url).idempotency_key(&fresh).send(), Effect::NotApplied);
        let used = IdempotencyKey::parse(fresh.as_str()).unwrap();
        refused(client.post(url).idempotency_key(&used).send(), Effect::Unknown);
        refused(client.get(url).idempotency_key(&used).send(), Effect::NotApplied);
    });
    // Where blocking would do no harm the rule is the same.
    let elsewhere = SERVERS.spawn_blocking(|| HERE.0.get(HERE.1.url("/")).send());
    refused(SERVERS.block_on(elsewhere).unwrap(), Effect::NotApplied);
    assert!(sandbox.requests().is_empty());
    assert_eq!(pay(client, sandbox).unwrap().status(), 201, "nothing broke");
}

#[test]
fn a_blocking_call_in_a_hook_is_an_error_and_no_deadlock() {
    let sandbox = sandbox([]);
    let tokens = client();
    let url = sandbox.url("/token");
    let hook = move |_: &mut Parts<'_>| -> Outcome {
        let _ = tokens.get(&url).send()?;
        Ok(())
    };
    let client = builder().authorize(hook).build().unwrap();
    let error = fails(pay(&client, &sandbox), ErrorKind::Authorize, Effect::NotApplied);
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.starts_with("a blocking call inside a tokio runtime"), "{cause}");
    assert!(sandbox.requests().is_empty());
}

#[test]
fn a_hooks_panic_goes_to_the_caller_and_the_client_lives() {
    let sandbox = sandbox([]);
    let first = AtomicBool::new(true);
    let hook = move |_: &mut Parts<'_>| -> Outcome {
        assert!(!first.swap(false, Ordering::SeqCst), "the vault is on fire");
        Ok(())
    };
    let client = builder().authorize(hook).build().unwrap();
    let panic = catch_unwind(AssertUnwindSafe(|| pay(&client, &sandbox))).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"the vault is on fire"));
    assert_eq!(pay(&client, &sandbox).unwrap().status(), 201);
}

#[test]
fn clients_and_calls_go_between_threads() {
    fn is_send_sync<T: Send + Sync>(_: &T) {}
    fn is_send<T: Send>(_: &T) {}
    let client = client();
    is_send_sync(&client);
    is_send(&client.get("http://127.0.0.1:1/"));
    is_send(&builder());
}

#[test]
fn nothing_secret_is_printed() {
    let client = client();
    let request = client.post("http://127.0.0.1:1/pay?token=SECRET").bearer_auth("SECRET").body("SECRET");
    let printed = format!("{client:?} {:?} {request:?}", builder());
    assert!(printed.contains("RequestBuilder") && !printed.contains("SECRET"), "{printed}");
}

#[cfg(feature = "sqlite")]
mod journal {
    use std::time::Duration;

    use oncekey::RecordState;
    use oncekey::journal::{JournalErrorKind, Memory, Sqlite};
    use tempfile::TempDir;

    use super::*;

    /// A file of its own, and a client that gives up after one attempt.
    struct Place {
        folder: TempDir,
        sandbox: Sandbox,
    }

    impl Place {
        fn new(faults: impl IntoIterator<Item = Fault>) -> Self {
            Self { folder: tempfile::tempdir().unwrap(), sandbox: sandbox(faults) }
        }

        fn journal(&self) -> Sqlite {
            Sqlite::blocking_open_or_create(self.folder.path().join("payments.db")).unwrap()
        }

        fn client(&self) -> Client {
            let once = Retry::default().max_attempts(1).base_delay(ms(1)).max_delay(ms(1));
            builder().retry(once).journal(self.journal()).build().unwrap()
        }

        /// Payments whose answers are lost, when they are due again.
        fn lose(&self, client: &Client, ids: &[&str]) {
            for id in ids {
                fails(self.pay(client, id), ErrorKind::Exhausted, Effect::Unknown);
            }
            thread::sleep(ms(3));
        }

        fn pay(&self, client: &Client, id: &str) -> Result<Response, Error> {
            client.post(self.sandbox.url("/payments")).operation(id).json(&payment()).send()
        }
    }

    fn ids(records: &[oncekey::OperationRecord]) -> Vec<&str> {
        records.iter().map(|record| record.id().as_str()).collect()
    }

    #[test]
    fn the_same_id_is_answered_without_a_request() {
        let place = Place::new([]);
        let client = place.client();
        let first = place.pay(&client, "order:1").unwrap();
        let again = place.pay(&client, "order:1").unwrap();
        assert_eq!((again.text(), again.key()), (first.text(), first.key()));
        assert_eq!((place.sandbox.requests().len(), again.attempts().len()), (1, 0));
        assert!(again.recorded().is_ok());
        drop(client);
        // By another process, as it were.
        assert_eq!(place.pay(&place.client(), "order:1").unwrap().text(), first.text());
        assert_eq!(place.sandbox.requests().len(), 1);
        let other = place.client().post(place.sandbox.url("/payments")).operation("order:1").body("{}").send();
        fails(other, ErrorKind::Mismatch, Effect::Applied);
    }

    #[test]
    fn what_was_left_is_resumed_under_its_key() {
        let place = Place::new([Fault::answer_lost()]);
        let error = fails(place.pay(&place.client(), "order:1"), ErrorKind::Exhausted, Effect::Unknown);
        let client = place.client();
        assert_eq!(ids(&client.unfinished().unwrap()), ["order:1"]);
        assert!(client.in_doubt().unwrap().is_empty());
        assert_eq!(client.lookup("order:1").unwrap().unwrap().state(), RecordState::Unfinished);
        assert!(client.lookup("order:2").unwrap().is_none());
        let response =
            client.resume("order:1").bearer_auth("new").attempt_timeout(ms(1000)).deadline(ms(9000)).send().unwrap();
        assert!(response.is_replay());
        assert_eq!(response.key(), error.key());
        assert_eq!(place.sandbox.requests()[1].headers()["authorization"], "Bearer new");
        assert_eq!(place.sandbox.executions(), 1);
        assert!(client.unfinished().unwrap().is_empty());
        let refused = client.resume("order:1").header("x-not-a-credential", "1").send();
        fails(refused, ErrorKind::Request, Effect::Applied);
        fails(client.resume("order:1").account("acme").send(), ErrorKind::Mismatch, Effect::Applied);
    }

    #[test]
    fn all_that_was_left_is_resumed_one_end_after_another() {
        let place = Place::new([Fault::answer_lost().times(5)]);
        let client = place.client();
        place.lose(&client, &["order:0", "order:1", "order:2", "order:3", "order:4"]);
        let mut ends = client.resume_all().bearer_auth("new").concurrency(2).start().unwrap();
        let mut ended: Vec<_> =
            ends.by_ref().map(|(id, end)| (id.as_str().to_owned(), end.unwrap().is_replay())).collect();
        ended.sort();
        assert_eq!(ended, Vec::from_iter((0..5).map(|n| (format!("order:{n}"), true))));
        assert!(ends.next().is_none() && ends.next().is_none());
        assert_eq!((place.sandbox.executions(), place.sandbox.requests().len()), (5, 10));
        assert!(client.resume_all().start().unwrap().next().is_none());
    }

    #[test]
    fn a_hooks_panic_ends_one_operation_and_not_the_rest() {
        let place = Place::new([Fault::answer_lost().times(3)]);
        let client = place.client();
        place.lose(&client, &["order:0", "order:1", "order:2"]);
        let first = AtomicBool::new(true);
        let hook = move |_: &mut Parts<'_>| -> Outcome {
            assert!(!first.swap(false, Ordering::SeqCst), "the vault is on fire");
            Ok(())
        };
        let client = builder().authorize(hook).journal(place.journal()).build().unwrap();
        let mut ends = client.resume_all().concurrency(1).start().unwrap();
        let panic = catch_unwind(AssertUnwindSafe(|| ends.next())).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"the vault is on fire"));
        assert_eq!(ends.filter(|(_, end)| end.is_ok()).count(), 2);
    }

    #[test]
    fn what_cannot_be_known_is_settled_by_hand() {
        let place = Place::new([Fault::answer_lost(), Fault::status(400)]);
        let client = place.client();
        let url = place.sandbox.url("/payments");
        let keyless = client.post(&url).operation("order:1").without_key().json(&payment()).send();
        fails(keyless, ErrorKind::Unsettled, Effect::Unknown);
        assert_eq!(ids(&client.in_doubt().unwrap()), ["order:1"]);
        let error = client.abandon("order:1").unwrap_err();
        assert_eq!(error.effect(), Effect::Unknown);
        client.resolve("order:1", Effect::Applied, "ana", "seen in the provider's panel").unwrap();
        assert!(client.in_doubt().unwrap().is_empty());
        fails(client.resume("order:1").send(), ErrorKind::Resolved, Effect::Applied);
        fails(place.pay(&client, "order:2"), ErrorKind::Refused, Effect::NotApplied);
        client.abandon("order:2").unwrap();
        fails(place.pay(&client, "order:2"), ErrorKind::Resolved, Effect::NotApplied);
    }

    #[test]
    fn accounts_are_apart() {
        let place = Place::new([Fault::answer_lost()]);
        let client = builder().retry(Retry::default().max_attempts(1)).journal(place.journal()).account("acme");
        let client = client.build().unwrap();
        fails(place.pay(&client, "order:1"), ErrorKind::Exhausted, Effect::Unknown);
        assert!(place.client().unfinished().unwrap().is_empty());
        assert_eq!(ids(&client.unfinished().unwrap()), ["order:1"]);
        let other = client.post(place.sandbox.url("/payments")).account("umbrella").operation("order:1");
        fails(other.json(&payment()).send(), ErrorKind::Mismatch, Effect::Unknown);
    }

    #[test]
    fn a_journal_is_opened_pruned_and_closed_without_async() {
        let place = Place::new([]);
        let path = place.folder.path().join("payments.db");
        assert_eq!(Sqlite::blocking_open(&path).unwrap_err().kind(), JournalErrorKind::Missing);
        drop(Sqlite::blocking_create(&path).unwrap());
        assert_eq!(Sqlite::blocking_create(&path).unwrap_err().kind(), JournalErrorKind::Exists);
        let journal = Sqlite::builder().store_bodies(true).blocking_open(&path).unwrap();
        let client = builder().journal(journal.clone()).build().unwrap();
        let _ = place.pay(&client, "order:1").unwrap();
        assert_eq!(journal.blocking_prune(Duration::from_secs(86_400)).unwrap(), 0);
        assert_eq!(journal.blocking_prune(Duration::ZERO).unwrap(), 1);
        journal.blocking_close().unwrap();
        assert_eq!(journal.blocking_close().unwrap_err().kind(), JournalErrorKind::Closed);
        fails(place.pay(&client, "order:2"), ErrorKind::Journal, Effect::Unknown);
        assert_eq!(place.sandbox.requests().len(), 1);
    }

    #[test]
    fn without_a_journal_there_is_nothing_to_list() {
        let client = client();
        assert_eq!(client.unfinished().unwrap_err().kind(), JournalErrorKind::Setting);
        fails(client.resume("order:1").send(), ErrorKind::Request, Effect::Unknown);
    }

    #[test]
    fn inside_a_runtime_each_of_these_is_an_error() {
        static HERE: LazyLock<(Client, Place)> = LazyLock::new(|| {
            let place = Place::new([Fault::answer_lost()]);
            let client = place.client();
            place.lose(&client, &["order:1"]);
            (client, place)
        });
        let (client, place) = &*HERE;
        let before = place.sandbox.requests().len();
        in_runtimes(|| {
            let (client, place) = &*HERE;
            let setting = |error: oncekey::journal::JournalError| {
                assert_eq!(error.kind(), JournalErrorKind::Setting);
                assert!(error.to_string().starts_with("a blocking call inside a tokio runtime"), "{error}");
            };
            setting(client.unfinished().unwrap_err());
            setting(client.in_doubt().unwrap_err());
            setting(client.lookup("order:1").unwrap_err());
            setting(client.resume_all().start().unwrap_err());
            refused(client.resume("order:1").send(), Effect::Unknown);
            for error in [
                client.resolve("order:1", Effect::Applied, "ana", "").unwrap_err(),
                client.abandon("order:1").unwrap_err(),
            ] {
                assert_eq!((error.kind(), error.effect()), (ErrorKind::Request, Effect::Unknown));
            }
            // What is on record under the id is not read for it.
            refused(place.pay(client, "order:1"), Effect::Unknown);
            refused(client.get(place.sandbox.url("/")).operation("order:1").send(), Effect::NotApplied);
            let path = place.folder.path().join("payments.db");
            setting(Sqlite::blocking_open(&path).unwrap_err());
            setting(Sqlite::blocking_create(&path).unwrap_err());
            setting(Sqlite::blocking_open_or_create(&path).unwrap_err());
        });
        let journal = place.journal();
        Runtime::new().unwrap().block_on(async {
            assert_eq!(journal.blocking_prune(Duration::ZERO).unwrap_err().kind(), JournalErrorKind::Setting);
            assert_eq!(journal.blocking_close().unwrap_err().kind(), JournalErrorKind::Setting);
        });
        // An iterator that was begun outside tells of each that has no end, once.
        let mut ends = client.resume_all().start().unwrap();
        Runtime::new().unwrap().block_on(async {
            let (id, end) = ends.next().unwrap();
            assert_eq!(id.as_str(), "order:1");
            refused(end, Effect::Unknown);
            assert!(ends.next().is_none());
        });
        assert!(ends.next().is_none());
        assert_eq!(place.sandbox.requests().len(), before);
        assert!(client.resume("order:1").send().unwrap().is_replay(), "it stayed as it was");
    }

    #[test]
    fn what_was_begun_may_be_dropped_inside_a_runtime() {
        let ended = Arc::new(AtomicBool::new(false));
        let place = Place::new([Fault::answer_lost(), Fault::stall_after_executing()]);
        fails(place.pay(&place.client(), "order:1"), ErrorKind::Exhausted, Effect::Unknown);
        let hook = {
            let ended = Arc::clone(&ended);
            move |_: &mut Parts<'_>| -> Outcome {
                watch(&ended);
                Ok(())
            }
        };
        let client = builder().authorize(hook).journal(place.journal()).build().unwrap();
        let _ = client.post(place.sandbox.url("/a")).json(&payment()).attempt_timeout(ms(50)).send();
        let (resume, all, ends) = (client.resume("order:1"), client.resume_all(), client.resume_all().start().unwrap());
        Runtime::new().unwrap().block_on(async move { drop((client, resume, all, ends)) });
        assert!(ended.load(Ordering::SeqCst));
        assert_eq!(place.client().unfinished().unwrap().len(), 1);
    }

    #[test]
    fn a_journal_in_memory_does_too() {
        let sandbox = sandbox([]);
        let client = builder().journal(Memory::new()).build().unwrap();
        let pay = || client.post(sandbox.url("/pay")).operation("order:1").json(&payment()).send().unwrap();
        assert_eq!(pay().text(), pay().text());
        assert_eq!(sandbox.requests().len(), 1);
    }
}
