//! What each method promises, and what goes without a key.

use oncekey::sandbox::Fault;
use oncekey::{Effect, ErrorKind, Retry};
use reqwest::Method;

use crate::*;

#[tokio::test]
async fn safe_and_idempotent_methods_are_sent_again_without_a_key() {
    for method in [Method::GET, Method::HEAD, Method::OPTIONS, Method::PUT, Method::DELETE] {
        let sandbox = sandbox([Fault::status(503), Fault::closed_without_executing()]).await;
        let response = client().request(method.clone(), sandbox.url("/v1/orders/7")).send().await.unwrap();
        assert!(response.status().is_success(), "{method}");
        assert_eq!((response.attempts().len(), response.key()), (3, None), "{method}");
        assert!(sandbox.requests().iter().all(|request| request.keys().is_empty()), "{method}");
    }
}

#[tokio::test]
async fn a_safe_method_never_takes_effect() {
    let sandbox = sandbox([Fault::answer_lost().times(4)]).await;
    let error = fails(client().get(sandbox.url("/x")).send().await, ErrorKind::Exhausted, Effect::NotApplied);
    assert_eq!(error.operation(), None);
}

#[tokio::test]
async fn without_a_key_a_post_is_sent_once_if_it_may_have_arrived() {
    for fault in [Fault::answer_lost(), Fault::status(503), Fault::status(429), Fault::in_progress()] {
        let sandbox = sandbox([fault]).await;
        let sent = client().post(sandbox.url("/v1/notes")).without_key().json(&payment()).send().await;
        fails(sent, ErrorKind::Unsettled, Effect::Unknown);
        assert_eq!(sandbox.requests().len(), 1);
        assert!(sandbox.requests()[0].keys().is_empty());
    }
    let sandbox = sandbox([Fault::body_cut(3)]).await;
    let sent = client().put(sandbox.url("/v1/notes/1")).json(&payment()).send().await.unwrap();
    assert_eq!(sent.attempts().len(), 2);
}

#[tokio::test]
async fn what_is_gone_is_done_only_if_the_caller_says_so() {
    let delete = |sandbox: &Sandbox| client().delete(sandbox.url("/v1/orders/7"));
    let here = sandbox([Fault::answer_lost()]).await;
    fails(delete(&here).send().await, ErrorKind::Refused, Effect::Unknown);
    let here = sandbox([Fault::answer_lost()]).await;
    assert_eq!(delete(&here).gone_is_done().send().await.unwrap().status(), 404);
    let here = sandbox([Fault::status(404)]).await;
    fails(delete(&here).send().await, ErrorKind::Refused, Effect::NotApplied);
}

#[tokio::test]
async fn proof_that_nothing_was_sent_leaves_no_doubt() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = format!("http://{}/pay", listener.local_addr().unwrap());
    drop(listener);
    let error = fails(client().post(&closed).json(&payment()).send().await, ErrorKind::Exhausted, Effect::NotApplied);
    assert_eq!(error.attempts().len(), 4);
    assert!(error.response().is_none());
    let error = fails(client().post("http://host.invalid/pay").send().await, ErrorKind::Exhausted, Effect::NotApplied);
    assert!(std::error::Error::source(&error).is_some());
    // TLS to a port that speaks none.
    let sandbox = sandbox([]).await;
    let url = format!("https://{}/pay", sandbox.addr());
    fails(client().post(url).send().await, ErrorKind::Exhausted, Effect::NotApplied);
    assert_eq!(sandbox.executions(), 0);
}

#[tokio::test]
async fn one_attempt_in_doubt_among_unsent_ones_is_doubt() {
    let sandbox = sandbox([Fault::answer_lost()]).await;
    let url = sandbox.url("/pay");
    let client =
        builder().retry(Retry::default().max_attempts(3).base_delay(ms(300)).max_delay(ms(300))).build().unwrap();
    let call = tokio::spawn(client.post(url).json(&payment()).send());
    sandbox.until(|sandbox| sandbox.executions() == 1).await;
    let done = sandbox.executions();
    drop(sandbox);
    fails(call.await.unwrap(), ErrorKind::Exhausted, Effect::Unknown);
    assert_eq!(done, 1);
}

