//! One launched server with its binding, model and clients.

use super::talk::Talk;
use super::upstream::Upstream;
use agent_contract::{Client, Contract, LlmProfile, NewConversation, ProfileName, SessionId, SetupClient};
use host::{Secret, Spawner};
use process::install::Installed;
use process::launch::{Control, LaunchSpec, OwnedServer, Program, data_dir, launch};
use process::own::inspect_executable;
use rules::redact::Redactor;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testkit::daemon::{built_binary, processes_of, shared_install};
use testkit::fake_server::{self, Plan};
use testkit::model::ScriptedModel;

pub(crate) const VERSION: &str = "1.40.0";
/// The tools that a conversation gets.
pub(crate) const TOOLS: [&str; 2] = ["terminal", "file_editor"];
const SESSION_KEY: &str = "5e551000a1b2c3d4e5f60718293a4b5c";
const SECRET_KEY: &str = "5ec2e700a1b2c3d4e5f60718293a4b5c";
const START_LIMIT: Duration = Duration::from_secs(120);
const STOP_GRACE: Duration = Duration::from_secs(8);

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Real,
    Fake,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Fake => "fake",
        }
    }
}

/// What outlives a restart.
struct Binding {
    kind: Kind,
    root: TempDir,
    program: Program,
    model: ScriptedModel,
}

/// A launched server, and who speaks to it.
pub(crate) struct Stage {
    binding: Binding,
    server: OwnedServer,
    pub(crate) client: Client,
    pub(crate) set_up: SetupClient,
    pub(crate) upstream: Upstream,
    profile_id: String,
    made: AtomicUsize,
}

/// One spawner for all: its thread must outlive every child.
fn spawner() -> Spawner {
    static SPAWNER: OnceLock<Spawner> = OnceLock::new();
    let start = || {
        host::hygiene::become_subreaper().unwrap();
        Spawner::start().unwrap()
    };
    SPAWNER.get_or_init(start).clone()
}

pub(crate) fn contract() -> &'static Contract {
    Contract::reviewed(VERSION).unwrap()
}

pub(crate) fn profile_name(name: &str) -> ProfileName {
    ProfileName::parse(name).unwrap()
}

/// Builds and installs everything before anything is launched: this process then ends whatever falls to it.
fn prepared() -> &'static Installed {
    static PREPARED: OnceLock<Installed> = OnceLock::new();
    PREPARED.get_or_init(|| {
        built_binary("testkit", "fake-agent-server").unwrap();
        process::install::find(&shared_install().unwrap(), VERSION).unwrap()
    })
}

fn program(kind: Kind, root: &Path) -> Program {
    let installed = prepared();
    match kind {
        Kind::Real => Program::Managed(installed.clone()),
        Kind::Fake => {
            let directory = root.join("env");
            let executable = fake_server::install(&directory, VERSION).unwrap();
            fake_server::set_plan(&directory, &Plan { runs_commands: true, ..Plan::default() }).unwrap();
            Program::Own(inspect_executable(&executable).unwrap())
        }
    }
}

impl Binding {
    fn data_dir(&self) -> PathBuf {
        data_dir(&self.root.path().join("state"), Path::new("/workspace"))
    }

    async fn launch(&self) -> OwnedServer {
        let spec = LaunchSpec {
            program: self.program.clone(),
            version: VERSION.to_owned(),
            startup_files: testkit::guards::without(&[], contract().startup_files()).expect("the start-up files"),
            data_dir: self.data_dir(),
            runtime_dir: None,
            path: std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()),
            session_key: Arc::new(Secret::new(SESSION_KEY.to_owned())),
            secret_key: Arc::new(Secret::new(SECRET_KEY.to_owned())),
            redactor: Arc::new(Redactor::new(Vec::new())),
            start_timeout: START_LIMIT,
            guard: None,
            confining: None,
        };
        launch(&spawner(), spec).await.unwrap()
    }
}

impl Stage {
    /// Launches a server and stores the profiles that conversations are made from.
    pub(crate) async fn start(kind: Kind) -> Self {
        // Short: the sockets below it have paths of at most 107 bytes.
        let root = tempfile::Builder::new().prefix("gp-").tempdir().unwrap();
        for name in ["state", "state/bindings", "src"] {
            host::secure_fs::ensure_private_dir(&root.path().join(name)).unwrap();
        }
        let program = program(kind, root.path());
        let binding = Binding { kind, root, program, model: ScriptedModel::start().unwrap() };
        Self::of(binding).await
    }

