//! Over HTTP/2: what a raw client sees of its stream and of the connection.

use super::*;
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Ping, PingPong, Reason};
use http::{HeaderMap, Request};
use std::future::poll_fn;
use std::pin::Pin;
use tokio::task::JoinHandle;

/// A connection and what drives it.
struct Client {
    send: SendRequest<Bytes>,
    pings: PingPong,
    /// How the connection ended.
    driver: JoinHandle<Result<(), h2::Error>>,
}

/// What came back on one stream.
#[derive(Debug)]
struct Got {
    status: u16,
    headers: HeaderMap,
    body: String,
    /// How it ended; `None` is END_STREAM.
    error: Option<h2::Error>,
}

impl Got {
    fn length(&self) -> Option<&str> {
        self.headers.get("content-length").map(|value| value.to_str().unwrap())
    }

    fn reason(&self) -> Option<Reason> {
        self.error.as_ref().and_then(h2::Error::reason)
    }
}

impl Client {
    async fn connect(sandbox: &Sandbox) -> Self {
        let stream = TcpStream::connect(sandbox.addr()).await.unwrap();
        let (send, mut connection) = h2::client::handshake(stream).await.unwrap();
        let pings = connection.ping_pong().unwrap();
        Self { send, pings, driver: tokio::spawn(connection) }
    }

    fn post(&mut self, key: &str) -> ResponseFuture {
        self.request("POST", Some(key), BODY)
    }

    fn request(&mut self, method: &str, key: Option<&str>, body: &'static str) -> ResponseFuture {
        let request = Request::builder().method(method).uri("http://sandbox/v1/payments");
        let request = key.into_iter().fold(request, |request, key| request.header("idempotency-key", key));
        let (response, mut stream) = self.send.send_request(request.body(()).unwrap(), body.is_empty()).unwrap();
        if !body.is_empty() {
            stream.send_data(Bytes::from_static(body.as_bytes()), true).unwrap();
        }
        response
    }

    async fn pay(&mut self, key: &str) -> Result<Got, h2::Error> {
        receive(self.post(key)).await
    }

    /// How the connection ends, which must be soon.
    async fn ended(self) -> Result<(), h2::Error> {
        tokio::time::timeout(PATIENCE, self.driver).await.expect("the connection ends").unwrap()
    }
}

async fn receive(response: ResponseFuture) -> Result<Got, h2::Error> {
    tokio::time::timeout(PATIENCE, async {
        let (head, mut stream) = response.await?.into_parts();
        let (mut body, mut error) = (Vec::new(), None);
        while let Some(data) = stream.data().await {
            match data {
                Ok(data) => {
                    let _ = stream.flow_control().release_capacity(data.len());
                    body.extend_from_slice(&data);
                }
                Err(e) => {
                    error = Some(e);
                    break;
                }
            }
        }
        let body = String::from_utf8(body).unwrap();
        Ok(Got { status: head.status.as_u16(), headers: head.headers, body, error })
    })
    .await
    .expect("the stream ends")
}

/// The fault hits one stream; a retry on the same connection is served the truth, as a replay.
async fn then_replayed(client: &mut Client, sandbox: &Sandbox, name: &str) {
    let retry = client.pay("k1").await.unwrap();
    assert_eq!((retry.status, retry.body.as_str(), retry.error.is_none()), (201, PAID, true), "{name}");
    assert_eq!(retry.headers["idempotent-replay"], "true", "{name}");
    assert_eq!((sandbox.executions(), sandbox.requests()[1].connection()), (1, 1), "{name}");
}

#[tokio::test]
async fn served() {
    let sandbox = with([]).await;
    let mut client = Client::connect(&sandbox).await;
    let got = client.pay("k1").await.unwrap();
    assert_eq!((got.status, got.body.as_str(), got.length()), (201, PAID, Some("47")));
    assert_eq!(got.headers["content-type"], "application/json");
    assert!(got.headers.contains_key("date") && got.error.is_none());
    then_replayed(&mut client, &sandbox, "none").await;
    let seen = &sandbox.requests()[0];
    assert_eq!((seen.version(), seen.path(), seen.key()), (http::Version::HTTP_2, "/v1/payments", Some("k1")));
    assert_eq!((&seen.body()[..], seen.is_complete()), (BODY.as_bytes(), true));
    // HTTP/1 beside it.
    assert_eq!(send(&sandbox, &post("k1", BODY)).await.status(), 201);
    let seen = &sandbox.requests()[2];
    assert_eq!((seen.version(), seen.connection()), (http::Version::HTTP_11, 2));
}

