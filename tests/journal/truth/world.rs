//! Two shops with a server each, one journal, and the programs that have it open.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use oncekey::journal::{Journal, Memory, Sqlite};
use oncekey::sandbox::{Execution, Sandbox, SeenRequest};
use oncekey::{Client, Effect, IdempotencyKey, OperationId, Parts, Poll, Profile, Retry};

use super::dice::Dice;
use crate::support::Folder;

/// How many ids there are. The last two come seldom, so that they are new when a key is lent.
pub(crate) const IDS: usize = 6;
/// The id of something that the server wants no key for.
const KEYLESS: usize = 3;
pub(crate) const ACCOUNTS: [&str; 2] = ["", "acct_2"];

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) shops: [Shop; 2],
    pub(crate) programs: RefCell<Vec<Program>>,
    pub(crate) folder: Option<Folder>,
    memory: Memory,
    pub(crate) operations: [Operation; IDS],
    /// Keys of the callers' own, by shop, account and number.
    keys: RefCell<HashMap<(usize, usize, usize), IdempotencyKey>>,
    /// How many of the next attempts get no credentials.
    pub(crate) denied: Arc<AtomicUsize>,
    /// The ids that the last step had to do with, if not with all.
    pub(crate) touched: Cell<Option<usize>>,
    /// The file may be locked by another program for longer than a call waits.
    pub(crate) locked: Cell<bool>,
    pub(crate) habits: Habits,
    pub(crate) story: RefCell<Vec<String>>,
    pub(crate) counts: RefCell<BTreeMap<String, usize>>,
}

/// What comes often in this run, so that what needs several of a kind comes at all.
pub(crate) struct Habits {
    /// How often each kind of step comes.
    pub(crate) steps: [usize; 11],
    /// Callers bring keys of their own, and few.
    pub(crate) own_keys: bool,
    /// One in so many gets no credentials.
    pub(crate) denied: usize,
}

impl Habits {
    fn drawn(dice: &mut Dice) -> Self {
        let often = [0, 1, 1, 2, 6];
        let mut steps = std::array::from_fn(|_| often[dice.below(often.len())]);
        steps[0] = 5;
        Self { steps, own_keys: dice.one_in(4), denied: [3, 12, 12][dice.below(3)] }
    }

    /// Which step comes next.
    pub(crate) fn next(&self, dice: &mut Dice) -> usize {
        let mut place = dice.below(self.steps.iter().sum());
        let kind = self.steps.iter().position(|often| {
            let is_it = place < *often;
            place = place.saturating_sub(*often);
            is_it
        });
        kind.expect("the place is below the sum")
    }
}

/// An API, as its profile describes it.
pub(crate) struct Shop {
    pub(crate) profile: Profile,
    pub(crate) sandbox: Sandbox,
    pub(crate) stores_errors: bool,
}

/// What is known of an id, apart from the record.
#[derive(Default)]
pub(crate) struct Operation {
    pub(crate) resolved: Cell<Option<Effect>>,
    pub(crate) pruned: Cell<bool>,
    /// How many futures that worked on it were dropped, or may have been.
    pub(crate) drops: Cell<usize>,
    /// Odd while an attempt is on its way.
    pub(crate) flying: Arc<AtomicUsize>,
    /// Its key may have expired.
    pub(crate) brief: Cell<bool>,
}

/// An open journal and the clients on it.
pub(crate) struct Program {
    pub(crate) journal: Book,
    clients: HashMap<Which, Client>,
}

#[derive(Clone)]
pub(crate) enum Book {
    File(Sqlite),
    Memory(Memory),
}

/// Which of a program's clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Which {
    pub(crate) shop: usize,
    pub(crate) account: usize,
    pub(crate) manner: Manner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Manner {
    Usual,
    /// One attempt and no more.
    Hasty,
    /// Nobody listens where it connects to.
    Offline,
    /// Believes that keys are forgotten at once.
    Brief,
    /// Waits for whatever ends.
    Patient,
}

impl Book {
    pub(crate) fn journal(&self) -> &dyn Journal {
        match self {
            Self::File(journal) => journal,
            Self::Memory(journal) => journal,
        }
    }
}

impl World {
    pub(crate) async fn new(seed: u64, dice: &mut Dice) -> Self {
        let releasing = if dice.one_in(3) { Profile::generic() } else { Profile::verifika() };
        let shop = async |profile, header: &str, stores_errors| {
            let keyed = |_: &_, path: &str| !path.starts_with("/v1/notes");
            let sandbox = Sandbox::builder().replay_header(header, "true").store_errors(stores_errors).keyed(keyed);
            Shop { profile, sandbox: sandbox.start().await.unwrap(), stores_errors }
        };
        let shops = [
            shop(releasing, "idempotent-replay", false).await,
            shop(Profile::stripe(), "idempotent-replayed", true).await,
        ];
        let world = Self {
            seed,
            shops,
            programs: RefCell::default(),
            folder: (!dice.one_in(4)).then(Folder::new),
            memory: Memory::new(),
            operations: Default::default(),
            keys: RefCell::default(),
            denied: Arc::default(),
            touched: Cell::default(),
            locked: Cell::default(),
            habits: Habits::drawn(dice),
            story: RefCell::default(),
            counts: RefCell::default(),
        };
        for place in 0..2 {
            world.open(place, !dice.one_in(4)).await;
        }
        world
    }

