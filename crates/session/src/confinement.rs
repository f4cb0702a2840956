//! How well the agent's processes are confined, proved at each start of a server by one of them.

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use process::launch::{OwnedServer, ProbeTargets};
use rules::confinement::{Level, Reached};
use rules::guard::{Armament, Means, NotArmed};
use rules::refusal::{Refusal, RefusalCode};

use crate::shared::Shared;

/// Random bytes of the name of what is made for a trial.
const NAME_BYTES: usize = 12;
/// Of every system but Linux.
const NEVER_RUN: &str = "The confinement of this system was written and never run: rely on none of it.";

/// What is so before a server was started.
#[must_use]
pub fn not_proved_yet() -> Reached {
    Reached::unproved("How well the agent's processes are confined is proved when a server is started.")
}

/// Has a process of the agent's try what it can still do.
pub(crate) async fn prove(shared: &Shared, owned: &OwnedServer) -> Reached {
    if !owned.is_confining() {
        return Reached::unproved("The agent's processes are not confined: the kernel offers no Landlock.");
    }
    let mut reached = match try_it(shared, owned).await {
        Ok(reached) => reached,
        Err(why) => {
            tracing::warn!(why, "the confinement could not be tried");
            Reached::unproved(format!("Whether the agent's processes are confined could not be tried: {why}"))
        }
    };
    reached.notes.extend_from_slice(owned.confinement_notes());
    reached
}

async fn try_it(shared: &Shared, owned: &OwnedServer) -> Result<Reached, String> {
    let random = host::sign::random_hex(NAME_BYTES).map_err(|error| error.to_string())?;
    let random_name = format!(".gatepost-{random}");
    // Listens while it is tried.
    let _listener = host::abstract_socket::listen(&random_name).map_err(|error| error.to_string())?;
    let paths = &shared.settings.paths;
    let terminal = host::terminal::Terminal::open().map_err(|error| format!("no terminal: {error}"))?;
    let outside =
        OutsideSocket::bind(paths.runtime_dir.join(&random_name)).map_err(|error| format!("no socket: {error}"))?;
    let targets = ProbeTargets {
        server_pid: owned.pid(),
        daemon_pid: std::process::id(),
        guard_pids: owned.guard_pids(),
        state_dir: paths.state_dir.clone(),
        socket: paths.socket.clone(),
        outside_socket: outside.path.clone(),
        terminal: terminal.path.clone(),
        home: shared.home.clone(),
        random_name,
    };
    let outcomes = owned.control().probe(&targets).await.map_err(|error| error.to_string())?;
    let mut reached = Reached::from_outcomes(&outcomes, host::hygiene::is_root());
    if cfg!(not(target_os = "linux")) {
        reached = reached.held_weak(NEVER_RUN);
    }
    if reached.level < Level::Full {
        reached.missing.extend(owned.no_outer().map(|why| format!("There is no outer namespace: {why}.")));
        reached.missing.extend(ended_otherwise(owned.armament()));
    }
    Ok(reached)
}

/// How a server's tree is ended, where it is not by one signal to all of it.
fn ended_otherwise(armament: Option<Armament>) -> Option<String> {
    let Some(Armament { means, not_armed }) = armament else {
        return Some("No guard ends what a killed daemon leaves: the next start does.".to_owned());
    };
    let why = not_armed?;
    if why == NotArmed::Root {
        // Said of the level already.
        return None;
    }
    let why = why.meaning();
    match means {
        Means::Scope => None,
        Means::Cgroup => {
            Some(format!("What a server leaves is ended by its cgroup, not by one signal to all of it: {why}."))
        }
        Means::Walk => {
            Some(format!("What a server leaves is ended process by process, not by one signal to all of it: {why}."))
        }
    }
}

/// A named socket that is known to be there: one that is not would be refused to everybody. Removed when it is dropped.
struct OutsideSocket {
    path: PathBuf,
    _listener: UnixListener,
}

impl OutsideSocket {
    fn bind(path: PathBuf) -> io::Result<Self> {
        if let Some(directory) = path.parent() {
            host::secure_fs::ensure_private_dir(directory).map_err(io::Error::other)?;
        }
        let _listener = UnixListener::bind(&path)?;
        let bound = Self { path, _listener };
        UnixStream::connect(&bound.path)?;
        Ok(bound)
    }
}

impl Drop for OutsideSocket {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "a socket that the confinement was tried with is left");
        }
    }
}

/// The configuration may accept no less than it names.
///
/// # Errors
/// `confinement_too_weak`, with all that is missing.
pub(crate) fn check(shared: &Shared, reached: &Reached) -> Result<(), Refusal> {
    let least = shared.settings.confinement.level;
    if reached.level >= least {
        return Ok(());
    }
    let (least, level) = (least.as_str(), reached.level.as_str());
    let missing = reached.missing.join(" ");
    let detail = format!(
        "[confinement] level accepts no less than {least}, and {level} was proved. {missing} Mend that, or set level = {level:?}"
    );
    Err(Refusal::new(RefusalCode::ConfinementTooWeak, detail))
}