#[tokio::test]
async fn the_other_methods() {
    let sandbox = with([]).await;
    let mut client = Client::connect(&sandbox).await;
    let got = receive(client.request("HEAD", None, "")).await.unwrap();
    assert_eq!((got.status, got.body.as_str(), got.length()), (200, "", Some("15")));
    let got = receive(client.request("DELETE", None, "")).await.unwrap();
    assert_eq!((got.status, got.body.as_str(), got.length()), (204, "", None));
    sandbox.fail_next([Fault::body_cut(5), Fault::status(103), Fault::status(200).header("connection", "close")]);
    let got = receive(client.request("HEAD", None, "")).await.unwrap();
    assert_eq!((got.status, got.error.is_none()), (200, true), "there is nothing to cut");
    let refused = client.pay("k1").await.unwrap_err();
    assert_eq!(refused.reason(), Some(Reason::INTERNAL_ERROR));
    let got = client.pay("k1").await.unwrap();
    assert_eq!((got.status, got.headers.get("connection")), (200, None));
}

#[tokio::test]
async fn a_long_body_passes_the_windows() {
    let sandbox = with([Fault::oversized(1_000_000)]).await;
    let mut client = Client::connect(&sandbox).await;
    let got = client.pay("k1").await.unwrap();
    assert_eq!((got.body.len(), got.length()), (1_000_000, Some("1000000")));
}

#[tokio::test]
async fn lost() {
    let broken = [Fault::answer_lost(), Fault::head_cut(9), Fault::status(201).with_head_cut(9).executing()];
    for fault in broken {
        let name = format!("{fault:?}");
        let sandbox = with([fault]).await;
        let mut client = Client::connect(&sandbox).await;
        let error = client.pay("k1").await.unwrap_err();
        assert!(error.is_reset() && error.is_remote(), "{name}: {error}");
        assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR), "{name}");
        assert_eq!(sandbox.requests()[0].status(), None, "{name}");
        then_replayed(&mut client, &sandbox, &name).await;
    }
    let sandbox = with([Fault::crash_before_executing()]).await;
    let mut client = Client::connect(&sandbox).await;
    assert_eq!(client.pay("k1").await.unwrap_err().reason(), Some(Reason::INTERNAL_ERROR));
    assert_eq!((client.pay("k1").await.unwrap().status, sandbox.executions()), (409, 0));
}

#[tokio::test]
async fn cut_in_the_body() {
    for (fault, length, reason, bytes) in [
        (Fault::body_cut(5), Some("47"), Reason::NO_ERROR, 5),
        (Fault::body_cut(0), Some("47"), Reason::NO_ERROR, 0),
        (Fault::body_cut(999), Some("47"), Reason::NO_ERROR, 46),
        (Fault::body_cut(5).chunked(), None, Reason::INTERNAL_ERROR, 5),
        (Fault::body_cut(999).chunked(), None, Reason::INTERNAL_ERROR, 47),
        (Fault::unframed_cut(5), None, Reason::NO_ERROR, 5),
        (Fault::unframed_cut(999), None, Reason::NO_ERROR, 47),
    ] {
        let name = format!("{} {bytes} {length:?}", fault.name());
        let sandbox = with([fault]).await;
        let mut client = Client::connect(&sandbox).await;
        let got = client.pay("k1").await.unwrap();
        assert_eq!((got.status, got.length(), got.body.as_str()), (201, length, &PAID[..bytes]), "{name}");
        assert_eq!(got.reason(), Some(reason), "{name}");
        assert_eq!(sandbox.requests()[0].status().unwrap(), 201, "{name}");
        then_replayed(&mut client, &sandbox, &name).await;
    }
}

#[tokio::test]
async fn without_a_length() {
    for fault in [Fault::none().chunked(), Fault::none().unframed()] {
        let sandbox = with([fault]).await;
        let mut client = Client::connect(&sandbox).await;
        let got = client.pay("k1").await.unwrap();
        assert_eq!((got.length(), got.body.as_str(), got.error.is_none()), (None, PAID, true));
        then_replayed(&mut client, &sandbox, "uncut").await;
    }
}

