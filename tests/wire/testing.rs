//! The assertion helpers: what they let pass, and the exact text of their failures.

use std::panic::{AssertUnwindSafe, catch_unwind};

use oncekey::sandbox::{Fault, Sandbox};
use oncekey::{Client, IdempotencyKey, Profile, Response, Retry, testing};

use crate::pages::{blocks, masked, page};
use crate::*;

type Sent = Result<Response, Error>;

/// The text that an assertion fails with.
#[track_caller]
fn failure(assertion: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(assertion)).expect_err("it passed");
    *panic.downcast::<String>().expect("a panic with a text")
}

async fn pay_under(key: &IdempotencyKey, amount: u32, client: &Client, sandbox: &Sandbox) -> Sent {
    let body = json!({"amount": amount, "card": "4242424242424242"});
    client.post(sandbox.url("/v1/incomes?card=4242424242424242")).json(&body).idempotency_key(key).send().await
}

fn key() -> IdempotencyKey {
    IdempotencyKey::parse("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506").unwrap()
}

#[tokio::test]
async fn they_pass_where_all_is_well() {
    let faults = [Fault::closed_before_reading(), Fault::answer_lost(), Fault::status(503)];
    let sandbox = sandbox(faults).await;
    let sent = pay(&client(), &sandbox).await;
    testing::assert_once(&sandbox, &sent);
    testing::assert_executions(&sandbox, 1, &sent);
    // A quoted key is the same key; a GET is carried out and leaves no line.
    let quoted = crate::sandbox([Fault::answer_lost()]).await;
    testing::assert_once(&quoted, &pay(&builder().profile(Profile::ietf()).build().unwrap(), &quoted).await);
    let get = Sandbox::start().await.unwrap();
    testing::assert_truthful(&get, &client().get(get.url("/")).send().await);
    // In doubt, both are true.
    for fault in [Fault::answer_lost(), Fault::closed_without_executing()] {
        let sandbox = crate::sandbox([fault]).await;
        let once = builder().retry(Retry::default().max_attempts(1)).build().unwrap();
        testing::assert_truthful(&sandbox, &pay(&once, &sandbox).await);
    }
}

#[tokio::test]
async fn a_second_execution_is_shown_with_the_request_that_caused_it() {
    let sandbox = sandbox([Fault::status(500).from_handler(), Fault::answer_lost()]).await;
    let sent = pay_under(&key(), 4999, &client(), &sandbox).await;
    let text = failure(|| testing::assert_once(&sandbox, &sent));
    let expected = "\
the ledger must hold 1 execution, and holds 2

 # kind  answer          reading
 1 first 500             in doubt
 2 retry closed          in doubt
 3 retry 201             applied

told: carried out, 201

 #  what the server saw key          body  fault                    said ledger
 1  POST /v1/incomes    a 3f2a91c4…  a     status                   500  pay_1
 2  POST /v1/incomes    a 3f2a91c4…  a     answer_lost              -    pay_2
 3  POST /v1/incomes    a 3f2a91c4…  a                              201

the server's ledger: 2 executions; pay_2 is the server's own double
";
    assert_eq!(masked(&text), masked(expected), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(!text.contains("4242") && !text.contains(key().as_str()), "{text}");
    // The page shows this very text.
    let shown = blocks(&page("testing.md"), "text");
    assert!(shown.iter().any(|block| masked(block) == masked(expected)), "docs/testing.md does not show\n{text}");
}

#[tokio::test]
async fn a_caller_who_is_told_a_lie_is_shown_beside_the_truth() {
    // A portal says 201 and nothing is executed; a gateway refuses what was.
    let key = || IdempotencyKey::random();
    let sandbox = sandbox([Fault::none(), Fault::status(201), Fault::status(400).executing()]).await;
    let fine = pay_under(&key(), 1, &client(), &sandbox).await;
    let unpaid = pay_under(&key(), 1, &client(), &sandbox).await;
    let refused = pay_under(&key(), 1, &client(), &sandbox).await;
    testing::assert_truthful(&sandbox, &fine);
    let text = failure(|| testing::assert_truthful(&sandbox, &unpaid));
    let expected = "\
the caller is told that it was carried out, and the ledger holds 0 executions

 # kind  answer          reading
 1 first 201             applied

told: carried out, 201

 #  what the server saw key          body  fault                    said ledger
 2  POST /v1/incomes    a 00000000…  a     status                   201
    and 2 requests of other operations

the server's ledger: 0 executions
";
    assert_eq!(masked(&text), masked(expected), "{text}");
    let text = failure(|| testing::assert_truthful(&sandbox, &refused));
    let expected = "\
the caller is told that it was not carried out, and the ledger holds 1 execution

 # kind  answer          reading
 1 first 400             refused

told: the server refused it (last answer: 400); it was not carried out

 #  what the server saw key          body  fault                    said ledger
 3  POST /v1/incomes    a 00000000…  a     status                   400  pay_2
    and 2 requests of other operations

the server's ledger: 1 execution
";
    assert_eq!(masked(&text), masked(expected), "{text}");
}

#[tokio::test]
async fn another_key_and_other_bytes_are_found() {
    let sandbox = sandbox([]).await;
    let _ = pay(&client(), &sandbox).await;
    let sent = pay(&client(), &sandbox).await;
    let text = failure(|| testing::assert_one_key(&sandbox, &sent));
    assert!(text.starts_with("one operation has one key, and 2 were seen\n"), "{text}");
    assert!(text.contains(" 2  POST /v1/payments   b "), "{text}");
    assert!(failure(|| testing::assert_once(&sandbox, &sent)).contains("must hold 1 execution, and holds 2"));

    let sandbox = crate::sandbox([Fault::closed_before_reading()]).await;
    let once = builder().retry(Retry::default().max_attempts(1)).build().unwrap();
    for amount in [1, 2] {
        let _ = pay_under(&key(), amount, &once, &sandbox).await;
    }
    let sent = pay_under(&key(), 3, &once, &sandbox).await;
    testing::assert_one_key(&sandbox, &sent);
    let text = failure(|| testing::assert_same_bytes(&sandbox, &sent));
    assert!(text.starts_with("requests 2 and 3 are not the same\n"), "{text}");
    assert!(text.contains(" 1  POST /v1/incomes    a 3f2a91c4…  cut   closed_before_reading    -\n"), "{text}");
    assert!(text.contains(" 3  POST /v1/incomes    a 3f2a91c4…  b                              409\n"), "{text}");

    let keyless = Sandbox::builder().ignore_keys(true).start().await.unwrap();
    let sent = client().post(keyless.url("/")).without_key().body("a").send().await;
    testing::assert_truthful(&keyless, &sent);
    let text = failure(|| testing::assert_one_key(&keyless, &sent));
    assert!(text.starts_with("request 1 has 0 keys\n") && text.contains(" 1  POST /              -  "), "{text}");
}
