//! From the start of the daemon until its socket takes connections, over the bare start of the process.

use super::figure::median;
use super::{Figure, Options, Tell};
use crate::daemon::{Client, Home, Setup};
use crate::failure::{Doing, Failure, Outcome};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const BOUND_MS: f64 = 50.0;
/// How long the socket may take.
const LIMIT: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_micros(200);

pub(super) fn measure(options: &Options, _tell: Tell<'_>) -> Outcome<Vec<Figure>> {
    let home = Home::new(Setup::without_server())?;
    // The first start makes what later ones find.
    home.serve()?.stop()?;
    let (mut bare, mut listening) = (Vec::new(), Vec::new());
    for _ in 0..options.size(40, 3) {
        bare.push(bare_start(&home)?);
        listening.push(start(&home)?);
    }
    let (bare_ms, listening_ms) = (median(&bare), median(&listening));
    let made_of = json!({
        "listening_p50_ms": listening_ms, "bare_process_p50_ms": bare_ms, "over_the_bare_process": listening_ms / bare_ms,
        "tries": bare.len(),
    });
    Ok(vec![Figure::new("start_to_listening", listening_ms - bare_ms, "ms", BOUND_MS, &made_of)])
}

/// `gatepost --version`, to its end.
fn bare_start(home: &Home) -> Outcome<f64> {
    let mut command = home.command();
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null());
    let begun = Instant::now();
    let status = command.status().doing("gatepost could not be started")?;
    if !status.success() {
        return Err(Failure::new(format!("gatepost --version ended with {status}")));
    }
    Ok(begun.elapsed().as_secs_f64() * 1e3)
}

fn start(home: &Home) -> Outcome<f64> {
    let mut command = home.serve_command();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let begun = Instant::now();
    let mut daemon = command.spawn().doing("the daemon could not be started")?;
    let listens = await_socket(&Client::new(&home.socket()), begun);
    let ended = end(&mut daemon);
    ended.and(listens)
}

fn await_socket(client: &Client, begun: Instant) -> Outcome<f64> {
    while client.connect().is_err() {
        if begun.elapsed() > LIMIT {
            return Err(Failure::new("the daemon does not listen"));
        }
        thread::sleep(LOOK);
    }
    Ok(begun.elapsed().as_secs_f64() * 1e3)
}

fn end(daemon: &mut Child) -> Outcome<()> {
    kill_process(Pid::from_child(daemon), Signal::TERM).doing("the daemon could not be signalled")?;
    let status = daemon.wait().doing("the daemon could not be waited for")?;
    if status.success() { Ok(()) } else { Err(Failure::new(format!("the daemon ended with {status}"))) }
}
