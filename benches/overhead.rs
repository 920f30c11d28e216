//! What a call through `oncekey` costs over bare reqwest doing the same, in
//! instructions: `cargo bench --bench overhead` (needs valgrind).
//!
//! Each figure is the difference of a run of 1,200 calls and one of 200, under
//! callgrind, by a client on one thread against a server in another process, so
//! that start-up, connecting and the machine's load all drop out.
#![allow(clippy::unwrap_used)] // a program for its own authors

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, ExitCode, Stdio};

use oncekey::reqwest;
use serde::{Deserialize, Serialize};

const SIZES: [usize; 3] = [30, 1024, 8192];
const FEW: u32 = 200;
const MANY: u32 = 1200;
const GOAL: f64 = 1.05;

#[derive(Serialize)]
struct Payment<'a> {
    amount: u64,
    currency: &'a str,
    reference: &'a str,
}

const PAYMENT: Payment<'static> = Payment { amount: 4999, currency: "usd", reference: "M1A2B3C4" };

#[derive(Deserialize)]
struct Receipt {
    id: String,
    note: String,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["serve"] => serve(),
        ["bare", url, calls] => call(bare(url, calls.parse().unwrap())),
        ["oncekey", url, calls] => call(through_oncekey(url, calls.parse().unwrap())),
        [] => return compare(),
        _ => panic!("usage: overhead [serve | bare URL CALLS | oncekey URL CALLS]"),
    }
    ExitCode::SUCCESS
}

fn call(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
}

async fn bare(url: &str, calls: u32) {
    let client = reqwest::Client::builder().no_proxy().http1_only().build().unwrap();
    for _ in 0..calls {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).unwrap();
        let key = uuid::Builder::from_random_bytes(bytes).into_uuid();
        let body = serde_json::to_vec(&PAYMENT).unwrap();
        let response = client
            .post(url)
            .header("idempotency-key", key.to_string())
            .header("content-type", "application/json")
            .body(body)
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), 201);
        let receipt: Receipt = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
        assert!(receipt.id.len() + receipt.note.len() > 4);
    }
}

async fn through_oncekey(url: &str, calls: u32) {
    let client = oncekey::Client::builder().http(|http| http.no_proxy()).build().unwrap();
    for _ in 0..calls {
        let response = client.post(url).json(&PAYMENT).send().await.unwrap();
        assert_eq!(response.attempts().len(), 1);
        let receipt: Receipt = response.json().unwrap();
        assert!(receipt.id.len() + receipt.note.len() > 4);
    }
}

/// A server that reads requests of any kind and answers `/N` with N bytes of
/// JSON, until its standard input ends.
fn serve() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(&stream));
        }
    });
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

fn answer(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let mut reader = BufReader::new(stream);
    loop {
        let (mut size, mut length) = (0, 0);
        for number in 0.. {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if number == 0 {
                size = line.split(['/', ' ']).find_map(|part| part.parse::<usize>().ok()).unwrap_or(30);
            } else if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            } else if line == "\r\n" {
                break;
            }
        }
        reader.read_exact(&mut vec![0; length]).unwrap();
        let note = "x".repeat(size.saturating_sub(r#"{"id":"pay_1","note":""}"#.len()));
        let body = format!(r#"{{"id":"pay_1","note":"{note}"}}"#);
        let mut reply = String::new();
        let _ = write!(
            reply,
            "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Date: Tue, 01 Dec 2026 12:00:00 GMT\r\nRequest-Id: req_8f14e45fea28\r\n\r\n{body}",
            body.len()
        );
        if (&*stream).write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

fn compare() -> ExitCode {
    let program = std::env::current_exe().unwrap();
    let mut server = Command::new(&program).arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut address).unwrap();
    let address: SocketAddr = address.trim().parse().unwrap();
    println!("instructions of one call, by callgrind: ({MANY} calls - {FEW} calls) / {}", MANY - FEW);
    println!("{:>8}  {:>9}  {:>9}  {:>7}  goal {GOAL}", "answer", "reqwest", "oncekey", "ratio");
    let mut reached = true;
    for size in SIZES {
        let per_call = |mode: &str| {
            let url = format!("http://{address}/{size}");
            let count = |calls: u32| instructions(&program, &[mode, &url, &calls.to_string()]);
            (count(MANY) - count(FEW)) / f64::from(MANY - FEW)
        };
        let (bare, ours) = (per_call("bare"), per_call("oncekey"));
        let ratio = ours / bare;
        reached &= ratio <= GOAL;
        println!(
            "{size:>6} B  {bare:>9.0}  {ours:>9.0}  {ratio:>6.3}x  {}",
            if ratio <= GOAL { "reached" } else { "NOT REACHED" }
        );
    }
    drop(server.stdin.take());
    let _ = server.wait();
    if reached { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn instructions(program: &std::path::Path, arguments: &[&str]) -> f64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("valgrind is installed");
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{report}");
    let line = report.lines().find(|line| line.contains("Collected")).expect("callgrind reports a total");
    line.rsplit(' ').next().and_then(|count| count.parse().ok()).expect("the total is a number")
}
