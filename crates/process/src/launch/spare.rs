//! A spare: a process that has imported what a server imports, and becomes the server of a workspace when it is told of one.
//!
//! It is started as a server is, below its own guards and in a data directory of its own, without a key, a configuration or a
//! plan. What it becomes has gone the way of every start from the announcement on.

use std::ffi::OsString;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use host::{Spawner, listener::ReservedPort, memfile::memfile};
use rules::guard::Domain;
use rules::redact::Redactor;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::io::AsyncReadExt;
use tokio::sync::watch;

use super::bounded::Bounded;
use super::held::Held;
use super::layout::Layout;
use super::output::Output;
use super::places::Places;
use super::server::{Identity, Running, StopReport};
use super::shape::{CONFIG_FD, CONTROL_FD, DOMAIN_FD, LISTEN_FD, OUTER_FD, PLAN_FD, Program, Shape, WRAPPER_FD};
use super::start::{self, Begun, Started};
use super::{CLOSED_WAIT, ExitReport, LaunchError, LaunchSpec, OwnedServer, Unfit};

/// What the process reads as the order to begin; the descriptors come with it.
const GO: &[u8] = b"go\n";
/// For a spare to take the order, and to announce itself as a server: it has imported everything.
const GO_LIMIT: Duration = Duration::from_secs(15);
/// For the order to be written.
const WRITE_LIMIT: Duration = Duration::from_secs(5);
/// What a spare says of itself.
const MAX_SAID_BYTES: usize = 4096;

/// What to start a spare with: what servers of all workspaces have in common.
#[derive(Clone)]
pub struct SpareSpec {
    /// The program.
    pub program: Program,
    /// The contract's version, which the spare must name.
    pub version: String,
    /// The files of the contract's start-up module: name and whole text.
    pub startup_files: Vec<(String, String)>,
    /// A data directory of its own, see [`super::spare_dir`]; removed with it.
    pub data_dir: PathBuf,
    /// As for a server.
    pub runtime_dir: Option<PathBuf>,
    /// PATH, the same as the servers'.
    pub path: OsString,
    /// Knows every secret that there is.
    pub redactor: Arc<Redactor>,
    /// For everything to be imported.
    pub start_timeout: Duration,
    /// The gatepost binary, for the guards.
    pub guard: Option<PathBuf>,
    /// Whether what the server starts will be confined.
    pub confining: bool,
    /// Whether that will be in an outer namespace.
    pub has_outer: bool,
}

impl SpareSpec {
    fn domain(&self) -> Domain {
        Domain::harmless(self.confining, self.has_outer)
    }

    /// The numbers that the descriptors of a workspace will have.
    fn numbers(&self) -> Vec<i32> {
        let confining = [PLAN_FD, DOMAIN_FD, WRAPPER_FD].into_iter().filter(|_| self.confining);
        [CONFIG_FD].into_iter().chain(confining).chain(self.has_outer.then_some(OUTER_FD)).collect()
    }
}

/// A spare that waits. Dropping it ends it.
pub struct WaitingSpare {
    running: Running,
    held: Waiting,
}

/// What becoming a server needs.
struct Waiting {
    spec: SpareSpec,
    child: Arc<Held>,
    output: Output,
    places: Arc<Places>,
    layout: Layout,
    control: UnixStream,
    nonce: String,
    port: ReservedPort,
}

impl WaitingSpare {
    /// The spare's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// What it was started from.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.held.spec.program
    }

    /// Becomes Some once it has ended.
    #[must_use]
    pub fn exited(&self) -> watch::Receiver<Option<ExitReport>> {
        self.running.exited()
    }

    /// End it. Takes 45 s at most.
    pub async fn end(self) -> StopReport {
        StopReport::of(self.running.kill().await)
    }
}

