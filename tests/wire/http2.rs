//! The client over HTTP/2: many operations share a connection, and some failures befall it.

use std::collections::HashMap;
use std::net::SocketAddr;

use http::Version;
use oncekey::engine::Reach;
use oncekey::sandbox::{Fault, Sandbox, SeenRequest};
use oncekey::{Attempt, Client, ClientBuilder, Effect, Error, ErrorKind, Failure, Response, Retry};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::*;

fn http2() -> ClientBuilder {
    builder().http(|http| http.no_proxy().http2_prior_knowledge())
}

fn http2_client() -> Client {
    http2().build().unwrap()
}

fn once() -> Client {
    http2().retry(Retry::default().max_attempts(1)).build().unwrap()
}

/// A sandbox, a client that has a connection to it already, and then these faults.
async fn warm(client: &Client, faults: impl IntoIterator<Item = Fault>) -> Sandbox {
    let sandbox = sandbox([]).await;
    assert_eq!(pay(client, &sandbox).await.unwrap().status(), 201);
    sandbox.fail_next(faults);
    sandbox
}

/// What came after the warm-up, all of it over HTTP/2.
fn since(sandbox: &Sandbox) -> Vec<SeenRequest> {
    let seen = sandbox.requests().split_off(1);
    assert!(seen.iter().all(|request| request.version() == Version::HTTP_2));
    seen
}

#[tokio::test]
async fn refused_streams_and_goaway_are_one_attempt_each_and_leave_the_doubt() {
    for (fault, executed) in [
        (Fault::refused_stream(), 0),
        (Fault::refused_stream().executing(), 1),
        (Fault::goaway(0), 0),
        (Fault::goaway(0).executing(), 1),
        (Fault::goaway(11), 0),
        (Fault::goaway(11).executing(), 1),
        (Fault::answer_lost(), 1),
        (Fault::closed_without_executing(), 0),
        (Fault::reset_before_reading(), 0),
        (Fault::garbled_head(), 1),
    ] {
        let name = format!("{fault:?}, {executed} executed");
        // Twice, so that whoever resends meets it again.
        let client = once();
        let sandbox = warm(&client, fault.clone().times(2)).await;
        let error = fails(pay(&client, &sandbox).await, ErrorKind::Exhausted, Effect::Unknown);
        let only = &error.attempts()[0];
        assert_eq!(
            (only.failure(), only.verdict().unwrap().reach()),
            (Some(Failure::Broken), Reach::Ambiguous),
            "{name}"
        );
        assert_eq!((error.attempts().len(), since(&sandbox).len()), (1, 1), "{name}");
        assert_eq!(sandbox.executions_of(error.key().unwrap()), executed, "{name}");

        let client = http2_client();
        let sandbox = warm(&client, fault.times(2)).await;
        let response = pay(&client, &sandbox).await.unwrap();
        let seen = since(&sandbox);
        assert_eq!((response.attempts().len(), seen.len(), response.is_replay()), (3, 3, executed == 1), "{name}");
        assert!(seen.iter().all(|request| request.key() == Some(response.key().unwrap().as_str())), "{name}");
        assert_eq!(sandbox.executions_of(response.key().unwrap()), 1, "{name}");
    }
}

#[tokio::test]
async fn a_black_hole_is_left_within_one_attempt() {
    let mut tasks = Vec::new();
    for (fault, executed) in [(Fault::black_hole(), 0), (Fault::black_hole().executing(), 1)] {
        for is_warm in [false, true] {
            tasks.push(tokio::spawn(left_within_one_attempt(fault.clone(), executed, is_warm)));
        }
    }
    for task in tasks {
        task.await.unwrap();
    }
}

async fn left_within_one_attempt(fault: Fault, executed: usize, is_warm: bool) {
    let client = http2().attempt_timeout(ms(1600)).build().unwrap();
    let sandbox = if is_warm { warm(&client, [fault]).await } else { sandbox([fault]).await };
    let response = pay(&client, &sandbox).await.unwrap();
    let seen = sandbox.requests().split_off(usize::from(is_warm));
    assert_eq!((response.attempts().len(), seen.len(), response.is_replay()), (2, 2, executed == 1));
    assert_eq!(sandbox.executions_of(response.key().unwrap()), 1);
    assert_ne!(seen[0].connection(), seen[1].connection());
    let first = &response.attempts()[0];
    assert_eq!(first.failure(), Some(Failure::Timeout), "{first:?}");
    // By an unanswered ping, in the middle of it.
    assert!(first.duration() < ms(1500), "{:?}", first.duration());
}

