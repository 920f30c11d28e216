use std::fmt;
use std::time::Duration;

use super::{Attempt, WaitReason};
use crate::engine::{Verdict, Why};

/// An attempt log as a table with a picture of its time; see [`Attempt::table`].
///
/// At most 80 columns, up to attempt 999.
#[derive(Clone, Copy, Debug)]
#[must_use = "it is to be printed"]
pub struct Table<'a>(pub(super) &'a [Attempt]);

/// How many cells the time of all attempts is drawn in.
const CELLS: usize = 18;

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(line) = TimeLine::of(self.0) else {
            return writeln!(f, "no attempt in this run");
        };
        let head = format!("{:>2} {:<5} {:<15} {:<22} {:>5} {:>6}", "#", "kind", "answer", "reading", "took", "then");
        writeln!(f, "{head} 0{:>width$}", short(line.total), width = CELLS - 1)?;
        for attempt in self.0 {
            let row = format!(
                "{:>2} {:<5} {:<15.15} {:<22.22} {:>5} {:>6} {}",
                attempt.number,
                attempt.kind.as_str(),
                answer(attempt),
                attempt.verdict.map_or_else(|| "not ended".to_owned(), reading),
                short(attempt.duration),
                then(attempt),
                line.bar(attempt),
            );
            writeln!(f, "{}", row.trim_end())?;
        }
        if self.0.iter().any(is_asked) {
            writeln!(f, " * as the server asked")?;
        }
        Ok(())
    }
}

/// The time from the first attempt's start to the end of the last, waits included.
struct TimeLine<'a> {
    first: &'a Attempt,
    total: Duration,
}

impl<'a> TimeLine<'a> {
    fn of(log: &'a [Attempt]) -> Option<Self> {
        let mut line = Self { first: log.first()?, total: Duration::ZERO };
        line.total = log.iter().map(|attempt| line.span(attempt).2).max().unwrap_or_default();
        Some(line)
    }

    /// When it started, when it ended, and when the wait after it did.
    fn span(&self, attempt: &Attempt) -> (Duration, Duration, Duration) {
        // The clock that it was sent by never goes back.
        let start = attempt.started_at.duration_since(self.first.started_at).unwrap_or_default();
        let end = start.saturating_add(attempt.duration);
        (start, end, end.saturating_add(attempt.wait))
    }

    /// `#` while it was on its way, `.` while it was waited for the next one.
    fn bar(&self, attempt: &Attempt) -> String {
        let (start, end, next) = self.span(attempt);
        let start = self.cell(start).min(CELLS - 1);
        // However short, it is seen.
        let end = self.cell(end).clamp(start + 1, CELLS);
        let next = self.cell(next).clamp(end, CELLS);
        format!("{}{}{}", " ".repeat(start), "#".repeat(end - start), ".".repeat(next - end))
    }

    fn cell(&self, at: Duration) -> usize {
        let cell = at.as_nanos().saturating_mul(CELLS as u128).checked_div(self.total.as_nanos()).unwrap_or(0);
        usize::try_from(cell).unwrap_or(CELLS)
    }
}

fn answer(attempt: &Attempt) -> String {
    match (attempt.status, attempt.failure) {
        (Some(status), Some(failure)) => format!("{} {failure}", status.as_u16()),
        (Some(status), None) => status.as_u16().to_string(),
        (None, Some(failure)) => failure.as_str().to_owned(),
        (None, None) => "-".to_owned(),
    }
}

/// What the answer beside it does not say already.
fn reading(verdict: Verdict) -> String {
    let why = match verdict.why() {
        Why::NotSent | Why::NoHead | Why::CutBody | Why::TooLarge => None,
        Why::InProgress | Why::Unauthorized | Why::RateLimited | Why::ServerError => None,
        Why::Refusal | Why::Success | Why::Other => None,
        Why::WrongType => Some("a page"),
        Why::AlreadyProcessed => Some("done before"),
        why @ (Why::Redirect | Why::KeyReused | Why::StoredError | Why::Pending | Why::Conflict) => Some(why.as_str()),
    };
    let reach = verdict.reach().as_str();
    why.map_or_else(|| reach.to_owned(), |why| format!("{reach}, {why}"))
}