#[tokio::test]
async fn drip() {
    let an_hour = Duration::from_secs(3600);
    let sandbox = with([Fault::drip(30, an_hour)]).await;
    let mut client = Client::connect(&sandbox).await;
    let mut stream = client.post("k1").await.unwrap().into_body();
    assert_eq!(stream.data().await.unwrap().unwrap(), &PAID[..30]);
    let more = tokio::time::timeout(Duration::from_millis(30), stream.data()).await;
    assert!(more.is_err(), "{more:?}");
    sandbox.advance(an_hour);
    assert_eq!(stream.data().await.unwrap().unwrap(), &PAID[30..]);
    sandbox.advance(an_hour);
    assert!(stream.data().await.is_none_or(|last| last.unwrap().is_empty()));
    assert!(stream.is_end_stream());
}

#[tokio::test]
async fn a_stalled_stream_leaves_the_others_alone() {
    for fault in [
        Fault::stall_before_reading(),
        Fault::stall_before_executing(),
        Fault::stall_while_executing(),
        Fault::stall_after_executing(),
        Fault::stall_in_head(9),
    ] {
        let name = fault.name();
        let sandbox = with([fault]).await;
        let mut client = Client::connect(&sandbox).await;
        let stalled = client.post("k1");
        until(&sandbox, |s| s.requests().len() == 1).await;
        assert_eq!(client.pay("k2").await.unwrap().status, 201, "{name}");
        let pong = tokio::time::timeout(PATIENCE, client.pings.ping(Ping::opaque())).await;
        assert!(pong.unwrap().is_ok(), "{name}");
        let (tasks, _) = sandbox.shared.tasks();
        // Dropped, it is reset, and the sandbox lets go of it.
        drop(stalled);
        fewer_tasks(&sandbox, tasks).await;
        assert_eq!(client.pay("k3").await.unwrap().status, 201, "{name}");
    }
}

#[tokio::test]
async fn a_stall_that_ends_goes_on_where_it_stopped() {
    let an_hour = Duration::from_secs(3600);
    for fault in [Fault::stall_after_executing(), Fault::stall_in_head(9), Fault::stall_in_body(5)] {
        let name = fault.name();
        let sandbox = with([fault.lasting(an_hour)]).await;
        let mut client = Client::connect(&sandbox).await;
        let stalled = tokio::spawn(receive(client.post("k1")));
        until(&sandbox, |s| s.requests().iter().any(|seen| seen.status().is_some())).await;
        sandbox.advance(an_hour);
        let got = stalled.await.unwrap().unwrap();
        assert_eq!((got.body.as_str(), got.error.is_none()), (PAID, true), "{name}");
    }
    let sandbox = with([Fault::stall_in_body(5)]).await;
    let mut stream = Client::connect(&sandbox).await.post("k1").await.unwrap().into_body();
    assert_eq!(stream.data().await.unwrap().unwrap(), &PAID[..5]);
    let more = tokio::time::timeout(Duration::from_millis(50), stream.data()).await;
    assert!(more.is_err(), "{more:?}");
}

#[tokio::test]
async fn a_connection_that_closes_or_is_reset_takes_all_streams_along() {
    use std::io::ErrorKind::ConnectionReset;
    for (fault, executed, reset) in [
        (Fault::closed_before_reading(), 0, false),
        (Fault::closed_without_executing(), 0, false),
        (Fault::reset_before_reading(), 0, true),
        (Fault::reset_without_executing(), 0, true),
        (Fault::answer_lost().with_reset(), 1, true),
    ] {
        let name = fault.name();
        let sandbox = with([Fault::stall_after_executing(), fault]).await;
        let mut client = Client::connect(&sandbox).await;
        let other = client.post("k1");
        until(&sandbox, |s| s.executions() == 1).await;
        let error = client.pay("k2").await.unwrap_err();
        assert!(error.is_io() && !error.is_go_away(), "{name}: {error}");
        assert!(receive(other).await.unwrap_err().is_io(), "{name}");
        assert_eq!(sandbox.executions_of("k2"), executed, "{name}");
        let end = client.ended().await;
        let was_reset = end.is_err_and(|error| error.get_io().is_some_and(|e| e.kind() == ConnectionReset));
        assert_eq!(was_reset, reset, "{name}");
    }
}

