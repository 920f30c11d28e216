//! The contract of `Journal`, one suite for every back end.

use std::sync::Arc;
use std::time::Duration;

use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Method, StatusCode};
use oncekey::OperationId;
use oncekey::engine::{Advice, Effect};
use oncekey::engine::{AttemptKind, Entry, KeyOrigin, MethodKind, Owner, Reach, StopReason, Time, Verdict, Why};
use oncekey::journal::{
    Append, Durability, Fingerprint, Identity, Journal, JournalErrorKind, Memory, NewOperation, Scope, Status,
    StoredAnswer, StoredBody, StoredRequest,
};

use crate::support::Folder;

const PATIENCE: Duration = Duration::from_secs(10);

fn at(millis: u64) -> Time {
    Time::from_millis(1_000_000_000_000 + millis)
}

fn scope() -> Scope {
    Scope::new("verifika", "acct_1")
}

fn created(key: KeyOrigin) -> Entry {
    Entry::Created { at: at(0), key, method: MethodKind::Other, gone_is_done: false }
}

fn started(attempt: u32) -> Entry {
    Entry::Started { attempt, kind: AttemptKind::First, timeout: Duration::new(60, 7), at: at(1) }
}

fn ended(attempt: u32) -> Entry {
    let verdict = Verdict::new(Reach::Ambiguous, Advice::RetryAfter(Duration::MAX), Why::NoHead).with_mark(true);
    Entry::Ended { attempt, verdict, at: at(2), next_at: Some(at(3)) }
}

fn request(body: &'static str) -> StoredRequest {
    let headers = vec![
        (HeaderName::from_static("content-type"), HeaderValue::from_static("application/json")),
        (HeaderName::from_static("x-odd"), HeaderValue::from_bytes(b"\xff\"\\ \xe9").unwrap()),
        (HeaderName::from_static("x-odd"), HeaderValue::from_static("")),
    ];
    let body = if body.is_empty() { StoredBody::None } else { StoredBody::Kept(body.into()) };
    StoredRequest::new(Method::POST, "https://api.example/pay?q=%20%C3%A9".parse().unwrap(), headers, body)
}

fn answer(body: &str) -> StoredAnswer {
    let headers = HeaderMap::from_iter([(HeaderName::from_static("x-a"), HeaderValue::from_static("1"))]);
    StoredAnswer::new(StatusCode::CREATED, headers, body.as_bytes().to_vec())
}

fn named(id: &str, key: &str, scope: Scope) -> NewOperation {
    let identity = Identity::new(OperationId::from(id), scope, Fingerprint::from_bytes([7; 32]))
        .with_key(Some(key.into()), Duration::from_secs(86_400))
        .with_profile_version(3);
    let origin = KeyOrigin::Given { first_sent: Some(at(9)) };
    NewOperation::new(identity, request("{\"a\":\n1}"), vec![created(origin), started(1)], Status::Open)
}

fn drawn(journal: &dyn Journal, id: &str) -> NewOperation {
    let identity = Identity::new(OperationId::from(id), scope(), Fingerprint::from_bytes([7; 32]))
        .with_key(Some(format!("key of {id}").into()), Duration::from_secs(86_400));
    let entries = vec![created(KeyOrigin::Drawn), started(1)];
    NewOperation::new(identity, request("x"), entries, Status::Running(journal.owner()))
}

async fn entries(journal: &dyn Journal, id: &str) -> Vec<Entry> {
    journal.load(&OperationId::from(id)).await.unwrap().unwrap().entries().to_vec()
}

async fn names(journal: &dyn Journal, scope: &Scope) -> Vec<(String, Status)> {
    let listed = journal.list(scope).await.unwrap();
    assert!(listed.iter().all(|stored| stored.request().is_none() && stored.answer().is_none()));
    listed.iter().map(|stored| (stored.identity().id().as_str().to_owned(), stored.status())).collect()
}

async fn what_was_written_is_read(journal: &dyn Journal) {
    let operation = named("order-1", "key-1", scope());
    journal.insert(operation.clone(), PATIENCE).await.unwrap();
    let every = [
        ended(1),
        Entry::Stopped { reason: StopReason::Deadline, at: at(4) },
        Entry::Resumed { owner: Owner::new(u128::MAX), at: at(5) },
        started(2),
        Entry::Interrupted { attempt: 2, at: at(6) },
        Entry::Amended { at: at(7), version: 2 },
        Entry::Resolved { effect: Effect::Applied, by: "ana: \"pay_7\"\n".into(), at: Time::MAX },
    ];
    let append = Append::new(OperationId::from("order-1"), 2, every.to_vec(), Status::Open)
        .with_answer(Some(answer("{\n}\n\u{0}")))
        .with_request(Some((Fingerprint::from_bytes([9; 32]), request(""))));
    journal.append(append, PATIENCE).await.unwrap();
    let stored = journal.load(&OperationId::from("order-1")).await.unwrap().unwrap();
    assert_eq!(stored.entries(), [operation.entries(), &every].concat());
    assert_eq!(stored.answer(), Some(&answer("{\n}\n\u{0}")));
    assert_eq!(stored.request(), Some(&request("")));
    assert_eq!(stored.identity().fingerprint(), &Fingerprint::from_bytes([9; 32]));
    assert_eq!((stored.identity().id().as_str(), stored.identity().scope()), ("order-1", &scope()));
    assert_eq!((stored.identity().key(), stored.identity().profile_version()), (Some("key-1"), 3));
    assert_eq!(stored.identity().key_lifetime(), Duration::from_secs(86_400));
    assert!(journal.load(&OperationId::from("order-2")).await.unwrap().is_none());
}

