//! Connections that speak HTTP/2, with prior knowledge. Faults befall a stream where they can, and
//! the connection with all that is on it where they must.

use super::answer::allows_body;
use super::connection::Takeover;
use super::delivery::{Delivery, Outgoing};
use super::gateway;
use super::plan::{At, Ending, Framing, Plan, Route};
use super::script::Script;
use super::shared::Shared;
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use hyper::body::{Body, Frame};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::TcpStream;

/// What a connection begins with. No method of HTTP/1 is `PRI` (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI ";

/// How long to wait for the rest of a first word that came in parts.
const LOOK: Duration = Duration::from_millis(1);

/// What was handed to the server reaches the wire in this time. A reset that follows at once would
/// drop it from the queue.
const SETTLE: Duration = Duration::from_millis(30);

/// Whether the client begins with HTTP/2. Takes nothing off the socket.
pub(super) async fn is_spoken(stream: &TcpStream) -> bool {
    let mut start = [0; PREFACE.len()];
    loop {
        match stream.peek(&mut start).await {
            Ok(0) | Err(_) => return false,
            Ok(count) if start[..count] != PREFACE[..count] => return false,
            Ok(count) if count == PREFACE.len() => return true,
            Ok(_) => {}
        }
        if stream.ready(Interest::READABLE).await.is_ok_and(|ready| ready.is_read_closed()) {
            return false;
        }
        tokio::time::sleep(LOOK).await;
    }
}

pub(super) async fn converse(mut stream: TcpStream, number: usize, shared: Arc<Shared>) {
    let (takeover, mut scripts) = Takeover::pair();
    let Ok(mut connection) = h2::server::handshake(&mut stream).await else {
        return;
    };
    let script = loop {
        let accepted = tokio::select! {
            biased;
            script = scripts.recv() => break script,
            accepted = connection.accept() => accepted,
        };
        let Some(Ok((request, respond))) = accepted else {
            return;
        };
        let exchange = Exchange { respond, takeover: takeover.clone(), shared: Arc::clone(&shared) };
        shared.spawn(exchange.serve(number, request));
    };
    // The connection's server goes, the socket stays.
    drop((connection, scripts));
    if let Some(script) = script {
        script.play(stream, &shared.clock).await;
    }
}

/// One stream.
struct Exchange {
    respond: SendResponse<Bytes>,
    takeover: Takeover,
    shared: Arc<Shared>,
}

impl Exchange {
    async fn serve(mut self, connection: usize, request: Request<RecvStream>) {
        let delivery = tokio::select! {
            delivery = gateway::serve(Arc::clone(&self.shared), connection, request.map(Upload)) => delivery,
            // The client gave it up, or is gone.
            _ = poll_fn(|cx| self.respond.poll_reset(cx)) => return,
        };
        match delivery {
            Delivery::Answer(outgoing) => self.answer(&outgoing).await,
            Delivery::End(ending) => self.end(ending, &Plan::default()).await,
            Delivery::Frozen => self.hang().await,
        }
    }

    async fn answer(mut self, outgoing: &Outgoing) {
        let Outgoing { answer, plan, method, at: now, .. } = outgoing;
        if plan.garbled {
            return self.takeover.play(Script::garbage(plan)).await;
        }
        let mut cut = plan.cut.map(|cut| (cut.at, cut.then));
        let stalls_until = plan.lasting.map(|pause| now.saturating_add(pause));
        if let Some((At::Start | At::Head(_), then)) = cut {
            match (then, stalls_until) {
                (Ending::Stall, Some(end)) => self.shared.clock.sleep_until(end).await,
                _ => return self.end(then, plan).await,
            }
            cut = None;
        }
        // An answer that is none, and that nothing follows.
        if answer.status.is_informational() {
            return self.end(Ending::Broken, plan).await;
        }
        let mut response = Response::new(());
        *response.status_mut() = answer.status;
        *response.headers_mut() = head(outgoing);
        let body = if allows_body(method, answer.status) { answer.body.clone() } else { Bytes::new() };
        let Ok(mut stream) = self.respond.send_response(response, body.is_empty()) else {
            return;
        };

        // What is cut gets no END_STREAM, even if no byte of it is missing.
        let sent = match cut {
            Some((At::Body(_), _)) if body.is_empty() => Ok(()),
            Some((At::Body(n), then)) => {
                let rest = body.slice(plan.cut_of(n, body.len())..);
                let part = body.slice(..body.len() - rest.len());
                let sent = drip(&mut stream, part, false, plan, &self.shared).await;
                match (then, stalls_until) {
                    (Ending::Stall, Some(end)) => {
                        self.shared.clock.sleep_until(end).await;
                        cut = None;
                        sent.and(drip(&mut stream, rest, true, plan, &self.shared).await)
                    }
                    _ => sent,
                }
            }
            _ if body.is_empty() => Ok(()),
            _ => drip(&mut stream, body.clone(), true, plan, &self.shared).await,
        };
        let (Ok(()), Some((_, ending))) = (sent, cut) else {
            return;
        };
        tokio::time::sleep(SETTLE).await;
        match (ending, plan.framing) {
            // It was never begun.
            (Ending::Broken | Ending::Stall, _) if body.is_empty() => {}
            (Ending::Broken, Framing::Chunked) => stream.send_reset(Reason::INTERNAL_ERROR),
            // As over HTTP/1 it is the length that tells, or nothing.
            (Ending::Broken, Framing::Length | Framing::Unframed) => stream.send_reset(Reason::NO_ERROR),
            (Ending::Stall, _) => {
                let _ = poll_fn(|cx| stream.poll_reset(cx)).await;
            }
            (ending, _) => self.end(ending, plan).await,
        }
    }

