//! One payment through a server that breaks on purpose, and what was true.
//!
//! `cargo run --example quickstart --features sandbox -- --lose 1 --fail 1 --busy 1`

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use oncekey::sandbox::{Fault, Sandbox};
use oncekey::{Client, Poll, Profile, Retry};
use serde::{Deserialize, Serialize};

#[derive(Serialize)]
struct Payment {
    amount: u64,
    currency: &'static str,
    reference: &'static str,
}

#[derive(Deserialize)]
struct Receipt {
    id: String,
    status: String,
}

/// How often each thing goes wrong, before it goes right.
struct Troubles {
    lose: u32,
    fail: u32,
    busy: u32,
}

#[tokio::main]
async fn main() -> ExitCode {
    let troubles = match troubles(std::env::args().skip(1)) {
        Ok(troubles) => troubles,
        Err(problem) => {
            eprintln!("{problem}\nusage: quickstart [--lose N] [--fail N] [--busy N]");
            return ExitCode::from(2);
        }
    };
    match pay(&troubles).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn pay(troubles: &Troubles) -> Result<bool, Box<dyn Error>> {
    let sandbox = Sandbox::start().await?;
    sandbox.fail_next([
        Fault::answer_lost().times(troubles.lose as usize),
        Fault::status(503).times(troubles.fail as usize),
        Fault::in_progress().times(troubles.busy as usize),
    ]);

    let ms = Duration::from_millis;
    let attempts = troubles.lose.saturating_add(troubles.fail).saturating_add(1);
    let client = Client::builder()
        .profile(Profile::verifika())
        .http(|http| http.no_proxy())
        .retry(Retry::default().max_attempts(attempts).base_delay(ms(100)).max_delay(ms(400)))
        .poll(Poll::default().interval(ms(200)).max_interval(ms(200)))
        .build()?;

    let payment = Payment { amount: 4999, currency: "usd", reference: "M1A2B3C4" };
    println!("paying {} {} for {}\n", payment.amount, payment.currency, payment.reference);
    let sent = client.post(sandbox.url("/v1/incomes")).bearer_auth("vk_test").json(&payment).send().await;

    let paid = match &sent {
        Ok(response) => {
            println!("{}", response.table());
            let receipt: Receipt = response.json()?;
            let told = if response.is_replay() { "the replay of an answer that was lost" } else { "at first hand" };
            println!("told: {} is {}, {told}", receipt.id, receipt.status);
            true
        }
        Err(error) => {
            println!("{}", error.table());
            println!("told: {error}");
            false
        }
    };
    let mut keys: Vec<String> = sandbox.requests().iter().flat_map(|request| request.keys().to_vec()).collect();
    keys.sort_unstable();
    keys.dedup();
    println!("what the server's ledger holds:");
    println!(
        "{}, {}, {}",
        count(sandbox.executions(), "execution"),
        count(sandbox.requests().len(), "request"),
        count(keys.len(), "key")
    );
    Ok(paid && sandbox.executions() == 1)
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn troubles(mut arguments: impl Iterator<Item = String>) -> Result<Troubles, String> {
    let mut troubles = Troubles { lose: 1, fail: 1, busy: 1 };
    while let Some(name) = arguments.next() {
        let place = match name.as_str() {
            "--lose" => &mut troubles.lose,
            "--fail" => &mut troubles.fail,
            "--busy" => &mut troubles.busy,
            _ => return Err(format!("{name} is not known")),
        };
        let value = arguments.next().ok_or_else(|| format!("{name} needs a number"))?;
        *place = value
            .parse()
            .ok()
            .filter(|n| *n <= 100)
            .ok_or_else(|| format!("{name} needs a number from 0 to 100, not {value}"))?;
    }
    Ok(troubles)
}
