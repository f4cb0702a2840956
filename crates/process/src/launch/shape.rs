//! What a server is started with: its configuration, environment and arguments, and the digest of their shape.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use host::Secret;
use serde_json::{Value, json};

use super::layout::{Layout, MODULE_NAME, is_resolved};
use crate::install::Installed;
use crate::own::OwnInstall;

/// Numbers of the descriptors in the child.
pub(crate) const CONFIG_FD: i32 = 3;
pub(crate) const LISTEN_FD: i32 = 4;
pub(crate) const CONTROL_FD: i32 = 5;
pub(crate) const PLAN_FD: i32 = 6;
pub(crate) const DOMAIN_FD: i32 = 7;
pub(crate) const WRAPPER_FD: i32 = 8;
pub(crate) const OUTER_FD: i32 = 9;

/// What is started.
#[derive(Debug, Clone)]
pub enum Program {
    /// An install of ours, as `bin/python -m openhands.agent_server`.
    Managed(Installed),
    /// The owner's own executable.
    Own(OwnInstall),
}

impl Program {
    pub(crate) fn executable(&self) -> &Path {
        match self {
            Self::Managed(installed) => &installed.executable,
            Self::Own(own) => &own.executable,
        }
    }

    /// The Python environment it belongs to.
    pub(crate) fn root(&self) -> &Path {
        match self {
            Self::Managed(installed) => &installed.root,
            Self::Own(own) => &own.root,
        }
    }

    /// Isolated: the interpreter takes nothing from its environment or the working directory, and writes no bytecode
    /// into the install.
    fn first_arguments(&self) -> &'static [&'static str] {
        match self {
            Self::Managed(_) => &["-I", "-B", "-m", "openhands.agent_server"],
            Self::Own(_) => &[],
        }
    }

    /// SHA-256 over where it stands and what names its content; 64 lower-case hexadecimal digits.
    #[must_use]
    pub fn digest(&self) -> String {
        rules::jcs::digest(&json!({"executable": self.executable().to_string_lossy(), "content": self.identity()}))
    }

    fn identity(&self) -> Value {
        match self {
            Self::Managed(installed) => json!({"manifest_sha256": installed.manifest_sha256}),
            Self::Own(own) => json!({"executable_sha256": own.executable_sha256}),
        }
    }
}

/// Everything that a start is made of.
pub(crate) struct Shape<'a> {
    pub(crate) program: &'a Program,
    pub(crate) version: &'a str,
    pub(crate) layout: &'a Layout,
    pub(crate) path: OsString,
    pub(crate) port: u16,
    pub(crate) nonce: &'a str,
    /// What confines the processes that the server starts, if anything does.
    pub(crate) wrapper: Option<Wrapper<'a>>,
}

/// What stands before each program that the server starts.
pub(crate) struct Wrapper<'a> {
    /// Where the wrapper is.
    pub(crate) program: &'a Path,
    /// Whether a thread of the server's own can be confined.
    pub(crate) has_domain: bool,
    /// Before the wrapper itself: what starts it in an outer namespace; empty without one.
    pub(crate) outer: &'a [OsString],
    /// The owner's home: HOME is another, so what is granted of this one is named.
    pub(crate) owner_home: &'a Path,
}

/// What is granted of the owner's home, by the variable that names it. Not by way of a link: its target is not granted.
const OF_OWNER: [(&str, &str); 2] = [("GIT_CONFIG_GLOBAL", ".gitconfig"), ("RUSTUP_HOME", ".rustup")];

impl Wrapper<'_> {
    /// How the start-up module starts a process. Both programs are executed by the descriptors on which they were proved:
    /// whatever stands in their places later is not. But on macOS, which executes nothing by a descriptor: what stands at the
    /// wrapper's path then is executed, an upgrade for one. The agent cannot write there.
    fn door(&self) -> Value {
        let own = [WRAPPER_FD, PLAN_FD];
        let open = |number: i32| format!("/proc/self/fd/{number}");
        let wrapper =
            if cfg!(target_os = "linux") { open(WRAPPER_FD) } else { self.program.to_string_lossy().into_owned() };
        let mut words: Vec<String> = self.outer.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let outer = (!words.is_empty()).then_some(OUTER_FD);
        words.extend([wrapper.clone(), "__confine".to_owned()]);
        words.extend(["--plan-fd".to_owned(), PLAN_FD.to_string(), "--own-fd".to_owned(), WRAPPER_FD.to_string()]);
        words.extend(outer.into_iter().flat_map(|number| ["--outer-fd".to_owned(), number.to_string()]));
        words.push("--".to_owned());
        json!({
            "starter": outer.map_or_else(|| wrapper.clone(), open),
            "words": words,
            "descriptors": own.into_iter().chain(outer).collect::<Vec<i32>>(),
            "prober": wrapper,
        })
    }

    fn owners(&self) -> impl Iterator<Item = (OsString, OsString)> + '_ {
        let granted = OF_OWNER.iter().map(|(name, place)| (name, self.owner_home.join(place)));
        let granted = granted.filter(|(_, path)| is_resolved(path));
        granted.map(|(name, path)| ((*name).into(), path.into()))
    }
}