async fn ids_and_keys_are_unique(journal: &dyn Journal) {
    let kind = async |operation: NewOperation| {
        journal.insert(operation, PATIENCE).await.map_err(|error| {
            assert!(error.is_certain());
            error.kind()
        })
    };
    kind(named("a", "k", scope())).await.unwrap();
    assert_eq!(kind(named("a", "k2", scope())).await, Err(JournalErrorKind::IdTaken));
    assert_eq!(kind(named("a", "k2", Scope::new("toss", ""))).await, Err(JournalErrorKind::IdTaken));
    assert_eq!(kind(named("b", "k", scope())).await, Err(JournalErrorKind::KeyTaken));
    kind(named("b", "k", Scope::new("verifika", "acct_2"))).await.unwrap();
    // An id that is the key, and the key under a name, in both orders.
    assert_eq!(kind(named("k", "k", scope())).await, Err(JournalErrorKind::KeyTaken));
    kind(named("own", "own", scope())).await.unwrap();
    assert_eq!(kind(named("c", "own", scope())).await, Err(JournalErrorKind::KeyTaken));
    kind(named("c", "own", Scope::new("toss", ""))).await.unwrap();
    let own = journal.load(&OperationId::from("own")).await.unwrap().unwrap();
    assert_eq!(own.identity().key(), Some("own"));
    assert_eq!(entries(journal, "a").await.len(), 2, "what was refused left nothing");
}

async fn a_position_that_moved_is_a_conflict(journal: &dyn Journal) {
    journal.insert(drawn(journal, "a"), PATIENCE).await.unwrap();
    for position in [0, 1, 3, usize::MAX] {
        let append = Append::new(OperationId::from("a"), position, vec![ended(1)], Status::Closed)
            .with_answer(Some(answer("never")));
        let error = journal.append(append, PATIENCE).await.unwrap_err();
        assert_eq!((error.kind(), error.is_certain()), (JournalErrorKind::Conflict, true), "{position}");
    }
    let unknown = Append::new(OperationId::from("nobody"), 0, vec![ended(1)], Status::Open);
    assert_eq!(journal.append(unknown, PATIENCE).await.unwrap_err().kind(), JournalErrorKind::Conflict);
    let stored = journal.load(&OperationId::from("a")).await.unwrap().unwrap();
    assert_eq!((stored.entries().len(), stored.answer()), (2, None));
    assert_eq!(stored.status(), Status::Running(journal.owner()));
}

async fn of_many_at_one_position_one_wins(journal: Arc<dyn Journal>) {
    journal.insert(drawn(&*journal, "a"), PATIENCE).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for attempt in 1..=16 {
        let journal = Arc::clone(&journal);
        tasks.spawn(async move {
            let append = Append::new(OperationId::from("a"), 2, vec![started(attempt)], Status::Open);
            journal.append(append, PATIENCE).await.is_ok()
        });
    }
    let won = tasks.join_all().await.into_iter().filter(|won| *won).count();
    assert_eq!((won, entries(&*journal, "a").await.len()), (1, 3));
}

async fn many_at_once_are_all_written(journal: Arc<dyn Journal>) {
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..200 {
        let journal = Arc::clone(&journal);
        tasks.spawn(async move {
            let id = format!("order-{number}");
            // Every seventh id twice: those at fault must not spoil the others.
            let other = if number % 7 == 0 { format!("order-{}", number + 1) } else { id.clone() };
            journal.insert(drawn(&*journal, &other), PATIENCE).await.is_ok()
                && journal
                    .append(Append::new(OperationId::from(other.as_str()), 2, vec![ended(1)], Status::Closed), PATIENCE)
                    .await
                    .is_ok()
        });
    }
    let written = tasks.join_all().await.into_iter().filter(|written| *written).count();
    assert_eq!(written, 200 - 29);
    for number in [1, 100, 199] {
        assert_eq!(
            entries(&*journal, &format!("order-{number}")).await,
            [created(KeyOrigin::Drawn), started(1), ended(1)]
        );
    }
    assert!(journal.list(&scope()).await.unwrap().is_empty());
}

