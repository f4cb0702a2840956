//! The daemon with its model and its servers: killed and started again, at its traps and at random.

use super::plan::{Trap, Victim, WORKSPACES};
use crate::daemon::{Client, Daemon, Home, Setup, Stopped, built_binary};
use crate::failure::{Doing, Failure, Outcome};
use crate::marks::Marks;
use crate::model::ScriptedModel;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::{BTreeMap, VecDeque};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The directory of markers in each workspace; a command names it from there.
pub(super) const MARKS: &str = "marks";
/// How long a reply may take: a server may have to be started first.
const REPLY_LIMIT: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(50);
/// How often the logs of the servers are looked for.
const KEEP: Duration = Duration::from_secs(1);
/// How often a daemon is started that dies while it starts.
const STARTS: usize = 4;

/// What lives as long as the run.
pub(super) struct Stage {
    _model: ScriptedModel,
    _binary: TempDir,
    home: Mutex<Home>,
    daemon: Mutex<Option<Daemon>>,
    client: Client,
    state: PathBuf,
    workspaces: Vec<PathBuf>,
    /// One in each workspace, where the agent's commands may write.
    marks: Vec<Marks>,
    logs: TempDir,
    kills: Mutex<BTreeMap<String, u64>>,
    /// Traps of the next starts.
    next: Mutex<VecDeque<Vec<Trap>>>,
    /// What had been told when the daemon that runs was started, and whether it has traps.
    life: Mutex<(usize, bool)>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn told_in(home: &Home) -> Outcome<Vec<String>> {
    let log = std::fs::read(home.path().join("daemon.log")).doing("the daemon's log could not be read")?;
    let log = String::from_utf8_lossy(&log);
    Ok(log.lines().filter_map(|line| line.strip_prefix("chaos: ").map(str::to_owned)).collect())
}

impl Stage {
    /// Starts the watched daemon, with no trap.
    pub(super) fn start() -> Outcome<Self> {
        let built = built_binary("gatepost-tests", "gatepost-watched")?;
        // A copy: whoever builds meanwhile does not change what is started again after a kill.
        let directory = tempfile::Builder::new().prefix("gp-chaos-").tempdir().doing("no temporary directory")?;
        let binary = directory.path().join("gatepost");
        std::fs::copy(&built, &binary).doing("the binary could not be copied")?;
        let model = ScriptedModel::start().doing("no model")?;
        let mut setup = Setup::new(&model.base_url());
        setup.binary = Some(binary);
        setup.model = "choices = [\"openai/scripted\", \"openai/other\"]".to_owned();
        let home = Home::new(setup)?;
        let (mut workspaces, mut marks) = (Vec::new(), Vec::new());
        for number in 0..WORKSPACES {
            let workspace = home.new_workspace(&format!("chaos-{number}"))?;
            marks.push(Marks::new(workspace.join(MARKS))?);
            workspaces.push(workspace.canonicalize().doing("no workspace")?);
        }
        let daemon = home.serve()?;
        let client = daemon.client().clone().with_timeout(REPLY_LIMIT);
        // On the same file system as the logs, which are kept by a second name.
        let logs = tempfile::Builder::new().prefix("logs-").tempdir_in(home.path()).doing("no directory for logs")?;
        Ok(Self {
            _model: model,
            _binary: directory,
            state: home.state(),
            home: Mutex::new(home),
            daemon: Mutex::new(Some(daemon)),
            client,
            workspaces,
            marks,
            logs,
            kills: Mutex::default(),
            next: Mutex::default(),
            life: Mutex::default(),
        })
    }

    /// With the owner's token, across restarts of the daemon.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn state(&self) -> &Path {
        &self.state
    }

    pub(super) fn workspaces(&self) -> &[PathBuf] {
        &self.workspaces
    }

    /// How often each command ran so far.
    pub(super) fn runs(&self) -> Outcome<BTreeMap<String, usize>> {
        let mut runs = BTreeMap::new();
        for marks in &self.marks {
            runs.extend(marks.all()?);
        }
        Ok(runs)
    }

    /// Where the logs of all servers are.
    pub(super) fn logs(&self) -> &Path {
        self.logs.path()
    }

    /// Counts a kill under this word.
    pub(super) fn count_kill(&self, of: &str) {
        *lock(&self.kills).entry(of.to_owned()).or_default() += 1;
    }

    /// All kills so far. Lost connections to servers are those that the daemon told of.
    pub(super) fn kills(&self) -> Outcome<BTreeMap<String, u64>> {
        let mut kills = lock(&self.kills).clone();
        let cuts = self.told()?.iter().filter(|line| line.starts_with("cut ")).count();
        kills.insert("server_connection".to_owned(), u64::try_from(cuts).unwrap_or(u64::MAX));
        Ok(kills)
    }

    /// What the watched daemons said that they did, in order.
    pub(super) fn told(&self) -> Outcome<Vec<String>> {
        told_in(&lock(&self.home))
    }

    /// The traps of the next starts.
    pub(super) fn set_traps(&self, starts: Vec<Vec<Trap>>) {
        *lock(&self.next) = starts.into();
    }

    /// Sees that the daemon has no trap any more, nor any later one.
    pub(super) fn calm(&self, tell: &dyn Fn(&str)) -> Outcome<()> {
        self.set_traps(Vec::new());
        self.revive(tell)?;
        let has_traps = lock(&self.life).1;
        if has_traps { self.restart(tell) } else { Ok(()) }
    }

