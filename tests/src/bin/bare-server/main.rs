//! Launches a real server as the daemon does and puts nothing in front of it. For tests of what is inside the server alone.
//!
//! `bare-server <directory> <model base URL> [guard to take out]…` says `{"ready": …}` on standard output, then answers one
//! JSON object a line: `{"grant": [id…]}`, `{"revoke": [id…]}`, `{"settled": conversation}`, `{"relaunch": true}`. At the end
//! of its input it ends the server and itself; it succeeds when nothing is left.

mod launcher;

use launcher::Launcher;
use serde_json::{Value, json};
use std::io::{BufRead, Write, stdin, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use testkit::guards::Guard;
use testkit::{Failure, Outcome};

fn main() -> ExitCode {
    match serve() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            say(&json!({"error": why.to_string()}));
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Outcome<bool> {
    let mut arguments = std::env::args().skip(1);
    let (Some(directory), Some(model)) = (arguments.next(), arguments.next()) else {
        return Err(Failure::new("bare-server <directory> <model base URL> [guard to take out]…"));
    };
    let taken_out: Option<Vec<Guard>> = arguments.map(|word| Guard::parse(&word)).collect();
    let taken_out = taken_out.ok_or_else(|| Failure::new("no guard of that name"))?;
    let mut launcher = Launcher::start(PathBuf::from(directory), model, &taken_out)?;
    say(&launcher.ready());
    for line in stdin().lock().lines().map_while(Result::ok) {
        let request: Value = serde_json::from_str(&line).unwrap_or(Value::Null);
        say(&launcher.answer(&request).unwrap_or_else(|why| json!({"error": why.to_string()})));
    }
    Ok(launcher.stop())
}

fn say(answer: &Value) {
    let mut out = stdout().lock();
    // Whoever does not listen has closed the input too.
    writeln!(out, "{answer}").and_then(|()| out.flush()).ok();
}
