//! Connections: hyper serves each until a fault takes the socket from it.
//!
//! HTTP/2 would be told from HTTP/1 here, by its preface. It has frames to cut in place of bytes, so
//! it needs a player of its own; all before that (gateway, provider, key store) knows no version.

use super::gateway;
use super::script::Script;
use super::shared::Shared;
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
    /// Takes the connection from hyper, which drops the future that waits here.
    pub(super) async fn play<T>(self, script: Script) -> T {
        // It fails only if the connection is gone already.
        let _ = self.0.send(script);
        std::future::pending().await
    }
}

pub(super) async fn accept(listener: Arc<TcpListener>, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => shared.spawn(converse(stream, Arc::clone(&shared))),
            Err(_) if shared.is_closed() => return,
            // Too many open files, for one: that passes.
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

async fn converse(stream: TcpStream, shared: Arc<Shared>) {
    // Without it the bytes before a cut may wait for more, though all still arrives.
    let _ = stream.set_nodelay(true);
    let (scripts, mut script) = mpsc::unbounded_channel();
    let takeover = Takeover(scripts);
    let service = service_fn(|request| {
        let (shared, takeover) = (Arc::clone(&shared), takeover.clone());
        async move { Ok::<_, Infallible>(gateway::serve(shared, request, takeover).await) }
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
