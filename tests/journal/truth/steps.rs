//! What the callers do, and what goes wrong meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use oncekey::engine::Entry;
use oncekey::journal::Status;
use oncekey::sandbox::Fault;
use oncekey::{Effect, Error, ErrorKind, Event, IdempotencyKey, OperationRecord, RecordState, Response};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, Executor};

use super::dice::Dice;
use super::oracle::{self, told};
use super::world::{ACCOUNTS, BODIES, IDS, Manner, Which, World, id, is_keyless, path};

/// Longer than the server takes for anything but a hang.
const SHORT: Duration = Duration::from_millis(60);
/// The server takes back what it is held up by.
const RECLAIM: Duration = Duration::from_secs(31);

/// One call of `send`.
#[derive(Clone, Copy, Debug)]
struct Ask {
    number: usize,
    program: usize,
    which: Which,
    body: usize,
    key: Key,
    hangs: bool,
}

#[derive(Clone, Copy, Debug)]
enum Key {
    Default,
    /// The caller's own for this number, as it was drawn.
    Own(usize),
    /// The same, read from somewhere.
    Parsed(usize),
    Without,
}

pub(crate) async fn any(world: &World, dice: &mut Dice) {
    world.touched.set(None);
    match world.habits.next(dice) {
        0 => send(world, dice).await,
        1 => send_and_drop(world, dice).await,
        2 => two_at_once(world, dice).await,
        3 => resume(world, dice).await,
        4 => resume_all(world, dice).await,
        5 => decide(world, dice).await,
        6 => prune(world, dice).await,
        7 => reopen(world, dice).await,
        8 => die(world, dice).await,
        9 => lend_key(world, dice).await,
        _ => locked(world, dice).await,
    }
    if dice.one_in(24) {
        world.note("the servers take back what they are held up by");
        world.shops.iter().for_each(|shop| shop.sandbox.advance(RECLAIM));
    }
    world.denied.store(0, Ordering::Relaxed);
    world.locked.set(false);
    world.shops.iter().for_each(|shop| shop.sandbox.clear_faults());
}

fn any_id(dice: &mut Dice) -> usize {
    if dice.one_in(24) { dice.below(IDS) } else { dice.below(IDS - 2) }
}

fn which(dice: &mut Dice, number: usize) -> Which {
    let home = number % 2;
    let manner = match dice.below(16) {
        0 | 1 => Manner::Offline,
        2..=6 => Manner::Hasty,
        7 => Manner::Brief,
        _ => Manner::Usual,
    };
    Which { shop: if dice.one_in(16) { 1 - home } else { home }, account: usize::from(dice.one_in(16)), manner }
}

fn ask(world: &World, dice: &mut Dice, number: usize) -> Ask {
    world.touched.set(Some(number));
    let which = which(dice, number);
    // Most keep to how they began.
    let begins = world.requests(number).is_empty();
    let key = match dice.below(if begins { 12 } else { 32 }) {
        _ if is_keyless(number) => Key::Without,
        0 if dice.one_in(2) => Key::Without,
        1 => Key::Own(number),
        2 => Key::Own(dice.below(IDS)),
        4..=10 if begins && world.habits.own_keys => Key::Own(number % 2),
        3 if dice.one_in(2) => Key::Parsed(number),
        _ => Key::Default,
    };
    let body = match dice.below(16) {
        0..=10 => 0,
        11 => 1,
        12 | 13 => 2,
        14 => 3,
        _ => 4,
    };
    let program = dice.below(world.programs.borrow().len());
    Ask { number, program, which, body, key, hangs: false }
}

/// What goes wrong with the next requests, of this id, and whether something hangs.
fn faults(world: &World, dice: &mut Dice, which: Which, number: usize) -> bool {
    if dice.one_in(world.habits.denied) {
        world.denied.store(1 + dice.below(3), Ordering::Relaxed);
        world.note("no token for the next attempts");
    }
    let shop = &world.shops[which.shop];
    let mut hangs = false;
    let drawn: Vec<Fault> = (0..dice.below(4)).map(|_| fault(dice, shop.stores_errors, number, &mut hangs)).collect();
    if !drawn.is_empty() {
        world.note(format!("faults {drawn:?}"));
    }
    drawn.iter().for_each(|fault| world.count(format!("fault {}", fault.name())));
    shop.sandbox.fail_next(drawn);
    hangs
}

