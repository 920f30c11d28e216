//! What must be true, whatever happened.

use std::collections::HashSet;
use std::error::Error as _;
use std::time::Duration;

use oncekey::engine::Entry;
use oncekey::journal::{JournalError, JournalErrorKind};
use oncekey::{Effect, Error, ErrorKind, OperationRecord, RecordState, Response};
use serde_json::Value;

use super::world::{ACCOUNTS, IDS, Manner, Which, World, id};

fn value(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap()
}

/// What a caller is told, at the moment when it is told, against the ledger.
pub(crate) fn told(world: &World, number: usize, asked: Option<&str>, end: &Result<Response, Error>) -> String {
    let rows = world.executions(number);
    match end {
        Ok(response) => {
            assert_eq!(rows.len(), 1, "Ok, and it was not carried out once: {rows:?}");
            let row = &rows[0];
            let carried_out = value(row.body());
            let answer = format!(r#"{{"id":"{}","status":"captured","amount":{}}}"#, row.id(), carried_out["amount"]);
            assert_eq!(response.status(), 201, "{}", response.text());
            assert_eq!(response.text(), answer, "the answer is another's");
            assert_eq!(response.key().map(|key| key.as_str()), row.key());
            assert!(asked.is_none_or(|asked| value(asked.as_bytes()) == carried_out), "something else was carried out");
            response.recorded().unwrap();
            world.count("Ok");
            format!("Ok, {} attempts", response.attempts().len())
        }
        Err(error) => {
            is_no_damage(world, error);
            match error.effect() {
                Effect::NotApplied => assert!(rows.is_empty(), "NotApplied: {error:?}, {rows:?}"),
                Effect::Applied => assert_eq!(rows.len(), 1, "Applied: {error:?}"),
                Effect::Unknown => {}
            }
            world.count(format!("{:?}, {}", error.kind(), error.effect()));
            let statuses: Vec<_> = error.attempts().iter().map(|a| a.status().map_or(0, |s| s.as_u16())).collect();
            format!("{:?}, {}: {error}, {statuses:?}", error.kind(), error.effect())
        }
    }
}

/// Nothing here breaks the journal's disk, so the record can be read and written.
fn is_no_damage(world: &World, error: &Error) {
    let mut source = error.source();
    let mut kind = None;
    while let Some(cause) = source {
        kind = kind.or_else(|| cause.downcast_ref::<JournalError>().map(JournalError::kind));
        source = cause.source();
    }
    match (error.kind(), kind) {
        // Nobody works for so long, and what somebody works on is taken by nobody.
        (ErrorKind::Busy, _) => panic!("{error:?}"),
        (ErrorKind::Journal, Some(JournalErrorKind::Missing)) => {}
        (_, Some(JournalErrorKind::Locked)) if world.locked.get() => {}
        (ErrorKind::Journal, kind) => panic!("{kind:?}: {error:?}"),
        (_, None | Some(JournalErrorKind::KeyTaken)) => {}
        (_, kind) => panic!("{kind:?}: {error:?}"),
    }
}

/// The record against the ledger and what was seen on the wire.
pub(crate) async fn check(world: &World) {
    let mut keys = HashSet::new();
    let numbers = world.touched.get().map_or(0..IDS, |number| number..number + 1);
    for number in numbers {
        let (rows, seen) = (world.executions(number), world.requests(number));
        assert!(rows.len() <= 1, "{number} was carried out twice: {rows:?}");
        assert!(rows.iter().all(|row| !row.is_double()));
        let Some(record) = record(world, number).await else {
            assert!(seen.is_empty(), "{number} was sent, and is not on record: {seen:?}");
            continue;
        };
        let started = record.entries().iter().filter(|entry| matches!(entry, Entry::Started { .. })).count();
        assert!(seen.len() <= started, "{number} was sent more often than is on record: {record:?}");
        let interrupted = record.entries().iter().filter(|entry| matches!(entry, Entry::Interrupted { .. })).count();
        let drops = world.operations[number].drops.get();
        assert!(interrupted <= drops, "{number}: an attempt was interrupted that nobody gave up: {record:?}");
        match record.effect() {
            Effect::NotApplied => assert!(rows.is_empty(), "{number} on record as not applied: {rows:?}"),
            Effect::Applied => assert_eq!(rows.len(), 1, "{number} on record as applied"),
            Effect::Unknown => assert_ne!(record.state(), RecordState::Settled, "{record:?}"),
        }
        if let Some(resolved) = world.operations[number].resolved.get() {
            assert_eq!((record.state(), record.effect()), (RecordState::Settled, resolved), "{number} was resolved");
        }
        let key: Vec<String> = record.key().iter().map(|key| key.as_str().to_owned()).collect();
        for request in &seen {
            assert_eq!(request.keys(), key, "{number} was sent under another key");
        }
        assert!(key.into_iter().all(|key| keys.insert(key)), "the key of {number} is another's too");
        same_bytes(world, number);
    }
}

/// The bytes under one key change only where each request before was refused,
/// and the refusal released the key.
fn same_bytes(world: &World, number: usize) {
    let (rows, seen) = (world.executions(number), world.requests(number));
    let releases = seen.first().is_some_and(|first| {
        world
            .shops
            .iter()
            .any(|shop| !shop.stores_errors && shop.sandbox.requests().iter().any(|r| r.path() == first.path()))
    });
    let whole: Vec<_> = seen.iter().enumerate().filter(|(_, request)| request.is_complete()).collect();
    for pair in whole.windows(2) {
        let ((at, before), (_, now)) = (pair[0], pair[1]);
        if before.body() == now.body() {
            continue;
        }
        // A fingerprint is all that is left of what was pruned.
        if value(before.body()) == value(now.body()) && world.operations[number].pruned.get() {
            continue;
        }
        assert!(releases, "{number}: other bytes under a key that is never released");
        assert!(rows.iter().all(|row| row.request() >= now.number()), "{number}: other bytes after it was carried out");
        // What was not read whole may be either.
        for earlier in &seen[..=at] {
            let status = earlier.status().map_or(0, |status| status.as_u16());
            let refused = [400, 401, 402, 403, 404, 409, 422].contains(&status);
            assert!(refused, "{number}: other bytes after {status}, {:?}", earlier.fault());
        }
    }
}

/// What each program says of an id, which is the same.
pub(crate) async fn record(world: &World, number: usize) -> Option<OperationRecord> {
    let id = id(number);
    let stored = world.book(0).journal().load(&id).await.unwrap()?;
    let scope = stored.identity().scope();
    let shop = world.shops.iter().position(|shop| shop.profile.id() == scope.profile()).unwrap();
    let account = ACCOUNTS.iter().position(|account| *account == scope.account()).unwrap();
    let which = Which { shop, account, manner: Manner::Usual };
    // What a dropped future had begun to write goes on record a moment later, and so may change between two looks.
    let mut seen = Vec::new();
    let programs = world.programs.borrow().len();
    for _ in 0..1000 {
        seen.clear();
        for program in 0..programs {
            let client = world.client(program, which);
            let record = client.lookup(id.clone()).await.unwrap().unwrap();
            let lists = [client.unfinished().await.unwrap(), client.in_doubt().await.unwrap()];
            let [unfinished, in_doubt] = lists.map(|list| list.iter().any(|other| *other.id() == id));
            seen.push((record, unfinished, in_doubt));
        }
        let (state, effect) = (seen[0].0.state(), seen[0].0.effect());
        let agree = seen.iter().all(|(record, unfinished, in_doubt)| {
            (record.state(), record.effect()) == (state, effect)
                && *unfinished == (state == RecordState::Unfinished)
                && *in_doubt == (state == RecordState::InDoubt)
        });
        if agree && state != RecordState::Running {
            return Some(seen.swap_remove(0).0);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("(record, listed as unfinished, listed in doubt), by program: {seen:?}");
}