/// Start a spare and wait until it waits, unless it is `unneeded` before.
///
/// # Errors
/// As [`super::launch`], or [`LaunchError::Unneeded`]; what was started was ended.
pub async fn start_spare(
    spawner: &Spawner,
    spec: SpareSpec,
    unneeded: impl Future<Output = ()>,
) -> Result<WaitingSpare, LaunchError> {
    let deadline = Instant::now() + spec.start_timeout;
    let (version, limit_s) = (spec.version.clone(), spec.start_timeout.as_secs());
    let spawner = spawner.clone();
    let begun = tokio::task::spawn_blocking(move || begin(&spawner, spec)).await;
    let WaitingSpare { running, mut held } =
        begun.map_err(|error| LaunchError::System { what: "cannot start a spare", source: error.into() })??;
    let left = deadline.saturating_duration_since(Instant::now());
    let said = tokio::select! {
        biased;
        said = Said::read(&mut held.control) => match said {
            Some(said) => said.check(&held.nonce, running.pid(), &version).map_err(Unfit::NotAsReviewed),
            None => Err(running.exit_within(CLOSED_WAIT).await.map_or_else(
                || Unfit::NotAsReviewed("it closed its control channel, or said something else than that it waits".to_owned()),
                Unfit::Exited,
            )),
        },
        report = running.exit_within(left) => Err(report.map_or(Unfit::Late, Unfit::Exited)),
        () = unneeded => Err(Unfit::Unneeded),
    };
    match said {
        Ok(()) => Ok(WaitingSpare { running, held }),
        Err(unfit) => Err(unfit.ended(running, limit_s).await),
    }
}

/// Have a spare become the server of a workspace.
///
/// # Errors
/// As [`super::launch`], or [`LaunchError::Spare`]; the spare was ended, and its locks are free.
pub async fn become_server(spare: WaitingSpare, spec: LaunchSpec) -> Result<OwnedServer, LaunchError> {
    let WaitingSpare { running, held } = spare;
    let limit = GO_LIMIT.min(spec.start_timeout);
    let (version, deadline) = (spec.version.clone(), Instant::now() + limit);
    let told = tokio::task::spawn_blocking(move || held.tell(&spec)).await;
    let told = told.map_err(|error| LaunchError::System { what: "cannot tell a spare", source: error.into() });
    match told.and_then(|told| told) {
        Ok((control_end, identity)) => {
            super::take(Started { running, control_end, identity }, &version, deadline, limit.as_secs()).await
        }
        Err(error) => {
            running.end_now().await;
            Err(error)
        }
    }
}

/// A process that has said nothing yet.
struct Spawned {
    child: Held,
    output: Output,
    control: UnixStream,
    nonce: String,
    port: ReservedPort,
}

fn begin(spawner: &Spawner, spec: SpareSpec) -> Result<WaitingSpare, LaunchError> {
    start::check_subreaper()?;
    let place = start::take_place(&spec.data_dir, spec.runtime_dir.as_deref(), &spec.startup_files)?;
    let layout = place.layout.clone();
    let spawned = spawn(spawner, &spec, &layout).inspect_err(|_| layout.remove_temporary())?;
    let Spawned { child, output, control, nonce, port } = spawned;
    let (running, places) = start::attend(spawner, child, output.clone(), place)?;
    let child = running.child();
    Ok(WaitingSpare { running, held: Waiting { spec, child, output, places, layout, control, nonce, port } })
}

fn spawn(spawner: &Spawner, spec: &SpareSpec, layout: &Layout) -> Result<Spawned, LaunchError> {
    let nonce = start::random_word()?;
    let port = host::listener::reserve_loopback().map_err(LaunchError::files("cannot reserve a port"))?;
    let (ours, theirs) = host::control::control_pair().map_err(LaunchError::files("cannot make a socket pair"))?;
    let shape = Shape {
        program: &spec.program,
        version: &spec.version,
        layout,
        path: spec.path.clone(),
        port: port.port(),
        nonce: &nonce,
        wrapper: None,
    };
    let given = port.try_clone().map_err(LaunchError::files("cannot copy a descriptor"))?;
    let mut fds: Vec<(OwnedFd, i32)> = vec![(given, LISTEN_FD), (theirs, CONTROL_FD)];
    for number in spec.numbers() {
        let nothing = memfile("gatepost-nothing", b"").map_err(LaunchError::files("cannot make a file in memory"))?;
        fds.push((nothing, number));
    }
    let begun = Begun {
        program: spec.program.executable().to_path_buf(),
        args: shape.arguments(),
        env: shape.spare_environment(),
        fds,
        guard: spec.guard.as_deref(),
        domain: spec.domain(),
        redactor: &spec.redactor,
    };
    let (child, output) = begun.spawn(spawner, layout)?;
    Ok(Spawned { child, output, control: UnixStream::from(ours), nonce, port })
}

