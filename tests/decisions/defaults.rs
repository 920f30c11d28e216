//! The defaults, measured against published schedules in a model of an outage
//! and of a brown-out. `docs/defaults.md` keeps the table; this test fails
//! when it is stale, and `ONCEKEY_WRITE=1` writes it anew.

use std::collections::BinaryHeap;
use std::fmt::Write as _;
use std::time::Duration;

use oncekey::engine::{Action, Draw, Entry, History, KeyOrigin, MethodKind, Policy, Time};

use crate::trace::*;

const OPERATIONS: usize = 1000;
const SERVICE: u64 = 20;

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `most`, evenly.
    fn up_to(&mut self, most: u64) -> u64 {
        self.bits() % (most + 1)
    }
}

/// How failures are waited out.
#[derive(Clone, Copy)]
enum Schedule {
    /// The real engine, with this many attempts, this base and this cap.
    Ours(u32, u64, u64),
    /// 2 retries; `500 ms + 500 ms * n^2` up to 5 s, less up to a quarter, from 500 ms.
    StripeGo,
    /// 3 attempts; `rand(0, 1) * min(2^n, 20 s)`; a quota of 500 a process, 5 a retry.
    BotocoreStandard,
    /// 3 retries, as its README shows; full jitter over `1 s * 2^n`, from 1 s to 30 minutes.
    ReqwestRetry,
    /// 3 attempts; `500 ms * 2^n`, no jitter.
    Loop,
}

const SCHEDULES: [(&str, Schedule); 10] = [
    ("**oncekey: 12 attempts, 0.5 s to 30 s**", Schedule::Ours(12, 500, 30_000)),
    ("oncekey with 5 attempts", Schedule::Ours(5, 500, 30_000)),
    ("oncekey with 8 attempts", Schedule::Ours(8, 500, 30_000)),
    ("oncekey with 10 attempts", Schedule::Ours(10, 500, 30_000)),
    ("oncekey with 10 attempts from 1 s", Schedule::Ours(10, 1000, 30_000)),
    ("oncekey with 12 attempts up to 10 s", Schedule::Ours(12, 500, 10_000)),
    ("stripe-go", Schedule::StripeGo),
    ("botocore, standard mode", Schedule::BotocoreStandard),
    ("reqwest-retry, 3 retries", Schedule::ReqwestRetry),
    ("the loop `2^n * 500 ms`, 3 attempts", Schedule::Loop),
];

/// When the server refuses.
#[derive(Clone, Copy)]
enum Trouble {
    /// Everything, until then.
    Outage(u64),
    /// Half of the requests, until then.
    BrownOut(u64),
}

impl Trouble {
    fn refuses(self, at: u64, dice: &mut Dice) -> bool {
        match self {
            Self::Outage(end) => at < end,
            Self::BrownOut(end) => at < end && dice.up_to(1) == 0,
        }
    }

    fn end(self) -> u64 {
        match self {
            Self::Outage(end) | Self::BrownOut(end) => end,
        }
    }
}

#[derive(Default)]
struct Measured {
    sent: usize,
    settled: Vec<u64>,
    /// Arrivals in each 100 ms after the trouble's end.
    after: Vec<usize>,
}

impl Measured {
    fn row(&mut self) -> String {
        self.settled.sort_unstable();
        let share = 100.0 * self.settled.len() as f64 / OPERATIONS as f64;
        let most = match self.settled.get(OPERATIONS * 99 / 100 - 1) {
            Some(at) => format!("{:.1} s", *at as f64 / 1000.0),
            None => "never".to_owned(),
        };
        let peak = self.after.iter().max().unwrap();
        format!("{:.2} | {share:.1} % | {most} | {peak}", self.sent as f64 / self.settled.len().max(1) as f64)
    }
}

/// One operation's way: when its next request goes out, if one does.
struct Caller {
    schedule: Schedule,
    failures: u32,
    engine: Option<(Policy, History)>,
}

impl Caller {
    fn new(schedule: Schedule, at: u64) -> Self {
        let engine = match schedule {
            Schedule::Ours(attempts, base, cap) => {
                let policy = Policy::new().max_attempts(attempts).delays(ms(base), ms(cap));
                let created = Entry::Created {
                    at: time(at),
                    key: KeyOrigin::Drawn,
                    method: MethodKind::Other,
                    gone_is_done: false,
                };
                Some((policy, History::replay(&[created]).unwrap()))
            }
            _ => None,
        };
        Self { schedule, failures: 0, engine }
    }

