//! A TLS server whose certificate nobody vouches for.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub(crate) struct SelfSigned {
    address: SocketAddr,
    seen: Arc<Seen>,
    accepting: JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    /// Bytes that came through the encryption: a request.
    received: AtomicUsize,
}

impl SelfSigned {
    pub(crate) async fn start() -> Self {
        let certificate = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
        let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let accepting = tokio::spawn(accept(listener, Arc::new(config), Arc::clone(&seen)));
        Self { address, seen, accepting }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn received(&self) -> usize {
        self.seen.received.load(Ordering::SeqCst)
    }
}

impl Drop for SelfSigned {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, config: Arc<ServerConfig>, seen: Arc<Seen>) {
    while let Ok((stream, _)) = listener.accept().await {
        seen.connections.fetch_add(1, Ordering::SeqCst);
        let (stream, config, seen) = (stream.into_std().unwrap(), Arc::clone(&config), Arc::clone(&seen));
        tokio::task::spawn_blocking(move || serve(stream, config, &seen));
    }
}

/// Until the client hangs up, which is when it has seen the certificate.
fn serve(mut stream: TcpStream, config: Arc<ServerConfig>, seen: &Seen) {
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut connection = ServerConnection::new(config).unwrap();
    let mut bytes = [0; 1024];
    while let Ok(count @ 1..) = rustls::Stream::new(&mut connection, &mut stream).read(&mut bytes) {
        seen.received.fetch_add(count, Ordering::SeqCst);
    }
}

/// For 127.0.0.1, from 2020 to 2120: only an issuer that is trusted is missing.
const CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----
MIIBVzCB/6ADAgECAgEBMAoGCCqGSM49BAMCMBQxEjAQBgNVBAMMCTEyNy4wLjAu
MTAgFw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAwMFowFDESMBAGA1UEAwwJ
MTI3LjAuMC4xMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEYWoekIDxvvdWler2
xhD4mhJH9yE179ahcjJ/vfR770ImhQVu82GvgxcSj89ngtXPBifqTjW13z2JZH4y
ole4qqNAMD4wDwYDVR0RBAgwBocEfwAAATAMBgNVHRMBAf8EAjAAMB0GA1UdDgQW
BBTsU9BY5GNsL0ooKemVmrFAZ5kcMDAKBggqhkjOPQQDAgNHADBEAiBhbd31JFIF
rQOFkMqmyhiFeSFE1gYMw2oZ9wxNRHw3/QIgBJdF3u5K8UtN3Xp0sJtEA78C4Vm+
ANp/fc6lXDkRtkQ=
-----END CERTIFICATE-----
";

/// Of no use anywhere else.
const KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgQz0wSilUazDVHglb
1RiUZldsVwL/7uVlzEPkEzHPLlmhRANCAARhah6QgPG+91aV6vbGEPiaEkf3ITXv
1qFyMn+99HvvQiaFBW7zYa+DFxKPz2eC1c8GJ+pONbXfPYlkfjKiV7iq
-----END PRIVATE KEY-----
";
