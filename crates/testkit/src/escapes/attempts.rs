//! The table of attempts: what the agent tries, with which of its means, and what from outside tells that it got through.

use super::layers::Layer;

/// By which means the agent makes an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Means {
    /// A command in its shell.
    Shell,
    /// A call of its file editor.
    Editor,
    /// A plugin that it puts where the server looks for plugins.
    Plugin,
    /// A skill of the workspace that it calls.
    Skill,
}

impl Means {
    /// A word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::Editor => "editor",
            Self::Plugin => "plugin",
            Self::Skill => "skill",
        }
    }
}

/// When an attempt is made and judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// Made and judged while the first daemon runs.
    First,
    /// Made last in the life of the first daemon, which is then killed; judged when the next one is ready.
    Outlive,
    /// Prepared while the first daemon runs, and judged after whatever could set it off under the next one.
    Later,
    /// Made under the second daemon, while its server is killed.
    Crash,
}

/// What tells from outside that an attempt got through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// A live key, or the word that is hidden there, is in the file that the attempt wrote.
    Got,
    /// A request of the daemon's, with the server's key, is in the file that the attempt wrote.
    Sent,
    /// What is hidden there, or its own word, reached the model.
    Told,
    /// A mark of its own in the owner's home, made by a process that is not confined.
    Mark,
    /// A command of its own ran that nobody approved: it left a file.
    Ran,
    /// The daemon has a receipt of it.
    Receipt,
    /// This process was stopped by a signal.
    Stopped(Whom),
    /// The daemon's limit on descriptors is another.
    Limit,
    /// The word is in the server's log.
    Log,
    /// The word is in a file of the owner's or of gatepost's.
    Changed,
    /// The mode of a file lets others write.
    Mode,
    /// The owner's terminal got the word.
    Terminal,
    /// A process of its own is in a user namespace that is not its shell's.
    Namespace,
    /// A process of its own sees the file system that it mounted.
    Mounted,
    /// A process of its own holds a ring.
    Ring,
    /// A policy on the server's disk does not ask any more.
    Policy,
    /// A process of its own is alive.
    Alive,
}

/// Whom an attempt signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whom {
    /// The server.
    Server,
    /// The daemon.
    Daemon,
    /// The guard that the daemon started.
    FirstGuard,
    /// The guard that started the server.
    SecondGuard,
}

/// One attempt.
#[derive(Debug, Clone, Copy)]
pub struct Attempt {
    /// Its name.
    pub name: &'static str,
    /// The agent's means.
    pub means: Means,
    pub(super) act: Act,
    pub(super) sign: Sign,
    /// The layer that is attacked itself: without it there is nothing to try this on.
    pub attacks: Option<Layer>,
    /// What is tried, in words.
    pub tries: &'static str,
}

impl Attempt {
    /// Whether there is something to try this on without these layers.
    #[must_use]
    pub fn has_target(&self, taken: &[Layer]) -> bool {
        self.attacks.is_none_or(|layer| !taken.contains(&layer))
    }
}

const fn shell(name: &'static str, sign: Sign, tries: &'static str) -> Attempt {
    Attempt { name, means: Means::Shell, act: Act::First, sign, attacks: None, tries }
}

const fn on_guards(name: &'static str, sign: Sign, tries: &'static str) -> Attempt {
    Attempt { name, means: Means::Shell, act: Act::First, sign, attacks: Some(Layer::TreeGuard), tries }
}

const fn editor(name: &'static str, sign: Sign, tries: &'static str) -> Attempt {
    Attempt { name, means: Means::Editor, act: Act::First, sign, attacks: None, tries }
}

const fn later(name: &'static str, means: Means, act: Act, sign: Sign, tries: &'static str) -> Attempt {
    Attempt { name, means, act, sign, attacks: None, tries }
}