#[tokio::test]
async fn the_connection_ends_after_the_answer_or_in_it() {
    let sandbox = with([Fault::closed_after_answer(), Fault::body_cut(5).with_reset()]).await;
    let mut client = Client::connect(&sandbox).await;
    let got = client.pay("k1").await.unwrap();
    assert_eq!((got.body.as_str(), got.error.is_none()), (PAID, true));
    assert!(client.ended().await.is_ok());

    let mut client = Client::connect(&sandbox).await;
    let got = client.pay("k2").await.unwrap();
    assert_eq!((got.length(), got.body.as_str()), (Some("47"), &PAID[..5]));
    assert!(got.error.is_some_and(|error| error.is_io()));
}

#[tokio::test]
async fn garbled() {
    let sandbox = with([Fault::garbled_head()]).await;
    let mut client = Client::connect(&sandbox).await;
    let error = client.pay("k1").await.unwrap_err();
    assert_eq!((error.reason(), error.is_remote()), (Some(Reason::FRAME_SIZE_ERROR), false));
    assert_eq!(sandbox.executions(), 1);
}

#[tokio::test]
async fn refused_stream() {
    for executed in [0, 1] {
        let fault = Fault::refused_stream();
        let sandbox = with([if executed == 1 { fault.executing() } else { fault }]).await;
        let mut client = Client::connect(&sandbox).await;
        let error = client.pay("k1").await.unwrap_err();
        assert_eq!((error.reason(), error.is_reset()), (Some(Reason::REFUSED_STREAM), true));
        assert_eq!(sandbox.executions(), executed);
        let retry = client.pay("k1").await.unwrap();
        assert_eq!(retry.headers.contains_key("idempotent-replay"), executed == 1);
        assert_eq!((sandbox.executions(), sandbox.requests()[1].connection()), (1, 1));
    }
}

/// The last stream and the code of the GOAWAY that the second request is met with.
async fn goaway(fault: Fault) -> (u32, u32, Sandbox) {
    let sandbox = with([Fault::none(), fault]).await;
    let mut raw = TcpStream::connect(sandbox.addr()).await.unwrap();
    let headers = |stream: u8, key: u8| {
        // :method POST, :scheme http, :path /, idempotency-key: one digit (RFC 7541).
        let block = [&[0x83, 0x86, 0x84, 0x00, 15][..], b"idempotency-key", &[1, key]].concat();
        [&[0, 0, u8::try_from(block.len()).unwrap(), 1, 5, 0, 0, 0, stream][..], &block].concat()
    };
    raw.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    raw.write_all(&headers(1, b'1')).await.unwrap();
    until(&sandbox, |s| s.requests().iter().any(|seen| seen.status().is_some())).await;
    raw.write_all(&headers(3, b'2')).await.unwrap();
    let mut all = Vec::new();
    tokio::time::timeout(PATIENCE, raw.read_to_end(&mut all)).await.unwrap().unwrap();
    let (header, last) = all[all.len() - 17..].split_at(9);
    assert_eq!(header, [0, 0, 8, 7, 0, 0, 0, 0, 0]);
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
    (number(&last[..4]), number(&last[4..]), sandbox)
}

#[tokio::test]
async fn goaway_names_its_last_stream() {
    let (last, code, sandbox) = goaway(Fault::goaway(11)).await;
    assert_eq!((last, code, sandbox.executions()), (0, 11, 1));
    let (last, code, sandbox) = goaway(Fault::goaway(0).executing()).await;
    assert_eq!((last, code, sandbox.executions()), (3, 0, 2));

    let sandbox = with([Fault::goaway(11)]).await;
    let mut client = Client::connect(&sandbox).await;
    let error = client.pay("k1").await.unwrap_err();
    assert!(error.is_go_away() && error.is_remote());
    assert_eq!(error.reason(), Some(Reason::ENHANCE_YOUR_CALM));
    let error = client.ended().await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::ENHANCE_YOUR_CALM));
}

