//! The scripted server in HTTP/2, with prior knowledge.
#![allow(clippy::disallowed_methods)] // the script's own delays

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{Request, Response};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::data::{After, Read, Step};
use crate::dates;
use crate::record::Seen;
use crate::script::{Shared, now};

/// A reset that follows at once would overtake what it is to cut.
const SETTLE: Duration = Duration::from_millis(30);

/// One connection; a dead one takes all that comes, and never says a word.
pub(crate) async fn serve(stream: TcpStream, number: usize, dead: bool, shared: Arc<Shared>) -> io::Result<()> {
    let mut wire = Wire { stream, dead };
    let (ending, mut ended) = mpsc::unbounded_channel();
    let mut connection = h2::server::handshake(&mut wire).await.map_err(io::Error::other)?;
    let end = loop {
        let accepted = tokio::select! {
            biased;
            Some(end) = ended.recv() => break end,
            accepted = connection.accept() => accepted,
        };
        let Some(Ok((request, respond))) = accepted else {
            return Ok(());
        };
        let stream = Stream { respond, number, dead, shared: Arc::clone(&shared), ending: ending.clone() };
        tokio::spawn(stream.serve(request));
    };
    drop(connection);
    let mut stream = wire.stream;
    match end {
        After::Rst => return stream.set_zero_linger(),
        After::GoAway { last, code } => stream.write_all(&goaway(last, code)).await?,
        After::Keep | After::Fin | After::Hang | After::RstStream(_) => {}
    }
    stream.shutdown().await?;
    // Closing with unread bytes would send a reset.
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}

fn goaway(last: u32, code: u32) -> Vec<u8> {
    [&[0, 0, 8, 7, 0, 0, 0, 0, 0][..], &last.to_be_bytes(), &code.to_be_bytes()].concat()
}

struct Stream {
    respond: SendResponse<Bytes>,
    number: usize,
    dead: bool,
    shared: Arc<Shared>,
    ending: mpsc::UnboundedSender<After>,
}

impl Stream {
    async fn serve(mut self, request: Request<RecvStream>) {
        // It fails where the client went away, which is its own affair.
        let _ = self.carry_out(request).await;
        // Dropped, it would be reset.
        let _ = poll_fn(|cx| self.respond.poll_reset(cx)).await;
    }

    async fn carry_out(&mut self, request: Request<RecvStream>) -> Result<(), h2::Error> {
        let (arrived, arrived_at) = now();
        let lines = request.headers().iter();
        let lines =
            lines.map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
        let seen = Seen {
            connection: self.number,
            arrived,
            arrived_at,
            method: request.method().to_string(),
            path: request.uri().path_and_query().map_or_else(String::new, ToString::to_string),
            headers: lines.collect(),
            body: Vec::new(),
            whole: false,
            answered: None,
            reply: None,
        };
        let (place, step) = self.shared.arrived(seen);
        assert!(step.read == Read::Full, "no report asks for another in HTTP/2");
        let mut body = request.into_body();
        let mut came = Vec::new();
        while let Some(data) = body.data().await {
            let data = data?;
            let _ = body.flow_control().release_capacity(data.len());
            came.extend_from_slice(&data);
        }
        self.shared.note(place, |record, index| {
            record.requests[index].body = came;
            record.requests[index].whole = true;
            if step.execute && !self.dead {
                record.executed.insert(record.requests[index].key());
            }
        });
        if self.dead { Ok(()) } else { self.answer(step, place).await }
    }

    async fn answer(&mut self, step: Step, place: Option<usize>) -> Result<(), h2::Error> {
        tokio::time::sleep(step.delay()).await;
        let reply = step.reply.map(dates::filled_in);
        if reply.is_some() || step.after != After::Hang {
            self.shared.note(place, |record, index| {
                record.requests[index].answered = Some(now().0);
                record.requests[index].reply.clone_from(&reply);
            });
        }
        let Some(reply) = reply else {
            match step.after {
                After::RstStream(code) => self.respond.send_reset(Reason::from(code)),
                after => self.end(after),
            }
            return Ok(());
        };
        let mut head = Response::builder().status(reply.status);
        for (name, value) in &reply.headers {
            head = head.header(name, value);
        }
        if !reply.raw_length {
            head = head.header("content-length", reply.body.len());
        }
        let mut stream = self.respond.send_response(head.body(()).expect("a reply has good headers"), false)?;
        let is_cut = matches!(step.after, After::RstStream(_));
        stream.send_data(Bytes::from(reply.body), !is_cut)?;
        if step.after != After::Keep {
            tokio::time::sleep(SETTLE).await;
        }
        match step.after {
            After::RstStream(code) => stream.send_reset(Reason::from(code)),
            after => self.end(after),
        }
        Ok(())
    }

    fn end(&self, after: After) {
        if !matches!(after, After::Keep | After::Hang) {
            // It fails only if the connection has ended.
            let _ = self.ending.send(after);
        }
    }
}

/// A socket whose writing end may be dead.
struct Wire {
    stream: TcpStream,
    dead: bool,
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.dead { Poll::Ready(Ok(bytes.len())) } else { Pin::new(&mut self.stream).poll_write(cx, bytes) }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
