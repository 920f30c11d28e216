//! The idempotency keys: what is known of each, and who may execute.
//!
//! ```text
//!             claim                    finish, stored
//!   (none) ----------> Running(token) ----------------> Done: replayed, or refused as reused
//!      ^                 |     ^  | stale: claimed anew
//!      |  finish,        |     |  | with another token
//!      |  released       |     +--+
//!      +-----------------+
//!      +--- the lifetime after the first use, from any state
//! ```

use super::answer::Answer;
use http::header::DATE;
use std::collections::HashMap;
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub(super) struct KeyRules {
    pub(super) lifetime: Duration,
    pub(super) reclaim_after: Duration,
}

#[derive(Default)]
pub(super) struct KeyStore {
    records: HashMap<String, Record>,
    tickets: u64,
}

struct Record {
    first_used: Duration,
    /// The first ticket of this life of the key: a handler that outlived it is told apart.
    life: u64,
    executed: bool,
    state: KeyState,
}

enum KeyState {
    /// Released by an error after it had executed; without that the record is removed.
    Free,
    Running {
        token: u64,
        since: Duration,
        fingerprint: Vec<u8>,
    },
    Done {
        fingerprint: Vec<u8>,
        answer: Answer,
    },
}

/// The right to execute under a key, until the lock is reclaimed.
#[derive(Clone)]
pub(super) struct Ticket {
    key: String,
    token: u64,
    life: u64,
}

pub(super) enum Claim {
    Run(Ticket),
    Replay(Answer),
    /// And how long until the lock counts as stale.
    InProgress(Duration),
    Reused,
}

impl KeyStore {
    /// Looks the key up and takes it in one step, as an insert into a unique index would.
    pub(super) fn claim(&mut self, key: &str, fingerprint: Vec<u8>, now: Duration, rules: KeyRules) -> Claim {
        let forgotten =
            self.records.get(key).is_some_and(|record| now.saturating_sub(record.first_used) >= rules.lifetime);
        if forgotten {
            self.records.remove(key);
        }
        if let Some(record) = self.records.get(key) {
            match &record.state {
                KeyState::Free => {}
                KeyState::Running { fingerprint: f, .. } | KeyState::Done { fingerprint: f, .. }
                    if *f != fingerprint =>
                {
                    return Claim::Reused;
                }
                KeyState::Done { answer, .. } => return Claim::Replay(answer.clone()),
                KeyState::Running { since, .. } => {
                    let held = now.saturating_sub(*since);
                    if held < rules.reclaim_after {
                        return Claim::InProgress(rules.reclaim_after.saturating_sub(held));
                    }
                }
            }
        }
        self.tickets += 1;
        let token = self.tickets;
        let state = KeyState::Running { token, since: now, fingerprint };
        let record = self
            .records
            .entry(key.to_owned())
            .and_modify(|record| {
                // What was released is a new use: its time starts anew, what it did stays known.
                if matches!(record.state, KeyState::Free) {
                    record.first_used = now;
                }
            })
            .or_insert(Record { first_used: now, life: token, executed: false, state: KeyState::Free });
        record.state = state;
        Claim::Run(Ticket { key: key.to_owned(), token, life: record.life })
    }

    /// Notes that the ticket's holder executed; whether something under this key had already.
    pub(super) fn executed(&mut self, ticket: &Ticket) -> bool {
        let record = self.records.get_mut(&ticket.key);
        match record.filter(|record| record.life == ticket.life) {
            Some(record) => std::mem::replace(&mut record.executed, true),
            None => false,
        }
    }

    /// Stores the answer, or releases the key. The word of a holder whose lock was reclaimed
    /// counts for nothing.
    pub(super) fn finish(&mut self, ticket: &Ticket, answer: &Answer, store: bool) {
        let Some(record) = self.records.get_mut(&ticket.key) else {
            return;
        };
        let KeyState::Running { token, fingerprint, .. } = &mut record.state else {
            return;
        };
        if *token != ticket.token {
            return;
        }
        if store {
            let mut answer = answer.clone();
            // The time of sending is each answer's own.
            answer.headers.remove(DATE);
            record.state = KeyState::Done { fingerprint: std::mem::take(fingerprint), answer };
        } else if record.executed {
            record.state = KeyState::Free;
        } else {
            self.records.remove(&ticket.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;

    const RULES: KeyRules = KeyRules { lifetime: Duration::from_secs(100), reclaim_after: Duration::from_secs(30) };

    fn claim(store: &mut KeyStore, body: &str, now: u64) -> Claim {
        store.claim("k", body.into(), Duration::from_secs(now), RULES)
    }

    fn run(store: &mut KeyStore, body: &str, now: u64) -> Ticket {
        match claim(store, body, now) {
            Claim::Run(ticket) => ticket,
            Claim::Replay(_) | Claim::InProgress(_) | Claim::Reused => panic!("not to be run"),
        }
    }

    #[test]
    fn a_reclaimed_holder_can_neither_store_nor_release() {
        let (mut store, answer) = (KeyStore::default(), Answer::bare(StatusCode::CREATED));
        let first = run(&mut store, "a", 0);
        assert!(matches!(claim(&mut store, "a", 29), Claim::InProgress(d) if d.as_secs() == 1));
        assert!(matches!(claim(&mut store, "b", 30), Claim::Reused));
        let second = run(&mut store, "a", 30);
        store.finish(&first, &answer, true);
        store.finish(&first, &answer, false);
        assert!(matches!(claim(&mut store, "a", 31), Claim::InProgress(_)));
        assert!(!store.executed(&second));
        assert!(store.executed(&first), "the later one is the double");
        store.finish(&second, &answer, true);
        assert!(matches!(claim(&mut store, "a", 99), Claim::Replay(a) if a == answer));
        run(&mut store, "b", 100);
    }

    #[test]
    fn a_released_key_takes_another_body_and_remembers_an_execution() {
        let (mut store, answer) = (KeyStore::default(), Answer::bare(StatusCode::BAD_REQUEST));
        let ticket = run(&mut store, "a", 0);
        store.finish(&ticket, &answer, false);
        let ticket = run(&mut store, "b", 99);
        assert!(!store.executed(&ticket));
        store.finish(&ticket, &answer, false);
        let ticket = run(&mut store, "c", 198);
        assert!(store.executed(&ticket));
    }

    #[test]
    fn a_handler_that_outlived_its_key_is_no_double_of_the_next_life() {
        let mut store = KeyStore::default();
        let old = run(&mut store, "a", 0);
        let new = run(&mut store, "a", 100);
        assert!(!store.executed(&old));
        assert!(!store.executed(&new));
    }
}
