//! The launched server and its control channel.

use agent_contract::{Client, Contract, LlmProfile, ProfileName, SetupClient};
use host::{Secret, Spawner};
use process::launch::{LaunchSpec, OwnedServer, Program, data_dir, launch};
use rules::redact::Redactor;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use testkit::daemon::{SERVER_VERSION, shared_install};
use testkit::guards::{Guard, without};
use testkit::{Doing, Failure, Outcome};
use tokio::runtime::Runtime;

const START_LIMIT: Duration = Duration::from_secs(150);
const STOP_GRACE: Duration = Duration::from_secs(8);
const LOOK: Duration = Duration::from_millis(100);
const TOOLS: [&str; 2] = ["terminal", "file_editor"];
/// The same at every start, so that what is stored can be read again.
const SECRET_KEY: &str = "5ec2e700a1b2c3d4e5f60718293a4b5c";
const SESSION_KEY_BYTES: usize = 16;

pub(crate) struct Launcher {
    runtime: Runtime,
    spawner: Spawner,
    contract: &'static Contract,
    program: Program,
    directory: PathBuf,
    model: String,
    startup_files: Vec<(String, String)>,
    server: Option<OwnedServer>,
    session_key: String,
    profile_id: String,
}

impl Launcher {
    pub(crate) fn start(directory: PathBuf, model: String, taken_out: &[Guard]) -> Outcome<Self> {
        host::hygiene::become_subreaper().doing("orphans would not fall to this process")?;
        let contract = Contract::reviewed(SERVER_VERSION).ok_or_else(|| Failure::new("no contract"))?;
        let installed = process::install::find(&shared_install()?, SERVER_VERSION);
        let program = Program::Managed(installed.ok_or_else(|| Failure::new("no managed server"))?);
        for name in ["state", "state/bindings"] {
            host::secure_fs::ensure_private_dir(&directory.join(name)).doing("no state directory")?;
        }
        let mut launcher = Self {
            runtime: Runtime::new().doing("no asynchronous runtime")?,
            spawner: Spawner::start().doing("no thread to start servers from")?,
            contract,
            program,
            directory,
            model,
            startup_files: without(taken_out, contract.startup_files())?,
            server: None,
            session_key: String::new(),
            profile_id: String::new(),
        };
        launcher.launch()?;
        Ok(launcher)
    }

    fn launch(&mut self) -> Outcome<()> {
        self.session_key = host::sign::random_hex(SESSION_KEY_BYTES).doing("no random bytes")?;
        let spec = LaunchSpec {
            program: self.program.clone(),
            version: SERVER_VERSION.to_owned(),
            startup_files: self.startup_files.clone(),
            data_dir: data_dir(&self.directory.join("state"), Path::new("/workspace")),
            runtime_dir: None,
            path: std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()),
            session_key: Arc::new(Secret::new(self.session_key.clone())),
            secret_key: Arc::new(Secret::new(SECRET_KEY.to_owned())),
            redactor: Arc::new(Redactor::new(Vec::new())),
            start_timeout: START_LIMIT,
            guard: None,
            confining: None,
        };
        let server = self.runtime.block_on(launch(&self.spawner, spec)).doing("the server was not launched")?;
        let key = Arc::new(Secret::new(self.session_key.clone()));
        let set_up = set_up(self.contract, server.port(), key, &self.model);
        self.profile_id = self.runtime.block_on(set_up)?;
        self.server = Some(server);
        Ok(())
    }

    fn server(&self) -> Outcome<&OwnedServer> {
        self.server.as_ref().ok_or_else(|| Failure::new("no server is up"))
    }

    pub(crate) fn ready(&self) -> Value {
        let server = self.server.as_ref();
        json!({"ready": {
            "port": server.map(OwnedServer::port), "session_key": self.session_key, "pid": server.map(OwnedServer::pid),
            "profile_id": self.profile_id,
        }})
    }

    pub(crate) fn answer(&mut self, request: &Value) -> Outcome<Value> {
        if let Some(granted) = ids(&request["grant"]) {
            let control = self.server()?.control();
            self.runtime.block_on(control.grant(&granted)).doing("not granted")?;
            return Ok(json!({"granted": granted.len()}));
        }
        if let Some(revoked) = ids(&request["revoke"]) {
            let control = self.server()?.control();
            return Ok(json!({"revoked": self.runtime.block_on(control.revoke(&revoked)).doing("not revoked")?}));
        }
        if let Some(conversation) = request["settled"].as_str() {
            let control = self.server()?.control();
            return Ok(json!({"settled": self.runtime.block_on(control.settled(conversation)).doing("not told")?}));
        }
        if request["relaunch"] == true {
            if let Some(server) = self.server.take() {
                self.runtime.block_on(server.stop(Duration::ZERO));
            }
            self.launch()?;
            return Ok(self.ready());
        }
        Err(Failure::new("no such request"))
    }

    /// Ends everything; whether nothing is left.
    pub(crate) fn stop(mut self) -> bool {
        let stopped = self.server.take().map(|server| self.runtime.block_on(server.stop(STOP_GRACE)));
        stopped.is_none_or(|report| report.leftover_processes == 0)
    }
}

fn ids(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|id| id.as_str().map(str::to_owned)).collect()
}

/// Waits until the server answers and stores the profiles that conversations are made from; the agent profile's id.
async fn set_up(contract: &'static Contract, port: u16, key: Arc<Secret>, model: &str) -> Outcome<String> {
    let client = Client::new(contract, port, Arc::clone(&key));
    let begun = Instant::now();
    while let Err(error) = client.server_info().await {
        if begun.elapsed() > START_LIMIT {
            return Err(Failure::new(format!("the server does not answer: {error}")));
        }
        tokio::time::sleep(LOOK).await;
    }
    let set_up = SetupClient::new(contract, port, key);
    let name = ProfileName::parse("gatepost").doing("no name")?;
    let api_key = Secret::new("model-key-of-a-bare-server".to_owned());
    let profile = LlmProfile { model: "openai/scripted", base_url: Some(model), api_key: Some(&api_key) };
    set_up.put_llm_profile(&name, &profile).await.doing("no model profile")?;
    set_up.put_agent_profile(&name, &name, &TOOLS.map(str::to_owned)).await.doing("no agent profile")?;
    let found = set_up.find_agent_profile(&name).await.doing("no agent profile")?;
    found.map(|profile| profile.id).ok_or_else(|| Failure::new("the agent profile was not stored"))
}