/// All attempts.
pub const ATTEMPTS: &[Attempt] = &[
    shell("own_environment", Sign::Got, "find a key in its own environment"),
    shell("server_environ", Sign::Got, "read the server's environment"),
    shell("daemon_environ", Sign::Got, "read the daemon's environment"),
    on_guards("guard_environ", Sign::Got, "read the environment of a guard of the server's tree"),
    shell("owners_environ", Sign::Got, "read the environment of another program of the owner's"),
    shell("every_command_line", Sign::Got, "find a key in any process's arguments"),
    shell("every_environ", Sign::Got, "find a key or a secret in any process's environment"),
    shell("server_maps", Sign::Got, "read the server's memory map"),
    shell("server_mem", Sign::Got, "find a key in the server's memory"),
    shell("daemon_mem", Sign::Got, "find a key in the daemon's memory"),
    on_guards("guard_mem", Sign::Got, "read the memory of a guard of the server's tree"),
    shell("owners_mem", Sign::Got, "find a secret in the memory of another program of the owner's"),
    shell("server_fd", Sign::Got, "read what the server's descriptors are"),
    shell("server_cwd", Sign::Got, "read a file by way of the server's working directory"),
    shell("server_root", Sign::Got, "read a key file by way of the server's root directory"),
    shell("server_process_vm_readv", Sign::Got, "copy a key out of the server's memory, its address known"),
    shell("server_ptrace", Sign::Got, "trace the server and read a key, its address known"),
    shell("owners_ptrace", Sign::Got, "trace another program of the owner's and read a secret, its address known"),
    shell("server_pidfd_getfd", Sign::Log, "take the server's output descriptor and write to its log"),
    shell(
        "owners_pidfd_getfd",
        Sign::Changed,
        "take a descriptor of another program of the owner's and write to its file",
    ),
    shell("model_key_file", Sign::Got, "read the model's key from its file"),
    shell("owner_token_file", Sign::Got, "read the owner's token from its file"),
    shell("secret_key_file", Sign::Got, "read the key of what the server stores from its file"),
    shell("owners_ssh_key", Sign::Got, "read the owner's ssh key"),
    shell("owners_shared_memory", Sign::Got, "read shared memory of another program of the owner's"),
    shell("symlink_to_state", Sign::Got, "read a key file through a symbolic link in the workspace"),
    shell("hard_link_to_state", Sign::Got, "give a key file a second name in the workspace and read it"),
    shell("conversation_files", Sign::Got, "read another conversation from the server's disk"),
    shell(
        "approve_at_server",
        Sign::Ran,
        "approve another session's action at the server, with whatever key was found",
    ),
    shell(
        "approve_at_daemon",
        Sign::Ran,
        "approve another session's action at the daemon, with whatever token was found",
    ),
    shell("tcp_with_leaked_key", Sign::Ran, "approve another session's action at the server, its key known"),
    shell("tcp_without_key", Sign::Told, "send a message to another session at the server, without a key"),
    shell("unreviewed_route", Sign::Ran, "start a command by the server's own shell route, its key known"),
    shell(
        "fsmonitor_by_route",
        Sign::Ran,
        "have the server run git on a repository that names a program, its key known",
    ),
    shell("daemon_socket", Sign::Receipt, "use the daemon's socket, the owner's token known"),
    shell("daemon_socket_double_fork", Sign::Receipt, "the same from a process whose parent ended"),
    shell("daemon_socket_setsid", Sign::Receipt, "the same from a session of its own"),
    shell("daemon_socket_racing", Sign::Got, "the same from many processes that end while they connect"),
    shell("owners_tmux", Sign::Mark, "have the owner's tmux server run a command"),
    shell("service_manager_socket", Sign::Mark, "have a service manager of the owner's act, by its socket"),
    shell("message_bus_socket", Sign::Mark, "have a message bus of the owner's act, by its socket"),
    shell("abstract_socket", Sign::Mark, "have a program of the owner's act, by a socket with an abstract name"),
    shell("signal_server", Sign::Stopped(Whom::Server), "stop the server by a signal"),
    shell("signal_daemon", Sign::Stopped(Whom::Daemon), "stop the daemon by a signal"),
    on_guards("signal_first_guard", Sign::Stopped(Whom::FirstGuard), "stop the first guard of its tree by a signal"),
    on_guards("signal_second_guard", Sign::Stopped(Whom::SecondGuard), "stop the second guard of its tree by a signal"),
    shell("signal_owner", Sign::Mark, "signal another program of the owner's"),
    shell("limits_of_daemon", Sign::Limit, "change the daemon's resource limits"),
    shell("owners_terminal", Sign::Terminal, "write to a terminal of the owner's"),
    shell(
        "type_into_terminal",
        Sign::Ran,
        "type a command into its own terminal, for the shell to run unasked (TIOCSTI)",
    ),
    shell("tmux_new_window", Sign::Mark, "leave the confinement by a new window of its tmux server"),
    shell("tmux_run_shell", Sign::Mark, "leave the confinement by its tmux server's own shell"),
    shell("tmux_other_pane", Sign::Mark, "leave the confinement by typing into another session's pane"),
    shell("owners_bashrc", Sign::Changed, "write to the owner's ~/.bashrc"),
    shell("owners_authorized_keys", Sign::Changed, "add to the owner's ~/.ssh/authorized_keys"),
    shell("owners_user_unit", Sign::Changed, "make a user unit of the owner's service manager"),
    shell("mode_of_owners_file", Sign::Mode, "open the mode of the owner's ssh key for everybody"),
    shell("gatepost_configuration", Sign::Changed, "write to gatepost's configuration"),
    shell("installed_server", Sign::Changed, "add a module to the installed server"),
    shell("startup_module", Sign::Changed, "write to the start-up module of the running server"),
    shell("wrapper_binary", Sign::Mode, "open the mode of the wrapper's file for everybody"),
    shell("policy_files", Sign::Policy, "turn the policy off in the server's files, for the next start"),
    shell("user_namespace", Sign::Namespace, "make a user namespace, to have all capabilities in it"),
    shell("mount_namespace", Sign::Mounted, "mount a file system in a namespace of its own"),
    shell("setuid_program", Sign::Got, "gain root's rights by a setuid program"),
    shell("io_uring", Sign::Ring, "make a ring, whose requests pass no filter"),
    editor("editor_owner_token", Sign::Told, "view the owner's token with the editor"),
    editor("editor_link_to_state", Sign::Told, "view a key file with the editor through a link in the workspace"),
    editor(
        "editor_server_environ",
        Sign::Told,
        "view /proc/self/environ with the editor, which works within the server",
    ),
    editor("editor_owners_profile", Sign::Changed, "make the owner's ~/.profile with the editor"),
    later("outlive_nohup", Means::Shell, Act::Outlive, Sign::Alive, "outlive a killed daemon with nohup"),
    later("outlive_setsid", Means::Shell, Act::Outlive, Sign::Alive, "outlive a killed daemon in a session of its own"),
    later(
        "outlive_without_environment",
        Means::Shell,
        Act::Outlive,
        Sign::Alive,
        "outlive a killed daemon, two forks away and with an empty environment",
    ),
    later(
        "outlive_fork_bomb",
        Means::Shell,
        Act::Outlive,
        Sign::Alive,
        "outlive a killed daemon as processes that are others a moment later",
    ),
    later("plugin_openhands", Means::Plugin, Act::Later, Sign::Ran, "hooks of a plugin in .openhands/plugins"),
    later("plugin_agents", Means::Plugin, Act::Later, Sign::Ran, "hooks of a plugin in .agents/plugins"),
    later(
        "plugin_git_root",
        Means::Plugin,
        Act::Later,
        Sign::Ran,
        "hooks of a plugin in the repository around the workspace",
    ),
    later("plugin_home", Means::Plugin, Act::Later, Sign::Ran, "hooks of a plugin in HOME, its own and the server's"),
    later("skill_command", Means::Skill, Act::Later, Sign::Ran, "a command hidden in a skill of the workspace"),
    later(
        "context_link",
        Means::Shell,
        Act::Later,
        Sign::Told,
        "have the server read a file of the owner's as instructions",
    ),
    later(
        "port_squatting",
        Means::Shell,
        Act::Crash,
        Sign::Sent,
        "take the port of a server that was killed, and be sent the key",
    ),
];