    /// A 503 came. When the next request goes out, if one does.
    fn failed(&mut self, sent: u64, now: u64, dice: &mut Dice, quota: &mut u32) -> Option<u64> {
        self.failures += 1;
        let n = self.failures;
        match self.schedule {
            Schedule::Ours(..) => self.ask_the_engine(sent, now, dice),
            Schedule::StripeGo => (n <= 2).then(|| {
                let delay = (500 + 500 * u64::from((n - 1) * (n - 1))).min(5000);
                now + (delay - dice.up_to(delay / 4)).max(500)
            }),
            Schedule::BotocoreStandard => {
                let paid = n < 3 && *quota >= 5;
                paid.then(|| {
                    *quota -= 5;
                    now + dice.up_to((1000 << (n - 1)).min(20_000))
                })
            }
            Schedule::ReqwestRetry => (n <= 3).then(|| now + dice.up_to(1000 << (n - 1)).max(1000)),
            Schedule::Loop => (n < 3).then(|| now + (500 << n)),
        }
    }

    fn ask_the_engine(&mut self, sent: u64, now: u64, dice: &mut Dice) -> Option<u64> {
        let (policy, history) = self.engine.as_mut().unwrap();
        let Action::Record(started) = history.next(policy, time(sent)) else { panic!("an attempt is due") };
        history.apply(&started).unwrap();
        let ended = history.ended(ERROR_503, policy, time(now), Draw::Entropy(dice.bits()));
        history.apply(&ended).unwrap();
        match history.next(policy, time(now)) {
            Action::Sleep(wait) => Some(now + u64::try_from(wait.as_millis()).unwrap()),
            _ => None,
        }
    }
}

fn time(millis: u64) -> Time {
    START.after(Duration::from_millis(millis))
}

fn measure(schedule: Schedule, trouble: Trouble, processes: bool) -> Measured {
    let mut dice = Dice(42);
    let mut measured = Measured { after: vec![0; 100], ..Measured::default() };
    let mut shared_quota = 500;
    let mut quotas = [500; OPERATIONS];
    // One process begins them all at once; many begin one each, over the whole time.
    let start = |i: usize| if processes { i as u64 * trouble.end() / OPERATIONS as u64 } else { 0 };
    let mut callers: Vec<Caller> = (0..OPERATIONS).map(|i| Caller::new(schedule, start(i))).collect();
    let mut due: BinaryHeap<(std::cmp::Reverse<u64>, usize)> =
        (0..OPERATIONS).map(|i| (std::cmp::Reverse(start(i)), i)).collect();
    while let Some((std::cmp::Reverse(at), i)) = due.pop() {
        measured.sent += 1;
        if let Some(bucket) =
            at.checked_sub(trouble.end()).and_then(|since| measured.after.get_mut(usize::try_from(since / 100).ok()?))
        {
            *bucket += 1;
        }
        let now = at + SERVICE;
        if trouble.refuses(at, &mut dice) {
            let quota = if processes { &mut quotas[i] } else { &mut shared_quota };
            due.extend(callers[i].failed(at, now, &mut dice, quota).map(|next| (std::cmp::Reverse(next), i)));
        } else {
            measured.settled.push(now - start(i));
        }
    }
    measured
}

fn table() -> String {
    let mut page = String::new();
    for (title, trouble) in
        [("An outage of 30 s", Trouble::Outage(30_000)), ("A brown-out of 60 s", Trouble::BrownOut(60_000))]
    {
        for (who, processes) in [("1,000 operations in one process", false), ("1,000 processes with one each", true)] {
            let _ = write!(page, "\n### {title}, {who}\n\n");
            page.push_str("| schedule | requests sent per operation settled | settled | 99 % settled after | most arrivals in 100 ms, in the 10 s after it |\n|---|--:|--:|--:|--:|\n");
            for (name, schedule) in SCHEDULES {
                let _ = writeln!(page, "| {name} | {} |", measure(schedule, trouble, processes).row());
            }
        }
    }
    page
}

#[test]
fn the_row_of_ours_is_the_default() {
    assert_eq!(Policy::new(), Policy::new().max_attempts(12).delays(ms(500), ms(30_000)));
}

#[test]
fn the_table_of_defaults_is_what_the_page_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/defaults.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, _) = page.split_once("<!-- measured -->").expect("the page has a place for the tables");
    let fresh = format!("{before}<!-- measured -->\n{}", table());
    if std::env::var_os("ONCEKEY_WRITE").is_some() {
        std::fs::write(path, &fresh).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), fresh, "write it anew with ONCEKEY_WRITE=1");
}