/// The variables that have the same value at every start.
fn fixed() -> [(&'static str, String); 7] {
    [
        ("GATEPOST_CONTROL_FD", CONTROL_FD.to_string()),
        ("GATEPOST_LISTEN_FD", LISTEN_FD.to_string()),
        ("LANG", "C.UTF-8".to_owned()),
        ("LITELLM_LOCAL_MODEL_COST_MAP", "True".to_owned()),
        // A coloured traceback of one failed model call takes the server's only loop five seconds and more, in which it
        // answers nothing.
        ("LOG_RICH_TRACEBACKS", "false".to_owned()),
        ("OPENHANDS_AGENT_SERVER_CONFIG_PATH", format!("/dev/fd/{CONFIG_FD}")),
        ("OPENHANDS_SUPPRESS_BANNER", "1".to_owned()),
    ]
}

impl Shape<'_> {
    /// The whole environment; nothing is inherited, nothing in it is secret.
    pub(crate) fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut variables: Vec<(OsString, OsString)> =
            fixed().into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        let own: [(&str, OsString); 6] = [
            ("PATH", self.path.clone()),
            ("HOME", self.layout.home.clone().into()),
            ("TMPDIR", self.layout.tmp.clone().into()),
            ("TMUX_TMPDIR", self.layout.tmux.clone().into()),
            ("OH_PERSISTENCE_DIR", self.layout.persistence.clone().into()),
            ("GATEPOST_NONCE", self.nonce.into()),
        ];
        variables.extend(own.map(|(name, value)| (name.into(), value)));
        if let Some(wrapper) = &self.wrapper {
            let confining: [(&str, OsString); 2] = [
                ("GATEPOST_AGENT_HOME", self.layout.agent_home.clone().into()),
                ("GATEPOST_DOOR", wrapper.door().to_string().into()),
            ];
            variables.extend(confining.map(|(name, value)| (name.into(), value)));
            variables.extend(wrapper.has_domain.then(|| ("GATEPOST_DOMAIN_FD".into(), DOMAIN_FD.to_string().into())));
            variables.extend(wrapper.owners());
        }
        variables
    }

    /// That of a spare: the same without a configuration, and without what belongs to a workspace.
    pub(crate) fn spare_environment(&self) -> Vec<(OsString, OsString)> {
        let mut variables = self.environment();
        variables.retain(|(name, _)| name != "OPENHANDS_AGENT_SERVER_CONFIG_PATH");
        variables.push(("GATEPOST_SPARE".into(), "1".into()));
        variables
    }

    /// The arguments after the program.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = self.program.first_arguments().iter().map(OsString::from).collect();
        let port = self.port.to_string();
        arguments.extend(["--host", "127.0.0.1", "--port", &port, "--extra-python-path"].map(OsString::from));
        arguments.push(self.layout.startup.clone().into());
        arguments.extend(["--import-modules", MODULE_NAME].map(OsString::from));
        arguments
    }

    /// The server's configuration, which carries the keys; it goes into a file without a name.
    pub(crate) fn configuration(&self, session_key: &Secret, secret_key: &Secret) -> Secret {
        // Put together by hand: every text that ever holds a key is wiped.
        let plain = self.plain_configuration().to_string();
        let (session_key, secret_key) = (quoted(session_key), quoted(secret_key));
        Secret::new(format!(
            "{{\"session_api_keys\":[{}],\"secret_key\":{},{}",
            session_key.expose(),
            secret_key.expose(),
            plain.trim_start_matches('{')
        ))
    }

    fn plain_configuration(&self) -> Value {
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        json!({
            "conversations_path": text(&self.layout.conversations),
            "workspace_path": text(&self.layout.server_workspace),
            "bash_events_dir": text(&self.layout.bash_events),
            "enable_vscode": false,
            "enable_vnc": false,
            "conversation_idle_ttl_seconds": null,
            "preload_tools": false,
            "lease_ttl_seconds": 0,
        })
    }

    /// SHA-256 over what is started and how: the version, the program's content, arguments without the port, names of
    /// the environment with its fixed values, the start-up module, the configuration without keys and paths.
    pub(crate) fn digest(&self, startup_files: &[(String, String)]) -> String {
        let mut names: Vec<String> =
            self.environment().iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        names.sort();
        let fixed: serde_json::Map<String, Value> =
            fixed().into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
        let arguments: Vec<String> = self.arguments().iter().map(|word| self.placed(&word.to_string_lossy())).collect();
        let mut configuration = self.plain_configuration();
        for name in ["conversations_path", "workspace_path", "bash_events_dir"] {
            configuration[name] = json!(self.placed(configuration[name].as_str().unwrap_or_default()));
        }
        let startup_sha256: serde_json::Map<String, Value> = startup_files
            .iter()
            .map(|(name, text)| (name.clone(), json!(rules::jcs::sha256_hex(text.as_bytes()))))
            .collect();
        rules::jcs::digest(&json!({
            "version": self.version,
            "program": self.program.identity(),
            "arguments": arguments,
            "environment": {"names": names, "fixed": fixed},
            "startup_files_sha256": startup_sha256,
            "configuration": configuration,
            "descriptors": {
                "config": CONFIG_FD,
                "listener": LISTEN_FD,
                "control": CONTROL_FD,
                "plan": PLAN_FD,
                "domain": DOMAIN_FD,
                "wrapper": WRAPPER_FD,
                "outer": OUTER_FD,
            },
        }))
    }

    /// The word with what differs from binding to binding and from start to start named instead.
    fn placed(&self, word: &str) -> String {
        if word == self.port.to_string() {
            return "<port>".to_owned();
        }
        word.replace(&*self.layout.data.to_string_lossy(), "<data>").replace(&self.layout.start_name, "<start>")
    }
}

/// As a JSON string.
fn quoted(secret: &Secret) -> Secret {
    Secret::new(Value::from(secret.expose()).to_string())
}
