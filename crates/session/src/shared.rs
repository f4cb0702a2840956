//! What every part of the controller works with.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use agent_contract::Contract;
use host::sealed::SealingKey;
use host::sign::SigningKey;
use host::{Secret, Spawner};
use process::install::KnownInstall;
use process::launch::WrapperProgram;
use rules::confinement::Reached;
use rules::passage::Watch;
use rules::redact::Redactor;
use settings::Settings;

use crate::closed::OwedOfClosed;
use crate::confinement::not_proved_yet;
use crate::generations::Generations;
use crate::known_secrets::KnownSecrets;
use crate::records::Records;
use crate::room::Room;
use crate::session::Session;
use crate::tokens::Tokens;

/// Everything the controller is given at its start.
pub struct Dependencies {
    /// The validated configuration.
    pub settings: Settings,
    /// Directory below whose `servers/` the managed installs stand; the state directory unless told otherwise.
    pub install_dir: PathBuf,
    /// The reviewed contract that is used.
    pub contract: &'static Contract,
    /// Starts servers.
    pub spawner: Spawner,
    /// Key of what the servers store; made once.
    pub secret_key: Arc<Secret>,
    /// The owner's token.
    pub owner_token: Arc<Secret>,
    /// The model's key, if one is configured.
    pub model_key: Option<Arc<Secret>>,
    /// Signs attestations, and the chain of receipts.
    pub signing_key: Arc<SigningKey>,
    /// PATH of servers and of the agent's commands.
    pub path: std::ffi::OsString,
    /// The program that confines what servers start: gatepost itself. `None` where the kernel cannot confine it.
    pub wrapper: Option<WrapperProgram>,
    /// The program that guards the servers' trees: gatepost itself. `None` where none is built.
    pub guard: Option<PathBuf>,
    /// The owner's home.
    pub home: PathBuf,
    /// Version of gatepost.
    pub version: &'static str,
    /// Who watches writes and calls: nobody, but in tests.
    pub watch: Watch,
    /// Is told of each secret before anything can be logged that holds it.
    pub known_secrets: Arc<KnownSecrets>,
}

impl Dependencies {
    /// Tells the log of the secrets that live as long as the daemon.
    pub fn tell_secrets(&self) {
        self.known_secrets.learn(&lasting(&self.secret_key, &self.owner_token, self.model_key.as_deref()));
    }
}

/// Those that live as long as the daemon, with their names.
fn lasting(secret_key: &Secret, owner_token: &Secret, model_key: Option<&Secret>) -> Vec<(String, String)> {
    let named = [("secret_key", Some(secret_key)), ("owner_token", Some(owner_token)), ("model_key", model_key)];
    named.into_iter().filter_map(|(name, secret)| Some((name.to_owned(), secret?.expose().to_owned()))).collect()
}

/// The durable records, opened and checked.
#[derive(Debug, Clone)]
pub struct OpenRecords {
    /// Receipts, sessions, accepts, and their chain.
    pub ledger: store::Ledger,
    /// Events.
    pub journal: store::Journal,
    /// Number of this start, from [`store::Ledger::count_start`].
    pub start: u64,
    /// What happened when they were opened that a person should know.
    pub notes: Vec<String>,
}

/// [`Dependencies`], arranged for sharing.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) install_dir: PathBuf,
    /// What this daemon hashed itself.
    pub(crate) known_install: Arc<KnownInstall>,
    pub(crate) contract: &'static Contract,
    pub(crate) spawner: Spawner,
    pub(crate) records: Records,
    pub(crate) notes: Vec<String>,
    pub(crate) secret_key: Arc<Secret>,
    pub(crate) owner_token: Arc<Secret>,
    pub(crate) tokens: Tokens,
    pub(crate) model_key: Option<Arc<Secret>>,
    pub(crate) signing_key: Arc<SigningKey>,
    /// Encrypts the logs of sessions at rest.
    pub(crate) sealing_key: SealingKey,
    pub(crate) path: std::ffi::OsString,
    pub(crate) wrapper: Option<WrapperProgram>,
    pub(crate) guard: Option<PathBuf>,
    pub(crate) home: PathBuf,
    pub(crate) version: &'static str,
    pub(crate) watch: Watch,
    /// Of every session.
    pub(crate) generations: Arc<Generations>,
    /// Digests of workspace content that does not block; the one setting that can change while the daemon runs.
    reviewed_content: RwLock<Arc<Vec<String>>>,
    /// What the newest server's confinement came to.
    confinement: Mutex<Reached>,
    known_secrets: Arc<KnownSecrets>,
    sessions: Mutex<BTreeMap<String, Arc<Session>>>,
    pub(crate) owed_of_closed: OwedOfClosed,
    /// Of every conversation with an operation under way, or a session.
    operation_locks: Mutex<BTreeMap<String, Weak<OperationLock>>>,
}

