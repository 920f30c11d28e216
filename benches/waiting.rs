//! What an operation costs that only waits: `cargo bench --bench waiting`
//! (needs valgrind).
//!
//! Many operations are sent, each is told to come back in ten minutes, and their
//! connections close. What is then on the heap, by valgrind's dhat, is shared by all of
//! them: task, state, log, request, and the last answer. The figure is the
//! difference of two runs, so that what does not depend on their number drops out.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // a program for its own authors

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use oncekey::Client;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const FEW: usize = 200;
const MANY: usize = 1_200;
const GOAL: f64 = 2048.0;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [operations] = &arguments[..] {
        runtime().block_on(left_waiting(operations.parse().unwrap()));
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let each = (heap(MANY, folder) - heap(FEW, folder)) / (MANY - FEW) as f64;
    println!("bytes on the heap for an operation that waits, task and last answer included: {each:.0}, goal <= {GOAL}");
    if each <= GOAL { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The bytes on the heap at the end of a process in which so many wait.
fn heap(operations: usize, folder: &Path) -> f64 {
    let output = Command::new("valgrind")
        .arg("--tool=dhat")
        .arg(format!("--dhat-out-file={}", folder.join("dhat-waiting").display()))
        .arg(std::env::current_exe().unwrap())
        .arg(operations.to_string())
        .output()
        .expect("valgrind is installed");
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{report}");
    let line = report.lines().find_map(|line| line.split_once("At t-end:")).expect("dhat tells what is left").1;
    line.split_whitespace().next().unwrap().replace(',', "").parse().unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Ends the process when so many operations wait, with all of them in memory.
async fn left_waiting(operations: usize) -> ! {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/payments", listener.local_addr().unwrap());
    // In a thread and runtime of its own, in the same process: it holds nothing once it has answered.
    std::thread::spawn(move || runtime().block_on(serve(listener.into_std().unwrap())));
    let client = Client::builder().http(|http| http.no_proxy()).deadline(Duration::from_secs(3600)).build().unwrap();
    let mut waiting = Vec::with_capacity(MANY);
    for _ in 0..operations {
        let request = client.post(&url).body("{\"amount\":100}");
        waiting.push(tokio::spawn(request.send()));
        if waiting.len() % 20 == 0 {
            settle().await;
        }
    }
    settle().await;
    assert!(waiting.iter().all(|task| !task.is_finished()), "they wait");
    std::process::exit(0);
}

/// Until whatever is on its way has been answered.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(300)).await;
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