    /// Kills the daemon, if it is up, and starts it with the next traps.
    pub(super) fn restart(&self, tell: &dyn Fn(&str)) -> Outcome<()> {
        let mut daemon = lock(&self.daemon);
        if let Some(running) = daemon.take() {
            self.count_kill("daemon at random");
            tell("SIGKILL of the daemon");
            running.kill()?;
        }
        *daemon = Some(self.serve(tell)?);
        Ok(())
    }

    /// Starts the daemon again when it died at its point.
    fn revive(&self, tell: &dyn Fn(&str)) -> Outcome<()> {
        let mut daemon = lock(&self.daemon);
        let Some(status) = daemon.as_mut().map_or(Ok(None), Daemon::ended)? else { return Ok(()) };
        let before = lock(&self.life).0;
        let said = self.told()?.split_off(before).pop();
        let Some(said) = said.filter(|line| line.starts_with("kill ")) else {
            let words = daemon.as_ref().map(Daemon::log).transpose()?.unwrap_or_default();
            return Err(Failure::new(format!("the daemon ended by itself with {status}:\n{words}")));
        };
        self.died(&said, tell);
        *daemon = Some(self.serve(tell)?);
        Ok(())
    }

    fn died(&self, said: &str, tell: &dyn Fn(&str)) {
        let point = said.trim_start_matches("kill ");
        self.count_kill(&format!("daemon {point}"));
        tell(&format!("the daemon died {point}"));
    }

    fn serve(&self, tell: &dyn Fn(&str)) -> Outcome<Daemon> {
        let mut home = lock(&self.home);
        let mut last = None;
        for _ in 0..STARTS {
            let traps: Vec<String> = lock(&self.next).pop_front().iter().flatten().map(Trap::words).collect();
            tell(&format!("the daemon starts with [{}]", traps.join(" ")));
            home.reconfigure(|setup| setup.environment = vec![(super::POINTS_VARIABLE.to_owned(), traps.join(","))])?;
            let before = told_in(&home)?;
            match home.serve() {
                Ok(daemon) => {
                    *lock(&self.life) = (before.len(), !traps.is_empty());
                    return Ok(daemon);
                }
                Err(why) => {
                    let now = told_in(&home)?;
                    let Some(said) = now.get(before.len()..).and_then(<[String]>::last) else { return Err(why) };
                    self.died(said, tell);
                    last = Some(why);
                }
            }
        }
        Err(last.unwrap_or_else(|| Failure::new("the daemon does not start")))
    }

    /// Until told to stop: starts what died, kills what is due, keeps the logs.
    pub(super) fn watch(&self, kills: &[(u64, Victim)], over: &AtomicBool, tell: &dyn Fn(&str)) -> Outcome<()> {
        let (begun, mut kept) = (Instant::now(), Instant::now());
        let mut due: VecDeque<(u64, Victim)> = kills.iter().copied().collect();
        while !over.load(Ordering::Acquire) {
            self.revive(tell)?;
            let now_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            if let Some((_, victim)) = due.front().copied().filter(|(at_ms, _)| *at_ms <= now_ms) {
                let killed = match victim {
                    Victim::Daemon => self.restart(tell).map(|()| true)?,
                    Victim::Server(number) => self.kill_server(number, tell),
                };
                if killed {
                    due.pop_front();
                }
            }
            if kept.elapsed() > KEEP {
                self.keep_logs();
                kept = Instant::now();
            }
            std::thread::sleep(LOOK);
        }
        self.keep_logs();
        Ok(())
    }

    /// Whether a server of this workspace was up and was killed.
    fn kill_server(&self, number: usize, tell: &dyn Fn(&str)) -> bool {
        let Some(workspace) = self.workspaces.get(number).map(|path| path.to_string_lossy().into_owned()) else {
            return true;
        };
        let client = self.client.clone().with_timeout(Duration::from_secs(5));
        let Ok(status) = client.get("/v1/status") else { return false };
        let mut servers = status.body["servers"].as_array().into_iter().flatten();
        let pid =
            servers.find(|server| server["workspace"] == workspace.as_str()).and_then(|server| server["pid"].as_u64());
        let pid = pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        let killed = pid.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok());
        if killed {
            self.count_kill("server");
            tell(&format!("SIGKILL of server {number}"));
        }
        killed
    }

    /// Gives each log of a server a second name, as a server's start removes the one before the last.
    fn keep_logs(&self) {
        let Ok(bindings) = std::fs::read_dir(self.state.join("bindings")) else { return };
        for binding in bindings.flatten() {
            let log = binding.path().join("server.log");
            if let Ok(data) = std::fs::metadata(&log) {
                // There already, most of the time.
                std::fs::hard_link(&log, self.logs.path().join(format!("{}.log", data.ino()))).ok();
            }
        }
    }

    /// Stops the daemon in order.
    pub(super) fn stop(&self) -> Outcome<Stopped> {
        let daemon = lock(&self.daemon).take();
        let daemon = daemon.ok_or_else(|| Failure::new("no daemon runs"))?;
        let stopped = daemon.stop()?;
        if !stopped.status.success() {
            return Err(Failure::new(format!("the daemon ended with {}", stopped.status)));
        }
        Ok(stopped)
    }
}
