//! The daemon with its model, what of the owner's is around it, and what an attacker could find out of it all.

use super::Options;
use super::layers::Layer;
use super::owner::{Owner, word};
use crate::daemon::{
    Client, Daemon, Home, Setup, UnprivilegedInstall, built_binary, gatepost_binary, guards_of, link_programs_without,
    server_port, unprivileged_install,
};
use crate::failure::{Doing, Failure, Outcome};
use crate::model::ScriptedModel;
use crate::processes;
use crate::talk::Talk;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// How long a reply may take: a server may have to be started first.
const REPLY_LIMIT: Duration = Duration::from_secs(180);
/// The program that the agent's attempts are.
const AGENT: [(&str, &str); 6] = [
    ("attempt.py", include_str!("agent/attempt.py")),
    ("approving.py", include_str!("agent/approving.py")),
    ("changing.py", include_str!("agent/changing.py")),
    ("lasting.py", include_str!("agent/lasting.py")),
    ("reaching.py", include_str!("agent/reaching.py")),
    ("reading.py", include_str!("agent/reading.py")),
];
const LOOK: &str = include_str!("look.py");
const REVIEWED: &str = include_str!("reviewed.py");
const DAEMONS_WORD: &str = "ESCAPES_WORD";

/// What one run is played on.
pub(super) struct Stage {
    pub(super) model: ScriptedModel,
    pub(super) home: Home,
    pub(super) owner: Owner,
    pub(super) client: Client,
    pub(super) install: UnprivilegedInstall,
    daemon: Option<Daemon>,
    daemons_word: String,
    /// What an attempt must not get, by its name; live keys aside.
    pub(super) hidden: BTreeMap<&'static str, String>,
    /// Live keys.
    pub(super) keys: Vec<String>,
    /// What the attempts are told.
    pub(super) targets: Value,
    _binaries: TempDir,
}

impl Stage {
    /// Starts the daemon without these layers.
    pub(super) fn start(options: &Options) -> Outcome<Self> {
        let taken = &options.without;
        let install = unprivileged_install()?;
        let binaries = tempfile::Builder::new().prefix("gp-escapes-").tempdir().doing("no temporary directory")?;
        readable(binaries.path())?;
        let model = ScriptedModel::start().doing("no model")?;
        let daemons_word = word();
        let mut setup = Setup::new(&model.base_url()).as_unprivileged(&install);
        setup.is_developer = options.development;
        setup.environment.push((DAEMONS_WORD.to_owned(), daemons_word.clone()));
        let inner: Vec<Layer> = taken.iter().copied().filter(|layer| *layer != Layer::OuterNamespace).collect();
        setup.binary = Some(if inner.is_empty() {
            gatepost_binary()?
        } else {
            let named = binaries.path().join(Layer::file_name(&inner));
            fs::copy(built_binary("gatepost-tests", "gatepost-without")?, &named).doing("no copy of the binary")?;
            named
        });
        if taken.contains(&Layer::OuterNamespace) {
            let programs = binaries.path().join("bin");
            fs::create_dir(&programs).doing("no directory for programs")?;
            link_programs_without("bwrap", &programs)?;
            let path = format!("{}:{}", install.python_bin.display(), programs.display());
            setup.environment.retain(|(name, _)| name != "PATH");
            setup.environment.push(("PATH".to_owned(), path));
        }
        let home = Home::new(setup)?;
        let owner = Owner::start(&home, &install)?;
        place_agent(&home, install.user)?;
        let daemon = home.serve()?;
        let client = daemon.client().clone().with_timeout(REPLY_LIMIT);
        Ok(Self {
            model,
            home,
            owner,
            client,
            install,
            daemon: Some(daemon),
            daemons_word,
            hidden: BTreeMap::new(),
            keys: Vec::new(),
            targets: json!({}),
            _binaries: binaries,
        })
    }

    pub(super) fn workspace(&self) -> PathBuf {
        self.home.workspace().canonicalize().unwrap_or_else(|_| self.home.workspace())
    }

    pub(super) fn talk(&self) -> Outcome<Talk> {
        Talk::start(&self.client, &self.workspace().to_string_lossy())
    }

    pub(super) fn daemon_pid(&self) -> u32 {
        self.daemon.as_ref().map_or(0, Daemon::pid)
    }

