//! The private directories of one binding, and the short ones for sockets.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use host::secure_fs::{SecureFsError, ensure_private_dir, write_private_new};

use super::{LaunchError, predecessor};

/// A socket's path holds at most 107 bytes; tmux adds `/tmux-<uid>/openhands` and Python's multiprocessing
/// `/pymp-…/listener-…`, both at most 40.
const MAX_SOCKET_DIR_BYTES: usize = 67;
/// Where a short directory was made, so that the next start can remove it when this one could not.
const SHORT_NOTE: &str = "short-directory";
const SHORT_PREFIX: &str = "gatepost-";
/// Random bytes of a start's name.
const START_NAME_BYTES: usize = 16;
/// A spare's data directory goes with it.
const SPARE_PREFIX: &str = "spare-";
const SPARE_NAME_BYTES: usize = 4;
/// A path's length.
const MAX_NOTE_BYTES: u64 = 4096;
/// The start-up module's file.
pub(crate) const MODULE_NAME: &str = "gatepost_startup";

/// The data directory of the server of a workspace (a resolved path) below a state directory.
#[must_use]
pub fn data_dir(state_dir: &Path, workspace: &Path) -> PathBuf {
    let digest = rules::jcs::sha256_hex(workspace.as_os_str().as_bytes());
    bindings_dir(state_dir).join(&digest[..16])
}

/// A new name for the data directory of a spare; nobody but that spare ever has it.
///
/// # Errors
/// Without random bytes.
pub fn spare_dir(state_dir: &Path) -> io::Result<PathBuf> {
    let name = host::sign::random_hex(SPARE_NAME_BYTES)?;
    Ok(bindings_dir(state_dir).join(format!("{SPARE_PREFIX}{name}")))
}

fn remove_if_spares(data: &Path) {
    let is_spares = data.file_name().is_some_and(|name| name.to_string_lossy().starts_with(SPARE_PREFIX));
    if is_spares && let Err(error) = remove_all(data) {
        tracing::warn!(path = %data.display(), %error, "the directory of a spare could not be removed");
    }
}

/// Where the data directories of a state directory stand.
pub(crate) fn bindings_dir(state_dir: &Path) -> PathBuf {
    state_dir.join("bindings")
}

/// Where everything of one server stands.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) data: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) agent_home: PathBuf,
    pub(crate) persistence: PathBuf,
    pub(crate) cwd: PathBuf,
    pub(crate) conversations: PathBuf,
    pub(crate) server_workspace: PathBuf,
    pub(crate) bash_events: PathBuf,
    /// Of this start alone, so that its path in the server's arguments names the start.
    pub(crate) startup: PathBuf,
    /// The random name of `startup`, in lower-case hexadecimal digits. No secret: it only tells one server from another.
    pub(crate) start_name: String,
    pub(crate) tmp: PathBuf,
    pub(crate) tmux: PathBuf,
    /// Set when `tmp` and `tmux` had to stand elsewhere.
    short: Option<PathBuf>,
}

fn short_enough(directory: &Path) -> bool {
    directory.as_os_str().len() <= MAX_SOCKET_DIR_BYTES
}

impl Layout {
    /// The data directory itself, private.
    pub(crate) fn open(data: &Path) -> Result<(), LaunchError> {
        Ok(ensure_private_dir(data)?)
    }

    /// Make every directory. The data directory's lock is held by the caller, so what is left of an earlier server may
    /// be removed.
    pub(crate) fn make(data: &Path, runtime: Option<&Path>, startup: &[(String, String)]) -> Result<Self, LaunchError> {
        Self::clear_temporary(data);
        let start_name = host::sign::random_hex(START_NAME_BYTES);
        let mut layout = Self::plan(data).named(start_name.map_err(LaunchError::files("cannot get random bytes"))?);
        if !short_enough(&layout.tmux) {
            let short = make_short(runtime).map_err(LaunchError::files("cannot make a directory for sockets"))?;
            let note = write_private_new(&data.join(SHORT_NOTE), short.as_os_str().as_bytes());
            (layout.tmp, layout.tmux) = (short.join("tmp"), short.join("tmux"));
            layout.short = Some(short);
            if let Err(error) = note {
                layout.remove_temporary();
                return Err(error.into());
            }
        }
        let made = layout.make_directories(startup);
        if made.is_err() {
            layout.remove_temporary();
        }
        made.map(|()| layout)
    }

    fn plan(data: &Path) -> Self {
        let home = Self::home_in(data);
        Self {
            agent_home: Self::agent_home_in(data),
            persistence: home.join(".openhands"),
            cwd: data.join("cwd"),
            conversations: data.join("conversations"),
            server_workspace: data.join("server-workspace"),
            bash_events: data.join("bash-events"),
            startup: Self::startup_in(data),
            start_name: String::new(),
            tmp: data.join("tmp"),
            tmux: data.join("tmux"),
            data: data.to_path_buf(),
            short: None,
            home,
        }
    }

    fn named(self, start_name: String) -> Self {
        Self { startup: self.startup.join(&start_name), start_name, ..self }
    }

    /// Where the start-up modules of a data directory's starts are.
    fn startup_in(data: &Path) -> PathBuf {
        data.join("startup")
    }

