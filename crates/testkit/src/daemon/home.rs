//! The temporary directory of one daemon: configuration, state, workspaces. It outlives restarts of the daemon.

use super::build::gatepost_binary;
use super::install::{SERVER_VERSION, UnprivilegedInstall, place_managed, shared_install};
use super::users::{as_user, give_tree, make_private_dir};
use super::{Client, Daemon, Reply, developer, sweep};
use crate::failure::{Doing, Failure, Outcome};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// The model credential that the configuration points at: a value that tests search for where it must not be.
const MODEL_KEY: &str = "model-key-5f1c0f2a9b7e4d36";

/// What stands in a list of needed programs for an entry of the user in the system's list of users.
pub const ACCOUNT: &str = "an account";

/// Which Agent Server the daemon is configured with.
#[derive(Debug, Clone)]
pub enum Server {
    /// The managed install that all tests share, made when it is missing.
    Managed,
    /// The managed install below this state directory.
    ManagedAt(PathBuf),
    /// An executable of one's own.
    Own(PathBuf),
    /// None: nothing is installed.
    Missing,
}

/// What a daemon is started with.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The Agent Server.
    pub server: Server,
    /// The model endpoint's base URL.
    pub model_base_url: String,
    /// The tools of the agent.
    pub tools: Vec<String>,
    /// Further lines of the `[agent_server]` table.
    pub agent_server: String,
    /// Further lines of the `[workspaces]` table.
    pub workspaces: String,
    /// Further lines of the `[model]` table.
    pub model: String,
    /// The least confinement that is accepted.
    pub confinement: &'static str,
    /// Further lines of the `[confinement]` table and further tables, appended as they are.
    pub tables: String,
    /// Run the daemon and its clients as this user; only root can.
    pub user: Option<u32>,
    /// The model's key is a credential of this name that a service manager hands over.
    pub credential: Option<String>,
    /// The owner is a developer: git's settings and, where this machine has it, Rust are at home.
    pub is_developer: bool,
    /// Further variables of the daemon's environment.
    pub environment: Vec<(String, String)>,
    /// Run this in place of the `gatepost` binary.
    pub binary: Option<PathBuf>,
}

impl Setup {
    /// The shared managed server with a model at this base URL.
    #[must_use]
    pub fn new(model_base_url: &str) -> Self {
        Self {
            server: Server::Managed,
            model_base_url: model_base_url.to_owned(),
            tools: ["terminal", "file_editor", "task_tracker"].map(str::to_owned).to_vec(),
            agent_server: String::new(),
            workspaces: String::new(),
            model: String::new(),
            confinement: "weak",
            tables: String::new(),
            user: None,
            credential: None,
            is_developer: false,
            environment: Vec::new(),
            binary: None,
        }
    }

    /// Without an Agent Server, and so without a use for a model.
    #[must_use]
    pub fn without_server() -> Self {
        Self { server: Server::Missing, ..Self::new("http://127.0.0.1:9/v1") }
    }

    /// The same setup as an ordinary user, with the managed server that this user installed.
    #[must_use]
    pub fn as_unprivileged(mut self, install: &UnprivilegedInstall) -> Self {
        self.server = Server::ManagedAt(install.state.clone());
        self.user = Some(install.user);
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", install.python_bin.display());
        self.environment.push(("PATH".to_owned(), path));
        self
    }

    /// The same setup with this executable in place of the managed server.
    #[must_use]
    pub fn with_executable(mut self, executable: &Path) -> Self {
        self.server = Server::Own(executable.to_owned());
        self
    }
}

/// What a command of `gatepost` said.
#[derive(Debug, Clone)]
pub struct Spoken {
    /// Its exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Spoken {
    /// The standard output as one JSON value, null when it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or(Value::Null)
    }
}

/// The temporary directory. Dropping it ends what still runs for it and removes it.
#[derive(Debug)]
pub struct Home {
    root: TempDir,
    setup: Setup,
    binary: PathBuf,
}