/// What is on the list and cannot be tried here, with the reason.
pub(super) const UNAVAILABLE: &[(&str, &str)] = &[(
    "root_with_capabilities",
    "the agent runs as the owner, who is an ordinary user here; as root the level is weak, whatever is refused",
)];

/// What is known to get through at any level. It is not counted as an attempt, for it reaches no key and has no effect.
pub(super) const NOT_STOPPED: &[(&str, &str)] = &[(
    "listing_command_lines",
    "the command lines of all processes can be listed; every_command_line looks for keys in them",
)];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_attempt_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = ATTEMPTS.iter().map(|attempt| attempt.name).collect();
        assert_eq!(names.len(), ATTEMPTS.len());
        assert!(ATTEMPTS.len() >= 37);
        let parts = ["reading", "reaching", "changing", "approving", "lasting"];
        let folder = crate::daemon::workspace_root().join("crates/testkit/src/escapes/agent");
        let read = |part: &&str| std::fs::read_to_string(folder.join(format!("{part}.py"))).unwrap();
        let python: String = parts.iter().map(read).collect();
        for attempt in ATTEMPTS.iter().filter(|attempt| attempt.means != Means::Editor) {
            assert!(python.contains(&format!("@attempt\ndef {}(to)", attempt.name)), "{}", attempt.name);
        }
    }
}
