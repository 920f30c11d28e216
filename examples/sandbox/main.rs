//! The sandbox as a process of its own, for harnesses in any language.
//!
//! `cargo run --example sandbox --features sandbox -- --port 0 --profile verifika --fault lose-answer:1`
//!
//! It prints one line of JSON with its addresses, then serves until its lifetime
//! is over, its standard input (a pipe) closes, it is told to stop, or SIGTERM.
//! `docs/testing.md` shows the control API.

mod control;
mod fault;
mod provider;

use std::io::{Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use oncekey::sandbox::Fault;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::fault::Scripted;
use crate::provider::Provider;

/// A payment server that breaks on purpose and keeps the true ledger
#[derive(Parser)]
struct Options {
    /// The port to pay at, on 127.0.0.1; 0 is any
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// The port of the control API, on 127.0.0.1; 0 is any
    #[arg(long, default_value_t = 0)]
    control_port: u16,
    /// Whose rules it plays by
    #[arg(long, value_enum, default_value_t = Provider::Generic)]
    profile: Provider,
    /// What goes wrong next: NAME[:ARGUMENT...][:TIMES][,MODIFIER...]; may be repeated
    #[arg(long = "fault", value_name = "FAULT", value_parser = fault::parse)]
    faults: Vec<Scripted>,
    /// Draws faults for so many of a thousand requests
    #[arg(long, value_name = "SEED:PERMILLE", value_parser = chaos)]
    chaos: Option<(u64, u16)>,
    /// It ends by itself after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    lifetime: u64,
}

fn chaos(text: &str) -> Result<(u64, u16), String> {
    let parsed = text.split_once(':').and_then(|(seed, share)| Some((seed.parse().ok()?, share.parse().ok()?)));
    parsed
        .filter(|(_, share)| *share <= 1000)
        .ok_or_else(|| "two numbers, as in 7:250; the second is at most 1000".into())
}

#[tokio::main]
async fn main() -> ExitCode {
    match serve(Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[allow(clippy::disallowed_methods)] // a process of its own, whose time is no client's
async fn serve(options: Options) -> std::io::Result<()> {
    let mut builder = options.profile.rules().port(options.port);
    if let Some((seed, per_mille)) = options.chaos {
        builder = builder.chaos(seed, per_mille);
    }
    let sandbox = Arc::new(builder.start().await?);
    sandbox.fail_next(options.faults.into_iter().map(Fault::from));
    let listener = TcpListener::bind(("127.0.0.1", options.control_port)).await?;
    let control = format!("http://{}", listener.local_addr()?);

    let (stop, mut stopped) = mpsc::channel::<()>(1);
    // Before the line is out: whoever has read it may end this at once.
    end_with_signal(stop.clone())?;
    end_with_input(stop.clone());
    let line = serde_json::json!({"sandbox": sandbox.url(""), "control": control, "pid": std::process::id()});
    let mut out = std::io::stdout();
    writeln!(out, "{line}")?;
    out.flush()?;
    tokio::select! {
        served = control::serve(&listener, &sandbox, &stop) => served,
        _ = stopped.recv() => Ok(()),
        () = tokio::time::sleep(Duration::from_secs(options.lifetime)) => Ok(()),
    }
}

/// A harness that dies closes the pipe. A shell gives its background processes
/// `/dev/null`, whose end means nothing; nor does a terminal's.
fn end_with_input(stop: mpsc::Sender<()>) {
    if input_is_a_pipe() {
        std::thread::spawn(move || {
            let mut sink = [0; 256];
            while std::io::stdin().read(&mut sink).is_ok_and(|read| read > 0) {}
            let _ = stop.blocking_send(());
        });
    }
}

#[cfg(unix)]
fn input_is_a_pipe() -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileTypeExt;
    let input = std::io::stdin().as_fd().try_clone_to_owned();
    let kind = input.and_then(|input| std::fs::File::from(input).metadata()).map(|metadata| metadata.file_type());
    kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket())
}

#[cfg(not(unix))]
fn input_is_a_pipe() -> bool {
    use std::io::IsTerminal;
    !std::io::stdin().is_terminal()
}

#[cfg(unix)]
fn end_with_signal(stop: mpsc::Sender<()>) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        let _ = stop.send(()).await;
    });
    Ok(())
}

/// Ctrl-C ends it as it ends any process.
#[cfg(not(unix))]
fn end_with_signal(_: mpsc::Sender<()>) -> std::io::Result<()> {
    Ok(())
}
