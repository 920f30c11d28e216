//! The thread behind: gone, which no caller can bring about, and going.

use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use tokio::runtime::{Builder, Runtime};

use super::worker::{Lost, Worker};
use super::{Client, ClientBuilder};
use crate::engine::Effect;
use crate::error::ErrorKind;
use crate::submission::IdempotencyKey;

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).build().unwrap()
}

/// A worker on a runtime that the test may take away.
fn worker(runtime: &Runtime) -> Worker {
    Worker { handle: runtime.handle().clone(), stop: None, thread: None }
}

fn orphan() -> Client {
    let runtime = runtime();
    let client = ClientBuilder::default().build().unwrap();
    Client { inner: client.inner, worker: Arc::new(worker(&runtime)) }
}

#[test]
fn without_its_thread_a_client_gives_errors() {
    let client = orphan();
    let error = client.post("http://127.0.0.1:1/").send().unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Request, Effect::NotApplied));
    assert!(error.to_string().starts_with("the blocking client's thread is gone"), "{error}");
    let used = IdempotencyKey::parse(IdempotencyKey::random().as_str()).unwrap();
    let error = client.post("http://127.0.0.1:1/").idempotency_key(&used).send().unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Request, Effect::Unknown));
    #[cfg(feature = "journal")]
    {
        use crate::journal::JournalErrorKind;
        assert_eq!(client.unfinished().unwrap_err().kind(), JournalErrorKind::Io);
        assert_eq!(client.resume_all().start().unwrap_err().kind(), JournalErrorKind::Io);
        assert_eq!(client.resume("a").send().unwrap_err().effect(), Effect::Unknown);
        assert_eq!(client.abandon("a").unwrap_err().effect(), Effect::Unknown);
    }
}

#[test]
fn a_call_whose_thread_goes_meanwhile_is_unknown() {
    let runtime = runtime();
    let worker = worker(&runtime);
    let (begun, waiting) = mpsc::channel();
    let lost = thread::spawn(move || {
        worker.run(async move {
            begun.send(()).unwrap();
            std::future::pending::<()>().await;
        })
    });
    waiting.recv().unwrap();
    drop(runtime);
    let lost = lost.join().unwrap().unwrap_err();
    assert_eq!(lost, Lost::Gone { begun: true });
    let error = lost.error(Effect::NotApplied, false);
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unsettled, Effect::Unknown));
    assert_eq!(lost.error(Effect::NotApplied, true).effect(), Effect::NotApplied, "nothing to take effect");
}

#[test]
fn the_last_clone_may_be_dropped_on_its_own_thread() {
    let worker = Arc::new(Worker::start().unwrap());
    let handle = worker.handle.clone();
    let (dropped, done) = mpsc::channel();
    handle.spawn(async move {
        drop(worker);
        dropped.send(()).unwrap();
    });
    done.recv_timeout(std::time::Duration::from_secs(5)).expect("it does not wait for itself");
}

#[test]
fn a_client_that_goes_does_not_wait_for_a_name_to_be_looked_up() {
    let worker = Worker::start().unwrap();
    let (release, held) = mpsc::channel::<()>();
    // The system's resolver takes its time, and cannot be called off.
    drop(worker.handle.spawn_blocking(move || held.recv()));
    let (dropped, done) = mpsc::channel();
    thread::spawn(move || {
        drop(worker);
        dropped.send(()).unwrap();
    });
    done.recv_timeout(std::time::Duration::from_secs(5)).expect("it waits for what nobody asks for any more");
    drop(release);
}
