//! What `Debug` and `Display` must not tell: bodies, header values, queries, keys.

use oncekey::profile::Answer;
use oncekey::sandbox::Fault;
use oncekey::{Attempt, IdempotencyKey, OperationId, Parts, Profile};

use crate::*;

const CARD: &str = "4242424242424242";
const TOKEN: &str = "sk_live_t0ken";

#[track_caller]
fn is_discreet(shown: &str, key: &str) {
    for secret in [CARD, TOKEN, "secret-header", key] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
}

#[tokio::test]
async fn no_public_type_prints_a_secret() {
    let key = IdempotencyKey::random();
    let whole = key.as_str().to_owned();
    let answer = format!("{{\"card\":\"{CARD}\"}}");
    let faults = [
        Fault::status(503).header("x-secret", "secret-header").json(answer.clone()),
        Fault::answer_lost(),
        Fault::status(400).header("x-secret", "secret-header").json(answer.clone()),
        Fault::none(),
    ];
    let sandbox = sandbox(faults).await;
    let client = builder().build().unwrap();
    let url = sandbox.url(format!("/pay?card={CARD}"));
    let request = |url: &str| {
        client
            .post(url)
            .bearer_auth(TOKEN)
            .header("x-secret", "secret-header")
            .body(format!("card={CARD}"))
            .idempotency_key(&key)
    };
    is_discreet(&format!("{:?}", request(&url)), &whole);
    is_discreet(&format!("{key:?} {:?} {}", OperationId::from("a"), OperationId::from("a")), &whole);
    is_discreet(&format!("{client:?} {:?} {:?}", builder(), Profile::generic()), &whole);

    let error = request(&url).send().await.unwrap_err();
    is_discreet(&format!("{error} {error:?} {error:#?}"), &whole);
    is_discreet(&format!("{:?} {}", error.operation(), error.operation().unwrap()), &whole);
    is_discreet(&format!("{:?} {}", error.attempts(), Attempt::table(error.attempts())), &whole);
    is_discreet(&format!("{:?}", error.response().unwrap()), &whole);
    let response = request(&url).send().await.unwrap();
    is_discreet(&format!("{response:?}"), &whole);
    #[derive(Debug, serde::Deserialize)]
    #[allow(dead_code)]
    struct Typed {
        status: u8,
    }
    let body = response.json::<Typed>().unwrap_err();
    is_discreet(&format!("{body} {body:?}"), "captured");
    for unwritable in [client.post(&url).query(CARD), client.post(&url).form(CARD)] {
        let error = unwritable.send().await.unwrap_err();
        is_discreet(&format!("{error} {error:?}"), &whole);
    }
    // Some servers echo the key as the request's id.
    let echo = crate::sandbox([Fault::status(400).header("x-request-id", format!("id-{whole}"))]).await;
    let error = client.post(echo.url("/")).idempotency_key(&key).send().await.unwrap_err();
    is_discreet(&format!("{error:?}"), &whole);

    // A connection that fails has a URL in reqwest's error.
    let refused = request(&format!("http://127.0.0.1:1/pay?card={CARD}")).send().await.unwrap_err();
    let mut source: Option<&dyn std::error::Error> = Some(&refused);
    while let Some(error) = source {
        is_discreet(&format!("{error} {error:?}"), &whole);
        source = error.source();
    }
    let relative = request(&format!("/pay?card={CARD}")).send().await.unwrap_err();
    is_discreet(&format!("{relative} {relative:?}"), &whole);
}

#[tokio::test]
async fn neither_hook_nor_judge_prints_one() {
    let hook = |parts: &mut Parts<'_>| -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        parts.set_header("authorization", TOKEN)?;
        is_discreet(&format!("{parts:?}"), parts.headers()["idempotency-key"].to_str()?);
        let refused = parts.set_header("content-type", CARD).unwrap_err();
        is_discreet(&format!("{refused} {refused:?}"), "\0");
        Ok(())
    };
    let judge = |answer: &Answer<'_>| {
        is_discreet(&format!("{answer:?}"), "\0");
        oncekey::profile::Judgement::Final
    };
    let sandbox = sandbox([Fault::status(200).json(format!("{{\"card\":\"{CARD}\"}}"))]).await;
    let _ = pay(&builder().authorize(hook).judge(judge).build().unwrap(), &sandbox).await.unwrap();
}