#[tokio::test]
async fn a_black_hole_does_not_eat_the_attempts_of_an_impatient_request() {
    let client = http2().attempt_timeout(ms(800)).build().unwrap();
    let sandbox = warm(&client, [Fault::black_hole()]).await;
    let request = client.post(sandbox.url("/v1/payments")).json(&payment()).attempt_timeout(ms(200));
    let response = request.send().await.unwrap();
    assert!(response.attempts().len() <= 4);
    assert_eq!(sandbox.executions_of(response.key().unwrap()), 1);
}

#[tokio::test]
#[allow(clippy::disallowed_methods)] // time in which nothing is sent
async fn a_connection_that_dies_while_idle_costs_no_attempt() {
    let client = http2().attempt_timeout(ms(400)).retry(Retry::default().max_attempts(1)).build().unwrap();
    let sandbox = warm(&client, [Fault::black_hole()]).await;
    // It is given up at once, so that the connection is dead and idle.
    let lost = tokio::spawn(client.post(sandbox.url("/v1/payments")).json(&payment()).send());
    sandbox.until(|sandbox| sandbox.requests().len() == 2).await;
    lost.abort();
    tokio::time::sleep(ms(400)).await;
    let response = pay(&client, &sandbox).await.unwrap();
    assert_eq!((response.attempts().len(), since(&sandbox).len()), (1, 2));
}

#[tokio::test]
async fn a_slow_answer_outlasts_the_pings() {
    let sandbox = sandbox([Fault::stall_after_executing().lasting(ms(1200))]).await;
    let client = http2().attempt_timeout(ms(1600)).build().unwrap();
    assert_eq!(pay(&client, &sandbox).await.unwrap().attempts().len(), 1);
}

#[track_caller]
fn applied_unread(response: &Response, sandbox: &Sandbox, name: &str) {
    let first = &response.attempts()[0];
    assert_eq!(first.status().map(|status| status.as_u16()), Some(201), "{name}");
    assert_eq!(first.verdict().unwrap().reach(), Reach::AppliedUnread, "{name}");
    assert_eq!((response.attempts().len(), response.is_replay(), sandbox.executions()), (2, true, 1), "{name}");
    assert_eq!(response.json::<Value>().unwrap()["status"], "captured", "{name}");
}

