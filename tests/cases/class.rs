//! Never sent, or perhaps; for good, or for now.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use oncekey::{Effect, ErrorKind, Parts};
use tokio::net::TcpSocket;

use crate::checks::Problems;
use crate::data::{After, At, Count, Outcome, Read, Reply, Report, Settings, Step};
use crate::record::Record;
use crate::run::{Findings, Name, Run};
use crate::scene::{BODY, CAPTURED, Hooked, Scene, client, pay, replayed, timed};
use crate::script::{self, Server, answer};

pub(crate) fn class_01(report: &Report) -> Vec<Run> {
    let scene = || Scene::of(report);
    vec![
        Run::new(Name::Variant("a (expect as given)"), closed_port(scene())),
        Run::new(Name::Variant("b SUCCESS"), closed_for_two(scene())),
        Run::new(Name::Variant("c NOT_SENT"), self_signed(scene())),
        Run::new(Name::Variant("d NOT_SENT"), nowhere_to_send_to()),
        report.variant("e UNKNOWN", |scene| {
            scene.steps = vec![closed_after_reading()];
            scene.expect.outcome = Outcome::Unknown;
            scene.expect.distinct_keys = 1;
            scene.expect.wire_requests = Count::Exactly(6);
        }),
        Run::also("one in doubt among refused ones", refused_after_doubt(scene())),
    ]
}

fn closed_after_reading() -> Step {
    Step { reply: None, after: After::Fin, ..answer(false, Reply::new(500, "")) }
}

/// A port that is taken and refuses connections: nothing listens.
fn closed(port: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(port).unwrap();
    socket
}

const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

fn url(address: SocketAddr) -> String {
    format!("http://{address}/pay")
}

async fn closed_port(mut scene: Scene) -> Findings {
    let socket = closed(ANY_PORT);
    scene.check(|e, problems| {
        if let Some(error) = e.error(problems) {
            problems.same("effect", error.effect(), Effect::NotApplied);
            problems.same("kind", error.kind(), ErrorKind::Exhausted);
            problems.same("attempts", error.attempts().len(), 6);
        }
    });
    scene.play_at(&url(socket.local_addr().unwrap()), Record::default).await
}

/// The hook runs before each attempt: it opens the port for the third.
async fn closed_for_two(mut scene: Scene) -> Findings {
    let socket = closed(ANY_PORT);
    let address = socket.local_addr().unwrap();
    let (socket, server) = (Mutex::new(Some(socket)), Arc::new(Mutex::new(None)));
    let opened = Arc::clone(&server);
    scene.hook(move |parts: &mut Parts<'_>| {
        if parts.attempt() == 3 {
            let listener = socket.lock().unwrap().take().unwrap().listen(8)?;
            let script = |_, _| answer(true, Reply::json(201, CAPTURED));
            *opened.lock().unwrap() = Some(Server::on(listener, Box::new(script), 0));
        }
        Ok(())
    });
    scene.expect.outcome = Outcome::Success;
    scene.expect.executions = 1;
    scene.expect.distinct_keys = 1;
    scene.expect.http_status = Some(201);
    scene.expect.wire_requests = Count::Exactly(1);
    scene.check(|e, problems| problems.same("attempts", e.attempts().len(), 3));
    let record = || server.lock().unwrap().as_ref().map_or_else(Record::default, Server::record);
    scene.play_at(&url(address), record).await
}

/// The first attempt is read and left without an answer, all others are refused.
async fn refused_after_doubt(mut scene: Scene) -> Findings {
    let server = Server::for_one_connection(script::steps(vec![closed_after_reading()])).await;
    let address = server.address();
    let kept = Mutex::new(None);
    scene.hook(move |parts: &mut Parts<'_>| {
        if parts.attempt() == 2 {
            // So that nobody else is given the port.
            *kept.lock().unwrap() = Some(closed(address));
        }
        Ok(())
    });
    scene.expect.outcome = Outcome::Unknown;
    scene.expect.distinct_keys = 1;
    scene.expect.wire_requests = Count::Exactly(1);
    scene.check(|e, problems| problems.same("attempts", e.attempts().len(), 6));
    scene.play_at(&url(address), || server.record()).await
}

#[cfg(feature = "rustls")]
async fn self_signed(mut scene: Scene) -> Findings {
    let server = crate::tls::SelfSigned::start().await;
    scene.check(|e, problems| {
        if let Some(error) = e.error(problems) {
            problems.same("effect", error.effect(), Effect::NotApplied);
            problems.same("kind", error.kind(), ErrorKind::Connect);
            problems.that(error.attempts().len() <= 1, "it was tried again");
            problems.that(error.attempts().iter().all(|attempt| attempt.wait().is_zero()), "it waited");
        }
    });
    let mut findings = scene.play_at(&server.url("/pay"), Record::default).await;
    findings.problems.same("connections", server.connections(), 1);
    findings.problems.same("bytes of a request", server.received(), 0);
    findings
}

