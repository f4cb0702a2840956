//! Everything of a launch that blocks, up to a running and watched process.

use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use host::lock::{FileLock, LockError};
use host::{ChildProcess, SpawnSpec, Spawner};

use super::confining::Bounds;
use super::layout::Layout;
use super::output::Output;
use super::server::{Identity, Running};
use super::shape::{CONFIG_FD, CONTROL_FD, DOMAIN_FD, LISTEN_FD, PLAN_FD, Shape, Wrapper};
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
    if cfg!(target_os = "linux") {
        let is_subreaper = host::hygiene::is_subreaper().map_err(LaunchError::files("cannot ask the kernel"))?;
        if !is_subreaper {
            return Err(LaunchError::NotSubreaper);
        }
    }
    Layout::open(&spec.data_dir)?;
    let lock = FileLock::try_acquire(&spec.data_dir.join(LOCK_NAME)).map_err(|error| match error {
        LockError::File(error) => LaunchError::Private(error),
        held @ LockError::Held { .. } => LaunchError::InUse(held),
    })?;
    let ended = predecessor::end(&spec.data_dir).map_err(LaunchError::Leftovers)?
        + leftovers::end_of_bindings(&Layout::homes_in(&spec.data_dir)).map_err(LaunchError::Leftovers)?;
    if ended > 0 {
        tracing::warn!(ended, "processes of an earlier server were ended");
    }
    let layout = Layout::make(&spec.data_dir, spec.runtime_dir.as_deref(), &spec.startup_files)?;
    let spawned = spawn(spawner, spec, &layout).inspect_err(|_| layout.remove_temporary())?;
    let Spawned { child, output, control_end, identity } = spawned;
    let child = Arc::new(child);
    let recorded = if cfg!(target_os = "linux") {
        predecessor::record(&layout.data, child.pid(), &layout.start_name)
    } else {
        Ok(())
    };
    if let Err(error) = recorded {
        tracing::warn!(%error, "the server could not be recorded; what it leaves is still known by its environment");
    }
    let watched = Watched { child: Arc::clone(&child), output: output.clone(), layout, lock };
    let exited = watch::watch(watched).map_err(|source| {
        watch::ignore_gone(child.signal_group(host::Signal::Kill));
        LaunchError::System { what: "cannot watch the server", source }
    })?;
    Ok(Started { running: Running::new(child, output, exited, spawner.clone()), control_end, identity })
}

struct Spawned {
    child: ChildProcess,
    output: Output,
    control_end: OwnedFd,
    identity: Identity,
}

fn spawn(spawner: &Spawner, spec: &LaunchSpec, layout: &Layout) -> Result<Spawned, LaunchError> {
    let random = || host::sign::random_hex(RANDOM_BYTES).map_err(LaunchError::files("cannot get random bytes"));
    let (nonce, server_start_id) = (random()?, random()?);
    let (listener, port) = host::listener::bind_loopback().map_err(LaunchError::files("cannot listen on loopback"))?;
    let bounds = spec.confining.as_ref().map(|confining| confining.bounds(&spec.program, layout, &spec.path));
    let bounds = bounds.transpose()?;
    let outer = bounds.as_ref().map(|bounds| bounds.outer.clone());
    let prefix = outer.clone().and_then(Result::ok).unwrap_or_default();
    let shape = Shape {
        program: &spec.program,
        version: &spec.version,
        layout,
        path: spec.path.clone(),
        port,
        nonce: &nonce,
        wrapper: spec.confining.as_ref().map(|confining| Wrapper {
            program: &confining.wrapper,
            outer: &prefix,
            owner_home: &confining.owner_home,
        }),
    };
    let launch_config_digest = shape.digest(&spec.startup_files);
    let configuration = shape.configuration(&spec.session_key, &spec.secret_key);
    let descriptors = descriptors(&listener, configuration.expose().as_bytes());
    let Descriptors { mut fds, control_end } = descriptors.map_err(LaunchError::files("cannot make descriptors"))?;
    if let Some(Bounds { plan, domain, .. }) = bounds {
        fds.extend([(plan, PLAN_FD), (domain, DOMAIN_FD)]);
    }
    let (reader, writer) = io::pipe().map_err(LaunchError::files("cannot make a pipe"))?;
    let stderr = writer.try_clone().map_err(LaunchError::files("cannot make a pipe"))?;
    let output = Output::follow(reader, &layout.data, Arc::clone(&spec.redactor))
        .map_err(LaunchError::files("cannot keep the server's output"))?;
    let child = spawner
        .spawn(SpawnSpec {
            program: spec.program.executable().to_path_buf(),
            args: shape.arguments(),
            env: shape.environment(),
            cwd: layout.cwd.clone(),
            fds,
            stdout: writer.into(),
            stderr: stderr.into(),
        })
        .map_err(LaunchError::files("cannot start the server"))?;
    let identity = Identity { nonce, server_start_id, launch_config_digest, port, outer, listener };
    Ok(Spawned { child, output, control_end, identity })
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
