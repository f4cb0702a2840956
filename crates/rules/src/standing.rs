//! Where the daemon, its servers, its sessions and its canaries stand: one word each, and what is to be done about each word
//! but `ready`.

use crate::lifecycle::{ServerState, SpareState};
use crate::refusal::{Refusal, RefusalCode};

macro_rules! states {
    ($(#[doc = $of:literal])+ $name:ident { $($(#[doc = $doc:literal])+ $variant:ident $word:literal $remedy:expr;)+ }) => {
        $(#[doc = $of])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl $name {
            /// Every state.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word that clients see: a stable code.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// What is to be done where no refusal says more; `None` where nothing is wrong.
            pub const fn remedy(self) -> Option<&'static str> {
                match self { $(Self::$variant => $remedy,)+ }
            }
        }
    };
}

mod canary;

pub use canary::{CanaryReport, CanaryStanding, Guarded, canaries};

states! {
    /// The whole daemon.
    DaemonState {
        /// Its records are being checked.
        Starting "starting" Some("wait: the records are being checked");
        /// Nothing is wrong.
        Ready "ready" None;
        /// Something is wrong, and sessions elsewhere can go on.
        Degraded "degraded" Some("do what each finding says; what it does not name goes on");
        /// No session can take a step.
        Blocked "blocked" Some("do what each finding says");
        /// It is being stopped.
        Stopping "stopping" Some("wait until it has ended, then start it again");
    }
}

states! {
    /// An owned server.
    ServerStanding {
        /// No process, and nobody needs one.
        Stopped "stopped" Some("nothing: it is started when a session needs it");
        /// Launched, not yet proved.
        Starting "starting" Some("wait: it is proved before anyone uses it");
        /// Every canary holds.
        Ready "ready" None;
        /// Being ended.
        Stopping "stopping" Some("wait: it is started again when a session needs it");
        /// Did not start, ended by itself, or a canary failed.
        Failed "failed" Some("do what the reason says; it is started again by itself, or when a session needs it");
        /// Failed so often in a row that it is left alone for a while.
        CrashLooping "crash_looping" Some("mend what the reason says; it is tried again at the time that is named");
    }
}

states! {
    /// The spare server.
    SpareStanding {
        /// No process.
        None "none" Some("nothing: one is made some seconds after a server became ready");
        /// It imports.
        Starting "starting" Some("wait: servers are started without it meanwhile");
        /// It becomes the next server that is needed.
        Waiting "waiting" None;
        /// The last one could not be made or used, or ended.
        Failed "failed" Some("do what the reason says; another is made at the time that is named, and servers are started without it meanwhile");
    }
}

states! {
    /// A session.
    SessionStanding {
        /// Its server is being started.
        Starting "starting" Some("wait: its server is being started");
        /// It is on a server and takes steps.
        Ready "ready" None;
        /// It takes no step.
        Blocked "blocked" Some("do what the reason says");
        /// Its server fails again and again.
        CrashLooping "crash_looping" Some("mend what the reason says; its server is tried again at the time that is named");
        /// It is on no server, since nobody needed it.
        Stopped "stopped" Some("nothing: it is put on a server when it is asked for");
    }
}

impl DaemonState {
    /// Whether sessions are taken: what readiness says.
    pub const fn takes_sessions(self) -> bool {
        match self {
            Self::Ready | Self::Degraded => true,
            Self::Starting | Self::Blocked | Self::Stopping => false,
        }
    }
}

/// Something wrong, and what mends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Stable code.
    pub code: RefusalCode,
    /// What was seen.
    pub detail: String,
    /// What mends it.
    pub remedy: String,
}

impl Finding {
    /// With the remedy that the code has everywhere.
    pub fn of(refusal: Refusal) -> Self {
        Self { code: refusal.code, detail: refusal.detail, remedy: refusal.code.remedy().to_owned() }
    }
}

/// Which part of its life the daemon is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The records are being checked.
    Checking,
    /// The check is over, whatever it found.
    Running,
    /// Asked to stop.
    Stopping,
}

/// Where the daemon stands, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaemonStanding {
    /// The whole in one word.
    pub state: DaemonState,
    /// What keeps every session from a step.
    pub everywhere: Vec<Finding>,
    /// What concerns some sessions, or one server.
    pub somewhere: Vec<Finding>,
}

