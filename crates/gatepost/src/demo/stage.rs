//! Where the demonstration happens: a temporary directory, a scripted model, a daemon; and taking it all away again.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cli::{Daemon, Failure};
use host::{ChildProcess, ExitStatus, Signal, SpawnSpec, Spawner};
use serde_json::Value;
use testkit::model::ScriptedModel;

use super::client::Client;
use super::{failed, leftovers};
use crate::places::token_file;
use crate::signals::StopSignals;

/// How long the daemon may take until it can take a session.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// How long it may take to stop; it gives each server a grace of its own.
const STOP_LIMIT: Duration = Duration::from_secs(90);
/// How long what it left may take to end.
const SWEEP_LIMIT: Duration = Duration::from_secs(10);
/// In a hurry, how long the daemon has until it is asked again.
const HURRY_AFTER: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Of the daemon's log, what a failure repeats.
const LOG_TAIL_LINES: usize = 30;
const LOG_TAIL_BYTES: u64 = 16 * 1024;
/// A longer place for temporary files leaves no room for the names of sockets below it.
const MAX_BASE_BYTES: usize = 12;
/// The scripted model asks for no key; the configuration needs one to point at.
const MODEL_KEY: &[u8] = b"no-key-is-needed";

/// The place. What it holds is taken away when it is closed, and at the latest when it is dropped.
pub(super) struct Stage {
    directory: PathBuf,
    install_dir: PathBuf,
    model: ScriptedModel,
    spawner: Spawner,
    daemon: Option<ChildProcess>,
    is_closed: bool,
}

/// How the daemon is to be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// As anyone would stop it.
    Orderly,
    /// Somebody waits for the end.
    Hurried,
}

/// What was there at the end, and what was left after it.
#[derive(Debug)]
pub(super) struct Closed {
    /// Processes that were still there after the stop, in words.
    pub(super) leftovers: Vec<String>,
    /// Processes that were running just before the stop.
    pub(super) processes_ended: usize,
    /// What went wrong with the stop itself.
    pub(super) trouble: Option<String>,
    /// The last lines of the daemon's log.
    pub(super) log_tail: Vec<String>,
    /// The directory, when it was to be kept.
    pub(super) kept: Option<PathBuf>,
}

impl Stage {
    /// Makes the directory with its configuration, and starts the model. `install_dir` is where the managed installs are.
    pub(super) fn set(install_dir: &Path) -> Result<Self, Failure> {
        let cannot = |what: &str, error: &dyn std::fmt::Display| failed(format!("{what}: {error}"));
        let model = ScriptedModel::start().map_err(|error| cannot("the scripted model does not start", &error))?;
        let spawner = Spawner::start().map_err(|error| cannot("no thread to start the daemon from", &error))?;
        let directory = make_directory().map_err(|error| cannot("no temporary directory", &error))?;
        let install_dir = install_dir.to_path_buf();
        let stage = Self { directory, install_dir, model, spawner, daemon: None, is_closed: false };
        make_private(&stage.workspace()).map_err(|error| cannot("no workspace", &error))?;
        let key = stage.directory.join("model.key");
        let config = configuration(&stage.workspace(), &stage.model.base_url(), &key);
        host::secure_fs::write_private_new(&key, MODEL_KEY)
            .and_then(|()| host::secure_fs::write_private_new(&stage.config(), config.as_bytes()))
            .map_err(|error| cannot("the configuration cannot be written", &error))?;
        Ok(stage)
    }

    /// The directory that the agent works in.
    pub(super) fn workspace(&self) -> PathBuf {
        self.directory.join("workspace")
    }