/// Held by the operation that changes a conversation.
pub(crate) type OperationLock = tokio::sync::Mutex<()>;

impl Shared {
    /// Every session, by id.
    pub(crate) fn sessions(&self) -> Vec<Arc<Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// One session.
    pub(crate) fn session(&self, session_id: &str) -> Option<Arc<Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).get(session_id).cloned()
    }

    /// Takes a session in, or gives the one that has its id already.
    pub(crate) fn enter(&self, session: Arc<Session>) -> Arc<Session> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(sessions.entry(session.id().as_str().to_owned()).or_insert(session))
    }

    /// Forgets a session whose conversation was removed.
    pub(crate) fn remove(&self, session_id: &str) {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(session_id);
    }

    /// The lock of a conversation: one, however many sessions it has been.
    pub(crate) fn operation_lock(&self, session_id: &str) -> Arc<OperationLock> {
        let mut locks = self.operation_locks.lock().unwrap_or_else(PoisonError::into_inner);
        locks.retain(|_, lock| lock.strong_count() > 0);
        if let Some(lock) = locks.get(session_id).and_then(Weak::upgrade) {
            return lock;
        }
        let lock = Arc::default();
        locks.insert(session_id.to_owned(), Arc::downgrade(&lock));
        lock
    }

    /// How well the agent's processes are confined, as the newest server showed.
    pub(crate) fn confinement(&self) -> Reached {
        self.confinement.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_confinement(&self, reached: Reached) {
        *self.confinement.lock().unwrap_or_else(PoisonError::into_inner) = reached;
    }

    pub(crate) fn reviewed_content(&self) -> Arc<Vec<String>> {
        Arc::clone(&self.reviewed_content.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set_reviewed_content(&self, digests: Vec<String>) {
        *self.reviewed_content.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(digests);
    }

    /// # Errors
    /// When the kernel gives no randomness.
    pub(crate) fn new(from: Dependencies, records: OpenRecords) -> std::io::Result<Self> {
        Ok(Self {
            records: Records::new(
                records.ledger,
                records.journal,
                Room::of(&from.settings.paths.state_dir),
                from.watch.clone(),
            ),
            reviewed_content: RwLock::new(Arc::new(from.settings.approval.reviewed_content.clone())),
            settings: from.settings,
            install_dir: from.install_dir,
            known_install: Arc::default(),
            contract: from.contract,
            spawner: from.spawner,
            notes: records.notes,
            secret_key: from.secret_key,
            owner_token: from.owner_token,
            tokens: Tokens::default(),
            model_key: from.model_key,
            signing_key: from.signing_key,
            sealing_key: SealingKey::new()?,
            path: from.path,
            wrapper: from.wrapper,
            guard: from.guard,
            home: from.home,
            version: from.version,
            watch: from.watch,
            generations: Arc::new(Generations::of_start(records.start)),
            confinement: Mutex::new(not_proved_yet()),
            known_secrets: from.known_secrets,
            sessions: Mutex::new(BTreeMap::new()),
            owed_of_closed: OwedOfClosed::default(),
            operation_locks: Mutex::new(BTreeMap::new()),
        })
    }

    /// Knows every live secret; `session_key` is that of the server at hand.
    pub(crate) fn redactor(&self, session_key: &Secret) -> Redactor {
        let mut secrets = lasting(&self.secret_key, &self.owner_token, self.model_key.as_deref());
        secrets.push(("session_key".to_owned(), session_key.expose().to_owned()));
        self.known_secrets.learn(&secrets);
        Redactor::new(secrets)
    }

    /// Knows every secret that lives as long as the daemon.
    pub(crate) fn redactor_without_server(&self) -> Redactor {
        Redactor::new(lasting(&self.secret_key, &self.owner_token, self.model_key.as_deref()))
    }
}