#[tokio::test]
async fn queries_forms_and_credentials_as_in_reqwest() {
    let sandbox = sandbox([]).await;
    let sent = client()
        .post(sandbox.url("/pay?a=1"))
        .query(&[("b", "x y"), ("b", "ñ")])
        .basic_auth("user", Some("p:w"))
        .form(&[("amount", "12"), ("note", "a&b")]);
    let _ = sent.send().await.unwrap();
    let request = &sandbox.requests()[0];
    assert_eq!(request.path(), "/pay?a=1&b=x+y&b=%C3%B1");
    assert_eq!(&request.body()[..], b"amount=12&note=a%26b");
    assert_eq!(request.headers()["content-type"], "application/x-www-form-urlencoded");
    assert_eq!(request.headers()["authorization"], "Basic dXNlcjpwOnc=");

    let headers = [("x-a", "2"), ("content-type", "application/vnd.pay+json")];
    let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
    let sent = client().post(sandbox.url("/pay")).header("x-a", "1").bearer_auth("t0ken").headers(headers);
    let _ = sent.json(&payment()).send().await.unwrap();
    let request = &sandbox.requests()[1];
    assert_eq!(request.headers().get_all("x-a").iter().collect::<Vec<_>>(), ["2"]);
    assert_eq!(request.headers()["content-type"], "application/vnd.pay+json");
    assert_eq!(request.headers()["authorization"], "Bearer t0ken");
}

#[tokio::test]
async fn credentials_in_a_url_are_sent_as_basic() {
    let sandbox = sandbox([]).await;
    let url = format!("http://us%40er:p%3Aw@{}/pay", sandbox.addr());
    let _ = client().post(url).json(&payment()).send().await.unwrap();
    assert_eq!(sandbox.requests()[0].headers()["authorization"], "Basic dXNAZXI6cDp3");
}

#[tokio::test]
async fn a_post_without_content_says_so() {
    let sandbox = sandbox([]).await;
    for request in [client().post(sandbox.url("/pay")), client().post(sandbox.url("/pay")).body("")] {
        let _ = request.send().await.unwrap();
    }
    assert!(sandbox.requests().iter().all(|request| request.headers()["content-length"] == "0"));
}

#[cfg(feature = "gzip")]
#[tokio::test]
async fn compressed_answers_are_read_and_their_cuts_noticed() {
    // {"id":"pay_1"}
    const GZIP: &[u8] = &[
        31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 171, 86, 202, 76, 81, 178, 82, 42, 72, 172, 140, 55, 84, 170, 5, 0, 224, 21,
        31, 93, 14, 0, 0, 0,
    ];
    let zipped = |bytes: &'static [u8]| {
        Fault::status(201).header("content-encoding", "gzip").body("application/json", bytes).executing()
    };
    let sandbox = sandbox([zipped(&GZIP[..20]), zipped(GZIP)]).await;
    let response = pay(&client(), &sandbox).await.unwrap();
    assert_eq!((response.text().as_str(), response.attempts().len()), (r#"{"id":"pay_1"}"#, 2));
}

#[tokio::test]
async fn responses_are_read_without_waiting() {
    let sandbox = sandbox([Fault::none(), Fault::status(200).body("text/plain", "caf\u{e9}".as_bytes())]).await;
    let response = pay(&client(), &sandbox).await.unwrap();
    assert_eq!(response.json::<Value>().unwrap()["amount"], 4999);
    assert!(response.bytes().starts_with(b"{\"id\":"));
    let error = response.json::<Vec<u8>>().unwrap_err();
    assert!(error.to_string().starts_with("the operation took effect, but"), "{error}");
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(pay(&client(), &sandbox).await.unwrap().text(), "caf\u{e9}");
    let refused = crate::sandbox([Fault::status(400)]).await;
    let error = pay(&client(), &refused).await.unwrap_err();
    let body = error.response().unwrap().json::<Vec<u8>>().unwrap_err();
    assert!(!body.to_string().contains("took effect"), "{body}");
}
