//! The same as `recovery` with a spare that waits: what it takes to configure it, to serve, and to prove that.

use super::figure::median;
use super::recovery::{LIMIT, LOOK, crash};
use super::{Figure, Options, Tell};
use crate::daemon::{Client, Home, Setup};
use crate::failure::{Doing, Failure, Outcome};
use crate::model::ScriptedModel;
use crate::talk::Talk;
use serde_json::json;
use std::thread;
use std::time::Instant;

const BOUND_S: f64 = 1.5;
/// The first workspace shows what a spare is to be like; each try has another one.
const MAX_TRIES: usize = 3;

pub(super) fn measure(options: &Options, tell: Tell<'_>) -> Outcome<Vec<Figure>> {
    let model = ScriptedModel::start().doing("no model")?;
    let mut setup = Setup::new(&model.base_url());
    setup.agent_server = format!("max_servers = {}\nstandby = true", MAX_TRIES + 1);
    let home = Home::new(setup)?;
    let daemon = home.serve()?;
    let (mut new, mut crashed) = (Vec::new(), Vec::new());
    let place = |name: &str| -> Outcome<String> {
        let workspace = home.new_workspace(name)?.canonicalize().doing("no workspace")?;
        Ok(workspace.to_string_lossy().into_owned())
    };
    Talk::start(daemon.client(), &place("bench-first")?)?;
    for number in 0..options.size(MAX_TRIES, 1) {
        let workspace = place(&format!("bench-{number}"))?;
        wait_for_spare(daemon.client())?;
        let begun = Instant::now();
        Talk::start(daemon.client(), &workspace)?;
        new.push(begun.elapsed().as_secs_f64());
        wait_for_spare(daemon.client())?;
        crashed.push(crash(daemon.client(), &workspace)?);
        tell(&format!("  with a spare: new {:.2} s, crashed {:.2} s", new[number], crashed[number]));
    }
    daemon.stop()?;
    let figure = |name, measured: &[f64]| {
        Figure::new(name, median(measured), "s", BOUND_S, &json!({"tries": measured.len(), "measured_s": measured}))
    };
    Ok(vec![figure("new_workspace_with_spare", &new), figure("crash_with_spare", &crashed)])
}

fn wait_for_spare(client: &Client) -> Outcome<()> {
    let begun = Instant::now();
    while client.get("/v1/status")?.expect_status(200)?["spare"]["state"] != "waiting" {
        if begun.elapsed() > LIMIT {
            return Err(Failure::new("no spare comes to wait"));
        }
        thread::sleep(LOOK);
    }
    Ok(())
}
