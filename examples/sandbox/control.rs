use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use oncekey::sandbox::{Execution, Fault, Sandbox, SeenRequest};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::fault;

const LARGEST_BODY: usize = 64 * 1024;
/// More faults than any test needs are a mistake in it.
const MOST_FAULTS: usize = 10_000;
const ENDPOINTS: &str = "POST /faults, DELETE /faults, POST /clock, GET /ledger, GET /requests, \
    GET /executions?key=KEY, POST /stop";

type Answer = Result<Value, (StatusCode, String)>;

/// Serves until the listener fails.
pub(crate) async fn serve(
    listener: &TcpListener,
    sandbox: &Arc<Sandbox>,
    stop: &mpsc::Sender<()>,
) -> std::io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        let (sandbox, stop) = (Arc::clone(sandbox), stop.clone());
        tokio::spawn(async move {
            let stopping = Arc::new(AtomicBool::new(false));
            let asked = Arc::clone(&stopping);
            let service = service_fn(move |request| {
                let (sandbox, asked) = (Arc::clone(&sandbox), Arc::clone(&asked));
                async move {
                    if request.uri().path() == "/stop" && request.method() == Method::POST {
                        asked.store(true, Ordering::Relaxed);
                    }
                    Ok::<_, Infallible>(written(answer(&sandbox, request).await))
                }
            });
            let mut http = hyper::server::conn::http1::Builder::new();
            let _ = http.keep_alive(false).serve_connection(TokioIo::new(stream), service).await;
            // After the answer has left.
            if stopping.load(Ordering::Relaxed) {
                let _ = stop.send(()).await;
            }
        });
    }
}

async fn answer(sandbox: &Sandbox, request: Request<Incoming>) -> Answer {
    let (parts, body) = request.into_parts();
    let body = Limited::new(body, LARGEST_BODY).collect().await.map(http_body_util::Collected::to_bytes);
    let body = body.map_err(|_| bad(format!("the body is longer than {LARGEST_BODY} bytes, or was cut")))?;
    let query = parts.uri.query().unwrap_or_default();
    match (parts.method.as_str(), parts.uri.path()) {
        ("POST", "/faults") => {
            sandbox.fail_next(faults(&body, sandbox.faults_left())?);
            Ok(json!({"faults_left": sandbox.faults_left()}))
        }
        ("DELETE", "/faults") => {
            sandbox.clear_faults();
            Ok(json!({"faults_left": 0}))
        }
        ("POST", "/clock") => {
            sandbox.advance(Duration::from_millis(advance(&body)?));
            Ok(json!({"now_ms": millis(sandbox.now())}))
        }
        ("GET", "/ledger") => Ok(sandbox.ledger().iter().map(execution).collect()),
        ("GET", "/requests") => Ok(sandbox.requests().iter().map(seen).collect()),
        ("GET", "/executions") => {
            let mut pairs = url::form_urlencoded::parse(query.as_bytes());
            Ok(match pairs.find(|(name, _)| name == "key") {
                Some((_, key)) => json!({"executions": sandbox.executions_of(key)}),
                None => json!({"executions": sandbox.executions()}),
            })
        }
        ("POST", "/stop") => Ok(json!({"stopping": true})),
        (method, path) => Err((StatusCode::NOT_FOUND, format!("there is no {method} {path}; there are: {ENDPOINTS}"))),
    }
}

fn faults(body: &Bytes, queued: usize) -> Result<Vec<Fault>, (StatusCode, String)> {
    let example = r#"a JSON list of faults, as in ["lose-answer:1","status:503:2"]"#;
    let names: Vec<String> = serde_json::from_slice(body).map_err(|_| bad(format!("the body must be {example}")))?;
    let mut faults = Vec::new();
    let mut total = queued;
    for name in &names {
        let scripted = fault::parse(name).map_err(bad)?;
        total = total.saturating_add(scripted.times);
        faults.push(scripted.into());
    }
    if total > MOST_FAULTS {
        return Err(bad(format!("at most {MOST_FAULTS} faults may wait, and these would make {total}")));
    }
    Ok(faults)
}

fn advance(body: &Bytes) -> Result<u64, (StatusCode, String)> {
    let value: Option<Value> = serde_json::from_slice(body).ok();
    let members = value.as_ref().and_then(Value::as_object).filter(|members| members.len() == 1);
    members
        .and_then(|members| members.get("advance_ms"))
        .and_then(Value::as_u64)
        .ok_or_else(|| bad(r#"the body must be {"advance_ms":N}, N a whole number of milliseconds from 0"#.to_owned()))
}

fn execution(execution: &Execution) -> Value {
    json!({
        "id": execution.id(),
        "key": execution.key(),
        "method": execution.method().as_str(),
        "path": execution.path(),
        "body": String::from_utf8_lossy(execution.body()),
        "request": execution.request(),
        "double": execution.is_double(),
        "at_ms": millis(execution.at()),
    })
}

fn seen(request: &SeenRequest) -> Value {
    json!({
        "number": request.number(),
        "connection": request.connection(),
        "method": request.method().as_str(),
        "path": request.path(),
        "keys": request.keys(),
        "body": String::from_utf8_lossy(request.body()),
        "complete": request.is_complete(),
        "fault": request.fault().map(|fault| fault.name().replace('_', "-")),
        "copy": request.is_copy(),
        "status": request.status().map(|status| status.as_u16()),
        "at_ms": millis(request.at()),
    })
}

fn bad(what: String) -> (StatusCode, String) {
    (StatusCode::BAD_REQUEST, what)
}

/// Milliseconds since the epoch.
fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn written(answer: Answer) -> Response<Full<Bytes>> {
    let (status, value) = match answer {
        Ok(value) => (StatusCode::OK, value),
        Err((status, what)) => (status, json!({"error": what})),
    };
    let mut response = Response::new(Full::new(Bytes::from(format!("{value}\n"))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
