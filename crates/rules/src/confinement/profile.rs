//! The text that macOS's sandbox goes by: a profile in its own language, from the policy and what was found at the plan's
//! paths. Compared as text on Linux; no Mac has read it yet.
//!
//! Paths stand in the profile as string literals. Passed beside it as parameters they would need no escaping, and the
//! profile would say nothing by itself: which parameters it gets, and how the tool takes them apart, could be seen on a Mac
//! only. As a literal, what a path becomes is decided and tested here.

use std::path::{Path, PathBuf};

use super::files::Access;
use super::seatbelt::{Filter, OperationRule, SeatbeltPolicy};

/// Most bytes of a profile: 256 KiB. It is an argument, and macOS has 1 MiB for all of them and the environment.
pub const MAX_PROFILE_BYTES: usize = 256 << 10;

/// A grant, and what stands there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Where it is, with every symbolic link resolved: the sandbox knows `/private/tmp` and `/private/var`, and not the links
    /// `/tmp` and `/var` that lead there.
    pub path: PathBuf,
    /// What is granted.
    pub access: Access,
    /// Whether it stands for everything below it too.
    pub is_directory: bool,
}

/// Why there is no profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// A path that the profile's language has no sure form for.
    #[error("{0:?} cannot be named in a profile: its name is not UTF-8, or has a control character")]
    Unwritable(PathBuf),
    /// A path that would grant everything.
    #[error("{0:?} cannot be granted: it is not a path below the root")]
    Root(PathBuf),
    /// More text than can be handed over.
    #[error("the profile has more than {MAX_PROFILE_BYTES} bytes")]
    Large,
}

impl SeatbeltPolicy {
    /// The profile. Of several rules that fit, the last one counts, so what concerns less of the file system stands later:
    /// nothing at all; what the policy allows; then grants and `kept`, each after what it lies in. A kept directory is closed
    /// also where a grant leads there or above it; a grant below it holds, as that of the server's environment must.
    ///
    /// # Errors
    /// When a path cannot be written into it, or it would be too large.
    pub fn profile(&self, grants: &[Placed], kept: &[PathBuf]) -> Result<String, ProfileError> {
        let mut text = "(version 1)\n(deny default)\n".to_owned();
        self.rules.iter().for_each(|rule| add_rule(&mut text, rule));
        let mut placed: Vec<(&Path, Option<&Placed>)> =
            grants.iter().map(|grant| (&*grant.path, Some(grant))).collect();
        placed.extend(kept.iter().map(|path| (path.as_path(), None)));
        // In their order where they are as deep: of a grant and a kept directory at one path, the latter counts.
        placed.sort_by_key(|(path, _)| path.components().count());
        for (path, grant) in placed {
            match grant {
                Some(grant) => {
                    add_way(&mut text, grant, kept)?;
                    add_grant(&mut text, grant)?;
                }
                None => add_kept(&mut text, path)?,
            }
        }
        if text.len() > MAX_PROFILE_BYTES { Err(ProfileError::Large) } else { Ok(text) }
    }
}

/// Neither files nor sockets, those of the daemon among them, whatever is granted above.
fn add_kept(text: &mut String, path: &Path) -> Result<(), ProfileError> {
    let below = below(path)?;
    line(text, &format!("(deny file* process-exec* {below})"));
    line(
        text,
        &format!("(deny network-bind network-outbound (local unix-socket {below}) (remote unix-socket {below}))"),
    );
    Ok(())
}

/// The directories on the way to a grant from a kept one that it lies in can be looked at, not listed: programs resolve
/// paths by looking at each.
fn add_way(text: &mut String, grant: &Placed, kept: &[PathBuf]) -> Result<(), ProfileError> {
    let is_kept = |directory: &&Path| kept.iter().any(|kept| directory.starts_with(kept));
    for directory in grant.path.ancestors().skip(1).take_while(is_kept) {
        line(text, &format!("(allow file-read-metadata (literal {}))", quoted_path(directory)?));
    }
    Ok(())
}

fn add_grant(text: &mut String, grant: &Placed) -> Result<(), ProfileError> {
    let place =
        if grant.is_directory { below(&grant.path)? } else { format!("(literal {})", quoted_path(&grant.path)?) };
    // Hard links (`file-link`) and clones are granted nowhere: what they are checked by is told in two ways.
    let operations = match grant.access {
        Access::Read => "file-read* file-lock file-map-executable process-exec*",
        Access::Write => "file-read* file-lock file-map-executable process-exec* file-write*",
        Access::Device => "file-read* file-write* file-ioctl",
    };
    line(text, &format!("(allow {operations} {place})"));
    if grant.access == Access::Write {
        let sockets = format!("(local unix-socket {place}) (remote unix-socket {place})");
        line(text, &format!("(allow network-bind network-inbound network-outbound {sockets})"));
    }
    Ok(())
}

fn add_rule(text: &mut String, rule: &OperationRule) {
    let filters: String = rule.to.iter().map(|filter| format!(" {}", filtered(filter))).collect();
    line(text, &format!("(allow {}{filters})", rule.allow.join(" ")));
}

fn filtered(filter: &Filter) -> String {
    match filter {
        // Words of the language, which the policy's check knows.
        Filter::Target(word) => format!("(target {word})"),
        Filter::Remote(word) => format!("(remote {word})"),
        Filter::Local(word) => format!("(local {word})"),
        Filter::Family(word) => format!("(socket-domain {word})"),
        Filter::Pattern(pattern) => format!("(regex #\"{pattern}\")"),
        Filter::Path(path) => format!("(literal {})", quoted(path)),
        Filter::Extension(name) => format!("(extension {})", quoted(name)),
        Filter::Service(name) => format!("(global-name {})", quoted(name)),
        Filter::Sysctl(name) => format!("(sysctl-name {})", quoted(name)),
        Filter::Sysctls(name) => format!("(sysctl-name-prefix {})", quoted(name)),
        Filter::Shared(name) => format!("(ipc-posix-name {})", quoted(name)),
        Filter::SharedPrefix(name) => format!("(ipc-posix-name-prefix {})", quoted(name)),
        Filter::All(filters) => {
            let all: Vec<String> = filters.iter().map(filtered).collect();
            format!("(require-all {})", all.join(" "))
        }
    }
}

fn below(directory: &Path) -> Result<String, ProfileError> {
    Ok(format!("(subpath {})", quoted_path(directory)?))
}

/// A path as a string of the language. What is not plainly one is refused, not made fit.
fn quoted_path(path: &Path) -> Result<String, ProfileError> {
    let unwritable = || ProfileError::Unwritable(path.to_path_buf());
    let text = path.to_str().ok_or_else(unwritable)?;
    if text.chars().any(char::is_control) {
        return Err(unwritable());
    }
    if !path.is_absolute() || path.parent().is_none() {
        return Err(ProfileError::Root(path.to_path_buf()));
    }
    Ok(quoted(text))
}

/// Between quotation marks, in which these two characters alone mean something else.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        if matches!(letter, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(letter);
    }
    quoted.push('"');
    quoted
}

fn line(text: &mut String, rule: &str) {
    text.push_str(rule);
    text.push('\n');
}
