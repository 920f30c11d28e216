//! What hooks are told, in which order, and what they are not told.

use std::sync::{Arc, Mutex};

use oncekey::sandbox::Fault;
use oncekey::{Event, IdempotencyKey, Profile, Retry};

use crate::*;

/// The events as lines, in their order.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    /// A hook that puts this before each line.
    pub(crate) fn hook(&self, name: &'static str) -> impl Fn(&Event<'_>) + Send + Sync + 'static {
        let seen = self.clone();
        move |event| seen.0.lock().unwrap().push(format!("{name}{}", line(event)))
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

fn line(event: &Event<'_>) -> String {
    match event {
        Event::AttemptStarted(started) => format!("{} {}", started.number(), started.kind().as_str()),
        Event::AttemptEnded(ended) => {
            let attempt = ended.attempt();
            let status = attempt.status().map_or_else(|| "-".to_owned(), |status| status.as_u16().to_string());
            assert!(!attempt.duration().is_zero() && attempt.wait().is_zero());
            format!("{} {status}: {}; {}", attempt.number(), attempt.verdict().unwrap(), ended.effect())
        }
        Event::Waiting(wait) | Event::Polling(wait) => {
            assert!(!wait.duration().is_zero() && wait.until() > std::time::SystemTime::UNIX_EPOCH + wait.duration());
            let what = if matches!(event, Event::Polling(_)) { "poll" } else { "wait" };
            format!("{what}: {}", wait.reason())
        }
        Event::Ended(ended) => {
            assert_eq!((ended.result().is_ok(), ended.kind()), (ended.kind().is_none(), ended.kind()));
            format!("over after {}: {:?}, {}", ended.attempts().len(), ended.kind(), ended.effect())
        }
        _ => unreachable!("{event}"),
    }
}

/// Delays that are never zero.
pub(crate) fn steady() -> ClientBuilder {
    let retry = Retry::default().max_attempts(4).base_delay(ms(60)).max_delay(ms(60));
    builder().profile(Profile::verifika()).retry(retry).entropy_seed(4)
}

pub(crate) fn troubles() -> [Fault; 3] {
    [Fault::answer_lost(), Fault::status(503), Fault::in_progress()]
}

pub(crate) const STORY: [&str; 12] = [
    "1 first",
    "1 -: in doubt, no answer; unknown",
    "wait: backoff",
    "2 retry",
    "2 503: in doubt, server error; unknown",
    "wait: backoff",
    "3 retry",
    "3 409: in progress, still running; unknown",
    "poll: poll",
    "4 poll",
    "4 201: applied; applied",
    "over after 4: None, applied",
];

#[tokio::test]
async fn a_lost_answer_a_503_a_409_and_the_replay() {
    let (seen, sandbox) = (Seen::default(), sandbox(troubles()).await);
    let client = steady().on_event(seen.hook("")).build().unwrap();
    assert!(pay(&client, &sandbox).await.unwrap().is_replay());
    assert_eq!(seen.lines(), STORY);
}

#[tokio::test]
async fn a_refusal() {
    let (seen, sandbox) = (Seen::default(), sandbox([Fault::status(400)]).await);
    let client = steady().on_event(seen.hook("")).build().unwrap();
    fails(pay(&client, &sandbox).await, ErrorKind::Refused, Effect::NotApplied);
    let expected = ["1 first", "1 400: refused, refusal; not applied", "over after 1: Some(Refused), not applied"];
    assert_eq!(seen.lines(), expected);
}

#[tokio::test]
async fn waits_that_the_server_asked_for() {
    let asked = |fault: Fault| fault.header("retry-after", "0.2");
    let faults = [asked(Fault::status(429)), asked(Fault::in_progress())];
    let (seen, sandbox) = (Seen::default(), sandbox(faults).await);
    let client = steady().on_event(seen.hook("")).build().unwrap();
    let _ = pay(&client, &sandbox).await.unwrap();
    let expected = [
        "1 first",
        "1 429: in doubt, rate limited; unknown",
        "wait: retry-after",
        "2 retry",
        "2 409: in progress, still running; unknown",
        "poll: retry-after",
        "3 poll",
        "3 201: applied; applied",
        "over after 3: None, applied",
    ];
    assert_eq!(seen.lines(), expected);
}

