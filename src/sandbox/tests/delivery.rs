//! Answers that are lost or damaged after the request was served.

use super::*;

/// The head that a cut or damaged 201 begins with, without its date.
fn head(framing: &str) -> String {
    format!("HTTP/1.1 201 Created\r\ncontent-type: application/json\r\n{framing}\r\n")
}

fn length() -> String {
    head(&format!("content-length: {}\r\n", PAID.len()))
}

/// The fault hits one request; a retry is served the truth, as a replay.
async fn served(fault: Fault, text: &str, end: End) {
    let name = fault.name();
    let sandbox = with([fault]).await;
    let reply = send(&sandbox, &post("k1", BODY)).await;
    assert_eq!((reply.text.as_str(), reply.end), (text, end), "{name}");
    assert_eq!(sandbox.executions_of("k1"), 1, "{name}");
    let retry = send(&sandbox, &post("k1", BODY)).await;
    assert_eq!((retry.status(), retry.body()), (201, PAID), "{name}");
    assert_eq!(retry.header("idempotent-replay"), Some("true"), "{name}");
    assert_eq!(sandbox.executions(), 1, "{name}");
    assert!(sandbox.requests()[0].is_complete(), "{name}");
}

#[tokio::test]
async fn answer_lost() {
    served(Fault::answer_lost(), "", End::Fin).await;
    served(Fault::answer_lost().with_reset(), "", End::Reset).await;
}

#[tokio::test]
async fn head_cut() {
    served(Fault::head_cut(0), "", End::Fin).await;
    served(Fault::head_cut(12), "HTTP/1.1 201", End::Fin).await;
    served(Fault::head_cut(12).with_reset(), "HTTP/1.1 201", End::Reset).await;
    let all_but_one = length();
    let all_but_one = &all_but_one[..all_but_one.len() - 1];
    served(Fault::head_cut(usize::MAX), all_but_one, End::Fin).await;
    let sandbox = with([Fault::head_cut(usize::MAX)]).await;
    send(&sandbox, &post("k1", BODY)).await;
    assert_eq!(sandbox.requests()[0].status(), None);
}

#[tokio::test]
async fn body_cut_with_a_length() {
    served(Fault::body_cut(0), &length(), End::Fin).await;
    let five = length() + &PAID[..5];
    served(Fault::body_cut(5), &five, End::Fin).await;
    served(Fault::body_cut(5).with_reset(), &five, End::Reset).await;
    let all_but_one = length() + &PAID[..PAID.len() - 1];
    served(Fault::body_cut(usize::MAX), &all_but_one, End::Fin).await;
    let sandbox = with([Fault::body_cut(5)]).await;
    send(&sandbox, &post("k1", BODY)).await;
    assert_eq!(sandbox.requests()[0].status().unwrap(), 201);
}

#[tokio::test]
async fn body_cut_in_chunks() {
    let head = head("transfer-encoding: chunked\r\n");
    let chunk = format!("{head}{:x}\r\n", PAID.len());
    let five = format!("{chunk}{}", &PAID[..5]);
    served(Fault::body_cut(5).chunked(), &five, End::Fin).await;
    let unended = format!("{chunk}{PAID}");
    served(Fault::body_cut(999).chunked(), &unended, End::Fin).await;
}

#[tokio::test]
async fn whole_in_one_chunk() {
    let head = head("transfer-encoding: chunked\r\nconnection: close\r\n");
    let whole = format!("{head}{:x}\r\n{PAID}\r\n0\r\n\r\n", PAID.len());
    served(Fault::none().chunked(), &whole, End::Fin).await;
}

#[tokio::test]
async fn unframed() {
    let head = head("connection: close\r\n");
    let five = format!("{head}{}", &PAID[..5]);
    served(Fault::unframed_cut(5), &five, End::Fin).await;
    let whole = format!("{head}{PAID}");
    served(Fault::unframed_cut(999), &whole, End::Fin).await;
    served(Fault::none().unframed(), &whole, End::Fin).await;
}

#[tokio::test]
async fn garbled_head() {
    let garbage = "\u{15}\u{3}\u{1}\0\u{2}\u{2}P this is not http\r\n\r\n";
    served(Fault::garbled_head(), garbage, End::Fin).await;
}

#[tokio::test]
async fn drip() {
    let sandbox = with([Fault::drip(30, Duration::from_secs(3600))]).await;
    let mut stream = open(&sandbox, &post("k1", BODY)).await;
    let mut text = stalled_after(&mut stream, 30).await;
    sandbox.advance(Duration::from_secs(3600));
    text += &stalled_after(&mut stream, 30).await;
    assert!(text.starts_with("HTTP/1.1 201 Created\r\ncontent-type: application/json\r\n"));
    let fast = Fault::drip(1, Duration::from_micros(10));
    let framing = format!("content-length: {}\r\nconnection: close\r\n", PAID.len());
    served(fast, &(head(&framing) + PAID), End::Fin).await;
    let zero = Fault::drip(0, Duration::ZERO);
    served(zero, &(head(&framing) + PAID), End::Fin).await;
}

#[tokio::test]
async fn closed_after_answer() {
    served(Fault::closed_after_answer(), &(length() + PAID), End::Fin).await;
    let reset = Fault::none().with_reset();
    served(reset, &(length() + PAID), End::Reset).await;
}

/// Written by hyper, which keeps the connection as the client asked for it.
fn by_hyper(body: &str) -> String {
    let lines = "content-type: application/json\r\nconnection: close\r\n";
    let len = body.len();
    format!("HTTP/1.1 201 Created\r\n{lines}content-length: {len}\r\n\r\n{body}")
}

async fn served_body(fault: Fault, body: &str) {
    let name = fault.name();
    let sandbox = with([fault]).await;
    let reply = send(&sandbox, &post("k1", BODY)).await;
    assert_eq!((reply.body(), reply.end), (body, End::Fin), "{name}");
    let len = body.len().to_string();
    assert_eq!(reply.header("content-length"), Some(len.as_str()), "{name}");
    assert_eq!(reply.status(), 201, "{name}");
    assert_eq!(by_hyper(body).len(), reply.text.len(), "{name}");
    assert_eq!(send(&sandbox, &post("k1", BODY)).await.body(), PAID);
    assert_eq!(sandbox.executions(), 1, "{name}");
}

#[tokio::test]
async fn bodies_of_the_wrong_size_or_kind() {
    served_body(Fault::none(), PAID).await;
    served_body(Fault::oversized(60_000), &format!("{PAID:<60000}")).await;
    served_body(Fault::oversized(3), PAID).await;
    served_body(Fault::truncated_json(9), &PAID[..9]).await;
    served_body(Fault::truncated_json(999), &PAID[..PAID.len() - 1]).await;
    let invalid = r#"{"id": pay_1, "status" "captured",}"#;
    assert!(serde_json::from_str::<serde_json::Value>(invalid).is_err());
    served_body(Fault::invalid_json(), invalid).await;
}

#[tokio::test]
async fn an_answer_without_a_body_has_nothing_to_cut() {
    let sandbox = with([Fault::body_cut(5), Fault::body_cut(5)]).await;
    let reply = send(&sandbox, &request("DELETE", "/a", &[], "")).await;
    assert_eq!(reply.text, "HTTP/1.1 204 No Content\r\n\r\n");
    let reply = send(&sandbox, &request("HEAD", "/a", &[], "")).await;
    assert_eq!((reply.status(), reply.body()), (200, ""));
}
