//! Canaries of an installation and an owned server: the evidence is gathered here, `rules` gives the verdict.

use agent_contract::{Client, Contract, KeyKind};
use process::install::{Finding, KnownInstall};
use process::launch::{OwnedServer, Program};
use rules::canary::{
    AuthStatuses, CanaryId, CanaryResult, InstallationEvidence, Listener, ServerIdentity, StartupEvidence,
    StartupExpectation,
};

/// Asks the server and its start-up module everything that proves it.
pub(crate) async fn read(contract: &Contract, client: &Client, owned: &OwnedServer) -> Vec<CanaryResult> {
    let (mut results, versions, authentication, init) = (
        startup(contract, owned).await,
        versions(contract, client).await,
        authentication(client).await,
        init(client).await,
    );
    results.extend([versions, authentication, init]);
    results
}

/// What the reviewed contract says the server must say of itself.
fn expected_identity(contract: &Contract) -> ServerIdentity {
    let version = |name: &str| contract.distributions().get(name).cloned().unwrap_or_default();
    ServerIdentity {
        title: contract.title().to_owned(),
        version: version("openhands-agent-server"),
        sdk_version: version("openhands-sdk"),
        tools_version: version("openhands-tools"),
        workspace_version: version("openhands-workspace"),
    }
}

async fn versions(contract: &Contract, client: &Client) -> CanaryResult {
    match client.server_info().await {
        Err(error) => CanaryResult::unreadable(CanaryId::Versions, error.to_string()),
        Ok(info) => {
            let observed = ServerIdentity {
                title: info.title,
                version: info.version,
                sdk_version: info.sdk_version,
                tools_version: info.tools_version,
                workspace_version: info.workspace_version,
            };
            rules::canary::versions(&observed, &expected_identity(contract))
        }
    }
}

async fn startup(contract: &Contract, owned: &OwnedServer) -> Vec<CanaryResult> {
    let inspection = match owned.control().inspect().await {
        Ok(inspection) => inspection,
        Err(error) => {
            let why = error.to_string();
            return vec![
                CanaryResult::unreadable(CanaryId::InheritedListener, why.clone()),
                CanaryResult::unreadable(CanaryId::StartupModule, why),
            ];
        }
    };
    let listeners: Vec<Listener> = inspection
        .listeners
        .iter()
        .map(|listener| Listener { family: listener.family.clone(), address: listener.address.clone() })
        .collect();
    let observed = StartupEvidence {
        nonce_matches: inspection.nonce_matches,
        contract: contract.version().to_owned(),
        pid: inspection.pid,
        latch: inspection.latch,
        door: owned.is_confining().then_some(inspection.door),
        dumpable: Some(i64::from(inspection.dumpable)),
        ambient_plugins: if inspection.ambient_plugins_dropped { "dropped" } else { "loaded" }.to_owned(),
    };
    let expected = StartupExpectation { contract: contract.version().to_owned(), pid: owned.pid() };
    vec![
        rules::canary::inherited_listener(&listeners, owned.port()),
        rules::canary::startup_module(&observed, &expected),
    ]
}

async fn authentication(client: &Client) -> CanaryResult {
    let mut statuses = [0; 3];
    for (status, key) in statuses.iter_mut().zip([KeyKind::Right, KeyKind::Missing, KeyKind::Wrong]) {
        match client.auth_probe(key).await {
            Ok(answered) => *status = answered,
            Err(error) => return CanaryResult::unreadable(CanaryId::Authentication, error.to_string()),
        }
    }
    let [right, missing, wrong] = statuses;
    rules::canary::authentication(AuthStatuses { right, missing, wrong })
}

async fn init(client: &Client) -> CanaryResult {
    match client.init_probe().await {
        Ok(status) => rules::canary::init_closed(status),
        Err(error) => CanaryResult::unreadable(CanaryId::InitClosed, error.to_string()),
    }
}

/// Compares the installed files; blocking, and takes seconds for a managed install that is not `known` yet.
pub(crate) fn installation(program: &Program, known: &KnownInstall) -> CanaryResult {
    let evidence = match program {
        Program::Own(own) => InstallationEvidence::Own { executable: own.executable.to_string_lossy().into_owned() },
        Program::Managed(installed) => {
            let report = known.verify(installed);
            if report.passed() {
                InstallationEvidence::Verified { files: u64::try_from(report.files).unwrap_or(u64::MAX) }
            } else {
                let name = |finding: &Finding| format!("{} ({})", finding.path, finding.kind.as_str());
                InstallationEvidence::Altered { files: report.findings.iter().map(name).collect() }
            }
        }
    };
    rules::canary::installation(&evidence)
}
