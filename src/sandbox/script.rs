//! A faulty answer, byte by byte: composed here and written past hyper.
//!
//! hyper can't write an answer without a length, a garbled one or half a head, and where its output
//! may be cut depends on how it buffers. So it only ever writes answers that arrive whole; for any
//! other the connection is taken from it and a script is played on the socket.

use super::answer::{Answer, allows_body};
use super::clock::Clock;
use super::delivery::Outgoing;
use super::plan::{At, Ending, Framing, Plan};
use bytes::Bytes;
use http::Method;
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;

/// A TLS alert and some text: neither HTTP/1 nor a preface of HTTP/2.
const GARBAGE: &[u8] = b"\x15\x03\x01\x00\x02\x02\x50 this is not http\r\n\r\n";

/// How long to go on reading after FIN, so that unread bytes don't turn it into RST.
const LINGER: Duration = Duration::from_secs(5);

/// How often a stalled connection that must not be read is asked whether the client has left.
const LOOK: Duration = Duration::from_millis(20);

pub(super) struct Script {
    steps: Vec<Step>,
}

enum Step {
    Write(Bytes),
    Drip(Bytes, usize, Duration),
    /// Until that time on the sandbox's clock.
    Pause(Duration),
    /// Until the client goes away.
    Hold {
        reading: bool,
    },
    Fin,
    Reset,
}

impl Script {
    /// Ends the connection without a byte.
    pub(super) fn end(ending: Ending) -> Self {
        let step = match ending {
            Ending::Broken | Ending::Fin | Ending::Refused | Ending::GoAway(_) => Step::Fin,
            Ending::Reset => Step::Reset,
            Ending::Stall | Ending::BlackHole => Step::Hold { reading: true },
        };
        Self { steps: vec![step] }
    }

    /// Neither reads nor writes.
    pub(super) fn frozen() -> Self {
        let step = Step::Hold { reading: false };
        Self { steps: vec![step] }
    }

    /// Writes what is of no version of HTTP, and closes.
    pub(super) fn garbage(plan: &Plan) -> Self {
        let mut script = Self { steps: Vec::new() };
        script.write(Bytes::from_static(GARBAGE), plan);
        script.steps.push(Step::Fin);
        script
    }

    /// Writes this last word, and closes.
    #[cfg(feature = "http2")]
    pub(super) fn parting(bytes: impl Into<Bytes>) -> Self {
        Self { steps: vec![Step::Write(bytes.into()), Step::Fin] }
    }

    /// Delivers an answer as planned.
    pub(super) fn answer(outgoing: &Outgoing) -> Self {
        let Outgoing { answer, plan, method, at: now, .. } = outgoing;
        if plan.garbled {
            return Self::garbage(plan);
        }
        let mut script = Self { steps: Vec::new() };
        let head = head(answer, plan, method);
        let (before, body, after) = framed(answer, plan, method);
        let at = match plan.cut.map_or(At::End, |cut| cut.at) {
            At::Start => 0,
            At::Head(n) => n.min(head.len().saturating_sub(1)),
            At::Body(n) => head.len() + before.len() + plan.cut_of(n, body.len()),
            At::End => usize::MAX,
        };
        let whole = Bytes::from([&head, before.as_bytes(), body, after.as_bytes()].concat());
        let at = at.min(whole.len());
        script.write(whole.slice(..at), plan);
        match (plan.cut.map_or(Ending::Fin, |cut| cut.then), plan.lasting) {
            (Ending::Stall, Some(pause)) => {
                script.steps.push(Step::Pause(now.saturating_add(pause)));
                script.write(whole.slice(at..), plan);
                script.steps.push(Step::Fin);
            }
            (ending, _) => script.steps.extend(Self::end(ending).steps),
        }
        script
    }

    fn write(&mut self, bytes: Bytes, plan: &Plan) {
        self.steps.push(match plan.drip {
            Some((size, tick)) => Step::Drip(bytes, size.max(1), tick),
            None => Step::Write(bytes),
        });
    }

    /// Plays it to its end, or until the client is gone.
    pub(super) async fn play(self, mut stream: TcpStream, clock: &Clock) {
        for step in self.steps {
            let played = match step {
                Step::Write(bytes) => stream.write_all(&bytes).await,
                Step::Drip(bytes, size, tick) => drip(&mut stream, &bytes, size, tick, clock).await,
                Step::Pause(end) => {
                    clock.sleep_until(end).await;
                    Ok(())
                }
                Step::Hold { reading: true } => drain(&mut stream).await,
                Step::Hold { reading: false } => until_closed(&stream).await,
                Step::Fin => fin(&mut stream).await,
                Step::Reset => socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)),
            };
            if played.is_err() {
                return;
            }
        }
    }
}

fn head(answer: &Answer, plan: &Plan, method: &Method) -> Vec<u8> {
    let status = answer.status;
    let reason = status.canonical_reason().unwrap_or("");
    let mut head = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes();
    for (name, value) in &answer.headers {
        line(&mut head, name.as_str(), value.as_bytes());
    }
    let given = |name| answer.headers.contains_key(name);
    if !given(CONTENT_LENGTH) && !given(TRANSFER_ENCODING) && allows_body(method, status) {
        match plan.framing {
            Framing::Length => {
                let len = answer.body.len().to_string();
                line(&mut head, "content-length", len.as_bytes());
            }
            Framing::Chunked => line(&mut head, "transfer-encoding", b"chunked"),
            Framing::Unframed => {}
        }
    }
    // Who is cut off has not announced it.
    let announced = plan.cut.is_none() || plan.framing == Framing::Unframed;
    if announced && !given(CONNECTION) && !status.is_informational() {
        line(&mut head, "connection", b"close");
    }
    head.extend_from_slice(b"\r\n");
    head
}

fn line(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value);
    head.extend_from_slice(b"\r\n");
}

/// The body, and what its framing puts before and after it.
fn framed<'a>(answer: &'a Answer, plan: &Plan, method: &Method) -> (String, &'a [u8], &'static str) {
    if !allows_body(method, answer.status) {
        return (String::new(), &[], "");
    }
    let body = &answer.body[..];
    match plan.framing {
        Framing::Chunked if body.is_empty() => (String::new(), body, "0\r\n\r\n"),
        Framing::Chunked => (format!("{:x}\r\n", body.len()), body, "\r\n0\r\n\r\n"),
        Framing::Length | Framing::Unframed => (String::new(), body, ""),
    }
}

async fn drip(stream: &mut TcpStream, bytes: &[u8], size: usize, tick: Duration, clock: &Clock) -> std::io::Result<()> {
    for drop in bytes.chunks(size) {
        stream.write_all(drop).await?;
        clock.sleep(tick).await;
    }
    Ok(())
}

/// Closes our half and reads the other to its end.
async fn fin(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.shutdown().await?;
    tokio::select! {
        drained = drain(stream) => drained,
        () = tokio::time::sleep(LINGER) => Ok(()),
    }
}

async fn drain(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut sink = vec![0; 4096];
    while stream.read(&mut sink).await? > 0 {}
    Ok(())
}

/// Until the client has closed, without taking a byte off the socket. A client that closes with more
/// unsent than fits the socket is not noticed: its FIN waits behind bytes that nobody takes.
async fn until_closed(stream: &TcpStream) -> std::io::Result<()> {
    loop {
        let ready = tokio::select! {
            biased;
            ready = stream.ready(Interest::READABLE) => ready?,
            () = std::future::ready(()) => tokio::io::Ready::EMPTY,
        };
        if ready.is_read_closed() || ready.is_error() {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
}