impl DaemonStanding {
    /// Why no session is taken; empty when sessions are.
    pub fn hindrances(&self) -> &[Finding] {
        if self.state.takes_sessions() { &[] } else { &self.everywhere }
    }

    /// All that is wrong, the gravest first.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.everywhere.iter().chain(&self.somewhere)
    }
}

/// The one place where the daemon's state is decided: status, readiness and the probe all tell of this.
pub fn daemon(phase: Phase, mut everywhere: Vec<Finding>, somewhere: Vec<Finding>) -> DaemonStanding {
    let state = match phase {
        Phase::Checking => {
            let refusal = Refusal::new(RefusalCode::RecordsChecking, "the daemon has begun and checks its records");
            everywhere.insert(0, Finding::of(refusal));
            DaemonState::Starting
        }
        Phase::Stopping => {
            let refusal = Refusal::new(RefusalCode::ShuttingDown, "the daemon is stopping");
            everywhere.insert(0, Finding::of(refusal));
            DaemonState::Stopping
        }
        Phase::Running if !everywhere.is_empty() => DaemonState::Blocked,
        Phase::Running if !somewhere.is_empty() => DaemonState::Degraded,
        Phase::Running => DaemonState::Ready,
    };
    DaemonStanding { state, everywhere, somewhere }
}

/// Where a server stands. `is_ending` is set when its process is about to end or has ended, whether or not that was noted;
/// `is_crash_looping` when a failed one is left alone for a while.
pub fn server(state: &ServerState, is_ending: bool, is_crash_looping: bool) -> ServerStanding {
    match state {
        ServerState::Starting { .. } | ServerState::Ready | ServerState::Stopping { .. } if is_ending => {
            ServerStanding::Stopping
        }
        ServerState::Stopped => ServerStanding::Stopped,
        ServerState::Starting { .. } => ServerStanding::Starting,
        ServerState::Ready => ServerStanding::Ready,
        ServerState::Stopping { .. } => ServerStanding::Stopping,
        ServerState::Failed { .. } if is_crash_looping => ServerStanding::CrashLooping,
        ServerState::Failed { .. } => ServerStanding::Failed,
    }
}

/// Where the spare stands. `has_failed` is set when the last one could not be made or used, or ended.
pub fn spare(state: SpareState, has_failed: bool) -> SpareStanding {
    match state {
        SpareState::None if has_failed => SpareStanding::Failed,
        SpareState::None => SpareStanding::None,
        SpareState::Starting => SpareStanding::Starting,
        SpareState::Waiting => SpareStanding::Waiting,
    }
}

/// Where a session stands: what blocks it, whether it is on a server that is up, and how the server of its workspace stands.
pub fn session(block: Option<&Refusal>, on_server: bool, server: ServerStanding) -> SessionStanding {
    match (block, server) {
        (Some(block), _) if block.code == RefusalCode::ServerCrashLooping => SessionStanding::CrashLooping,
        // What is said of its last server is over once the next one is on its way.
        (Some(block), ServerStanding::Starting) if is_of_server(block) => SessionStanding::Starting,
        (Some(_), _) => SessionStanding::Blocked,
        (None, _) if on_server => SessionStanding::Ready,
        (None, ServerStanding::Starting) => SessionStanding::Starting,
        (
            None,
            ServerStanding::Stopped
            | ServerStanding::Ready
            | ServerStanding::Stopping
            | ServerStanding::Failed
            | ServerStanding::CrashLooping,
        ) => SessionStanding::Stopped,
    }
}

/// It says what became of a server, not of the session.
fn is_of_server(refusal: &Refusal) -> bool {
    matches!(refusal.code, RefusalCode::ServerUnavailable | RefusalCode::ServerStartFailed)
}

/// What is to be done: what the refusal's code says, else what the state says.
pub fn remedy(refusal: Option<&Refusal>, of_state: Option<&'static str>) -> Option<&'static str> {
    match refusal {
        Some(refusal) => Some(refusal.code.remedy()),
        None => of_state,
    }
}

#[cfg(test)]
mod tests;
