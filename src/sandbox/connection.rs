//! Connections: a server of its version handles each until a fault takes the socket from it.

use super::delivery::Delivery;
use super::gateway;
#[cfg(feature = "http2")]
use super::http2;
use super::script::Script;
use super::shared::Shared;
use http::Response;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// Where a request's handling hands over the script that ends its connection.
#[derive(Clone)]
pub(super) struct Takeover(mpsc::UnboundedSender<Script>);

impl Takeover {
    pub(super) fn pair() -> (Self, mpsc::UnboundedReceiver<Script>) {
        let (scripts, script) = mpsc::unbounded_channel();
        (Self(scripts), script)
    }

    /// Takes the connection from its server, if it is still there; returns when it has gone.
    pub(super) async fn play(&self, script: Script) {
        // It fails only if the connection is gone already.
        let _ = self.0.send(script);
        self.0.closed().await;
    }
}

pub(super) async fn accept(listener: Arc<TcpListener>, shared: Arc<Shared>) {
    let mut accepted = 0;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                accepted += 1;
                shared.spawn(converse(stream, accepted, Arc::clone(&shared)));
            }
            Err(_) if shared.is_closed() => return,
            // Too many open files, for one: that passes.
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

async fn converse(stream: TcpStream, number: usize, shared: Arc<Shared>) {
    // Without it the bytes before a cut may wait for more, though all still arrives.
    let _ = stream.set_nodelay(true);
    #[cfg(feature = "http2")]
    if http2::is_spoken(&stream).await {
        return http2::converse(stream, number, shared).await;
    }
    converse_http1(stream, number, shared).await;
}

async fn converse_http1(stream: TcpStream, number: usize, shared: Arc<Shared>) {
    let (takeover, mut script) = Takeover::pair();
    let service = service_fn(|request| {
        let (shared, takeover) = (Arc::clone(&shared), takeover.clone());
        async move {
            let script = match gateway::serve(shared, number, request).await {
                Delivery::Answer(outgoing) if outgoing.is_for_hyper() => {
                    return Ok::<_, Infallible>(Response::from(outgoing.answer));
                }
                Delivery::Answer(outgoing) => Script::answer(&outgoing),
                Delivery::End(ending) => Script::end(ending),
                Delivery::Frozen => Script::frozen(),
            };
            takeover.play(script).await;
            // hyper drops this with the connection.
            std::future::pending().await
        }
    });
    // The gateway writes `Date` from the sandbox's clock, or not at all.
    let mut connection = http1::Builder::new().auto_date_header(false).serve_connection(TokioIo::new(stream), service);
    let script = tokio::select! {
        biased;
        script = script.recv() => script,
        _ = &mut connection => None,
    };
    if let Some(script) = script {
        let stream = connection.into_parts().io.into_inner();
        script.play(stream, &shared.clock).await;
    }
}
