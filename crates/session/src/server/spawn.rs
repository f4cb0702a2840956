//! What is started, and with what.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agent_contract::Contract;
use host::Secret;
use process::install::InstallRequest;
use process::launch::{Confining, FurtherGrants, LaunchError, LaunchSpec, OwnedServer, Program, SpareSpec};
use rules::canary::{CanaryId, CanaryResult};
use rules::redact::Redactor;
use rules::refusal::{Refusal, RefusalCode};

use crate::server_canaries;
use crate::shared::Shared;

pub(super) fn program(shared: &Shared) -> Result<Program, Refusal> {
    let version = shared.contract.version();
    if let Some(executable) = &shared.settings.agent_server.executable {
        let own = process::own::inspect_executable(executable)
            .map_err(|error| Refusal::new(RefusalCode::ServerNotInstalled, error.to_string()))?;
        for (name, reviewed) in shared.contract.distributions() {
            let found = own.distributions.get(name).map_or("none", String::as_str);
            if found != reviewed {
                let detail = format!("{name} is {found}, reviewed is {reviewed}; install the reviewed version");
                return Err(Refusal::new(RefusalCode::VersionMismatch, detail));
            }
        }
        return Ok(Program::Own(own));
    }
    let request = install_request(shared.contract, &shared.install_dir);
    process::install::find_for(&request).map(Program::Managed).ok_or_else(|| {
        let detail = format!("Agent Server {version} is not installed; run `gatepost server install`");
        Refusal::new(RefusalCode::ServerNotInstalled, detail)
    })
}

/// The managed install of exactly the locked requirements of this contract.
pub(crate) fn install_request(contract: &'static Contract, install_dir: &Path) -> InstallRequest<'static> {
    InstallRequest {
        state_dir: install_dir.to_path_buf(),
        version: contract.version().to_owned(),
        requirements: contract.requirements_lock(),
        build_requirements: contract.build_requirements_lock(),
        python: None,
    }
}

/// What the server of a workspace is started with.
pub(super) fn spec(
    shared: &Shared,
    directory: &Path,
    program: Program,
    session_key: &Arc<Secret>,
    redactor: &Arc<Redactor>,
) -> LaunchSpec {
    LaunchSpec {
        program,
        version: shared.contract.version().to_owned(),
        startup_files: owned_files(shared.contract.startup_files()),
        data_dir: process::launch::data_dir(&shared.settings.paths.state_dir, directory),
        runtime_dir: Some(shared.settings.paths.runtime_dir.clone()),
        path: shared.path.clone(),
        session_key: Arc::clone(session_key),
        secret_key: Arc::clone(&shared.secret_key),
        redactor: Arc::clone(redactor),
        start_timeout: Duration::from_secs(shared.settings.agent_server.start_timeout_s),
        guard: shared.guard.clone(),
        confining: shared.wrapper.clone().map(|wrapper| Confining {
            wrapper,
            workspace: directory.to_path_buf(),
            owner_home: shared.home.clone(),
            further: FurtherGrants {
                read: shared.settings.confinement.read.clone(),
                write: shared.settings.confinement.write.clone(),
                git_dirs: shared.settings.workspaces.git_dirs.clone(),
            },
            kept: shared.settings.paths.own().map(Path::to_path_buf).into(),
        }),
    }
}

/// What a spare is started with; `like` is a server as it is to become.
pub(super) fn spare_spec(shared: &Shared, program: Program, like: &OwnedServer) -> std::io::Result<SpareSpec> {
    Ok(SpareSpec {
        program,
        version: shared.contract.version().to_owned(),
        startup_files: owned_files(shared.contract.startup_files()),
        data_dir: process::launch::spare_dir(&shared.settings.paths.state_dir)?,
        runtime_dir: Some(shared.settings.paths.runtime_dir.clone()),
        path: shared.path.clone(),
        redactor: Arc::new(shared.redactor_without_server()),
        start_timeout: Duration::from_secs(shared.settings.agent_server.start_timeout_s),
        guard: shared.guard.clone(),
        confining: like.is_confining(),
        has_outer: like.is_confining() && like.no_outer().is_none(),
    })
}

/// The canary of what would be started.
pub(super) async fn installation(shared: &Shared, program: &Program) -> CanaryResult {
    let (program, known) = (program.clone(), Arc::clone(&shared.known_install));
    tokio::task::spawn_blocking(move || server_canaries::installation(&program, &known))
        .await
        .unwrap_or_else(|error| CanaryResult::unreadable(CanaryId::Installation, error.to_string()))
}

pub(super) fn failed(error: &LaunchError) -> Refusal {
    Refusal::new(RefusalCode::ServerStartFailed, error.to_string())
}

fn owned_files(files: agent_contract::StartupFiles) -> Vec<(String, String)> {
    files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}