impl Waiting {
    /// Gives the spare everything that an ordinary start gives a server.
    fn tell(self, spec: &LaunchSpec) -> Result<(OwnedFd, Identity), LaunchError> {
        let place = start::take_place(&spec.data_dir, spec.runtime_dir.as_deref(), &spec.startup_files)?;
        let layout = place.layout.clone();
        if !self.places.add(place) {
            return Err(LaunchError::Spare("it has ended".to_owned()));
        }
        let bounded = Bounded::of(spec, &layout)?;
        if (bounded.is_confining(), bounded.has_outer()) != (self.spec.confining, self.spec.has_outer) {
            return Err(LaunchError::Spare("it was started for another confinement".to_owned()));
        }
        let port = self.port.port();
        let shape = bounded.shape(spec, &layout, port, &self.nonce);
        let identity = Identity {
            nonce: self.nonce.clone(),
            server_start_id: start::random_word()?,
            launch_config_digest: shape.digest(&spec.startup_files),
            port,
            confined: bounded.told(),
            listener: self.port.listen().map_err(LaunchError::files("cannot listen on loopback"))?,
        };
        let configuration = shape.configuration(&spec.session_key, &spec.secret_key);
        let config = memfile("gatepost-config", configuration.expose().as_bytes());
        let config = config.map_err(LaunchError::files("cannot make a file in memory"))?;
        let environment = environment(&shape)?;
        let mut given = vec![(config, CONFIG_FD)];
        given.extend(bounded.into_descriptors());
        let numbers: Vec<i32> = given.iter().map(|(_, number)| *number).collect();
        let order = json!({
            "descriptors": numbers,
            "environment": environment,
            "directory": text(layout.cwd.clone().into())?,
        });
        self.layout.lead_to(&layout).map_err(LaunchError::files("cannot link a spare's directories"))?;
        // Before the key can be in anything that the process says.
        let moved = self.output.move_to(&layout.data, Arc::clone(&spec.redactor));
        moved.map_err(LaunchError::files("cannot keep the server's output"))?;
        start::record(&layout.data, &self.child, &self.layout.start_name);
        send(&self.control, &order, &given).map_err(LaunchError::files("cannot tell a spare of its workspace"))?;
        Ok((self.control.into(), identity))
    }
}

fn environment(shape: &Shape<'_>) -> Result<Map<String, Value>, LaunchError> {
    shape.environment().into_iter().map(|(name, value)| Ok((text(name)?, text(value)?.into()))).collect()
}

fn text(word: OsString) -> Result<String, LaunchError> {
    word.into_string().map_err(|_| LaunchError::Spare("a path of the workspace's is no text".to_owned()))
}

fn send(mut control: &UnixStream, order: &Value, given: &[(OwnedFd, i32)]) -> std::io::Result<()> {
    control.set_nonblocking(false)?;
    control.set_write_timeout(Some(WRITE_LIMIT))?;
    let descriptors: Vec<_> = given.iter().map(|(descriptor, _)| descriptor.as_fd()).collect();
    host::control::send_descriptors(control, GO, &descriptors)?;
    control.write_all(format!("{order}\n").as_bytes())
}

/// What a spare says, once.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    waiting: Waits,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Waits {
    nonce: String,
    pid: u32,
    contract: String,
}

impl Said {
    /// One line and nothing after it; `None` for anything else. A copy of the descriptor reads: the spare's own stays.
    async fn read(control: &mut UnixStream) -> Option<Self> {
        let copy = control.try_clone().ok()?;
        copy.set_nonblocking(true).ok()?;
        let mut stream = tokio::net::UnixStream::from_std(copy).ok()?;
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            let mut piece = [0; 1024];
            let count = stream.read(&mut piece).await.ok().filter(|&count| count > 0)?;
            line.extend_from_slice(&piece[..count]);
            if line.len() > MAX_SAID_BYTES {
                return None;
            }
        }
        serde_json::from_slice(&line).ok()
    }

    fn check(&self, nonce: &str, pid: u32, version: &str) -> Result<(), String> {
        let Waits { nonce: said, pid: its_pid, contract } = &self.waiting;
        if !host::secret::constant_time_eq(said.as_bytes(), nonce.as_bytes()) {
            return Err("it waits with another nonce".to_owned());
        }
        if *its_pid != pid {
            return Err(format!("process {its_pid} waits, not {pid}"));
        }
        if contract != version {
            return Err(format!("its start-up module is for version {contract:.40}, not {version}"));
        }
        Ok(())
    }
}