#[tokio::test]
async fn a_request_that_is_refused_here_tells_nothing_and_a_failing_hook_tells_the_end() {
    let (seen, sandbox) = (Seen::default(), sandbox([]).await);
    let hook = |_: &mut oncekey::Parts<'_>| Err("no token".into());
    let client = steady().on_event(seen.hook("")).authorize(hook).build().unwrap();
    let _ = client.post("nowhere").send().await.unwrap_err();
    assert_eq!(seen.lines(), [""; 0]);
    let _ = pay(&client, &sandbox).await.unwrap_err();
    assert_eq!(seen.lines(), ["over after 0: Some(Authorize), not applied"]);
}

#[tokio::test]
async fn a_call_that_is_dropped_tells_no_more() {
    let (seen, sandbox) = (Seen::default(), sandbox([Fault::stall_after_executing()]).await);
    let client = steady().on_event(seen.hook("")).build().unwrap();
    tokio::select! {
        biased;
        () = sandbox.until(|sandbox| sandbox.executions() == 1) => {}
        _ = pay(&client, &sandbox) => unreachable!(),
    }
    assert_eq!(seen.lines(), ["1 first"]);
}

#[tokio::test]
async fn the_clients_hook_comes_before_the_requests() {
    let (seen, sandbox) = (Seen::default(), sandbox([]).await);
    let client = steady().on_event(seen.hook("client ")).build().unwrap();
    let request = client.post(sandbox.url("/v1/payments")).json(&payment());
    let _ = request.on_event(seen.hook("request ")).send().await.unwrap();
    let expected = [
        "client 1 first",
        "request 1 first",
        "client 1 201: applied; applied",
        "request 1 201: applied; applied",
        "client over after 1: None, applied",
        "request over after 1: None, applied",
    ];
    assert_eq!(seen.lines(), expected);
    let _ = client.get(sandbox.url("/v1/payments")).send().await.unwrap();
    assert_eq!(seen.lines().last().unwrap(), "client over after 1: None, not applied", "a GET has no effect");
}

/// What the attempt's timeout and the deadline are measured by goes on while a hook works.
#[tokio::test]
#[allow(clippy::disallowed_methods)] // a hook that takes its time
async fn a_slow_hook_neither_adds_to_a_wait_nor_stops_the_clock() {
    let sandbox = sandbox([Fault::status(503).header("retry-after", "0.3"), Fault::none()]).await;
    let client = steady()
        .on_event(|event| {
            if matches!(event, Event::Waiting(_)) {
                std::thread::sleep(ms(250));
            }
        })
        .build()
        .unwrap();
    let response = pay(&client, &sandbox).await.unwrap();
    let wait = response.attempts()[0].wait();
    assert!(wait >= ms(300) && wait < ms(500), "{wait:?}");

    let late = steady()
        .deadline(ms(200))
        .on_event(|event| {
            if matches!(event, Event::AttemptStarted(_)) {
                std::thread::sleep(ms(300));
            }
        })
        .build()
        .unwrap();
    let before = sandbox.requests().len();
    fails(pay(&late, &sandbox).await, ErrorKind::Exhausted, Effect::NotApplied);
    assert_eq!(sandbox.requests().len(), before, "nothing is sent after the deadline");
}

const CARD: &str = "4242424242424242";
const TOKEN: &str = "sk_live_t0ken";

