//! The sandbox as a raw client sees it: bytes in, bytes out, and what the ledger says then.

mod canned;
mod delivery;
mod handle;
#[cfg(feature = "http2")]
mod http2;
mod keys;
mod provider;
mod stalls;

use super::{Fault, Sandbox};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Fin,
    Reset,
}

/// All that came back over one connection. The value of `date` is cut out of `text`.
struct Reply {
    text: String,
    date: Option<String>,
    end: End,
}

impl Reply {
    fn status(&self) -> u16 {
        let status = self.text.split(' ').nth(1).unwrap_or_default();
        status.parse().unwrap_or_default()
    }

    fn body(&self) -> &str {
        self.text.split_once("\r\n\r\n").map_or("", |(_, b)| b)
    }

    fn header(&self, name: &str) -> Option<&str> {
        let head = self.text.split("\r\n\r\n").next()?;
        head.lines().find_map(|line| {
            let (n, value) = line.split_once(": ")?;
            (n == name).then_some(value)
        })
    }
}

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

const BODY: &str = r#"{"amount":100}"#;
const PAID: &str = r#"{"id":"pay_1","status":"captured","amount":100}"#;

/// A keyed POST that asks for the connection to be closed.
fn post(key: &str, body: &str) -> String {
    request("POST", "/v1/payments", &[("Idempotency-Key", key)], body)
}

fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: sandbox\r\nConnection: close\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    text + &format!("Content-Length: {}\r\n\r\n{body}", body.len())
}

async fn open(sandbox: &Sandbox, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(sandbox.addr()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// Reads to the end, which must come soon.
async fn finish(mut stream: TcpStream) -> Reply {
    let mut bytes = Vec::new();
    let reading = stream.read_to_end(&mut bytes);
    let read = tokio::time::timeout(PATIENCE, reading).await;
    let end = match read.expect("the connection ends") {
        Ok(_) => End::Fin,
        Err(_) => End::Reset,
    };
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    let mut date = None;
    if let Some((before, rest)) = text.split_once("date: ")
        && let Some((value, after)) = rest.split_once("\r\n")
    {
        date = Some(value.to_owned());
        text = format!("{before}{after}");
    }
    Reply { text, date, end }
}

async fn send(sandbox: &Sandbox, request: &str) -> Reply {
    finish(open(sandbox, request).await).await
}

/// `Sandbox::until`, or a failed test in place of one that hangs.
async fn until(sandbox: &Sandbox, condition: impl FnMut(&Sandbox) -> bool) {
    let reached = tokio::time::timeout(PATIENCE, sandbox.until(condition)).await;
    reached.expect("the condition is reached");
}

/// Waits until a task has ended of those that there were: a connection whose client left.
async fn fewer_tasks(sandbox: &Sandbox, before: usize) {
    let ended = async {
        while sandbox.shared.tasks().0 >= before {
            tokio::task::yield_now().await;
        }
    };
    let ended = tokio::time::timeout(PATIENCE, ended).await;
    ended.expect("the server lets go");
}

/// A sandbox with defaults and these faults.
async fn with(faults: impl IntoIterator<Item = Fault>) -> Sandbox {
    let sandbox = Sandbox::start().await.unwrap();
    sandbox.fail_next(faults);
    sandbox
}

/// Reads until `count` bytes have come, and sees that no more follow for now.
async fn stalled_after(stream: &mut TcpStream, count: usize) -> String {
    let mut bytes = vec![0; count];
    let read = tokio::time::timeout(PATIENCE, stream.read_exact(&mut bytes)).await;
    read.expect("the bytes come").unwrap();
    let more = tokio::time::timeout(Duration::from_millis(30), stream.read_u8()).await;
    assert!(more.is_err(), "more than {count} bytes: {more:?}");
    String::from_utf8(bytes).unwrap()
}