impl Home {
    /// Lays out the directory: `config.toml`, `model.key`, `state/`, `home/`, `src/` (the workspace root) and in it
    /// an empty workspace `src/work`.
    ///
    /// # Errors
    /// When a file cannot be written, the binary cannot be built or the server cannot be installed.
    pub fn new(setup: Setup) -> Outcome<Self> {
        let mut binary = setup.binary.clone().map_or_else(gatepost_binary, Ok)?;
        // Short: the sockets below it have paths of at most 107 bytes.
        let root = tempfile::Builder::new().prefix("gp-").tempdir().doing("no temporary directory")?;
        let path = root.path();
        for name in ["state", "home", "src", "src/work"] {
            make_private_dir(&path.join(name))?;
        }
        if setup.user.is_some() {
            // The build may stand where another user cannot reach it.
            let name = binary.file_name().unwrap_or_else(|| "gatepost".as_ref()).to_owned();
            let copy = path.join(name);
            fs::copy(&binary, &copy).doing("the binary could not be copied")?;
            binary = copy;
        }
        let home = Self { root, setup, binary };
        if home.setup.is_developer {
            developer::furnish(&home.path().join("home"))?;
        }
        home.write_private("model.key", MODEL_KEY)?;
        home.write_config()?;
        match home.setup.server.clone() {
            Server::Managed => place_managed(&shared_install()?, &home.state())?,
            Server::ManagedAt(state) => place_managed(&state, &home.state())?,
            Server::Own(_) | Server::Missing => {}
        }
        home.give_away()?;
        Ok(home)
    }

    /// The directory itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// The state directory.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    /// The configured workspace root.
    #[must_use]
    pub fn workspace_root(&self) -> PathBuf {
        self.path().join("src")
    }

    /// The program that is run.
    #[must_use]
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// A workspace below the root.
    #[must_use]
    pub fn workspace(&self) -> PathBuf {
        self.path().join("src/work")
    }

