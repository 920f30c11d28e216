//! A server that does to each request what its script says, byte by byte, and
//! writes down what it saw.
#![allow(clippy::disallowed_methods)] // its own clock for its own record, and the script's own delays

use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::data::{After, At, Read, Reply, Step};
use crate::dates;
use crate::record::{Record, Seen};

/// What a server speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaks {
    Http1,
    /// With prior knowledge. This many of its first connections take all and say nothing.
    #[cfg(feature = "http2")]
    Http2 {
        dead: usize,
    },
}

/// From a request's number and the time since the first one, what to do.
pub(crate) type Script = Box<dyn Fn(usize, Duration) -> Step + Send + Sync>;

/// The steps as a script. A request that no step is for would be one too many.
pub(crate) fn steps(steps: Vec<Step>) -> Script {
    Box::new(move |number, _| {
        let named = steps.iter().find(|step| matches!(&step.at, At::Numbers(range) if range.contains(&number)));
        let step = named.or_else(|| steps.iter().find(|step| step.at == At::AllOthers));
        step.cloned().unwrap_or_else(unforeseen)
    })
}

fn unforeseen() -> Step {
    answer(false, Reply::json(500, "{\"code\":\"NOT_IN_THE_SCRIPT\"}"))
}

/// A step for every request: read it all, execute it or not, answer.
pub(crate) fn answer(execute: bool, reply: Reply) -> Step {
    Step { at: At::AllOthers, read: Read::Full, execute, delay_ms: 0, reply: Some(reply), after: After::Keep }
}

/// A server on a port of its own, until it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl Server {
    /// `warmups` requests are answered 201 before the script begins.
    pub(crate) async fn start(script: Script, warmups: usize) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), script, warmups)
    }

    pub(crate) fn on(listener: TcpListener, script: Script, warmups: usize) -> Self {
        Self::serving(listener, script, warmups, usize::MAX, Speaks::Http1)
    }

    pub(crate) async fn speaking(speaks: Speaks, script: Script, warmups: usize) -> Self {
        Self::serving(TcpListener::bind("127.0.0.1:0").await.unwrap(), script, warmups, usize::MAX, speaks)
    }

    /// It stops listening before its first connection is served.
    pub(crate) async fn for_one_connection(script: Script) -> Self {
        Self::serving(TcpListener::bind("127.0.0.1:0").await.unwrap(), script, 0, 1, Speaks::Http1)
    }

    fn serving(listener: TcpListener, script: Script, warmups: usize, connections: usize, speaks: Speaks) -> Self {
        let address = listener.local_addr().unwrap();
        let state = State { warmups, ..State::default() };
        let shared = Arc::new(Shared { script, state: Mutex::new(state) });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared), connections, speaks));
        Self { address, shared, accepting }
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn record(&self) -> Record {
        self.shared.state(|state| state.record.clone())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, most: usize, speaks: Speaks) {
    let mut listener = Some(listener);
    while let Some(Ok((stream, _))) = accepted(listener.as_ref()).await {
        let number = shared.state(|state| {
            state.record.connections += 1;
            state.record.connections
        });
        if number == most {
            listener = None;
        }
        // It ends when the client hangs up, or in the way that the script says.
        match speaks {
            Speaks::Http1 => {
                let connection = Connection { stream, came: Vec::new(), number, shared: Arc::clone(&shared) };
                tokio::spawn(connection.serve());
            }
            #[cfg(feature = "http2")]
            Speaks::Http2 { dead } => {
                tokio::spawn(crate::frames::serve(stream, number, number <= dead, Arc::clone(&shared)));
            }
        }
    }
}

async fn accepted(listener: Option<&TcpListener>) -> Option<io::Result<(TcpStream, SocketAddr)>> {
    Some(listener?.accept().await)
}

pub(crate) struct Shared {
    script: Script,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    warmups: usize,
    record: Record,
}