    async fn of(binding: Binding) -> Self {
        let server = binding.launch().await;
        let key = Arc::new(Secret::new(SESSION_KEY.to_owned()));
        let client = Client::new(contract(), server.port(), Arc::clone(&key));
        answers(&client).await;
        let set_up = SetupClient::new(contract(), server.port(), key);
        let upstream = Upstream::new(server.port(), SESSION_KEY);
        let (name, tools) = (profile_name("gatepost"), TOOLS.map(str::to_owned));
        put_model(&set_up, "gatepost", "openai/scripted", &binding.model).await;
        if set_up.find_agent_profile(&name).await.unwrap().is_none() {
            set_up.put_agent_profile(&name, &name, &tools).await.unwrap();
        }
        let profile_id = set_up.find_agent_profile(&name).await.unwrap().unwrap().id;
        Self { binding, server, client, set_up, upstream, profile_id, made: AtomicUsize::new(0) }
    }

    pub(crate) fn kind(&self) -> Kind {
        self.binding.kind
    }

    pub(crate) fn profile_id(&self) -> &str {
        &self.profile_id
    }

    pub(crate) fn port(&self) -> u16 {
        self.server.port()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.server.pid()
    }

    pub(crate) fn control(&self) -> Control {
        self.server.control()
    }

    /// The same port with another key.
    pub(crate) fn stranger(&self) -> Client {
        let key = Secret::new("0000000000000000000000000000dead".to_owned());
        Client::new(contract(), self.server.port(), Arc::new(key))
    }

    /// A new directory below the root.
    pub(crate) fn new_directory(&self) -> PathBuf {
        let number = self.made.fetch_add(1, Ordering::SeqCst);
        let path = self.binding.root.path().join(format!("src/{number}-{}", uuid::Uuid::new_v4().simple()));
        std::fs::create_dir(&path).unwrap();
        path.canonicalize().unwrap()
    }

    pub(crate) fn new_conversation(&self, directory: &Path) -> NewConversation {
        let id = SessionId::parse(&uuid::Uuid::new_v4().to_string()).unwrap();
        let workspace_dir = directory.to_string_lossy().into_owned();
        NewConversation { id, workspace_dir, profile_id: self.profile_id.clone() }
    }

    /// A new conversation in a directory of its own.
    pub(crate) async fn talk(self: &Arc<Self>) -> Talk {
        let directory = self.new_directory();
        let new = self.new_conversation(&directory);
        assert!(self.client.create_conversation(&new).await.unwrap().is_new);
        Talk::new(Arc::clone(self), new.id, directory)
    }

    pub(crate) async fn put_model_profile(&self, name: &str, model: &str) {
        put_model(&self.set_up, name, model, &self.binding.model).await;
    }

    /// Ends the server with SIGKILL, lets its stored files be changed, and starts it again on the same binding.
    pub(crate) async fn crash_and_restart(self, meanwhile: impl FnOnce(&Path)) -> Self {
        let Self { binding, server, .. } = self;
        assert_eq!(server.stop(Duration::ZERO).await.leftover_processes, 0);
        meanwhile(&binding.data_dir());
        Self::of(binding).await
    }

    /// Ends the server politely: nothing of it may be left.
    pub(crate) async fn stop(self) {
        assert_eq!(self.server.stop(STOP_GRACE).await.leftover_processes, 0);
        assert_eq!(processes_of(self.binding.root.path(), &[]), []);
    }
}

/// An announced server may not answer yet.
async fn answers(client: &Client) {
    let begun = Instant::now();
    while let Err(error) = client.server_info().await {
        assert!(begun.elapsed() < START_LIMIT, "the server does not answer: {error}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn put_model(set_up: &SetupClient, name: &str, model: &str, endpoint: &ScriptedModel) {
    let base_url = endpoint.base_url();
    let api_key = Secret::new("model-key-of-the-contract-suite".to_owned());
    let profile = LlmProfile { model, base_url: Some(&base_url), api_key: Some(&api_key) };
    set_up.put_llm_profile(&profile_name(name), &profile).await.unwrap();
}

/// The body of a message.
pub(crate) fn message(text: &str, run: bool) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}], "run": run})
}
