//! One look at everything, and what is wrong with it.

use rules::refusal::{Refusal, RefusalCode};

use crate::server::managed;
use crate::supervisor::Supervisor;
use crate::view::{Finding, ProbeView, SetupAction, StatusView};

impl Supervisor {
    /// One look at everything.
    pub async fn status(&self) -> StatusView {
        let installed = self.installed().await;
        let findings = self.findings(installed.as_deref());
        let servers = self.inner.servers.views();
        let sessions = self.sessions().await;
        let failed = servers.iter().any(|server| server.reason.is_some());
        let blocked = sessions.iter().any(|session| session.blocked_reason.is_some());
        let nothing_works = !findings.is_empty() || self.inner.servers.all_crash_looping().is_some();
        let state = match (nothing_works, failed || blocked) {
            (false, false) => "ready",
            (true, _) => "blocked",
            (false, true) => "degraded",
        };
        let confinement = self.shared().confinement();
        StatusView {
            state: state.to_owned(),
            gatepost_version: self.shared().version.to_owned(),
            pid: std::process::id(),
            contract_version: self.shared().contract.version().to_owned(),
            installed,
            servers,
            sessions,
            confinement_level: confinement.level.as_str().to_owned(),
            confinement_missing: confinement.missing,
            findings,
            notes: self.shared().notes.clone(),
        }
    }

    /// Whether a session could be started now.
    pub async fn probe(&self) -> ProbeView {
        let installed = self.installed().await;
        let mut reasons: Vec<Refusal> = self
            .findings(installed.as_deref())
            .into_iter()
            .map(|finding| Refusal::new(finding.code, finding.detail))
            .collect();
        reasons.extend(self.readiness().reasons);
        let setup_actions = vec![SetupAction {
            id: "server_install".to_owned(),
            command: format!("gatepost server install --version {}", self.shared().contract.version()),
            needed: installed.is_none(),
        }];
        ProbeView { available: reasons.is_empty(), reasons, setup_actions }
    }

    /// Where the reviewed server is installed, if it is.
    async fn installed(&self) -> Option<String> {
        if let Some(executable) = &self.shared().settings.agent_server.executable {
            return executable.exists().then(|| executable.to_string_lossy().into_owned());
        }
        let (directory, contract) = (self.shared().install_dir.clone(), self.shared().contract);
        tokio::task::spawn_blocking(move || managed(contract, &directory))
            .await
            .ok()
            .flatten()
            .map(|installed| installed.root.to_string_lossy().into_owned())
    }

    fn findings(&self, installed: Option<&str>) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self.shared().records.room().finding().into_iter().collect();
        if installed.is_none() {
            findings.push(Finding {
                code: RefusalCode::ServerNotInstalled,
                detail: format!("Agent Server {} is not installed", self.shared().contract.version()),
                remedy: "run `gatepost server install`".to_owned(),
            });
        }
        if self.shared().settings.model.is_none() {
            findings.push(Finding {
                code: RefusalCode::ConfigurationInvalid,
                detail: "no model is configured".to_owned(),
                remedy: format!("add [model] to {}", self.shared().settings.paths.config_file.display()),
            });
        }
        for root in self.shared().settings.workspaces.resolve() {
            if let Err(refusal) = root.resolved {
                findings.push(Finding {
                    code: refusal.code,
                    detail: refusal.detail,
                    remedy: "create the directory, or correct [workspaces] roots".to_owned(),
                });
            }
        }
        findings
    }
}