    /// The level and the server's process, as the daemon has them.
    pub(super) fn status(&self) -> Outcome<(String, u32)> {
        let status = self.client.get("/v1/status")?.expect_status(200)?;
        let level = status["confinement_level"].as_str().unwrap_or_default().to_owned();
        let pid = status["servers"][0]["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0);
        Ok((level, pid))
    }

    /// The guards of the server's tree, the first one first; `None` where there are none.
    pub(super) fn guards(&self, server: u32) -> Option<[u32; 2]> {
        guards_of(server).filter(|[first, _]| processes::stat(*first).is_some_and(|it| it.parent == self.daemon_pid()))
    }

    /// The data directory of the only server.
    pub(super) fn data(&self) -> Outcome<PathBuf> {
        let mut bindings = fs::read_dir(self.home.state().join("bindings")).doing("no bindings")?.flatten();
        bindings.next().map(|entry| entry.path()).ok_or_else(|| Failure::new("no server was started"))
    }

    /// Learns what is to be kept from the agent, and writes down what it may know.
    pub(super) fn learn(&mut self, facts: &Value) -> Outcome<()> {
        let (_, server) = self.status()?;
        let (state, data) = (self.home.state(), self.data()?);
        let files = [state.join("owner.token"), state.join("secret.key"), self.home.path().join("model.key")];
        let mut keys = Vec::new();
        for file in &files {
            keys.push(fs::read_to_string(file).doing("a key could not be read")?.trim().to_owned());
        }
        let port = server_port(server)?;
        let seen = self.python(LOOK, &[self.daemon_pid().to_string(), server.to_string(), port.to_string()], &keys)?;
        let session_key =
            seen["session_key"].as_str().ok_or_else(|| Failure::new("root does not find the session key"))?;
        keys.push(session_key.to_owned());
        let proc = |file: &str| fs::read(format!("/proc/{server}/{file}")).doing("root cannot look at the server");
        let environment = String::from_utf8_lossy(&proc("environ")?).into_owned();
        let nonce = environment.split('\0').find(|entry| entry.starts_with("GATEPOST_NONCE=")).unwrap_or_default();
        let maps = String::from_utf8_lossy(&proc("maps")?).into_owned();
        let socket = listening_socket(port)?;
        let word_file = data.join("cwd/word");
        let cwd_word = word();
        self.write(&word_file, &cwd_word)?;
        self.hidden = BTreeMap::from([
            ("server_environ", nonce.to_owned()),
            ("editor_server_environ", nonce.to_owned()),
            ("editor_owner_token", keys[0].clone()),
            ("editor_link_to_state", keys[1].clone()),
            ("daemon_environ", self.daemons_word.clone()),
            ("guard_environ", nonce.to_owned()),
            ("guard_mem", nonce.to_owned()),
            ("owners_environ", self.owner.word.clone()),
            ("every_environ", self.owner.word.clone()),
            ("owners_mem", self.owner.word.clone()),
            ("owners_ptrace", self.owner.word.clone()),
            ("owners_shared_memory", self.owner.word.clone()),
            ("owners_ssh_key", self.owner.ssh_key.clone()),
            ("setuid_program", self.owner.roots_word.clone()),
            ("context_link", self.owner.note.clone()),
            ("server_maps", maps.lines().next().unwrap_or_default().to_owned()),
            ("server_fd", socket),
            ("server_cwd", cwd_word),
            ("daemon_socket_racing", "gatepost_version".to_owned()),
        ]);
        let startup = fs::read_dir(data.join("startup")).doing("no start-up module")?.flatten().next();
        let startup = startup.map(|entry| entry.path().join("gatepost_startup.py")).unwrap_or_default();
        let own = json!({
            "device": fs::metadata(self.home.path()).doing("the home is gone")?.dev(),
            "workspace": self.workspace(), "marks": self.owner.marks(), "home": self.owner.directory(),
            "server_pid": server, "daemon_pid": self.daemon_pid(), "port": port,
            "socket": self.home.socket(), "session_key": session_key, "owner_token": keys[0],
            "key_address": seen["key_address"], "word_file": "word",
            "owner_token_file": files[0], "secret_key_file": files[1], "model_key_file": files[2],
            "configuration": self.home.path().join("config.toml"),
            "wrapper": self.home.binary(), "startup_file": startup, "server_home": data.join("home"),
            "installed_file": self.installed_file()?, "repository": self.workspace().join("repository"),
        });
        self.keys = keys;
        let mut targets = serde_json::Map::new();
        for part in [&own, &self.owner.targets, facts] {
            targets.extend(part.as_object().cloned().unwrap_or_default());
        }
        self.targets = Value::Object(targets);
        self.write(&self.workspace().join("attempts/targets.json"), &self.targets.to_string())
    }

    /// A module that the installed server would import; of a name of its own, since others may use the same install.
    pub(super) fn installed_file(&self) -> Outcome<PathBuf> {
        let servers = fs::read_dir(self.home.state().join("servers")).doing("no installed server")?.flatten();
        let packages = servers.map(|entry| entry.path().join("lib/python3.12/site-packages"));
        let mut packages = packages.filter(|path| path.is_dir());
        packages
            .next()
            .map(|path| path.join(format!("added_by_the_agent_{}.py", self.daemons_word)))
            .ok_or_else(|| Failure::new("no installed server"))
    }

    /// Runs a program as root and reads the JSON that it prints.
    fn python(&self, program: &str, arguments: &[String], more: &[String]) -> Outcome<Value> {
        let python = self.install.python_bin.join("python3.12");
        let mut command = Command::new(python);
        command.args(["-I", "-B", "-c", program]).args(arguments).args(more).env_clear();
        let output = command.output().doing("root's look could not be started")?;
        serde_json::from_slice(&output.stdout)
            .doing(&format!("root's look failed: {}", String::from_utf8_lossy(&output.stderr)))
    }

    /// The digests of whatever lies in the workspace and around it, as a person lists them who has reviewed it.
    pub(super) fn reviewed(&self) -> Outcome<Value> {
        let directories = [self.workspace(), self.home.workspace_root()];
        self.python(REVIEWED, &directories.map(|path| path.to_string_lossy().into_owned()), &[])
    }

    /// Removes the plugins that the agent left, as an owner does who wants to go on working.
    pub(super) fn remove_plugins(&self) -> Outcome<()> {
        let data = self.data()?;
        let around = [self.workspace(), self.home.workspace_root(), data.join("home"), data.join("agent-home")];
        for plugins in
            around.iter().flat_map(|top| [".openhands/plugins", ".agents/plugins"].map(|name| top.join(name)))
        {
            if plugins.exists() {
                fs::remove_dir_all(&plugins).doing("a plugin could not be removed")?;
            }
        }
        Ok(())
    }

    /// A file of the agent's user.
    pub(super) fn write(&self, path: &Path, text: &str) -> Outcome<()> {
        write_as(path, text, self.install.user)
    }

    /// Kills the daemon, and starts it again with this content accepted.
    pub(super) fn restart_after_kill(&mut self, reviewed: &Value) -> Outcome<()> {
        if let Some(daemon) = self.daemon.take() {
            daemon.kill()?;
        }
        let tables = format!("[approval]\nreviewed_content = {reviewed}\n");
        self.home.reconfigure(|setup| setup.tables = tables)?;
        let daemon = self.home.serve()?;
        self.client = daemon.client().clone().with_timeout(REPLY_LIMIT);
        self.daemon = Some(daemon);
        Ok(())
    }

    /// Kills the server, as a crash does.
    pub(super) fn kill_server(&self) -> Outcome<()> {
        let (_, server) = self.status()?;
        let pid = Pid::from_raw(server.cast_signed()).ok_or_else(|| Failure::new("no server is up"))?;
        kill_process(pid, Signal::KILL).doing("the server could not be killed")
    }

    /// Ends everything in order; how many processes were left.
    pub(super) fn stop(mut self) -> Outcome<usize> {
        let daemon = self.daemon.take().ok_or_else(|| Failure::new("no daemon is up"))?;
        // They have their home where the daemon has its state, and would be counted.
        self.owner.end();
        Ok(daemon.stop()?.leftovers.len())
    }
}

/// The listening socket of this port, as a link in a process's list of descriptors names it.
fn listening_socket(port: u16) -> Outcome<String> {
    let table = fs::read_to_string("/proc/net/tcp").doing("the kernel's table of sockets could not be read")?;
    let mut rows = table.lines().map(|row| row.split_whitespace().collect::<Vec<_>>());
    let own =
        rows.find(|row| row.get(1) == Some(&format!("0100007F:{port:04X}").as_str()) && row.get(3) == Some(&"0A"));
    let inode = own.and_then(|row| row.get(9).copied().map(str::to_owned));
    inode.map(|inode| format!("socket:[{inode}]")).ok_or_else(|| Failure::new("nobody listens on the server's port"))
}

fn place_agent(home: &Home, user: u32) -> Outcome<()> {
    let workspace = home.workspace();
    for directory in ["attempts", "got"] {
        let path = workspace.join(directory);
        fs::create_dir(&path).doing("a directory could not be made")?;
        chown(&path, Some(user), Some(user)).doing("a directory could not be given away")?;
    }
    for (name, text) in AGENT {
        write_as(&workspace.join("attempts").join(name), text, user)?;
    }
    Ok(())
}

pub(super) fn write_as(path: &Path, text: &str, user: u32) -> Outcome<()> {
    fs::write(path, text).doing("a file could not be written")?;
    chown(path, Some(user), Some(user)).doing("a file could not be given away")
}

fn readable(path: &Path) -> Outcome<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).doing("a mode could not be set")
}