async fn lists_show_what_has_no_end(journal: &dyn Journal) {
    for id in ["a", "b", "c"] {
        journal.insert(drawn(journal, id), PATIENCE).await.unwrap();
    }
    journal.insert(named("d", "k", Scope::new("verifika", "acct_2")), PATIENCE).await.unwrap();
    let running = Status::Running(journal.owner());
    let named = |list: &[(&str, Status)]| list.iter().map(|(id, s)| ((*id).to_owned(), *s)).collect::<Vec<_>>();
    assert_eq!(names(journal, &scope()).await, named(&[("a", running), ("b", running), ("c", running)]));
    journal.release(&OperationId::from("a"));
    let append = |id: &str, status| {
        Append::new(OperationId::from(id), 2, vec![ended(1)], status).with_durability(Durability::Visible)
    };
    journal.append(append("b", Status::Closed), PATIENCE).await.unwrap();
    journal.append(append("c", Status::Open), PATIENCE).await.unwrap();
    assert_eq!(names(journal, &scope()).await, named(&[("a", Status::Open), ("c", Status::Open)]));
    let listed = journal.list(&scope()).await.unwrap();
    assert_eq!(listed[1].entries(), [created(KeyOrigin::Drawn), started(1), ended(1)]);
    // A closed one may be taken up again.
    let again = Append::new(OperationId::from("b"), 3, vec![started(2)], running);
    journal.append(again, PATIENCE).await.unwrap();
    assert_eq!(names(journal, &scope()).await[1], ("b".to_owned(), running));
    journal.release(&OperationId::from("nobody"));
    assert!(journal.is_alive(journal.owner()).await.unwrap());
    assert!(!journal.is_alive(Owner::new(1)).await.unwrap());
}

async fn pruning_keeps_what_a_second_payment_would_need(journal: &dyn Journal) {
    for id in ["old", "open"] {
        journal.insert(drawn(journal, id), PATIENCE).await.unwrap();
    }
    let close = Append::new(OperationId::from("old"), 2, vec![ended(1)], Status::Closed).with_answer(Some(answer("a")));
    journal.append(close, PATIENCE).await.unwrap();
    assert_eq!(journal.prune(Duration::MAX).await.unwrap(), 0);
    let far = Duration::from_secs(86_400);
    assert_eq!(journal.prune(far).await.unwrap(), 1);
    assert_eq!(journal.prune(far).await.unwrap(), 0);
    let old = journal.load(&OperationId::from("old")).await.unwrap().unwrap();
    assert_eq!((old.request(), old.answer(), old.entries().len()), (None, None, 3));
    assert_eq!(old.identity().key(), Some("key of old"));
    assert!(journal.load(&OperationId::from("open")).await.unwrap().unwrap().request().is_some());
    let again = journal.insert(drawn(journal, "old"), PATIENCE).await.unwrap_err();
    assert_eq!(again.kind(), JournalErrorKind::IdTaken);
}

async fn what_was_dropped_before_it_began_never_happens(journal: &dyn Journal) {
    drop(journal.insert(drawn(journal, "a"), PATIENCE));
    journal.flush(PATIENCE).await.unwrap();
    assert!(journal.load(&OperationId::from("a")).await.unwrap().is_none());
}

async fn a_closed_journal_says_so(journal: &dyn Journal) {
    journal.insert(drawn(journal, "a"), PATIENCE).await.unwrap();
    journal.close().await.unwrap();
    let errors = [
        journal.insert(drawn(journal, "b"), PATIENCE).await.unwrap_err(),
        journal.append(Append::new(OperationId::from("a"), 2, vec![], Status::Open), PATIENCE).await.unwrap_err(),
        journal.load(&OperationId::from("a")).await.unwrap_err(),
        journal.list(&scope()).await.unwrap_err(),
        journal.is_alive(journal.owner()).await.unwrap_err(),
        journal.is_alive(Owner::new(1)).await.unwrap_err(),
        journal.flush(PATIENCE).await.unwrap_err(),
        journal.prune(Duration::MAX).await.unwrap_err(),
        journal.close().await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!((error.kind(), error.is_certain()), (JournalErrorKind::Closed, true), "{error}");
    }
    journal.release(&OperationId::from("a"));
}

macro_rules! suite {
    ($back_end:ident, $folder:ident, $open:expr) => {
        mod $back_end {
            use super::*;

            suite!(@each $folder, $open,
                what_was_written_is_read ids_and_keys_are_unique a_position_that_moved_is_a_conflict
                lists_show_what_has_no_end pruning_keeps_what_a_second_payment_would_need
                what_was_dropped_before_it_began_never_happens a_closed_journal_says_so);

            #[tokio::test(flavor = "multi_thread")]
            async fn of_many_at_one_position_one_wins() {
                let $folder = Folder::new();
                super::of_many_at_one_position_one_wins(Arc::new($open)).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn many_at_once_are_all_written() {
                let $folder = Folder::new();
                super::many_at_once_are_all_written(Arc::new($open)).await;
            }
        }
    };
    (@each $folder:ident, $open:expr, $($name:ident)+) => {
        $(
            #[tokio::test]
            async fn $name() {
                let $folder = Folder::new();
                super::$name(&$open).await;
            }
        )+
    };
}

suite!(memory, _folder, Memory::new());
suite!(sqlite, folder, folder.journal().await);