    /// Everything of the demonstration is below it.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn model(&self) -> &ScriptedModel {
        &self.model
    }

    fn config(&self) -> PathBuf {
        self.directory.join("config.toml")
    }

    fn state(&self) -> PathBuf {
        self.directory.join("state")
    }

    fn log(&self) -> PathBuf {
        self.directory.join("daemon.log")
    }

    /// Starts this very program as a daemon, and waits until it can take a session.
    pub(super) async fn start_daemon(&mut self) -> Result<Client, Failure> {
        let spec = self.daemon_spec().map_err(|error| failed(format!("the daemon cannot be started: {error}")))?;
        let spawned = self.spawner.spawn(spec);
        self.daemon = Some(spawned.map_err(|error| failed(format!("the daemon cannot be started: {error}")))?);
        let (socket, token) = (self.state().join("run/gatepost.sock"), self.state().join("owner.token"));
        let client = Client::new(Daemon::new(socket, token_file(token)));
        let began = Instant::now();
        while !client.is_ready().await {
            if let Some(status) = self.daemon_exit() {
                return Err(failed(format!("the daemon ended before it was ready ({status})")));
            }
            if began.elapsed() > READY_LIMIT {
                return Err(failed(format!("the daemon is not ready after {} s", READY_LIMIT.as_secs())));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(client)
    }

    fn daemon_spec(&self) -> io::Result<SpawnSpec> {
        let log = File::options().create_new(true).append(true).mode(0o600).open(self.log())?;
        let option = |name: &str, path: &Path| [OsString::from(name), path.as_os_str().to_owned()];
        let args = [OsString::from("serve")]
            .into_iter()
            .chain(option("--config", &self.config()))
            .chain(option("--state-dir", &self.state()))
            .chain(option("--install-dir", &self.install_dir));
        let kept = ["PATH", "HOME", "LANG", "GATEPOST_LOG"];
        Ok(SpawnSpec {
            program: std::env::current_exe()?,
            args: args.collect(),
            env: kept.into_iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?))).collect(),
            cwd: self.directory.clone(),
            fds: Vec::new(),
            stdout: log.try_clone()?.into(),
            stderr: log.into(),
        })
    }

    fn daemon_exit(&self) -> Option<ExitStatus> {
        self.daemon.as_ref().and_then(|daemon| daemon.try_wait().ok().flatten())
    }

    /// Stops the daemon, in a hurry at once or when this process is asked to stop (again), counts what is left of it, ends
    /// that too, and removes the directory unless it is to be kept.
    pub(super) async fn close(mut self, keep: bool, pace: Pace, signals: &StopSignals) -> Closed {
        let before = leftovers::of(&self.directory).unwrap_or_default();
        let mut trouble = self.stop_daemon(pace, signals).await;
        let leftovers = match leftovers::of(&self.directory) {
            Ok(left) => left.into_iter().map(leftovers::describe).collect(),
            Err(error) => {
                trouble = trouble.or_else(|| Some(format!("whether processes are left cannot be told: {error}")));
                Vec::new()
            }
        };
        trouble = trouble.or(self.sweep());
        let log_tail = log_tail(&self.log());
        let kept = keep.then(|| self.directory.clone());
        if !keep && let Err(error) = fs::remove_dir_all(&self.directory) {
            trouble = trouble.or_else(|| Some(format!("{} cannot be removed: {error}", self.directory.display())));
        }
        self.is_closed = true;
        Closed { leftovers, processes_ended: before.len(), trouble, log_tail, kept }
    }

    /// Asks it to stop; again when there is a hurry; kills it when it takes too long. Says what went wrong.
    async fn stop_daemon(&mut self, pace: Pace, signals: &StopSignals) -> Option<String> {
        let daemon = self.daemon.as_ref()?;
        if self.daemon_exit().is_none() {
            // An error means that it has just ended.
            daemon.signal(Signal::Terminate).ok();
        }
        let began = Instant::now();
        let hurried = async {
            match pace {
                Pace::Orderly => signals.asked_once_more().await,
                Pace::Hurried => tokio::time::sleep(HURRY_AFTER).await,
            }
        };
        let mut hurried = std::pin::pin!(hurried);
        let mut has_hurried = false;
        loop {
            match daemon.try_wait() {
                Ok(Some(ExitStatus::Code(0))) => return None,
                Ok(Some(status)) => return Some(format!("the daemon ended with {status}")),
                Ok(None) => {}
                Err(error) => return Some(format!("the daemon cannot be waited for: {error}")),
            }
            if began.elapsed() > STOP_LIMIT {
                daemon.signal(Signal::Kill).ok();
                daemon.wait_exit(SWEEP_LIMIT).ok();
                return Some(format!("the daemon did not stop within {} s and was killed", STOP_LIMIT.as_secs()));
            }
            tokio::select! {
                () = &mut hurried, if !has_hurried => {
                    has_hurried = true;
                    daemon.signal(Signal::Terminate).ok();
                }
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// Ends whatever is still there. Given up first, the daemon counts as what is left, too. Says what went wrong.
    fn sweep(&mut self) -> Option<String> {
        self.daemon = None;
        match host::tree::end_descendants(&[], SWEEP_LIMIT) {
            Ok(report) if report.left.is_empty() => None,
            Ok(report) => Some(format!("processes cannot be ended: {:?}", report.left)),
            Err(error) => Some(format!("what is left cannot be ended: {error}")),
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !self.is_closed {
            drop(self.sweep());
            fs::remove_dir_all(&self.directory).ok();
        }
    }
}

/// A new private directory with a short name.
fn make_directory() -> io::Result<PathBuf> {
    let usual = std::env::temp_dir();
    let fits = usual.is_absolute() && usual.as_os_str().len() <= MAX_BASE_BYTES;
    let base = if fits { usual } else { PathBuf::from("/tmp") };
    let directory = base.join(format!("gatepost-demo-{}", host::sign::random_hex(4)?));
    // Fails when the name exists, so it is never another's directory.
    make_private(&directory)?;
    Ok(directory)
}

fn make_private(directory: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(directory)
}

fn configuration(workspace: &Path, base_url: &str, key: &Path) -> String {
    // A JSON string is a TOML string as well.
    let quoted = |text: &str| Value::from(text).to_string();
    format!(
        "[workspaces]\nroots = [{}]\n\n[model]\nname = \"openai/scripted\"\nbase_url = {}\napi_key = {{ file = {} }}\n\
         tools = [\"terminal\"]\n\n[confinement]\nlevel = \"weak\"\n",
        quoted(&workspace.to_string_lossy()),
        quoted(base_url),
        quoted(&key.to_string_lossy()),
    )
}

fn log_tail(log: &Path) -> Vec<String> {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(LOG_TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let text = String::from_utf8_lossy(&read().unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    lines.iter().skip(lines.len().saturating_sub(LOG_TAIL_LINES)).map(|line| (*line).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_one_that_the_daemon_takes() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.toml");
        let text = configuration(Path::new("/tmp/a \"b\"/w"), "http://127.0.0.1:1/v1", Path::new("/tmp/k"));
        host::secure_fs::write_private_new(&file, text.as_bytes()).unwrap();
        let sources = settings::Sources { config_file: Some(file), home: "/h".into(), ..Default::default() };
        let settings = settings::Settings::load(&sources).unwrap();
        assert_eq!(settings.workspaces.roots, [PathBuf::from("/tmp/a \"b\"/w")]);
        assert_eq!(settings.model.unwrap().tools, ["terminal"]);
    }

    #[test]
    fn the_directory_is_private_new_and_short_enough_for_sockets() {
        let made = [make_directory().unwrap(), make_directory().unwrap()];
        assert_ne!(made[0], made[1]);
        for directory in made {
            host::secure_fs::ensure_private_dir(&directory).unwrap();
            // A server's own sockets need the most: tmux and Python add at most 40 bytes to this.
            let deepest = process::launch::data_dir(&directory.join("state"), Path::new("/w")).join("tmux");
            assert!(deepest.as_os_str().len() <= 67, "{}", deepest.display());
            fs::remove_dir(directory).unwrap();
        }
    }

    #[test]
    fn the_last_lines_of_a_log_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        assert_eq!(log_tail(&log), Vec::<String>::new());
        fs::write(&log, (0..5_000).map(|n| format!("line {n}\n")).collect::<String>()).unwrap();
        let tail = log_tail(&log);
        assert_eq!((tail.len(), tail.last().map(String::as_str)), (LOG_TAIL_LINES, Some("line 4999")));
    }
}