fn fault(dice: &mut Dice, stores_errors: bool, number: usize, hangs: &mut bool) -> Fault {
    // What answers that it was refused, and was not carried out.
    if dice.one_in(5) {
        let status = [400, 401, 402, 403, 404, 409, 422][dice.below(7)];
        let fault = Fault::status(status);
        return match dice.below(4) {
            0 => fault.json(r#"{"code":"CARD_FROZEN"}"#),
            1 if !is_keyless(number) => fault.from_handler_without_executing(),
            _ => fault,
        };
    }
    let lost = |dice: &mut Dice| match dice.below(3) {
        0 => Fault::answer_lost(),
        1 => Fault::answer_lost().with_reset(),
        _ => Fault::body_cut(5),
    };
    let stalls = [
        Fault::stall_before_reading,
        Fault::stall_before_executing,
        Fault::stall_while_executing,
        Fault::stall_after_executing,
    ];
    match dice.below(32) {
        0..=4 => lost(dice),
        5 => Fault::body_cut(5).chunked(),
        6 => Fault::head_cut(20),
        7 => Fault::unframed_cut(5),
        8 => Fault::garbled_head(),
        9 => Fault::truncated_json(5),
        // Without a key the server carries out what a proxy doubled.
        10 if !is_keyless(number) => Fault::duplicate(),
        11 | 12 => Fault::in_progress(),
        13 => Fault::html(200),
        14 => Fault::html(403),
        15 => Fault::redirect(307, "/elsewhere"),
        16 => Fault::replayed(500),
        17 => Fault::status(202),
        18 => Fault::status(503).executing(),
        19 => Fault::status(504).executing(),
        20 => Fault::closed_without_executing(),
        21 => Fault::reset_before_reading(),
        22 => Fault::oversized(100_000),
        23 => Fault::crash_before_executing(),
        24 if stores_errors => Fault::status(500).from_handler(),
        25 if stores_errors => Fault::status(500).from_handler_without_executing(),
        26..=28 => {
            *hangs = true;
            stalls[dice.below(4)]()
        }
        _ => Fault::status([408, 425, 429, 500, 503][dice.below(5)]),
    }
}

/// A future that is dropped sends nothing more.
struct Landing(Arc<AtomicUsize>);

impl Drop for Landing {
    fn drop(&mut self) {
        self.0.fetch_add(self.0.load(Ordering::Relaxed) % 2, Ordering::Relaxed);
    }
}

async fn sent(world: &World, ask: Ask) -> Result<Response, Error> {
    let operation = &world.operations[ask.number];
    operation.brief.set(operation.brief.get() || ask.which.manner == Manner::Brief);
    let client = world.client(ask.program, ask.which);
    let port = world.shops[ask.which.shop].sandbox.addr().port();
    let url = format!("http://shop.test:{port}{}", path(ask.number));
    let mut request =
        client.post(url).operation(id(ask.number)).header("content-type", "application/json").body(BODIES[ask.body]);
    request = match ask.key {
        Key::Default => request,
        Key::Own(number) => request.idempotency_key(world.key(ask.which, number)),
        Key::Parsed(number) => {
            let key = world.key(ask.which, number);
            request.idempotency_key(IdempotencyKey::parse(key.as_str()).unwrap())
        }
        Key::Without => request.without_key(),
    };
    if ask.hangs {
        request = request.attempt_timeout(SHORT);
    }
    let landing = Landing(Arc::clone(&operation.flying));
    let flying = Arc::clone(&operation.flying);
    request = request.on_event(move |event| {
        if matches!(event, Event::AttemptStarted(_) | Event::AttemptEnded(_)) {
            flying.fetch_add(1, Ordering::Relaxed);
        }
    });
    let end = request.send().await;
    drop(landing);
    world.note(format!("  {} {}", ask.number, told(world, ask.number, Some(BODIES[ask.body]), &end)));
    end
}

async fn send(world: &World, dice: &mut Dice) {
    let number = any_id(dice);
    let mut ask = ask(world, dice, number);
    ask.hangs = faults(world, dice, ask.which, number);
    world.note(format!("send {ask:?}"));
    let _ = sent(world, ask).await;
}

/// A key that goes with one operation, which may get no credentials, and then with another.
async fn lend_key(world: &World, dice: &mut Dice) {
    let first = IDS - 1 - dice.below(2);
    let which = which(dice, first);
    if dice.one_in(2) {
        return lend_unnamed(world, which, first).await;
    }
    for number in [first, 2 * IDS - 3 - first] {
        let mut ask = Ask { key: Key::Own(first), which, ..ask(world, dice, number) };
        ask.hangs = faults(world, dice, which, number);
        if number == first && !dice.one_in(3) {
            world.denied.store(3, Ordering::Relaxed);
        }
        world.note(format!("send with a key that is lent {ask:?}"));
        let _ = sent(world, ask).await;
        world.denied.store(0, Ordering::Relaxed);
    }
    world.touched.set(None);
}

/// The same, where the key is the first one's id: on record it is that one's alone.
async fn lend_unnamed(world: &World, which: Which, number: usize) {
    let which = Which { manner: Manner::Usual, ..which };
    let (client, key) = (world.client(0, which), IdempotencyKey::random());
    let port = world.shops[which.shop].sandbox.addr().port();
    // A place of its own, by which the ledger knows it.
    let unnamed = IDS + world.story.borrow().len();
    let pay = || client.post(format!("http://shop.test:{port}{}", path(unnamed))).body(BODIES[0]).idempotency_key(&key);
    world.denied.store(1, Ordering::Relaxed);
    let end = pay().send().await;
    world.note(format!("an unnamed one without a token: {}", told(world, unnamed, None, &end)));
    if world.book(0).journal().load(&key.as_str().into()).await.unwrap().is_some() {
        let end = pay().operation(id(number)).send().await;
        world.note(format!("its key for {number}: {}", told(world, number, None, &end)));
        assert_eq!(end.unwrap_err().kind(), ErrorKind::Mismatch, "a key on record is another's");
    }
}

/// The future is dropped after so many polls.
async fn cut<F: Future>(world: &World, number: usize, future: F, polls: usize) -> Option<F::Output> {
    let mut future = Box::pin(future);
    let mut left = polls;
    std::future::poll_fn(move |context| {
        if left == 0 {
            let drops = &world.operations[number].drops;
            drops.set(drops.get() + 1);
            return Poll::Ready(None);
        }
        left -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

async fn send_and_drop(world: &World, dice: &mut Dice) {
    let number = any_id(dice);
    let mut ask = ask(world, dice, number);
    ask.hangs = faults(world, dice, ask.which, number);
    let polls = 1 + dice.below(9);
    world.note(format!("send and drop after {polls} polls {ask:?}"));
    if cut(world, number, sent(world, ask), polls).await.is_none() {
        world.count("dropped");
    }
}

async fn two_at_once(world: &World, dice: &mut Dice) {
    let number = any_id(dice);
    let mut asks = [ask(world, dice, number), ask(world, dice, number)];
    let hangs = faults(world, dice, asks[0].which, number);
    asks.iter_mut().for_each(|ask| ask.hangs = hangs);
    let polls = if dice.one_in(3) { 1 + dice.below(9) } else { usize::MAX };
    world.note(format!("two at once, one dropped after {polls} polls {asks:?}"));
    let _ = tokio::join!(cut(world, number, sent(world, asks[0]), polls), sent(world, asks[1]));
}

async fn resume(world: &World, dice: &mut Dice) {
    let number = any_id(dice);
    if world.requests(number).is_empty() && !dice.one_in(8) {
        return;
    }
    let ask = ask(world, dice, number);
    let hangs = faults(world, dice, ask.which, number);
    let polls = if dice.one_in(3) { 1 + dice.below(9) } else { usize::MAX };
    world.note(format!("resume {number} by {} {:?}, dropped after {polls} polls", ask.program, ask.which));
    let mut resume = world.client(ask.program, ask.which).resume(id(number));
    if hangs {
        resume = resume.attempt_timeout(SHORT);
    }
    let resumed = async {
        let end = resume.send().await;
        world.note(format!("  {number} {}", told(world, number, None, &end)));
    };
    cut(world, number, resumed, polls).await;
}

async fn resume_all(world: &World, dice: &mut Dice) {
    let home = dice.below(2);
    let which = which(dice, home);
    let program = dice.below(world.programs.borrow().len());
    world.note(format!("resume all by {program} {which:?}"));
    let mut ends = world.client(program, which).resume_all().start().await.unwrap();
    while let Some((id, end)) = ends.next().await {
        let number = id.as_str().rsplit('-').next().unwrap().parse().unwrap();
        world.note(format!("  {number} {}", told(world, number, None, &end)));
    }
}

/// Somebody looks it up, once the servers are at rest, and says what was found.
async fn decide(world: &World, dice: &mut Dice) {
    let number = any_id(dice);
    let ask = ask(world, dice, number);
    let client = world.client(ask.program, Which { manner: Manner::Usual, ..ask.which });
    at_rest(world).await;
    let found = truth(world, number);
    let abandons = dice.one_in(3);
    let decided =
        if abandons { client.abandon(id(number)).await } else { client.resolve(id(number), found, "ana", "").await };
    let line = match decided {
        Ok(()) => {
            let effect = if abandons { Effect::NotApplied } else { found };
            assert_eq!(effect, found, "abandoned, and it was carried out");
            world.operations[number].resolved.set(Some(effect));
            world.count("resolved");
            "done".to_owned()
        }
        Err(error) => told(world, number, None, &Err(error)),
    };
    let what = if abandons { "abandon" } else { "resolve" };
    world.note(format!("{what} {number} as {found} by {} {:?}: {line}", ask.program, ask.which));
}

/// While another program holds the file's lock, much is queued, and some of it given up.
async fn locked(world: &World, dice: &mut Dice) {
    let Some(folder) = &world.folder else { return };
    let numbers = [any_id(dice), any_id(dice)];
    let mut asks: [Ask; 3] = std::array::from_fn(|_| {
        let number = numbers[usize::from(dice.one_in(4))];
        ask(world, dice, number)
    });
    let hangs = faults(
        world,
        dice,
        asks[0].which,
        numbers.into_iter().find(|number| is_keyless(*number)).unwrap_or(numbers[0]),
    );
    asks.iter_mut().for_each(|ask| ask.hangs = hangs);
    let polls: [usize; 3] = std::array::from_fn(|_| if dice.one_in(2) { 1 + dice.below(9) } else { usize::MAX });
    let held = Duration::from_millis(u64::try_from(dice.below(30)).unwrap());
    world.touched.set(None);
    world.locked.set(true);
    world.note(format!("locked for {held:?}, dropped after {polls:?} polls {asks:?}"));
    let mut other = SqliteConnectOptions::new().filename(folder.file()).connect().await.unwrap();
    while other.execute("BEGIN IMMEDIATE").await.is_err() {
        tokio::task::yield_now().await;
    }
    let doing = |index: usize| cut(world, asks[index].number, sent(world, asks[index]), polls[index]);
    let unlocks = async {
        tokio::time::sleep(held).await;
        other.execute("ROLLBACK").await.unwrap();
    };
    let all = async { tokio::join!(doing(0), doing(1), doing(2), unlocks) };
    tokio::select! {
        _ = all => {}
        () = watched(world, numbers[0]) => {}
    }
    other.close().await.unwrap();
}

/// What is on its way is somebody's, whoever looks.
async fn watched(world: &World, number: usize) {
    let (book, flying) = (world.book(0), &world.operations[number].flying);
    loop {
        let before = flying.load(Ordering::Relaxed);
        let stored = book.journal().load(&id(number)).await.unwrap();
        if let Some(stored) = stored
            && before % 2 == 1
            && before == flying.load(Ordering::Relaxed)
            && matches!(stored.entries().last(), Some(Entry::Started { .. }))
        {
            world.count("seen on its way");
            assert!(matches!(stored.status(), Status::Running(_)), "{number} is on its way: {stored:?}");
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

pub(crate) fn truth(world: &World, number: usize) -> Effect {
    if world.executions(number).is_empty() { Effect::NotApplied } else { Effect::Applied }
}

/// What is on its way to the servers comes in.
async fn at_rest(world: &World) {
    tokio::time::sleep(Duration::from_millis(5)).await;
    for shop in &world.shops {
        shop.sandbox.advance(RECLAIM);
        shop.sandbox.until(|sandbox| sandbox.at_work() == 0).await;
    }
}

async fn prune(world: &World, dice: &mut Dice) {
    let program = dice.below(world.programs.borrow().len());
    let pruned = world.book(program).journal().prune(Duration::ZERO).await.unwrap();
    world.note(format!("prune by {program}: {pruned}"));
    if pruned > 0 {
        world.operations.iter().for_each(|operation| operation.pruned.set(true));
    }
}

/// A program ends as it should, or just lets its journal go, and another begins.
async fn reopen(world: &World, dice: &mut Dice) {
    let program = dice.below(world.programs.borrow().len());
    let (closes, keeps_bodies) = (dice.one_in(2), !dice.one_in(4));
    world.note(format!("reopen {program}, closed {closes}, keeps bodies {keeps_bodies}"));
    if world.folder.is_none() {
        return;
    }
    if closes {
        world.book(program).journal().close().await.unwrap();
    }
    world.open(program, keeps_bodies).await;
}

/// A program that ends in the middle of a send.
async fn die(world: &World, dice: &mut Dice) {
    let number = any_id(dice);
    let mut ask = ask(world, dice, number);
    ask.program = world.programs.borrow().len();
    world.open(ask.program, !dice.one_in(4)).await;
    ask.hangs = faults(world, dice, ask.which, number);
    let polls = 1 + dice.below(9);
    world.note(format!("send and die after {polls} polls {ask:?}"));
    if cut(world, number, sent(world, ask), polls).await.is_none() {
        world.count("died");
    }
    world.programs.borrow_mut().truncate(ask.program);
}

/// The faults end, and everything comes to a true end.
pub(crate) async fn settle(world: &World) {
    world.note("the faults end");
    world.touched.set(None);
    at_rest(world).await;
    for shop in 0..world.shops.len() {
        for account in 0..ACCOUNTS.len() {
            let client = world.client(0, Which { shop, account, manner: Manner::Patient });
            let mut ends = client.resume_all().start().await.unwrap();
            while let Some((id, end)) = ends.next().await {
                let number = id.as_str().rsplit('-').next().unwrap().parse().unwrap();
                world.note(format!("  resumed {number} {}", told(world, number, None, &end)));
            }
        }
    }
    oracle::check(world).await;
    for number in 0..IDS {
        last(world, number).await;
    }
    oracle::check(world).await;
}

/// Asked for once more, as it is on record.
async fn last(world: &World, number: usize) {
    let Some(record) = oracle::record(world, number).await else { return };
    let scope = world.book(0).journal().load(&id(number)).await.unwrap().unwrap();
    let scope = scope.identity().scope();
    let shop = world.shops.iter().position(|shop| shop.profile.id() == scope.profile()).unwrap();
    let account = ACCOUNTS.iter().position(|account| *account == scope.account()).unwrap();
    let which = Which { shop, account, manner: Manner::Patient };
    let key = if record.key().is_some() { Key::Default } else { Key::Without };
    // What was carried out, or else sent last, comes first: another body might correct it.
    let (rows, seen) = (world.executions(number), world.requests(number));
    let sent_last = rows
        .first()
        .map(|row| row.body().clone())
        .or_else(|| seen.iter().rfind(|request| request.is_complete()).map(|request| request.body().clone()));
    let mut bodies: Vec<usize> = (0..BODIES.len()).collect();
    bodies.sort_by_key(|body| sent_last.as_deref() != Some(BODIES[*body].as_bytes()));
    let mut end = None;
    for body in bodies {
        let tried = sent(world, Ask { number, program: 0, which, body, key, hangs: false }).await;
        let is_other = tried.as_ref().is_err_and(|error| error.kind() == ErrorKind::Mismatch);
        assert!(!is_other || rows.is_empty(), "what was carried out passes for another request");
        if !is_other {
            end = Some((body, tried));
            break;
        }
    }
    let (body, end) = end.expect("one of the bodies is on record");
    let resolved = world.operations[number].resolved.get();
    let may_be_ok = is_keyless(number) || key_is_sent(key);
    let should_be_ok = !world.operations[number].brief.get()
        && resolved.is_none()
        && may_be_ok
        && body != 4
        && !world.shops[shop].stores_errors
        && (record.state() == RecordState::Unfinished || record.effect() == Effect::NotApplied);
    if should_be_ok {
        assert!(end.is_ok(), "{number} could have been carried out: {end:?}");
    }
    if end.as_ref().is_err_and(|error| error.effect() == Effect::Unknown) {
        let client = world.client(0, which);
        // What the server refuses each time anew may be sent for ever.
        let lists = [client.in_doubt().await.unwrap(), client.unfinished().await.unwrap()];
        let is_listed = |list: &Vec<OperationRecord>| list.iter().any(|other| *other.id() == id(number));
        assert!(is_listed(&lists[usize::from(end.as_ref().is_err_and(|e| e.kind() == ErrorKind::Refused))]), "{end:?}");
        let found = truth(world, number);
        client.resolve(id(number), found, "ana", "").await.unwrap();
        world.operations[number].resolved.set(Some(found));
        world.count("in doubt at the end");
    }
    let record = oracle::record(world, number).await.unwrap();
    assert_eq!((record.state(), record.effect()), (RecordState::Settled, truth(world, number)), "{number}");
}

fn key_is_sent(key: Key) -> bool {
    !matches!(key, Key::Without)
}
