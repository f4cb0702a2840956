//! Everything of a launch that blocks, up to a running and watched process.

use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use host::lock::{FileLock, LockError};
use host::{SpawnSpec, Spawner};
use rules::guard::Domain;
use rules::redact::Redactor;

use super::bounded::Bounded;
use super::guarded::Guarded;
use super::held::Held;
use super::layout::Layout;
use super::output::Output;
use super::places::{Place, Places};
use super::server::{Identity, Running};
use super::shape::{CONFIG_FD, CONTROL_FD, LISTEN_FD};
use super::watch::{self, Watched};
use super::{LaunchError, LaunchSpec, leftovers, predecessor};

pub(crate) const LOCK_NAME: &str = "server.lock";
/// Random bytes of a nonce and of a start's id.
const RANDOM_BYTES: usize = 16;

/// A process that has said nothing yet.
pub(crate) struct Started {
    pub(crate) running: Running,
    pub(crate) control_end: OwnedFd,
    pub(crate) identity: Identity,
}

/// Start it.
pub(crate) fn start(spawner: &Spawner, spec: &LaunchSpec) -> Result<Started, LaunchError> {
    check_subreaper()?;
    let place = take_place(&spec.data_dir, spec.runtime_dir.as_deref(), &spec.startup_files)?;
    let spawned = spawn(spawner, spec, &place.layout).inspect_err(|_| place.layout.remove_temporary())?;
    let Spawned { child, output, control_end, identity } = spawned;
    let (running, _) = attend(spawner, child, output, place)?;
    Ok(Started { running, control_end, identity })
}

/// What a server leaves must fall to this process.
pub(super) fn check_subreaper() -> Result<(), LaunchError> {
    if cfg!(target_os = "linux") {
        let is_subreaper = host::hygiene::is_subreaper().map_err(LaunchError::files("cannot ask the kernel"))?;
        if !is_subreaper {
            return Err(LaunchError::NotSubreaper);
        }
    }
    Ok(())
}

/// The data directory as it is for a server that has not been started yet, and its lock. What an earlier one left there is ended.
pub(super) fn take_place(
    data_dir: &Path,
    runtime_dir: Option<&Path>,
    startup_files: &[(String, String)],
) -> Result<Place, LaunchError> {
    Layout::open(data_dir)?;
    let lock = FileLock::try_acquire(&data_dir.join(LOCK_NAME)).map_err(|error| match error {
        LockError::File(error) => LaunchError::Private(error),
        held @ LockError::Held { .. } => LaunchError::InUse(held),
    })?;
    let ended = predecessor::end(data_dir).map_err(LaunchError::Leftovers)?
        + leftovers::end_of_bindings(&Layout::homes_in(data_dir)).map_err(LaunchError::Leftovers)?;
    if ended > 0 {
        tracing::warn!(ended, "processes of an earlier server were ended");
    }
    Ok(Place { layout: Layout::make(data_dir, runtime_dir, startup_files)?, lock })
}

/// Record a process that was just started, and watch it.
pub(super) fn attend(
    spawner: &Spawner,
    child: Held,
    output: Output,
    place: Place,
) -> Result<(Running, Arc<Places>), LaunchError> {
    let child = Arc::new(child);
    record(&place.layout.data, &child, &place.layout.start_name);
    let places = Arc::new(Places::new(place));
    let watched = Watched { child: Arc::clone(&child), output: output.clone(), places: Arc::clone(&places) };
    let exited = watch::watch(watched).map_err(|source| {
        child.kill();
        LaunchError::System { what: "cannot watch the server", source }
    })?;
    Ok((Running::new(child, output, exited, spawner.clone()), places))
}

/// Write down which process has a data directory, so that the next daemon finds it.
pub(super) fn record(data: &Path, child: &Held, start_name: &str) {
    let recorded = if cfg!(target_os = "linux") {
        predecessor::record(data, child.pid(), &child.guards(), start_name)
    } else {
        Ok(())
    };
    if let Err(error) = recorded {
        tracing::warn!(%error, "the server could not be recorded; what it leaves is still known by its environment");
    }
}