#[tokio::test]
async fn no_event_prints_a_secret() {
    let key = IdempotencyKey::random();
    let answer = Fault::status(503).header("x-secret", "secret-header").json(format!("{{\"card\":\"{CARD}\"}}"));
    let sandbox = sandbox([answer, Fault::answer_lost(), Fault::in_progress()]).await;
    let texts = Arc::new(Mutex::new(String::new()));
    let hook = {
        let texts = Arc::clone(&texts);
        move |event: &Event<'_>| {
            texts.lock().unwrap().push_str(&format!("{event}\n{event:?}\n{event:#?}\n{:?}\n", event.operation()));
        }
    };
    let client = steady().on_event(hook).build().unwrap();
    let request = client.post(sandbox.url(format!("/pay?card={CARD}"))).bearer_auth(TOKEN);
    let request = request.header("x-secret", "secret-header").body(format!("card={CARD}")).idempotency_key(&key);
    let response = request.send().await.unwrap();
    let json = serde_json::to_string(response.attempts()).unwrap();
    assert_eq!(json.matches("\"number\"").count(), 4);
    let texts = std::mem::take(&mut *texts.lock().unwrap()) + &json;
    for secret in [CARD, TOKEN, "secret-header", key.as_str(), "?"] {
        assert!(!texts.contains(secret), "{secret} in {texts}");
    }
    let short = &key.as_str()[..8];
    for told in [
        format!("{short}…: attempt 1 started (first)\n"),
        format!("{short}…: attempt 1 ended, 503: in doubt, server error; so far unknown\n"),
        format!("{short}…: ended after 4 attempts: ok, applied\n"),
        format!("{short}…: in progress, asked again in "),
        "AttemptStarted { operation: Some(OperationId(".to_owned(),
    ] {
        assert!(texts.contains(&told), "{told} not in {texts}");
    }
}

#[cfg(feature = "journal")]
mod on_record {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use http::{HeaderMap, StatusCode};
    use oncekey::engine::{Advice, AttemptKind, Entry, Owner, Reach, Verdict, Why};
    use oncekey::journal::{Append, Journal, Memory, Status, StoredAnswer};
    use oncekey::{OperationId, RecordState, RequestBuilder};

    use super::*;

    fn order(client: &Client, sandbox: &Sandbox) -> RequestBuilder {
        client.post(sandbox.url("/v1/payments")).operation("order-1").json(&payment())
    }