    /// Ends the stream, or the connection.
    async fn end(mut self, ending: Ending, plan: &Plan) {
        let script = match ending {
            Ending::Broken => return self.respond.send_reset(Reason::INTERNAL_ERROR),
            Ending::Refused => return self.respond.send_reset(Reason::REFUSED_STREAM),
            Ending::Stall => return self.hang().await,
            Ending::GoAway(code) => {
                let unread = matches!(plan.route, Route::Shut(_) | Route::Gateway);
                let last = if unread { 0 } else { self.respond.stream_id().as_u32() };
                Script::parting(goaway(last, code))
            }
            Ending::Fin | Ending::Reset | Ending::BlackHole => Script::end(ending),
        };
        self.takeover.play(script).await
    }

    /// Until the client gives up this stream, or goes away.
    async fn hang(mut self) {
        let _ = poll_fn(|cx| self.respond.poll_reset(cx)).await;
    }
}

/// The answer's headers. What is of the connection has no place here (RFC 9113, 8.2.2).
fn head(outgoing: &Outgoing) -> HeaderMap {
    let Outgoing { answer, plan, .. } = outgoing;
    let mut headers = answer.headers.clone();
    for name in [CONNECTION, TRANSFER_ENCODING, UPGRADE] {
        headers.remove(name);
    }
    // HEAD is told the length of what it does not get.
    let has_length = plan.framing == Framing::Length && allows_body(&Method::GET, answer.status);
    if has_length && !headers.contains_key(CONTENT_LENGTH) {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(answer.body.len()));
    }
    headers
}

/// Sends this much of a body, in the plan's pace, and its end.
async fn drip(
    stream: &mut SendStream<Bytes>,
    mut body: Bytes,
    end: bool,
    plan: &Plan,
    shared: &Shared,
) -> Result<(), h2::Error> {
    while !body.is_empty() {
        let size = plan.drip.map_or(body.len(), |(size, _)| size.clamp(1, body.len()));
        send(stream, body.split_to(size)).await?;
        if let Some((_, tick)) = plan.drip {
            shared.clock.sleep(tick).await;
        }
    }
    if end { stream.send_data(Bytes::new(), true) } else { Ok(()) }
}

/// As fast as the client's window lets it.
async fn send(stream: &mut SendStream<Bytes>, mut bytes: Bytes) -> Result<(), h2::Error> {
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len());
        let room = match poll_fn(|cx| stream.poll_capacity(cx)).await {
            Some(room) => room?,
            None => return Err(Reason::CANCEL.into()),
        };
        stream.send_data(bytes.split_to(room.min(bytes.len())), false)?;
    }
    Ok(())
}

/// A GOAWAY frame (RFC 9113, 6.8).
fn goaway(last_stream: u32, code: u32) -> Vec<u8> {
    const HEADER: [u8; 9] = [0, 0, 8, 7, 0, 0, 0, 0, 0];
    [&HEADER[..], &last_stream.to_be_bytes(), &code.to_be_bytes()].concat()
}

/// The body of a request, read as fast as it comes.
struct Upload(RecvStream);

impl Body for Upload {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        self.0.poll_data(cx).map_ok(|data| {
            let _ = self.0.flow_control().release_capacity(data.len());
            Frame::data(data)
        })
    }
}