fn then(attempt: &Attempt) -> String {
    match attempt.wait_reason {
        Some(_) if is_asked(attempt) => format!("{}*", short(attempt.wait)),
        Some(_) => short(attempt.wait),
        None => String::new(),
    }
}

fn is_asked(attempt: &Attempt) -> bool {
    attempt.wait_reason == Some(WaitReason::RetryAfter)
}

/// In at most five characters, up to a year.
fn short(span: Duration) -> String {
    let millis = span.as_millis();
    match millis {
        0..1_000 => format!("{millis}ms"),
        1_000..10_000 => format!("{}.{:02}s", millis / 1_000, millis % 1_000 / 10),
        10_000..100_000 => format!("{}.{}s", millis / 1_000, millis % 1_000 / 100),
        100_000..600_000 => format!("{}m{:02}s", millis / 60_000, millis % 60_000 / 1_000),
        600_000..60_000_000 => format!("{}m", millis / 60_000),
        _ => format!("{}h", millis / 3_600_000),
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use http::StatusCode;

    use super::super::Failure;
    use super::*;
    use crate::engine::{Advice, AttemptKind, Reach};

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Writes a log, each attempt after the wait of the one before it.
    #[derive(Default)]
    struct Log(Vec<Attempt>);

    impl Log {
        fn then(mut self, answer: Result<u16, Failure>, reach: Reach, why: Why, took: u64, wait: u64) -> Self {
            let (number, at) = match self.0.last() {
                Some(last) => (last.number + 1, last.started_at + last.duration + last.wait),
                None => (1, SystemTime::UNIX_EPOCH),
            };
            let kind = match self.0.last().and_then(|last| last.wait_reason) {
                None => AttemptKind::First,
                Some(WaitReason::Poll) => AttemptKind::Poll,
                Some(_) => AttemptKind::Retry,
            };
            let verdict = Verdict::new(reach, Advice::Retry, why);
            let mut attempt = Attempt::started(number, kind, at);
            attempt.status = answer.ok().map(|status| StatusCode::from_u16(status).unwrap());
            attempt.failure = answer.err();
            attempt.verdict = Some(verdict);
            attempt.duration = ms(took);
            attempt.wait = ms(wait);
            attempt.wait_reason = (wait > 0).then(|| WaitReason::of(verdict));
            self.0.push(attempt);
            self
        }

        fn asked(mut self) -> Self {
            self.0.last_mut().unwrap().wait_reason = Some(WaitReason::RetryAfter);
            self
        }

        fn failed(mut self, failure: Failure) -> Self {
            self.0.last_mut().unwrap().failure = Some(failure);
            self
        }

        #[track_caller]
        fn shows(&self, picture: &str) {
            let table = Table(&self.0).to_string();
            assert_eq!(table, picture.strip_prefix('\n').unwrap(), "\n{table}");
            assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
        }
    }

    const POLLED: Reach = Reach::Accepted { knows_key: true };

    #[test]
    fn a_lost_answer_a_503_a_409_and_the_replay() {
        let log = Log::default()
            .then(Err(Failure::Broken), Reach::Ambiguous, Why::NoHead, 10, 40)
            .then(Ok(503), Reach::Ambiguous, Why::ServerError, 5, 85)
            .then(Ok(409), POLLED, Why::InProgress, 5, 205)
            .then(Ok(201), Reach::Applied, Why::Success, 10, 0);
        log.shows(
            "
 # kind  answer          reading                 took   then 0            360ms
 1 first closed          in doubt                10ms   40ms #.
 2 retry 503             in doubt                 5ms   85ms   #....
 3 retry 409             in progress              5ms  205ms        #.........
 4 poll  201             applied                 10ms                         #
",
        );
    }

    #[test]
    fn nothing_was_sent() {
        Log::default().shows("\nno attempt in this run\n");
    }

    #[test]
    fn a_single_attempt_fills_its_time_and_one_that_took_none_is_seen() {
        Log::default().then(Ok(402), Reach::Rejected, Why::Refusal, 1234, 0).shows(
            "
 # kind  answer          reading                 took   then 0            1.23s
 1 first 402             rejected               1.23s        ##################
",
        );
        let mut log = Log::default().then(Ok(402), Reach::Rejected, Why::Refusal, 0, 0);
        log.0[0].verdict = None;
        log.0[0].status = None;
        log.shows(
            "
 # kind  answer          reading                 took   then 0              0ms
 1 first -               not ended                0ms        #
",
        );
    }

    #[test]
    fn twelve_attempts_with_every_long_word() {
        let log = Log::default()
            .then(Err(Failure::ConnectTimeout), Reach::Unsent, Why::NotSent, 10_000, 500)
            .then(Err(Failure::Certificate), Reach::Unsent, Why::NotSent, 100, 900)
            .then(Err(Failure::Timeout), Reach::Ambiguous, Why::NoHead, 60_000, 2_000)
            .then(Ok(200), Reach::Ambiguous, Why::WrongType, 300, 3_700)
            .then(Ok(409), Reach::Ambiguous, Why::AlreadyProcessed, 20, 80)
            .then(Ok(500), Reach::Rejected, Why::StoredError, 20, 80)
            .then(Ok(422), Reach::Ambiguous, Why::KeyReused, 20, 80)
            .then(Ok(202), POLLED, Why::Pending, 20, 4_980)
            .then(Ok(201), Reach::AppliedUnread, Why::CutBody, 20, 4_980)
            .failed(Failure::StalledBody)
            .then(Ok(201), Reach::AppliedUnread, Why::TooLarge, 20, 4_980)
            .failed(Failure::TooLarge)
            .then(Ok(429), Reach::Refused, Why::RateLimited, 20, 1_000)
            .then(Ok(201), Reach::Applied, Why::Success, 800, 0);
        log.shows(
            "
 # kind  answer          reading                 took   then 0            94.6s
 1 first connect timeout not sent               10.0s  500ms #
 2 retry bad certificate not sent               100ms  900ms  #
 3 retry timeout         in doubt               60.0s  2.00s   ###########
 4 retry 200             in doubt, a page       300ms  3.70s              #
 5 retry 409             in doubt, done before   20ms   80ms               #
 6 retry 500             rejected, stored error  20ms   80ms               #
 7 retry 422             in doubt, key reused    20ms   80ms               #
 8 retry 202             in progress, pending    20ms  4.98s               #
 9 poll  201 stalled     applied, unread         20ms  4.98s                #
10 retry 201 too long    applied, unread         20ms  4.98s                 #
11 retry 429             refused                 20ms  1.00s                  #
12 retry 201             applied                800ms                         #
",
        );
    }

    #[test]
    fn a_long_wait_that_the_server_asked_for() {
        let log = Log::default()
            .then(Ok(429), Reach::Refused, Why::RateLimited, 100, 3_600_000)
            .asked()
            .then(Ok(503), Reach::Ambiguous, Why::ServerError, 400, 150_000)
            .asked()
            .then(Ok(201), Reach::Applied, Why::Success, 90, 0);
        log.shows(
            "
 # kind  answer          reading                 took   then 0              62m
 1 first 429             refused                100ms   60m* #................
 2 retry 503             in doubt               400ms 2m30s*                  #
 3 retry 201             applied                 90ms                         #
 * as the server asked
",
        );
    }

    #[test]
    fn spans_fit_five_characters() {
        let shown = [0, 999, 1_000, 9_999, 10_000, 99_999, 100_000, 599_999, 600_000, 59_999_999, 60_000_000]
            .map(|millis| short(ms(millis)));
        let expected = ["0ms", "999ms", "1.00s", "9.99s", "10.0s", "99.9s", "1m40s", "9m59s", "10m", "999m", "16h"];
        assert_eq!(shown, expected);
        assert_eq!(short(Duration::from_secs(366 * 24 * 3600)), "8784h");
    }
}
