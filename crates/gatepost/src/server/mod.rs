//! `gatepost server`: the managed Agent Server, installed, listed and verified.

pub(crate) mod install;
mod list;
pub(crate) mod verify;

use agent_contract::Contract;
use cli::{Failure, ServerCommand};
use process::install::InstallRequest;
use serde_json::Value;

use crate::Look;
use crate::places::Places;

/// Carries the command out.
///
/// # Errors
/// What is wrong with the installation, or with what was asked for.
pub(crate) fn run(places: &Places, command: &ServerCommand, look: Look) -> Result<Value, Failure> {
    match command {
        ServerCommand::Install(args) => install::run(request(places, args.version.as_deref())?, look),
        ServerCommand::List => Ok(list::run(places, look)),
        ServerCommand::Verify(args) => verify::run(&request(places, args.version.as_deref())?, look),
    }
}

/// What an install of this version, or else of the configured one, asks for.
fn request(places: &Places, version: Option<&str>) -> Result<InstallRequest<'static>, Failure> {
    let settings = places.settings()?;
    let contract = reviewed(version.unwrap_or(&settings.agent_server.version))?;
    Ok(of_contract(contract, places, settings.agent_server.python))
}

/// The request for what a contract locks.
pub(crate) fn of_contract(
    contract: &'static Contract,
    places: &Places,
    python: Option<std::path::PathBuf>,
) -> InstallRequest<'static> {
    InstallRequest {
        state_dir: places.paths.state_dir.clone(),
        version: contract.version().to_owned(),
        requirements: contract.requirements_lock(),
        build_requirements: contract.build_requirements_lock(),
        python,
    }
}

/// The reviewed contract of a version.
///
/// # Errors
/// `version_not_reviewed`, naming those that are.
pub(crate) fn reviewed(version: &str) -> Result<&'static Contract, Failure> {
    let contracts =
        Contract::all().map_err(|error| Failure::new(api_types::ExitCode::Failed, "internal", error.to_string()))?;
    contracts.iter().find(|contract| contract.version() == version).ok_or_else(|| {
        let detail = format!("Agent Server {version} is not reviewed");
        Failure::new(api_types::ExitCode::Usage, "version_not_reviewed", detail)
            .hint(format!("reviewed: {}", Contract::versions().join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_without_a_contract_is_refused_by_name() {
        let newest = Contract::versions().pop().unwrap();
        assert_eq!(reviewed(newest).unwrap().version(), newest);
        let failure = reviewed("0.0.1").unwrap_err();
        assert_eq!((failure.exit, failure.code.as_str()), (api_types::ExitCode::Usage, "version_not_reviewed"));
        assert!(failure.hint.unwrap().contains(newest));
    }
}