    /// The server's private HOME in a data directory.
    fn home_in(data: &Path) -> PathBuf {
        data.join("home")
    }

    /// HOME of what the server starts: it may write there, and the server reads nothing of it.
    fn agent_home_in(data: &Path) -> PathBuf {
        data.join("agent-home")
    }

    /// What a process of a data directory's server has as HOME.
    pub(crate) fn homes_in(data: &Path) -> [PathBuf; 2] {
        [Self::home_in(data), Self::agent_home_in(data)]
    }

    /// Remove what an earlier server left that should have ended with it. The data directory's lock is held by the caller.
    pub(crate) fn clear(data: &Path) {
        Self::clear_temporary(data);
        remove_if_spares(data);
    }

    fn clear_temporary(data: &Path) {
        Self::plan(data).remove_sockets();
        remove_noted_short(data);
    }

    /// In place of these directories there are links to the same of another layout from here on.
    pub(crate) fn lead_to(&self, other: &Self) -> io::Result<()> {
        for (own, other) in
            [(&self.home, &other.home), (&self.cwd, &other.cwd), (&self.tmp, &other.tmp), (&self.tmux, &other.tmux)]
        {
            remove_all(own)?;
            std::os::unix::fs::symlink(other, own)?;
        }
        Ok(())
    }

    fn make_directories(&self, startup: &[(String, String)]) -> Result<(), LaunchError> {
        for directory in [
            &self.home,
            &self.persistence,
            &self.cwd,
            &self.conversations,
            &self.server_workspace,
            &self.bash_events,
            &self.tmp,
            &self.tmux,
        ] {
            ensure_private_dir(directory)?;
        }
        // What commands left there would be read by the shells of later ones before anybody approved anything.
        put_away(&self.agent_home).map_err(LaunchError::files("cannot clear the agent's home"))?;
        ensure_private_dir(&self.agent_home)?;
        // The server puts this directory first on its module path: nothing but our files may be in it.
        let of_every_start = Self::startup_in(&self.data);
        remove_all(&of_every_start).map_err(LaunchError::files("cannot clear the start-up directory"))?;
        ensure_private_dir(&of_every_start)?;
        ensure_private_dir(&self.startup)?;
        for (name, text) in startup {
            write_private_new(&self.startup.join(name), text.as_bytes())?;
        }
        Ok(())
    }

    /// Remove what lives no longer than the server: temporary files and sockets, and all that a spare has.
    pub(crate) fn remove_temporary(&self) {
        self.remove_sockets();
        remove_if_spares(&self.data);
    }

    fn remove_sockets(&self) {
        predecessor::forget(&self.data);
        for directory in [&self.tmp, &self.tmux] {
            if let Err(error) = remove_all(directory) {
                tracing::warn!(path = %directory.display(), %error, "temporary files could not be removed");
            }
        }
        if self.short.is_some() {
            remove_noted_short(&self.data);
        }
    }
}

fn remove_all(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Remove a directory that the agent's commands wrote to; where they made that impossible, move it aside.
fn put_away(directory: &Path) -> io::Result<()> {
    let Err(error) = remove_all(directory) else { return Ok(()) };
    let aside = directory.with_extension(format!("left-{}", host::sign::random_hex(6)?));
    tracing::warn!(%error, left = %aside.display(), "a directory of the agent's could not be removed and was moved aside");
    fs::rename(directory, &aside)
}

/// A new private directory with a short name, below the runtime directory or `/tmp`.
fn make_short(runtime: Option<&Path>) -> io::Result<PathBuf> {
    let name = format!("{SHORT_PREFIX}{}-{}", rustix::process::geteuid().as_raw(), host::sign::random_hex(6)?);
    let mut last = io::Error::new(io::ErrorKind::InvalidFilename, "every place for sockets has too long a name");
    for base in runtime.into_iter().chain([Path::new("/tmp")]) {
        let path = base.join(&name);
        if short_enough(&path.join("tmux")) {
            // Fails when the name exists, so it is never someone else's directory.
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(path),
                Err(error) => last = error,
            }
        }
    }
    Err(last)
}

/// Remove the short directory that the note names, if it is one of ours.
fn remove_noted_short(data: &Path) {
    let note = data.join(SHORT_NOTE);
    let content = match host::secure_fs::read_private(&note, MAX_NOTE_BYTES) {
        Ok(content) => content,
        Err(SecureFsError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return,
        Err(error) => {
            tracing::warn!(%error, "the note of a directory for sockets cannot be read");
            return;
        }
    };
    let path = Path::new(std::ffi::OsStr::from_bytes(&content));
    let ours = path.is_absolute()
        && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(SHORT_PREFIX))
        && fs::symlink_metadata(path)
            .is_ok_and(|data| data.is_dir() && data.uid() == rustix::process::geteuid().as_raw());
    let removed = if ours { remove_all(path) } else { Ok(()) };
    if let Err(error) = removed.and_then(|()| fs::remove_file(&note)) {
        tracing::warn!(path = %path.display(), %error, "a directory for sockets could not be removed");
    }
}

/// Whether no link is on the way there: one that was resolved once, and has a link now, got it by somebody else.
pub(super) fn is_resolved(path: &Path) -> bool {
    path.canonicalize().is_ok_and(|resolved| resolved == path)
}