    /// Another program takes this place.
    pub(crate) async fn open(&self, place: usize, keeps_bodies: bool) {
        let journal = match &self.folder {
            Some(folder) => {
                Book::File(Sqlite::builder().store_bodies(keeps_bodies).open_or_create(folder.file()).await.unwrap())
            }
            None => Book::Memory(self.memory.clone()),
        };
        let program = Program { journal, clients: HashMap::new() };
        let mut programs = self.programs.borrow_mut();
        if place < programs.len() {
            programs[place] = program;
        } else {
            programs.push(program);
        }
    }

    pub(crate) fn book(&self, program: usize) -> Book {
        self.programs.borrow()[program].journal.clone()
    }

    pub(crate) fn client(&self, program: usize, which: Which) -> Client {
        let program = &mut self.programs.borrow_mut()[program];
        let journal = program.journal.clone();
        program.clients.entry(which).or_insert_with(|| self.built(journal, which)).clone()
    }

    fn built(&self, journal: Book, which: Which) -> Client {
        let port = self.shops[which.shop].sandbox.addr().port();
        // The sandbox listens at the first of these alone.
        let host = if which.manner == Manner::Offline { [127, 0, 0, 2] } else { [127, 0, 0, 1] };
        let attempts = if which.manner == Manner::Hasty { 1 } else { 3 };
        let (poll, deadline) = if which.manner == Manner::Patient { (20_000, 25_000) } else { (60, 10_000) };
        let (timeout, key_life) = if which.manner == Manner::Brief { (100, 300) } else { (8000, 86_400_000) };
        let denied = Arc::clone(&self.denied);
        let authorize = move |_: &mut Parts<'_>| -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
            let left = denied.load(Ordering::Relaxed);
            denied.store(left.saturating_sub(1), Ordering::Relaxed);
            if left > 0 { Err("no token".into()) } else { Ok(()) }
        };
        let builder = Client::builder()
            .profile(self.shops[which.shop].profile.clone())
            .account(ACCOUNTS[which.account])
            .http(move |http| http.no_proxy().tls_certs_only([]).resolve("shop.test", (host, port).into()))
            .authorize(authorize)
            .retry(Retry::default().max_attempts(attempts).base_delay(ms(1)).max_delay(ms(3)))
            .poll(Poll::default().interval(ms(4)).max_interval(ms(10)).limit(ms(poll)))
            .attempt_timeout(ms(timeout))
            .key_lifetime(ms(key_life))
            .deadline(ms(deadline))
            .max_response_bytes(64 * 1024);
        match journal {
            Book::File(journal) => builder.journal(journal).build().unwrap(),
            Book::Memory(journal) => builder.journal(journal).build().unwrap(),
        }
    }

    pub(crate) fn key(&self, which: Which, number: usize) -> IdempotencyKey {
        let place = (which.shop, which.account, number);
        self.keys.borrow_mut().entry(place).or_insert_with(IdempotencyKey::random).clone()
    }

    /// What the servers carried out under an id.
    pub(crate) fn executions(&self, number: usize) -> Vec<Execution> {
        let ledgers = self.shops.iter().flat_map(|shop| shop.sandbox.ledger());
        ledgers.filter(|row| number_of(row.path()) == number).collect()
    }

    /// What they saw of it, copies that a proxy made apart.
    pub(crate) fn requests(&self, number: usize) -> Vec<SeenRequest> {
        let seen = self.shops.iter().flat_map(|shop| shop.sandbox.requests());
        seen.filter(|request| number_of(request.path()) == number && !request.is_copy()).collect()
    }

    pub(crate) fn note(&self, line: impl Into<String>) {
        self.story.borrow_mut().push(line.into());
    }

    pub(crate) fn count(&self, what: impl Into<String>) {
        *self.counts.borrow_mut().entry(what.into()).or_default() += 1;
    }

    pub(crate) fn story(&self) -> String {
        let mut text = format!("seed {}, {}\n", self.seed, if self.folder.is_some() { "a file" } else { "in memory" });
        for line in self.story.borrow().iter() {
            let _ = writeln!(text, "  {line}");
        }
        text
    }
}

pub(crate) fn id(number: usize) -> OperationId {
    format!("order-{number}").into()
}

pub(crate) fn is_keyless(number: usize) -> bool {
    number == KEYLESS
}

pub(crate) fn path(number: usize) -> String {
    format!("/v1/{}/{number}", if is_keyless(number) { "notes" } else { "payments" })
}

fn number_of(path: &str) -> usize {
    path.rsplit('/').next().unwrap().parse().unwrap()
}

/// The bodies that are sent under an id: the first, the same in another order,
/// a corrected one, another, and one that the server itself refuses.
pub(crate) const BODIES: [&str; 5] = [
    r#"{"amount":10,"for":"tea"}"#,
    r#"{ "for": "tea", "amount": 10 }"#,
    r#"{"amount":11,"for":"tea"}"#,
    r#"{"amount":250,"for":"a pot"}"#,
    r#"{"amount":0,"for":"tea"}"#,
];
