//! What an operation costs that only waits: `cargo bench --bench waiting`.
//!
//! Many operations are sent, each is told to come back in ten minutes, and their
//! connections close. What the process has grown by is then shared by all of
//! them: task, state, log, and the last answer. One malloc arena, so that
//! threads do not blur it.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // a program for its own authors

use std::process::{Command, ExitCode};
use std::time::Duration;

use oncekey::Client;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const FEW: usize = 2_000;
const MANY: usize = 22_000;
const GOAL: f64 = 2048.0;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [operations] = &arguments[..] {
        println!("{}", runtime().block_on(grown(operations.parse().unwrap())));
        return ExitCode::SUCCESS;
    }
    // Two runs, so that what does not depend on their number drops out.
    let kib = |operations: usize| {
        let output = Command::new(std::env::current_exe().unwrap())
            .arg(operations.to_string())
            .env("MALLOC_ARENA_MAX", "1")
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap().trim().parse::<f64>().unwrap()
    };
    let each = (kib(MANY) - kib(FEW)) * 1024.0 / (MANY - FEW) as f64;
    println!("bytes of an operation that waits, task and last answer included: {each:.0}, goal <= {GOAL}");
    if each <= GOAL { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// By how many KiB the process grew for operations that wait.
async fn grown(operations: usize) -> u64 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/payments", listener.local_addr().unwrap());
    // In a thread and runtime of its own, in the same process: it holds nothing once it has answered.
    std::thread::spawn(move || runtime().block_on(serve(listener.into_std().unwrap())));
    let client = Client::builder().http(|http| http.no_proxy()).deadline(Duration::from_secs(3600)).build().unwrap();
    let send = async |count: usize| {
        let mut begun = Vec::with_capacity(count);
        for _ in 0..count {
            let request = client.post(&url).body("{\"amount\":100}");
            begun.push(tokio::spawn(request.send()));
            if begun.len() % 64 == 0 {
                settle().await;
            }
        }
        settle().await;
        begun
    };
    let warm = send(256).await;
    let before = resident();
    let waiting = send(operations).await;
    let after = resident();
    assert!(waiting.iter().chain(&warm).all(|task| !task.is_finished()), "they wait");
    after.saturating_sub(before)
}

/// Until whatever is on its way has been answered.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(30)).await;
}

async fn serve(listener: std::net::TcpListener) {
    let listener = TcpListener::from_std(listener).unwrap();
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            let mut request = [0; 1024];
            if stream.read(&mut request).await.is_ok_and(|read| read > 0) {
                let answer =
                    "HTTP/1.1 503 Busy\r\nRetry-After: 600\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
    }
}

/// The process's own memory, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