impl Shared {
    fn state<T>(&self, with: impl FnOnce(&mut State) -> T) -> T {
        with(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Writes a request down, and says what to do with it. Warm-up requests
    /// have no place in the record.
    pub(crate) fn arrived(&self, seen: Seen) -> (Option<usize>, Step) {
        self.state(|state| {
            if state.record.warmups.len() < state.warmups {
                state.record.warmups.push(seen.connection);
                return (None, answer(false, Reply::json(201, "{}")));
            }
            let first = state.record.requests.first().map_or(seen.arrived, |first| first.arrived);
            let step = (self.script)(state.record.requests.len() + 1, seen.arrived.saturating_duration_since(first));
            state.record.requests.push(seen);
            (Some(state.record.requests.len() - 1), step)
        })
    }

    pub(crate) fn note(&self, place: Option<usize>, write: impl FnOnce(&mut Record, usize)) {
        if let Some(index) = place {
            self.state(|state| write(&mut state.record, index));
        }
    }
}

struct Connection {
    stream: TcpStream,
    /// What came and was not taken yet.
    came: Vec<u8>,
    number: usize,
    shared: Arc<Shared>,
}

impl Connection {
    async fn serve(mut self) -> io::Result<()> {
        while let Some((seen, length)) = self.head().await? {
            let (place, step) = self.shared.arrived(seen);
            if self.carry_out(&step, place, length).await?.is_break() {
                break;
            }
        }
        Ok(())
    }

    async fn carry_out(&mut self, step: &Step, place: Option<usize>, length: usize) -> io::Result<ControlFlow<()>> {
        let wanted = match step.read {
            Read::Full => length,
            Read::Half => length / 2,
            Read::Head => 0,
        };
        let body = self.take(wanted).await?;
        self.shared.note(place, |record, index| {
            record.requests[index].whole = body.len() == length;
            record.requests[index].body = body;
            if step.execute {
                record.executed.insert(record.requests[index].key());
            }
        });
        tokio::time::sleep(step.delay()).await;
        if let Some(reply) = step.reply.clone().map(dates::filled_in) {
            let bytes = spelt(&reply);
            self.shared.note(place, |record, index| {
                record.requests[index].answered = Some(Instant::now());
                record.requests[index].reply = Some(reply);
            });
            self.stream.write_all(&bytes).await?;
        } else if step.after != After::Hang {
            self.shared.note(place, |record, index| record.requests[index].answered = Some(Instant::now()));
        }
        match step.after {
            After::Keep => {
                self.take(length - wanted).await?;
                return Ok(ControlFlow::Continue(()));
            }
            After::Fin => {
                self.stream.shutdown().await?;
                self.until_the_client_closes().await?;
            }
            After::Rst => self.stream.set_zero_linger()?,
            After::Hang => self.until_the_client_closes().await?,
            After::RstStream(_) | After::GoAway { .. } => unreachable!("there are no frames in HTTP/1"),
        }
        Ok(ControlFlow::Break(()))
    }

    /// The next request's head, and how many bytes of body it announces.
    async fn head(&mut self) -> io::Result<Option<(Seen, usize)>> {
        let mut arrived = (!self.came.is_empty()).then(now);
        let end = loop {
            if let Some(at) = self.came.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            if self.stream.read_buf(&mut self.came).await? == 0 {
                return Ok(None);
            }
            arrived.get_or_insert_with(now);
        };
        let head: Vec<u8> = self.came.drain(..end).collect();
        let text = String::from_utf8_lossy(&head);
        let mut lines = text.trim_end().split("\r\n");
        let mut first = lines.next().unwrap_or_default().split(' ');
        let headers = lines.filter_map(|line| line.split_once(':'));
        let (arrived, arrived_at) = arrived.unwrap_or_else(now);
        let seen = Seen {
            connection: self.number,
            arrived,
            arrived_at,
            method: first.next().unwrap_or_default().to_owned(),
            path: first.next().unwrap_or_default().to_owned(),
            headers: headers.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect(),
            body: Vec::new(),
            whole: false,
            answered: None,
            reply: None,
        };
        let length = seen.lines("content-length").first().map_or(0, |length| length.parse().unwrap());
        Ok(Some((seen, length)))
    }

    /// This many bytes, or as many as come.
    async fn take(&mut self, count: usize) -> io::Result<Vec<u8>> {
        while self.came.len() < count && self.stream.read_buf(&mut self.came).await? > 0 {}
        Ok(self.came.drain(..count.min(self.came.len())).collect())
    }

    /// Closing with unread bytes would send a reset.
    async fn until_the_client_closes(&mut self) -> io::Result<()> {
        while self.stream.read_buf(&mut self.came).await? > 0 {}
        Ok(())
    }
}

pub(crate) fn now() -> (Instant, SystemTime) {
    (Instant::now(), SystemTime::now())
}

fn spelt(reply: &Reply) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {} Scripted\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !reply.raw_length {
        head.push_str(&format!("Content-Length: {}\r\n", reply.body.len()));
    }
    head.push_str("\r\n");
    [head.into_bytes(), reply.body.clone()].concat()
}