    /// The journal in memory never waits.
    fn at_once<T>(future: impl Future<Output = T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("it waits"),
        }
    }

    #[tokio::test]
    async fn what_is_told_is_on_record_by_then() {
        let (journal, seen, sandbox) = (Memory::new(), Seen::default(), sandbox(troubles()).await);
        let (other, told) = (journal.clone(), seen.hook(""));
        let hook = move |event: &Event<'_>| {
            assert_eq!(event.operation().unwrap().as_str(), "order-1");
            let stored = at_once(other.load(&OperationId::from("order-1"))).unwrap().unwrap();
            let last = stored.entries().last().unwrap();
            match event {
                Event::AttemptStarted(started) => {
                    assert!(matches!(last, Entry::Started { attempt, .. } if *attempt == started.number()), "{last:?}");
                }
                Event::AttemptEnded(ended) => {
                    let number = ended.attempt().number();
                    assert!(matches!(last, Entry::Ended { attempt, .. } if *attempt == number), "{last:?}");
                }
                Event::Ended(_) => assert_eq!(stored.status(), Status::Closed),
                _ => assert!(matches!(last, Entry::Ended { .. }), "{last:?}"),
            }
            told(event);
        };
        let client = steady().journal(journal).on_event(hook).build().unwrap();
        let _ = order(&client, &sandbox).send().await.unwrap();
        assert_eq!(seen.lines(), STORY);
        // Answered from the record: nothing happens.
        let _ = order(&client, &sandbox).send().await.unwrap();
        assert_eq!(seen.lines(), [""; 0]);
    }

    #[tokio::test]
    async fn a_hook_that_panics_leaves_the_record_whole() {
        for nth in 0..STORY.len() {
            let (journal, sandbox) = (Memory::new(), sandbox(troubles()).await);
            let plain = steady().journal(journal.clone()).build().unwrap();
            let count = Mutex::new(0);
            let hook = move |event: &Event<'_>| {
                let mut count = count.lock().unwrap();
                *count += 1;
                assert!(*count <= nth, "the hook's own panic: {event}");
            };
            let client = steady().journal(journal).on_event(hook).build().unwrap();
            let call = tokio::spawn(order(&client, &sandbox).send());
            assert!(call.await.unwrap_err().is_panic(), "at event {nth}");

            let record = plain.lookup("order-1").await.unwrap().unwrap();
            let over = nth + 2 >= STORY.len();
            let state = if over { RecordState::Settled } else { RecordState::Unfinished };
            assert_eq!(record.state(), state, "at event {nth}");
            let requests = sandbox.requests().len();
            let response = plain.resume("order-1").send().await.unwrap();
            assert_eq!(response.status(), 201);
            assert_eq!(sandbox.executions(), 1, "at event {nth}");
            assert_eq!(sandbox.requests().len() == requests, over, "at event {nth}");
        }
    }

    /// As if this process had been taken for dead while its attempt is on its
    /// way, and somebody else had taken the operation up, or even ended it.
    fn take_over(journal: &Memory, ended: bool) {
        let id = OperationId::from("order-1");
        let stored = at_once(journal.load(&id)).unwrap().unwrap();
        let Some(&Entry::Started { timeout, at, .. }) = stored.entries().last() else { panic!("{stored:?}") };
        let owner = Owner::new(7);
        let mut entries = vec![Entry::Resumed { owner, at }, Entry::Interrupted { attempt: 1, at }];
        let (mut status, mut answer) = (Status::Running(owner), None);
        if ended {
            let verdict = Verdict::new(Reach::Applied, Advice::Stop, Why::Success);
            entries.push(Entry::Started { attempt: 2, kind: AttemptKind::Retry, timeout, at });
            entries.push(Entry::Ended { attempt: 2, verdict, at, next_at: None });
            status = Status::Closed;
            answer = Some(StoredAnswer::new(StatusCode::CREATED, HeaderMap::new(), b"{}".to_vec()));
        }
        let append = Append::new(id, stored.entries().len(), entries, status).with_answer(answer);
        at_once(journal.append(append, Duration::ZERO)).unwrap();
    }

    #[tokio::test]
    async fn a_run_whose_operation_is_taken_over_tells_its_attempts_and_its_end() {
        for ended in [false, true] {
            let (journal, seen, sandbox) = (Memory::new(), Seen::default(), sandbox([Fault::status(503)]).await);
            let (other, told) = (journal.clone(), seen.hook(""));
            let hook = move |event: &Event<'_>| {
                if matches!(event, Event::AttemptStarted(_)) {
                    take_over(&other, ended);
                }
                told(event);
            };
            let client = steady().journal(journal).on_event(hook).build().unwrap();
            let end = order(&client, &sandbox).send().await;
            let over = if ended {
                assert_eq!(end.unwrap().attempts().len(), 1, "the answer is the other's, the attempt our own");
                "over after 1: None, applied"
            } else {
                let error = fails(end, ErrorKind::Busy, Effect::Unknown);
                assert_eq!(error.attempts().len(), 1, "{error}");
                assert!(error.to_string().contains("took it up while an attempt was on its way"), "{error}");
                "over after 1: Some(Busy), unknown"
            };
            assert_eq!(seen.lines(), ["1 first", "1 503: in doubt, server error; unknown", over]);
            assert_eq!(sandbox.requests().len(), 1, "the other goes on");
        }
    }

    #[tokio::test]
    async fn a_resumed_operation_tells_what_it_waits_for() {
        let (seen, sandbox) = (Seen::default(), sandbox([Fault::status(503)]).await);
        let once = Retry::default().max_attempts(1).base_delay(ms(300)).max_delay(ms(300));
        let client = steady().retry(once).journal(Memory::new()).build().unwrap();
        let error = fails(order(&client, &sandbox).send().await, ErrorKind::Exhausted, Effect::Unknown);
        assert!(error.resume_at().is_some());
        let _ = client.resume("order-1").on_event(seen.hook("")).send().await.unwrap();
        let expected = ["wait: earlier run", "2 retry", "2 201: applied; applied", "over after 1: None, applied"];
        assert_eq!(seen.lines(), expected);
    }
}