#[tokio::test]
async fn a_body_cut_by_a_reset_is_noticed() {
    for (fault, failure) in [
        // RST_STREAM(NO_ERROR), with a length and without one: no error comes of it.
        (Fault::body_cut(7), None),
        (Fault::unframed_cut(7), None),
        (Fault::unframed_cut(46), None),
        // What is left begins and ends as JSON does.
        (Fault::unframed_cut(8).json(r#"{"a":{},"status":"captured"}"#), None),
        (Fault::body_cut(7).chunked(), Some(Failure::CutBody)),
        (Fault::body_cut(7).with_reset(), Some(Failure::CutBody)),
        (Fault::stall_in_body(7), Some(Failure::StalledBody)),
    ] {
        let name = format!("{fault:?} {failure:?}");
        let sandbox = sandbox([fault]).await;
        let client = http2().attempt_timeout(ms(500)).build().unwrap();
        let response = pay(&client, &sandbox).await.unwrap();
        applied_unread(&response, &sandbox, &name);
        assert_eq!(sandbox.requests()[0].version(), Version::HTTP_2);
        if failure.is_some() {
            assert_eq!(response.attempts()[0].failure(), failure, "{name}");
        }
    }
}

/// What is left begins and ends as JSON does, or is none to begin with: the length alone tells.
#[tokio::test]
async fn a_body_cut_short_of_its_length_is_noticed_whatever_is_left_of_it() {
    for fault in [
        Fault::body_cut(8).json(r#"{"a":{},"status":"captured"}"#),
        Fault::body_cut(8).body("text/plain", "captured, as pay_1"),
        Fault::body_cut(0),
    ] {
        let name = format!("{fault:?}");
        let sandbox = sandbox([fault]).await;
        applied_unread(&pay(&http2_client(), &sandbox).await.unwrap(), &sandbox, &name);
    }
}

#[tokio::test]
async fn a_head_that_names_a_length_is_no_cut() {
    let sandbox = sandbox([]).await;
    let client = http2_client();
    let response = client.head(sandbox.url("/v1/payments")).send().await.unwrap();
    assert_eq!((response.headers()["content-length"].to_str().unwrap(), response.attempts().len()), ("15", 1));
    assert_eq!(response.attempts()[0].failure(), None);
    let response = client.delete(sandbox.url("/v1/payments")).send().await.unwrap();
    assert_eq!((response.status().as_u16(), response.attempts().len()), (204, 1));
}

/// Operations at once, over one client, and what came of each.
async fn at_once(client: &Client, sandbox: &Sandbox, count: usize) -> Vec<Result<Response, Error>> {
    let send = |_| tokio::spawn(client.post(sandbox.url("/v1/payments")).json(&payment()).send());
    let tasks: Vec<_> = (0..count).map(send).collect();
    let mut sent = Vec::new();
    for task in tasks {
        sent.push(task.await.unwrap());
    }
    sent
}

/// How often each key was seen.
fn seen_by_key(sandbox: &Sandbox) -> HashMap<String, usize> {
    let mut seen = HashMap::new();
    for request in sandbox.requests() {
        *seen.entry(request.key().unwrap().to_owned()).or_default() += 1;
    }
    seen
}

#[tokio::test]
async fn what_befalls_a_stream_leaves_the_others_alone() {
    let faults = [
        Fault::answer_lost(),
        Fault::refused_stream(),
        Fault::body_cut(9),
        Fault::unframed_cut(9),
        Fault::body_cut(9).chunked(),
        Fault::stall_after_executing(),
        Fault::stall_before_reading(),
        Fault::stall_in_body(9),
    ];
    let tasks = faults.map(|fault| tokio::spawn(one_of_many_fails(fault)));
    for task in tasks {
        task.await.unwrap();
    }
}

async fn one_of_many_fails(fault: Fault) {
    let name = format!("{fault:?}");
    let client = http2_client();
    let sandbox = warm(&client, [Fault::none(), Fault::none(), fault]).await;
    let sent = at_once(&client, &sandbox, 40).await;
    let mut attempts: Vec<usize> = sent.iter().map(|sent| sent.as_ref().unwrap().attempts().len()).collect();
    attempts.sort_unstable();
    assert_eq!((attempts[38], attempts[39]), (1, 2), "{name}");
    assert_eq!((sandbox.executions(), since(&sandbox).len()), (41, 41), "{name}");
    assert!(since(&sandbox).iter().all(|request| request.connection() == 1), "{name}: it was kept");
}

#[tokio::test]
async fn a_connection_that_ends_under_many_operations_costs_each_an_attempt_and_none_a_double() {
    for fault in [
        Fault::goaway(0),
        Fault::goaway(11).executing(),
        Fault::closed_before_reading(),
        Fault::answer_lost().with_reset(),
        Fault::garbled_head(),
        Fault::black_hole(),
    ] {
        let name = format!("{fault:?}");
        let client = http2_client();
        let sandbox = warm(&client, [Fault::none(), Fault::none(), fault]).await;
        let sent = at_once(&client, &sandbox, 40).await;
        let seen = seen_by_key(&sandbox);
        for response in sent {
            let response = response.unwrap();
            let (key, attempts) = (response.key().unwrap().as_str(), response.attempts().len());
            assert_eq!(sandbox.executions_of(key), 1, "{name}");
            assert!(attempts <= 2, "{name}: {}", Attempt::table(response.attempts()));
            // What waited on the connection for its turn was not seen.
            assert!(seen[key] <= attempts, "{name}: {} of {attempts} seen", seen[key]);
        }
    }
}

#[tokio::test]
async fn a_hundred_at_once_are_carried_out_once_each() {
    let sandbox = Sandbox::builder().chaos(7, 200).start().await.unwrap();
    let retry = Retry::default().max_attempts(40).base_delay(ms(2)).max_delay(ms(50));
    let client = http2().retry(retry).build().unwrap();
    for sent in at_once(&client, &sandbox, 100).await {
        let (key, effect) = match &sent {
            Ok(response) => (response.key(), Effect::Applied),
            Err(error) => (error.key(), error.effect()),
        };
        let done = sandbox.executions_of(key.unwrap());
        match effect {
            Effect::NotApplied => assert_eq!(done, 0, "{sent:?}"),
            Effect::Applied => assert_eq!(done, 1, "{sent:?}"),
            Effect::Unknown => assert!(done <= 1, "{sent:?}"),
        }
    }
    assert!(sandbox.requests().iter().all(|request| request.version() == Version::HTTP_2));
}

/// What a server does that is not one, to a connection that was made.
#[derive(Clone, Copy, Debug)]
enum Raw {
    Close,
    Reset,
    /// Of HTTP/1 alone.
    BadRequest,
    Nonsense,
    /// GOAWAY(0) in place of the first request's answer, or before it came.
    GoAwayAtOnce,
    /// SETTINGS that no client may take.
    BadSettings,
    /// One stream at a time, so that others wait; then the end.
    OneStreamThen(End),
    /// Takes this many bytes, and then the end.
    After(usize, End),
}

#[derive(Clone, Copy, Debug)]
enum End {
    Fin,
    Rst,
    GoAway,
}

const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
const ONE_STREAM: &[u8] = b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x01";
const BAD_SETTINGS: &[u8] = b"\0\0\x06\x04\0\0\0\0\0\0\x02\0\0\0\x07";
const ACK: &[u8] = b"\0\0\0\x04\x01\0\0\0\0";
const GOAWAY: &[u8] = b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0";

impl Raw {
    async fn start(self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(self.serve(stream));
            }
        });
        address
    }

    #[allow(clippy::disallowed_methods)] // time for others to queue up
    async fn serve(self, mut stream: TcpStream) -> std::io::Result<()> {
        match self {
            Self::Close => {}
            Self::Reset => stream.set_zero_linger()?,
            Self::BadRequest => stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n").await?,
            Self::Nonsense => stream.write_all(&[0xff; 64]).await?,
            Self::GoAwayAtOnce => stream.write_all(&[SETTINGS, ACK, GOAWAY].concat()).await?,
            Self::BadSettings => stream.write_all(BAD_SETTINGS).await?,
            Self::OneStreamThen(end) => {
                stream.write_all(&[ONE_STREAM, ACK].concat()).await?;
                take(&mut stream, 100).await?;
                tokio::time::sleep(ms(100)).await;
                return end.of(stream).await;
            }
            Self::After(bytes, end) => {
                stream.write_all(SETTINGS).await?;
                take(&mut stream, bytes).await?;
                return end.of(stream).await;
            }
        }
        Ok(())
    }
}