    /// A further workspace below the root.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new_workspace(&self, name: &str) -> Outcome<PathBuf> {
        let path = self.workspace_root().join(name);
        make_private_dir(&path)?;
        self.give_away()?;
        Ok(path)
    }

    /// The daemon's socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.state().join("run/gatepost.sock")
    }

    /// The model credential in the daemon's configuration.
    #[must_use]
    pub fn model_key(&self) -> &'static str {
        MODEL_KEY
    }

    /// Changes the setup and writes the configuration again, for the next start.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn reconfigure(&mut self, change: impl FnOnce(&mut Setup)) -> Outcome<()> {
        change(&mut self.setup);
        self.write_config()?;
        self.give_away()
    }

    /// Starts `gatepost serve` and waits until it says that it is ready, but for the server where none is installed.
    ///
    /// # Errors
    /// When it ends or does not become ready; the failure quotes its log.
    pub fn serve(&self) -> Outcome<Daemon> {
        let is_missing = matches!(self.setup.server, Server::Missing);
        let only_lacks_it = |reply: &Reply| reply.body["reasons"][0]["code"] == "server_not_installed";
        self.serve_and_wait("/v1/readyz", |reply| is_missing && only_lacks_it(reply))
    }

    /// Starts `gatepost serve` and waits until this path answers 200.
    ///
    /// # Errors
    /// When it ends or the path does not answer in time; the failure quotes its log.
    pub fn serve_until(&self, path: &str) -> Outcome<Daemon> {
        self.serve_and_wait(path, |_| false)
    }

    fn serve_and_wait(&self, path: &str, counts: impl Fn(&Reply) -> bool) -> Outcome<Daemon> {
        let log_path = self.path().join("daemon.log");
        let log = File::options().create(true).append(true).open(&log_path).doing("no log file")?;
        let log_too = log.try_clone().doing("no log file")?;
        let mut command = self.serve_command();
        command.stdin(Stdio::null()).stdout(log).stderr(log_too);
        let child = command.spawn().doing("the daemon could not be started")?;
        let mut client = Client::new(&self.socket());
        if let Some(user) = self.setup.user {
            client = client.as_user(user);
        }
        let mut daemon = Daemon::new(child, self.path(), &log_path, client.clone());
        daemon.wait_ready(path, counts)?;
        daemon.set_client(client.with_token(&self.owner_token()?));
        Ok(daemon)
    }

    /// `gatepost serve` for this directory, not started.
    #[must_use]
    pub fn serve_command(&self) -> Command {
        let mut command = self.command();
        command.arg("serve").arg("--config").arg(self.config()).arg("--state-dir").arg(self.state());
        command
    }

    /// Runs one `gatepost` command against this directory to its end.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn run(&self, arguments: &[&str]) -> Outcome<Spoken> {
        let mut command = self.command();
        command.args(arguments).arg("--config").arg(self.config()).arg("--state-dir").arg(self.state());
        let output = command.stdin(Stdio::null()).output().doing("gatepost could not be started")?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Spoken { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) })
    }

    /// `gatepost` as this home's user, with an environment of its own.
    #[must_use]
    pub fn command(&self) -> Command {
        self.command_of(&self.binary)
    }

    /// Whether the daemon's user has this program on its PATH, or [`ACCOUNT`].
    ///
    /// # Errors
    /// When that cannot be asked.
    pub fn has_program(&self, name: &str) -> Outcome<bool> {
        let mut shell = self.command_of(Path::new("/bin/sh"));
        let asked = if name == ACCOUNT { "id -un" } else { "command -v \"$0\"" };
        let status =
            shell.args(["-c", asked, name]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        Ok(status.doing("no shell")?.success())
    }

    fn command_of(&self, program: &Path) -> Command {
        let mut command = match self.setup.user {
            None => Command::new(program),
            Some(user) => as_user(user, program),
        };
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        command.env_clear().env("PATH", path).env("HOME", self.path().join("home")).env("LANG", "C.UTF-8");
        command.envs(self.setup.environment.iter().map(|(name, value)| (name, value)));
        if self.setup.is_developer {
            let path = command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, value)| value);
            let before = developer::programs(&self.path().join("home")).into_os_string();
            command.env("PATH", [&before, path.unwrap_or_default()].join(OsStr::new(":")));
        }
        command.current_dir(self.path());
        command
    }

    /// The owner's token, made at the daemon's first start.
    ///
    /// # Errors
    /// When there is none yet.
    pub fn owner_token(&self) -> Outcome<String> {
        let entries = fs::read_dir(self.state()).doing("the state directory could not be read")?;
        let named = |path: &PathBuf| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            name.is_some_and(|name| name.starts_with("owner")) && path.is_file()
        };
        let file = entries.flatten().map(|entry| entry.path()).find(named);
        let file = file.ok_or_else(|| Failure::new("the daemon has made no owner token"))?;
        Ok(fs::read_to_string(file).doing("the owner token could not be read")?.trim().to_owned())
    }

    fn config(&self) -> PathBuf {
        self.path().join("config.toml")
    }

    fn write_config(&self) -> Outcome<()> {
        let setup = &self.setup;
        let quoted = |text: &str| Value::from(text).to_string();
        let path = |path: &Path| quoted(&path.to_string_lossy());
        let executable = match &setup.server {
            Server::Own(executable) => format!("executable = {}\n", path(executable)),
            Server::Managed | Server::ManagedAt(_) | Server::Missing => String::new(),
        };
        let api_key = match &setup.credential {
            Some(name) => format!("credential = {}", quoted(name)),
            None => format!("file = {}", path(&self.path().join("model.key"))),
        };
        let tools: Vec<String> = setup.tools.iter().map(|tool| quoted(tool)).collect();
        let config = format!(
            "[agent_server]\nversion = \"{SERVER_VERSION}\"\n{executable}{}\n\
             [workspaces]\nroots = [{}]\n{}\
             [model]\nname = \"openai/scripted\"\nbase_url = {}\napi_key = {{ {} }}\ntools = [{}]\n{}\n\
             [confinement]\nlevel = {}\n{}\n",
            setup.agent_server,
            path(&self.workspace_root()),
            setup.workspaces,
            quoted(&setup.model_base_url),
            api_key,
            tools.join(", "),
            setup.model,
            quoted(setup.confinement),
            setup.tables,
        );
        self.write_private("config.toml", &config)
    }

    fn write_private(&self, name: &str, content: &str) -> Outcome<()> {
        let path = self.path().join(name);
        fs::write(&path, content).doing("a file could not be written")?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).doing("a mode could not be set")
    }

    /// Makes everything here the user's, when the daemon runs as another one.
    ///
    /// # Errors
    /// When a file cannot be given away.
    pub fn give_away(&self) -> Outcome<()> {
        self.setup.user.map_or(Ok(()), |user| give_tree(self.path(), user))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        sweep(self.path());
    }
}