/// Without rustls a bad certificate cannot be told from a bad handshake; without
/// any TLS the URL is refused.
#[cfg(not(feature = "rustls"))]
async fn self_signed(scene: Scene) -> Findings {
    let client = scene.client();
    let sent = timed(pay(&client, "https://127.0.0.1:9/pay", BODY.to_vec())).await.0;
    let mut problems = Problems::default();
    let effect = sent.map_err(|error| error.effect()).err();
    problems.same("effect", effect, Some(Effect::NotApplied));
    Findings { problems, summary: "no rustls".to_owned(), details: String::new() }
}

async fn nowhere_to_send_to() -> Findings {
    let script = |_, _| answer(true, Reply::json(201, CAPTURED));
    let server = Server::start(Box::new(script), 0).await;
    let client = client(&Settings::default()).build().unwrap();
    let mut problems = Problems::default();
    for request in [
        pay(&client, "http://", BODY.to_vec()),
        pay(&client, "ftp://127.0.0.1/pay", BODY.to_vec()),
        pay(&client, "/pay", BODY.to_vec()),
        pay(&client, &server.url("/pay"), BODY.to_vec()).header("x-note", "a\nb"),
        pay(&client, &server.url("/pay"), BODY.to_vec()).header("x note", "a"),
    ] {
        match timed(request).await.0 {
            Ok(response) => problems.that(false, format!("it was sent: {response:?}")),
            Err(error) => {
                problems.same("effect", error.effect(), Effect::NotApplied);
                problems.same("kind", error.kind(), ErrorKind::Request);
                problems.same("attempts", error.attempts().len(), 0);
            }
        }
    }
    let record = server.record();
    problems.same("connections", record.connections, 0);
    Findings { problems, summary: "refused".to_owned(), details: record.to_string() }
}

pub(crate) fn class_02(report: &Report) -> Vec<Run> {
    let unauthorized = |scene: &mut Scene| {
        scene.check(|e, problems| {
            if let Some(error) = e.error(problems) {
                problems.same("kind", error.kind(), ErrorKind::Refused);
            }
        });
    };
    // A 401 to the first attempt, which the server did not carry out.
    let alone = move |scene: &mut Scene| {
        scene.steps.remove(0);
        scene.expect.outcome = Outcome::Rejected;
        scene.expect.executions = 0;
        scene.expect.wire_requests = Count::Exactly(1);
    };
    // That the row can be opened again under the same key comes with the journal.
    vec![
        report.as_given(unauthorized),
        report.variant("with refresh hook: wire 3, SUCCESS 201", |scene| {
            scene.hook(refresh);
            scene.others().at = At::number(2);
            scene.steps.push(answer(false, replayed()));
            scene.expect.outcome = Outcome::Success;
            scene.expect.http_status = Some(201);
            scene.expect.wire_requests = Count::Exactly(3);
            credentials(scene, &["Bearer old", "Bearer old", "Bearer new"]);
        }),
        report.also("a lone first 401 is a refusal", move |scene| {
            alone(scene);
            unauthorized(scene);
        }),
        report.also("a lone 401, then fresh credentials", move |scene| {
            alone(scene);
            scene.hook(refresh);
            scene.others().at = At::number(1);
            scene.steps.push(Step { read: Read::Full, ..answer(true, Reply::json(201, CAPTURED)) });
            scene.expect.outcome = Outcome::Success;
            scene.expect.executions = 1;
            scene.expect.http_status = Some(201);
            scene.expect.wire_requests = Count::Exactly(2);
            credentials(scene, &["Bearer old", "Bearer new"]);
        }),
        report.also("401 to fresh credentials too", move |scene| {
            alone(scene);
            unauthorized(scene);
            scene.hook(refresh);
            scene.expect.wire_requests = Count::Exactly(2);
            credentials(scene, &["Bearer old", "Bearer new"]);
        }),
    ]
}

fn refresh(parts: &mut Parts<'_>) -> Hooked {
    let token = if parts.previous_status().is_some_and(|status| status == 401) { "new" } else { "old" };
    parts.set_header("authorization", format!("Bearer {token}"))?;
    Ok(())
}

fn credentials(scene: &mut Scene, expected: &'static [&'static str]) {
    scene.check(move |e, problems| {
        let lines: Vec<&str> = e.record.requests.iter().flat_map(|seen| seen.lines("authorization")).collect();
        problems.same("credentials", lines.as_slice(), expected);
    });
}