impl End {
    async fn of(self, mut stream: TcpStream) -> std::io::Result<()> {
        match self {
            Self::Fin => {}
            Self::Rst => return stream.set_zero_linger(),
            Self::GoAway => stream.write_all(GOAWAY).await?,
        }
        stream.shutdown().await?;
        take(&mut stream, usize::MAX).await
    }
}

async fn take(stream: &mut TcpStream, mut bytes: usize) -> std::io::Result<()> {
    let mut sink = [0; 64];
    while bytes > 0 {
        let some = bytes.min(sink.len());
        match stream.read(&mut sink[..some]).await? {
            0 => break,
            count => bytes -= count,
        }
    }
    Ok(())
}

/// Whoever was connected may have been heard: no failure of such a connection, nor of the wait for
/// a place on it, is told as proof that nothing was sent.
#[tokio::test]
async fn a_connection_that_was_made_is_never_taken_for_one_that_was_not() {
    let mut servers = vec![Raw::Close, Raw::Reset, Raw::BadRequest, Raw::Nonsense, Raw::GoAwayAtOnce, Raw::BadSettings];
    for end in [End::Fin, End::Rst, End::GoAway] {
        servers.push(Raw::OneStreamThen(end));
        // In the preface, after it, in the request's head, in its body.
        servers.extend([10, 24, 60, 120, 400, 5000].map(|bytes| Raw::After(bytes, end)));
    }
    let tasks: Vec<_> = servers.into_iter().map(|server| tokio::spawn(never_unsent(server))).collect();
    for task in tasks {
        task.await.unwrap();
    }
}

async fn never_unsent(server: Raw) {
    let url = format!("http://{}/pay", server.start().await);
    let client = http2().attempt_timeout(ms(1000)).retry(Retry::default().max_attempts(3).base_delay(ms(1)));
    let client = client.build().unwrap();
    let body = "x".repeat(4000);
    let tasks: Vec<_> = (0..4).map(|_| tokio::spawn(client.post(&url).body(body.clone()).send())).collect();
    for task in tasks {
        let error = fails(task.await.unwrap(), ErrorKind::Exhausted, Effect::Unknown);
        for attempt in error.attempts() {
            let failure = attempt.failure().unwrap();
            assert!(matches!(failure, Failure::Broken | Failure::Timeout), "{server:?}: {failure:?}");
            assert_eq!(attempt.verdict().unwrap().reach(), Reach::Ambiguous, "{server:?}");
        }
    }
}

#[tokio::test]
async fn a_connection_that_was_not_made_is_proof() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/pay", listener.local_addr().unwrap());
    drop(listener);
    let client = http2_client();
    let tasks: Vec<_> = (0..4).map(|_| tokio::spawn(client.post(&url).body("x").send())).collect();
    for task in tasks {
        let error = fails(task.await.unwrap(), ErrorKind::Exhausted, Effect::NotApplied);
        assert!(error.attempts().iter().all(|attempt| attempt.failure() == Some(Failure::Connect)));
    }
}

/// Where the client speaks HTTP/1.1, it is kept to that by its server, not by this feature.
#[tokio::test]
async fn without_prior_knowledge_a_plain_server_is_spoken_to_in_http1() {
    let sandbox = sandbox([Fault::refused_stream(), Fault::goaway(11)]).await;
    let response = pay(&client(), &sandbox).await.unwrap();
    assert_eq!((response.attempts().len(), sandbox.executions()), (3, 1));
    assert!(sandbox.requests().iter().all(|request| request.version() == Version::HTTP_11));
}
