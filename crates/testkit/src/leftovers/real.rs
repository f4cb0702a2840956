//! Rounds with a daemon and the real server, whose agent was approved to leave things behind.

use super::observe::{Bystander, Scope, Struck, is_root};
use super::{Blow, Load, Row, Summary};
use crate::daemon::{Daemon, Home, Setup, as_user, guards_of, processes_of, unprivileged_install};
use crate::failure::{Doing, Failure, Outcome};
use crate::model::ScriptedModel;
use crate::talk::Talk;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const LOAD_LIMIT: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(50);

/// What an approved command leaves: a bomb, and everything that hides.
const LOADS: [Load; 2] = [Load::ForkBomb, Load::Detached];

pub(super) fn run(rounds: u32, summary: &mut Summary, tell: &dyn Fn(&str)) -> Outcome<()> {
    for blow in Blow::ALL {
        for load in LOADS {
            let mut row = Row::new("server", "", blow, load);
            for _round in 0..rounds {
                round(blow, load, &mut row)?;
            }
            tell(&row.line("server"));
            summary.rows.push(row);
        }
    }
    Ok(())
}

fn round(blow: Blow, load: Load, row: &mut Row) -> Outcome<()> {
    let model = ScriptedModel::start().doing("no model")?;
    let mut setup = Setup::new(&model.base_url());
    let user = if is_root() {
        let install = unprivileged_install()?;
        setup = setup.as_unprivileged(&install);
        Some(install.user)
    } else {
        None
    };
    let home = Home::new(setup)?;
    let place = home.workspace().canonicalize().doing("no workspace")?.join("load");
    let script = home.workspace().join("load.sh");
    let text = format!("mkdir -p {0}\ncd {0} || exit 1\n{1}", place.display(), load.script());
    fs::write(&script, text).doing("no script")?;
    let mut bystander = bystander(user)?;
    let mut daemon = Some(home.serve()?);
    let client = daemon.as_ref().map(|daemon| daemon.client().clone()).ok_or_else(|| Failure::new("no daemon"))?;
    let talk = Talk::start(&client, &home.workspace().to_string_lossy())?;
    talk.carry_out(&format!("run: sh {} && echo left", script.display()))?;
    row.means = daemon.as_ref().map_or_else(|| Ok(String::new()), |daemon| Ok(means(&daemon.log()?)))?;
    let server = client.get("/v1/status")?.body["servers"][0]["pid"].as_u64();
    let server = server.and_then(|pid| u32::try_from(pid).ok()).ok_or_else(|| Failure::new("no server runs"))?;
    let guards = guards_of(server).ok_or_else(|| Failure::new(format!("process {server} is gone")))?;
    let scope = Scope { directory: place, user: None, others: vec![bystander.pid()] };
    let begun = Instant::now();
    while scope.processes(None).len() < load.processes() - 2 {
        if begun.elapsed() > LOAD_LIMIT {
            return Err(Failure::new(format!("the load {} did not come up", load.as_str())));
        }
        std::thread::sleep(LOOK);
    }
    let known = scope.processes(Some(guards[0]));
    let began = Instant::now();
    let own = daemon.as_ref().map_or(0, Daemon::pid);
    Struck { daemon: own, guards, server }.strike(blow)?;
    if let Some(ended) = daemon.take_if(|_| blow.ends_daemon()) {
        ended.kill()?;
    }
    if let Some(stopped) = daemon.take_if(|_| blow == Blow::Stop) {
        row.left_over += stopped.stop()?.leftovers.len();
    }
    let (left, took) = scope.wait_gone(&known, began, true);
    row.left_over += left;
    if blow.ends_daemon() {
        row.left_over += processes_of(home.path(), &[]).len();
    }
    if let Some(daemon) = daemon {
        row.left_over += daemon.stop()?.leftovers.len();
    }
    row.bystanders_hurt += usize::from(!bystander.lives());
    row.rounds += 1;
    row.took.push(took);
    row.most_processes = row.most_processes.max(known.len());
    Ok(())
}

/// How the daemon says that the guards end the newest server's tree.
fn means(log: &str) -> String {
    let said = log.lines().rev().find_map(|line| line.split_once("means=").map(|(_, rest)| rest));
    let word = said.and_then(|rest| rest.split_whitespace().next()).unwrap_or("unknown");
    word.trim_matches('"').to_owned()
}

fn bystander(user: Option<u32>) -> Outcome<Bystander> {
    let sleep = Path::new("/bin/sleep");
    let mut command = user.map_or_else(|| Command::new(sleep), |user| as_user(user, sleep));
    command.arg("600");
    Bystander::start(command)
}