struct Spawned {
    child: Held,
    output: Output,
    control_end: OwnedFd,
    identity: Identity,
}

fn spawn(spawner: &Spawner, spec: &LaunchSpec, layout: &Layout) -> Result<Spawned, LaunchError> {
    let (nonce, server_start_id) = (random_word()?, random_word()?);
    let (listener, port) = host::listener::bind_loopback().map_err(LaunchError::files("cannot listen on loopback"))?;
    let bounded = Bounded::of(spec, layout)?;
    let domain = Domain::harmless(bounded.is_confining(), bounded.has_outer());
    let confined = bounded.told();
    let shape = bounded.shape(spec, layout, port, &nonce);
    let (args, env) = (shape.arguments(), shape.environment());
    let launch_config_digest = shape.digest(&spec.startup_files);
    let configuration = shape.configuration(&spec.session_key, &spec.secret_key);
    let descriptors = descriptors(&listener, configuration.expose().as_bytes());
    let Descriptors { mut fds, control_end } = descriptors.map_err(LaunchError::files("cannot make descriptors"))?;
    fds.extend(bounded.into_descriptors());
    let started = Begun {
        program: spec.program.executable().to_path_buf(),
        args,
        env,
        fds,
        guard: spec.guard.as_deref(),
        domain,
        redactor: &spec.redactor,
    };
    let (child, output) = started.spawn(spawner, layout)?;
    let identity = Identity { nonce, server_start_id, launch_config_digest, port, confined, listener };
    Ok(Spawned { child, output, control_end, identity })
}

/// A random word, no secret but not to be guessed.
pub(super) fn random_word() -> Result<String, LaunchError> {
    host::sign::random_hex(RANDOM_BYTES).map_err(LaunchError::files("cannot get random bytes"))
}

/// What a process is begun with.
pub(super) struct Begun<'a> {
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) fds: Vec<(OwnedFd, i32)>,
    pub(super) guard: Option<&'a Path>,
    pub(super) domain: Domain,
    pub(super) redactor: &'a Arc<Redactor>,
}

impl Begun<'_> {
    /// Starts it in a layout's directories, below its guards where there are to be any.
    pub(super) fn spawn(self, spawner: &Spawner, layout: &Layout) -> Result<(Held, Output), LaunchError> {
        let (reader, writer) = io::pipe().map_err(LaunchError::files("cannot make a pipe"))?;
        let stderr = writer.try_clone().map_err(LaunchError::files("cannot make a pipe"))?;
        let output = Output::follow(reader, &layout.data, Arc::clone(self.redactor))
            .map_err(LaunchError::files("cannot keep the server's output"))?;
        let started = SpawnSpec {
            program: self.program,
            args: self.args,
            env: self.env,
            cwd: layout.cwd.clone(),
            fds: self.fds,
            stdout: writer.into(),
            stderr: stderr.into(),
        };
        let child = match self.guard {
            Some(guard) => {
                let held = Guarded::start(spawner, guard, self.domain, started, &layout.start_name);
                held.map(|held| Held::Guarded(Box::new(held)))
            }
            None => spawner.spawn(started).map(Held::Bare),
        };
        Ok((child.map_err(LaunchError::files("cannot start the server"))?, output))
    }
}

struct Descriptors {
    fds: Vec<(OwnedFd, i32)>,
    control_end: OwnedFd,
}

fn descriptors(listener: &TcpListener, configuration: &[u8]) -> io::Result<Descriptors> {
    let config = host::memfile::memfile("gatepost-config", configuration)?;
    let (ours, theirs) = host::control::control_pair()?;
    let fds = vec![(config, CONFIG_FD), (listener.try_clone()?.into(), LISTEN_FD), (theirs, CONTROL_FD)];
    Ok(Descriptors { fds, control_end: ours })
}