#[tokio::test]
async fn black_hole() {
    for executed in [0, 1] {
        let fault = Fault::black_hole();
        let sandbox = with([Fault::none(), if executed == 1 { fault.executing() } else { fault }]).await;
        let mut client = Client::connect(&sandbox).await;
        assert_eq!(client.pay("k1").await.unwrap().status, 201);
        let mut swallowed = client.post("k2");
        until(&sandbox, |s| s.requests().len() == 2 && s.executions() == 1 + executed).await;
        let ping = tokio::time::timeout(Duration::from_millis(60), client.pings.ping(Ping::opaque())).await;
        assert!(ping.is_err(), "{ping:?}");
        let mut later = client.post("k3");
        let answers = poll_fn(|cx| {
            use std::task::Poll;
            let both = [Pin::new(&mut swallowed).poll(cx).is_ready(), Pin::new(&mut later).poll(cx).is_ready()];
            Poll::Ready(both)
        });
        assert_eq!((answers.await, client.driver.is_finished()), ([false, false], false));
        assert_eq!(sandbox.requests().len(), 2, "what comes after it is in no record");
        // Another connection is served.
        assert_eq!(Client::connect(&sandbox).await.pay("k2").await.unwrap().status, 201);
        let (tasks, _) = sandbox.shared.tasks();
        client.driver.abort();
        fewer_tasks(&sandbox, tasks).await;
    }
}

#[tokio::test]
async fn over_http1_they_act_as_the_nearest_thing() {
    for fault in [Fault::refused_stream(), Fault::goaway(11)] {
        let sandbox = with([fault]).await;
        let reply = send(&sandbox, &post("k1", BODY)).await;
        assert_eq!((reply.text.as_str(), reply.end, sandbox.executions()), ("", End::Fin, 0));
    }
    let sandbox = with([Fault::black_hole()]).await;
    let mut stream = open(&sandbox, &post("k1", BODY)).await;
    assert_eq!((stalled_after(&mut stream, 0).await, sandbox.executions()), (String::new(), 0));
}

#[tokio::test]
async fn a_first_word_in_parts_is_told_all_the_same() {
    let sandbox = with([]).await;
    let mut raw = TcpStream::connect(sandbox.addr()).await.unwrap();
    raw.set_nodelay(true).unwrap();
    for part in [&b"P"[..], b"R", b"I * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"] {
        raw.write_all(part).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The server's own SETTINGS.
    let mut frame = [0; 9];
    raw.read_exact(&mut frame).await.unwrap();
    assert_eq!(frame[3], 4);

    let mut slow = TcpStream::connect(sandbox.addr()).await.unwrap();
    slow.set_nodelay(true).unwrap();
    slow.write_all(b"P").await.unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    slow.write_all(&post("k1", BODY).as_bytes()[1..]).await.unwrap();
    assert_eq!(finish(slow).await.status(), 201);

    let (tasks, _) = sandbox.shared.tasks();
    let mut left = TcpStream::connect(sandbox.addr()).await.unwrap();
    left.write_all(b"P").await.unwrap();
    drop(left);
    fewer_tasks(&sandbox, tasks + 1).await;
}

#[tokio::test]
async fn a_client_that_goes_away_is_let_go_and_its_request_is_served() {
    let an_hour = Duration::from_secs(3600);
    let sandbox = Sandbox::builder().work(an_hour).start().await.unwrap();
    let mut client = Client::connect(&sandbox).await;
    let call = client.post("k1");
    until(&sandbox, |s| s.at_work() == 1).await;
    let (tasks, _) = sandbox.shared.tasks();
    client.driver.abort();
    drop((client, call));
    // The connection and the stream; the handler works on.
    fewer_tasks(&sandbox, tasks - 1).await;
    sandbox.advance(an_hour);
    until(&sandbox, |s| s.executions() == 1).await;
}

#[tokio::test]
async fn nothing_is_left_of_streams_whose_connection_a_fault_took() {
    let sandbox = with([Fault::stall_after_executing(), Fault::none(), Fault::goaway(0)]).await;
    let mut client = Client::connect(&sandbox).await;
    let stalled = client.post("k1");
    until(&sandbox, |s| s.executions() == 1).await;
    assert_eq!(client.pay("k2").await.unwrap().status, 201);
    client.pay("k3").await.unwrap_err();
    receive(stalled).await.unwrap_err();
    client.ended().await.unwrap();
    // What accepts connections.
    fewer_tasks(&sandbox, 2).await;
    assert_eq!(sandbox.shared.tasks().1, 0, "nothing panicked");
}
