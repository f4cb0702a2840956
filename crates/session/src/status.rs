//! One look at everything, and what is wrong with it.

use std::sync::Arc;

use rules::refusal::{Refusal, RefusalCode};
use rules::standing::{self, DaemonStanding, Finding, Phase, ServerStanding};

use crate::server::install_request;
use crate::supervisor::Supervisor;
use crate::view::{ProbeView, Readiness, ServerView, SessionSummary, SetupAction, StatusView};

/// What is said when the kernel does not keep every secret out of swap.
fn unlocked_secrets() -> Option<String> {
    let unlocked = host::secret::unlocked_secrets();
    (unlocked > 0).then(|| {
        format!(
            "{unlocked} secrets are not on locked memory and may be written to swap: {}",
            host::secret::LOCKED_MEMORY_REMEDY
        )
    })
}

impl Supervisor {
    /// One look at everything.
    pub async fn status(&self) -> StatusView {
        let installed = self.installed().await;
        let (servers, sessions) = (self.inner.servers.views(), self.sessions().await);
        let standing = self.standing(installed.as_deref(), &servers, &sessions);
        let confinement = self.shared().confinement();
        StatusView {
            state: standing.state,
            gatepost_version: self.shared().version.to_owned(),
            pid: std::process::id(),
            contract_version: self.shared().contract.version().to_owned(),
            installed,
            servers,
            spare: self.inner.servers.spare_view(),
            sessions,
            confinement_level: confinement.level.as_str().to_owned(),
            confinement_missing: confinement.missing,
            confinement_notes: confinement.notes,
            findings: standing.findings().cloned().collect(),
            notes: self.shared().notes.iter().cloned().chain(unlocked_secrets()).collect(),
        }
    }

    /// Whether sessions are taken: of the same look as [`Self::status`].
    pub async fn readiness(&self) -> Readiness {
        Readiness::of(&self.look(self.installed().await.as_deref()))
    }

    /// The same, and what can be done about it.
    pub async fn probe(&self) -> ProbeView {
        let installed = self.installed().await;
        let Readiness { ready, reasons } = Readiness::of(&self.look(installed.as_deref()));
        let setup_actions = vec![SetupAction {
            id: "server_install".to_owned(),
            command: format!("gatepost server install --version {}", self.shared().contract.version()),
            needed: installed.is_none(),
        }];
        ProbeView { available: ready, reasons, setup_actions }
    }

    /// Without what concerns one server or one session alone: whether sessions are taken does not depend on it, and to look at
    /// every session takes time.
    fn look(&self, installed: Option<&str>) -> DaemonStanding {
        self.standing(installed, &[], &[])
    }

    fn standing(&self, installed: Option<&str>, servers: &[ServerView], sessions: &[SessionSummary]) -> DaemonStanding {
        let phase = if self.is_stopping() { Phase::Stopping } else { Phase::Running };
        let (unusable_roots, no_root) = self.roots();
        let mut everywhere: Vec<Finding> = self.shared().records.room().finding().into_iter().collect();
        everywhere.extend(self.set_up(installed));
        everywhere.extend(self.inner.servers.all_crash_looping().map(Finding::of));
        let mut somewhere: Vec<Finding> = servers.iter().filter_map(of_server).collect();
        somewhere.extend(sessions.iter().filter_map(of_session));
        if no_root {
            everywhere.extend(unusable_roots)
        } else {
            somewhere.extend(unusable_roots)
        }
        standing::daemon(phase, everywhere, somewhere)
    }

    /// Where the reviewed server is installed, if it is.
    async fn installed(&self) -> Option<String> {
        if let Some(executable) = &self.shared().settings.agent_server.executable {
            return executable.exists().then(|| executable.to_string_lossy().into_owned());
        }
        let shared = Arc::clone(self.shared());
        tokio::task::spawn_blocking(move || {
            shared.known_install.find_for(&install_request(shared.contract, &shared.install_dir))
        })
        .await
        .ok()
        .flatten()
        .map(|installed| installed.root.to_string_lossy().into_owned())
    }

    /// What was never set up.
    fn set_up(&self, installed: Option<&str>) -> Vec<Finding> {
        let mut findings = Vec::new();
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
        findings
    }

    /// The roots that cannot be used, and whether there is none that can.
    fn roots(&self) -> (Vec<Finding>, bool) {
        const REMEDY: &str = "create the directory, or correct [workspaces] roots";
        let roots = self.shared().settings.workspaces.resolve();
        let count = roots.len();
        let of = |Refusal { code, detail }| Finding { code, detail, remedy: REMEDY.to_owned() };
        let mut unusable: Vec<Finding> = roots.into_iter().filter_map(|root| root.resolved.err()).map(of).collect();
        let none = unusable.len() == count;
        if count == 0 {
            unusable.push(of(Refusal::new(RefusalCode::ConfigurationInvalid, "[workspaces] roots names no directory")));
        }
        (unusable, none)
    }
}

impl Readiness {
    /// What readiness says of where the daemon stands.
    #[must_use]
    pub fn of(standing: &DaemonStanding) -> Self {
        Self { ready: standing.state.takes_sessions(), reasons: standing.hindrances().to_vec() }
    }
}

/// Its last words stand with the server itself.
fn of_server(server: &ServerView) -> Option<Finding> {
    let reason = server.reason.as_ref()?;
    let is = if server.state == ServerStanding::CrashLooping { "fails again and again" } else { "failed" };
    let next = server.next_try_at.as_deref().map(|at| format!("; it is tried again at {at}")).unwrap_or_default();
    Some(Finding::of(Refusal::new(reason.code, format!("the server of {} {is}{next}", server.workspace))))
}

fn of_session(session: &SessionSummary) -> Option<Finding> {
    let reason = session.blocked_reason.as_ref()?;
    let words = reason.detail.lines().next().unwrap_or_default();
    Some(Finding::of(Refusal::new(reason.code, format!("session {}: {words}", session.session_id))))
}
