//! What stands between the agent and everything else, layer by layer, and a start-up module without some of it.

use crate::failure::{Failure, Outcome};
use crate::guards::{Guard, exchange, without};

/// The file name of the daemon that goes without layers begins with this; their words follow, joined by `+`.
const NAME: &str = "gatepost-without-";
const JOIN: &str = "+";

/// A layer that can be taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// Every program that the server starts goes through the wrapper.
    Door,
    /// Tools that work within the server do so in a thread that has given up what commands have.
    ConfinedThread,
    /// Rules of files, of the wrapper.
    LandlockFiles,
    /// No signals and no abstract sockets to the outside, of the wrapper.
    LandlockScopes,
    /// Filters of system calls.
    Seccomp,
    /// No new privileges and no capabilities; an ordinary user has neither Landlock nor seccomp without.
    Privileges,
    /// The outer namespace of bubblewrap.
    OuterNamespace,
    /// Server and daemon are not dumpable.
    NotDumpable,
    /// Who descends from a server is not answered at the daemon's socket.
    Peers,
    /// What lies in the workspace is not run.
    Content,
    /// An action runs only when it was granted.
    Latch,
    /// Only the reviewed routes are served.
    Routes,
    /// The server answers nobody without its key.
    SessionKey,
    /// Keys travel in a descriptor, not in environments and arguments.
    HiddenKeys,
    /// The server's port is the daemon's alone.
    OwnPort,
    /// A server's tree stands in a domain of its own with guards that end it.
    TreeGuard,
    /// What a server starts is known by its HOME to the next daemon, which ends it.
    KnownHome,
}

impl Layer {
    /// All of them, in the order in which tables show them.
    pub const ALL: [Self; 17] = [
        Self::Door,
        Self::ConfinedThread,
        Self::Privileges,
        Self::LandlockFiles,
        Self::LandlockScopes,
        Self::Seccomp,
        Self::OuterNamespace,
        Self::NotDumpable,
        Self::Peers,
        Self::Content,
        Self::Latch,
        Self::Routes,
        Self::SessionKey,
        Self::HiddenKeys,
        Self::OwnPort,
        Self::TreeGuard,
        Self::KnownHome,
    ];

    /// Those that stop together what neither lets through when it is taken away alone.
    pub const TOGETHER: [&'static [Self]; 7] = [
        &[Self::Door, Self::NotDumpable],
        &[Self::Door, Self::Peers],
        &[Self::OuterNamespace, Self::Peers],
        &[Self::TreeGuard, Self::KnownHome],
        &[Self::HiddenKeys, Self::Latch],
        &[Self::Door, Self::HiddenKeys],
        &[Self::Door, Self::Content],
    ];

