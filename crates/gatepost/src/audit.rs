//! `gatepost audit`: the chain of receipts, through the daemon while one runs, else in the file where it lies.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use api_types::{AuditPage, AuditVerification, ExitCode};
use cli::{AuditArgs, AuditCommand, Daemon, Failure};
use host::lock::FileLock;
use host::sign::SigningKey;
use rules::refusal::RefusalCode;
use serde::Serialize;
use serde_json::Value;
use session::view;
use store::{OfflineLedger, StoreError, Trouble};

use crate::notary::Installation;
use crate::places::Places;
use crate::{Look, say, serve};

/// Links that are listed when nothing is said.
const DEFAULT_LIMIT: u64 = 50;
/// How long a page may take.
const PAGE_WITHIN: Duration = Duration::from_secs(30);
/// How long a walk along the whole chain may take.
const VERIFY_WITHIN: Duration = Duration::from_secs(900);

/// Lists or verifies.
///
/// # Errors
/// A broken chain (exit code 4); the daemon's refusal; a ledger that is not there or cannot be read.
pub(crate) fn run(places: &Places, args: &AuditArgs, look: Look) -> Result<Value, Failure> {
    match args.command {
        None => {
            let page = list(places, args)?;
            if !look.json {
                say(&cli::show_audit(&page));
            }
            body(&page)
        }
        Some(AuditCommand::Verify) if args.limit.is_some() || args.after.is_some() => {
            Err(Failure::usage("a verification walks the whole chain: leave out --limit and --after"))
        }
        Some(AuditCommand::Verify) => {
            let found = verify(places)?;
            let object = body(&found)?;
            if let Some(broken) = &found.broken {
                let detail = format!("link {} ({}): {}", broken.n, broken.fault, broken.detail);
                return Err(Failure::new(ExitCode::of_verification(&found), "chain_broken", detail)
                    .hint("treat the ledger as altered: docs/operations.md, \"Damaged files\"")
                    .body(&object));
            }
            if !look.json {
                say(&cli::show_verification(&found));
            }
            Ok(object)
        }
    }
}

fn list(places: &Places, args: &AuditArgs) -> Result<AuditPage, Failure> {
    let limit = args.limit.map_or(DEFAULT_LIMIT, u64::from);
    let read = |after: u64, limit: u64| -> Result<AuditPage, Failure> {
        let target = format!("/v1/audit?after={after}&limit={limit}");
        either(places, &target, PAGE_WITHIN, |ledger, key| {
            let page = ledger.audit(after, usize::try_from(limit).unwrap_or(1)).map_err(|error| unusable(&error))?;
            Ok(api::audit_page(view::AuditPage::of(page, after, &key.public_key())))
        })
    };
    match args.after {
        Some(after) => read(after.into(), limit),
        None => {
            let newest = read(0, 1)?.head.n;
            read(newest.saturating_sub(limit), limit)
        }
    }
}

fn verify(places: &Places) -> Result<AuditVerification, Failure> {
    either(places, "/v1/audit/verification", VERIFY_WITHIN, |ledger, _| {
        let verdict = ledger.verify().map_err(|error| unusable(&error))?;
        Ok(api::audit_verification(view::Verification::of(verdict)))
    })
}

/// Asks the daemon; reads the file when nobody answers.
fn either<T: serde::de::DeserializeOwned>(
    places: &Places,
    target: &str,
    within: Duration,
    offline: impl FnOnce(&OfflineLedger, &SigningKey) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let daemon = Daemon::new(places.paths.socket.clone(), places.token());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(ExitCode::Failed, "system", format!("no asynchronous runtime: {error}")))?;
    match runtime.block_on(daemon.get(target, within)) {
        Err(failure) if failure.exit == ExitCode::DaemonNotRunning => {
            let opened = open(&places.paths.state_dir, &places.paths.signing_key)?;
            offline(&opened.ledger, &opened.key)
        }
        answered => answered,
    }
}

/// A ledger that is read where it lies, while every daemon is kept off it.
pub(crate) struct Opened {
    pub(crate) ledger: OfflineLedger,
    key: Arc<SigningKey>,
    _lock: FileLock,
}

/// Opens the ledger of a state directory that no daemon uses. Nothing is made.
pub(crate) fn open(state_dir: &Path, signing_key: &Path) -> Result<Opened, Failure> {
    let lock = lock_existing(state_dir)?;
    if !signing_key.exists() {
        let detail =
            format!("{} is not there: whether the head is this installation's cannot be said", signing_key.display());
        return Err(Failure::new(ExitCode::Failed, "state_unusable", detail));
    }
    let key = SigningKey::load_or_create(signing_key)
        .map(Arc::new)
        .map_err(|error| Failure::new(ExitCode::Failed, "state_unusable", error.to_string()))?;
    let ledger = OfflineLedger::open(state_dir, Arc::new(Installation(Arc::clone(&key))));
    Ok(Opened { ledger: ledger.map_err(|error| unusable(&error))?, key, _lock: lock })
}

/// The daemon's lock, where there ever was a daemon.
pub(crate) fn lock_existing(state_dir: &Path) -> Result<FileLock, Failure> {
    if !serve::lock_path(state_dir).exists() {
        let detail = format!("no daemon has ever run on {}: there is no ledger", state_dir.display());
        return Err(Failure::new(ExitCode::DaemonNotRunning, "daemon_not_running", detail));
    }
    serve::lock(state_dir)
}

/// Why the file cannot be read.
pub(crate) fn unusable(error: &StoreError) -> Failure {
    let (exit, code) = match error.trouble() {
        Trouble::Damaged => {
            return Failure::new(ExitCode::Blocked, RefusalCode::LedgerDamaged.as_str(), error.to_string())
                .hint("docs/operations.md, \"Damaged files\", says what can be done");
        }
        Trouble::InUse => (ExitCode::Conflict, "already_running"),
        Trouble::DiskFull | Trouble::NotWritable | Trouble::Other => {
            (ExitCode::Failed, RefusalCode::StoreFailed.as_str())
        }
    };
    Failure::new(exit, code, error.to_string())
}

fn body(reply: &impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(reply).map_err(|error| Failure::new(ExitCode::Failed, "internal", error.to_string()))
}
