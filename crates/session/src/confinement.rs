//! How well the agent's processes are confined, proved at each start of a server by one of them.

use process::launch::{OwnedServer, ProbeTargets};
use rules::confinement::Reached;
use rules::refusal::{Refusal, RefusalCode};

use crate::shared::Shared;

/// Random bytes of the name of what is made for a trial.
const NAME_BYTES: usize = 12;

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
    match try_it(shared, owned).await {
        Ok(reached) => reached,
        Err(why) => {
            tracing::warn!(why, "the confinement could not be tried");
            Reached::unproved(format!("Whether the agent's processes are confined could not be tried: {why}"))
        }
    }
}

async fn try_it(shared: &Shared, owned: &OwnedServer) -> Result<Reached, String> {
    let random = host::sign::random_hex(NAME_BYTES).map_err(|error| error.to_string())?;
    let random_name = format!(".gatepost-{random}");
    // Listens while it is tried.
    let _listener = host::abstract_socket::listen(&random_name).map_err(|error| error.to_string())?;
    let paths = &shared.settings.paths;
    let targets = ProbeTargets {
        server_pid: owned.pid(),
        daemon_pid: std::process::id(),
        state_dir: paths.state_dir.clone(),
        socket: paths.socket.clone(),
        home: shared.home.clone(),
        random_name,
    };
    let outcomes = owned.control().probe(&targets).await.map_err(|error| error.to_string())?;
    Ok(Reached::from_outcomes(&outcomes, host::hygiene::is_root()))
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