    /// The word for it on a command line and in tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Door => "door",
            Self::ConfinedThread => "confined_thread",
            Self::Privileges => "no_new_privileges",
            Self::LandlockFiles => "landlock_files",
            Self::LandlockScopes => "landlock_scopes",
            Self::Seccomp => "seccomp",
            Self::OuterNamespace => "outer_namespace",
            Self::NotDumpable => "not_dumpable",
            Self::Peers => "peer_check",
            Self::Content => "workspace_content",
            Self::Latch => "latch",
            Self::Routes => "routes",
            Self::SessionKey => "session_key",
            Self::HiddenKeys => "keys_by_descriptor",
            Self::OwnPort => "own_port",
            Self::TreeGuard => "tree_guard",
            Self::KnownHome => "known_home",
        }
    }

    /// The layer of that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|layer| layer.as_str() == word)
    }

    /// The words of these, joined.
    #[must_use]
    pub fn words(layers: &[Self]) -> String {
        layers.iter().map(|layer| layer.as_str()).collect::<Vec<_>>().join(JOIN)
    }

    /// The file name of the daemon that goes without these.
    #[must_use]
    pub fn file_name(taken: &[Self]) -> String {
        format!("{NAME}{}", Self::words(taken))
    }

    /// What the daemon of this file name goes without; `None` when that is no such name.
    #[must_use]
    pub fn of_file_name(name: &str) -> Option<Vec<Self>> {
        let words = name.strip_prefix(NAME)?;
        words.split(JOIN).filter(|word| !word.is_empty()).map(Self::parse).collect()
    }

    /// The guard of the start-up module that it is, if it is one.
    const fn guard(self) -> Option<Guard> {
        match self {
            Self::Content => Some(Guard::Content),
            Self::Latch => Some(Guard::Latch),
            Self::Routes => Some(Guard::Routes),
            Self::Door
            | Self::ConfinedThread
            | Self::Privileges
            | Self::LandlockFiles
            | Self::LandlockScopes
            | Self::Seccomp
            | Self::OuterNamespace
            | Self::NotDumpable
            | Self::Peers
            | Self::SessionKey
            | Self::HiddenKeys
            | Self::OwnPort
            | Self::TreeGuard
            | Self::KnownHome => None,
        }
    }

    /// Lines of the start-up module, and what stands there without the layer. The module says of itself what it always does.
    const fn exchanges(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Door => &[
                ("        route_children(door[\"starter\"], door[\"words\"], door[\"descriptors\"], agent_home)\n", ""),
                ("        refuse_other_ways()\n", "        pass\n"),
                ("        withhold_from_terminals(agent_home)\n", ""),
                (
                    "    return is_one and not subprocess._USE_POSIX_SPAWN and all(refuses(event) for event in OTHER_WAYS)\n",
                    "    return True\n",
                ),
            ],
            Self::ConfinedThread => &[("            confine_thread(domain_number)\n", "")],
            Self::NotDumpable => &[
                ("    forbid_dumps()\n    make", "    make"),
                ("    return ctypes.CDLL(None).prctl(PR_GET_DUMPABLE, 0, 0, 0, 0)\n", "    return 0\n"),
            ],
            Self::Content => &[("\"dropped\" if workspace_content_dropped() else \"loaded\"", "\"dropped\"")],
            Self::SessionKey => &[(
                "        await original_serve(self, sockets=[listener])\n",
                "        application = self.config.loaded_app\n        \
                 key = get_default_config().session_api_keys[0].encode()\n\n        \
                 async def keyless(scope, receive, send):\n            \
                 if scope[\"type\"] == \"http\" and not scope[\"path\"].endswith(\"/count\"):\n                \
                 scope[\"headers\"] = [*scope[\"headers\"], (b\"x-session-api-key\", key)]\n            \
                 await application(scope, receive, send)\n\n        \
                 self.config.loaded_app = keyless\n        \
                 await original_serve(self, sockets=[listener])\n",
            )],
            // As the server itself has it: in its environment, and in the arguments of a service beside it.
            Self::HiddenKeys => &[(
                "        get_default_config()\n",
                "        import subprocess\n\n        \
                 os.environ[\"OH_SESSION_API_KEYS_0\"] = get_default_config().session_api_keys[0]\n        \
                 subprocess.Popen([\"sh\", \"-c\", \"sleep 600\", os.environ[\"OH_SESSION_API_KEYS_0\"]])\n",
            )],
            Self::OwnPort => &[(
                "    listener = socket.socket(fileno=listen_number)\n",
                "    listener = socket.socket(fileno=listen_number)\n    \
                 listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)\n",
            )],
            Self::KnownHome => &[(
                "        agent_home = os.fsencode(os.environ.pop(\"GATEPOST_AGENT_HOME\"))\n",
                "        import tempfile\n\n        \
                 os.environ.pop(\"GATEPOST_AGENT_HOME\")\n        \
                 os.environ[\"HOME\"] = tempfile.mkdtemp()\n        \
                 agent_home = os.fsencode(os.environ[\"HOME\"])\n",
            )],
            Self::Privileges
            | Self::LandlockFiles
            | Self::LandlockScopes
            | Self::Seccomp
            | Self::OuterNamespace
            | Self::Peers
            | Self::TreeGuard
            | Self::Latch
            | Self::Routes => &[],
        }
    }
}

/// The files of the start-up module without these layers.
///
/// # Errors
/// When lines are not found exactly once: the module was changed, and this must follow.
pub fn without_layers(taken: &[Layer], startup_files: &[(&str, &str)]) -> Outcome<Vec<(String, String)>> {
    let guards: Vec<Guard> = taken.iter().filter_map(|layer| layer.guard()).collect();
    let mut files = without(&guards, startup_files)?;
    for layer in taken {
        for (present, other) in layer.exchanges() {
            exchange(&mut files, present, other)
                .map_err(|()| Failure::new(format!("the start-up module has no {} as known here", layer.as_str())))?;
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::{SERVER_VERSION, workspace_root};

    #[test]
    fn each_layer_of_the_start_up_module_is_taken_away_alone_and_with_the_others() {
        let folder = workspace_root().join(format!("config/contracts/{SERVER_VERSION}/startup"));
        let read = |entry: std::io::Result<std::fs::DirEntry>| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            name.ends_with(".py").then(|| (name, std::fs::read_to_string(path).unwrap()))
        };
        let files: Vec<(String, String)> = std::fs::read_dir(folder).unwrap().filter_map(read).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let own = without_layers(&[], &files).unwrap();
        for layer in Layer::ALL {
            let is_there = layer.guard().is_some() || !layer.exchanges().is_empty();
            assert_eq!(without_layers(&[layer], &files).unwrap() != own, is_there, "{layer:?}");
        }
        assert!(without_layers(&Layer::ALL, &files).is_ok());
        assert!(without_layers(&[Layer::Door], &[]).is_err());
    }

    #[test]
    fn each_layer_has_a_word_and_names_of_files_tell_them() {
        for layer in Layer::ALL {
            assert_eq!(Layer::parse(layer.as_str()), Some(layer));
        }
        for taken in [&[][..], &[Layer::Door], &Layer::ALL] {
            assert_eq!(Layer::of_file_name(&Layer::file_name(taken)).as_deref(), Some(taken));
        }
        for name in ["gatepost", "gatepost-without-everything", "gatepost-without"] {
            assert_eq!(Layer::of_file_name(name), None, "{name}");
        }
    }
}
