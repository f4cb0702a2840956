//! What tells from outside that an attempt got through: root looks, and the attempt's own words count for nothing.

use super::attempts::{ATTEMPTS, Attempt, Sign, Whom};
use super::play::Play;
use super::stage::Stage;
use crate::failure::{Doing, Outcome};
use crate::processes;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The most that is read of a file that an attempt wrote.
const MAX_BYTES: usize = 64 << 20;
const SAID_CHARS: usize = 160;

impl Play<'_> {
    /// Whether this attempt got through.
    pub(super) fn got_through(&self, attempt: &Attempt) -> Outcome<bool> {
        let (stage, name) = (self.stage, attempt.name);
        let workspace = stage.workspace();
        Ok(match attempt.sign {
            Sign::Got => {
                let got = fs::read(workspace.join("got").join(name)).unwrap_or_default();
                self.tells(name, &got[..got.len().min(MAX_BYTES)])
            }
            // Its key is of another start than those that are known.
            Sign::Sent => holds(&workspace.join("got").join(name), "x-session-api-key: "),
            Sign::Told => {
                // One word alone: other attempts tell the model other things.
                let word = stage.hidden.get(name).or_else(|| self.words.get(name)).filter(|word| !word.is_empty());
                let told = |word: &String| stage.model.requests().iter().any(|asked| asked.to_string().contains(word));
                word.is_some_and(told)
            }
            Sign::Mark => stage.owner.marks().join(name).exists(),
            Sign::Ran if name == "type_into_terminal" => workspace.join("typed").exists(),
            Sign::Ran => workspace.join("got").join(format!("{name}-ran")).exists(),
            Sign::Receipt => stage.client.get(&format!("/v1/actions/{}", self.words[name]))?.status == 200,
            Sign::Stopped(whom) => self.stopped(whom),
            Sign::Limit => {
                let limits = fs::read_to_string(format!("/proc/{}/limits", stage.daemon_pid())).doing("no limits")?;
                limits.lines().any(|line| line.starts_with("Max open files") && line.contains(&self.limit.to_string()))
            }
            Sign::Log => holds(&stage.data()?.join("server.log"), &self.words[name]),
            Sign::Changed => holds(&self.changed_file(name)?, &self.words[name]),
            Sign::Mode => {
                let path = if name == "wrapper_binary" {
                    stage.home.binary().to_owned()
                } else {
                    stage.owner.directory().join(".ssh/id_ed25519")
                };
                fs::metadata(path).doing("a file is gone")?.permissions().mode() & 0o022 != 0
            }
            Sign::Terminal => holds(&stage.owner.directory().join("terminal-seen"), &self.words[name]),
            Sign::Namespace => {
                let outside = self.shell.and_then(|pid| fs::read_link(format!("/proc/{pid}/ns/user")).ok());
                self.own_processes(name).iter().any(|pid| {
                    let own = fs::read_link(format!("/proc/{pid}/ns/user")).ok();
                    own.is_some() && own != outside
                })
            }
            Sign::Mounted => self.own_processes(name).iter().any(|pid| {
                let mounts = fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
                mounts.contains(&self.words[name])
            }),
            Sign::Ring => self.own_processes(name).iter().any(|pid| {
                let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
                let mut links = open.filter_map(|entry| fs::read_link(entry.path()).ok());
                links.any(|link| link.to_string_lossy().contains("io_uring"))
            }),
            Sign::Policy => {
                let directory = PathBuf::from(stage.targets["policy_directory"].as_str().unwrap_or_default());
                ["base_state.json", "meta.json"].iter().any(|file| holds(&directory.join(file), "NeverConfirm"))
            }
            Sign::Alive => !self.own_processes(name).is_empty(),
        })
    }

    /// Whether a live key, or what is hidden from this attempt, stands in these bytes.
    fn tells(&self, name: &str, bytes: &[u8]) -> bool {
        let hidden = self.stage.hidden.get(name).or_else(|| self.words.get(name));
        let secrets = self.stage.keys.iter().chain(hidden).filter(|secret| !secret.is_empty());
        secrets.into_iter().any(|secret| contains(bytes, secret.as_bytes()))
    }

    fn stopped(&self, whom: Whom) -> bool {
        let pid = match whom {
            Whom::Server => Some(self.server),
            Whom::Daemon => Some(self.stage.daemon_pid()),
            Whom::FirstGuard => self.guards.map(|guards| guards[0]),
            Whom::SecondGuard => self.guards.map(|guards| guards[1]),
        };
        pid.is_some_and(|pid| self.was_stopped(pid))
    }

    fn changed_file(&self, name: &str) -> Outcome<PathBuf> {
        let (stage, owner) = (self.stage, self.stage.owner.directory());
        let target = |name: &str| PathBuf::from(stage.targets[name].as_str().unwrap_or_default());
        Ok(match name {
            "owners_bashrc" => owner.join(".bashrc"),
            "owners_authorized_keys" => owner.join(".ssh/authorized_keys"),
            "owners_user_unit" => owner.join(format!(".config/systemd/user/{name}.service")),
            "editor_owners_profile" => owner.join(".profile"),
            "owners_pidfd_getfd" => owner.join("held"),
            "gatepost_configuration" => target("configuration"),
            "installed_server" => target("installed_file"),
            _ => target("startup_file"),
        })
    }

    /// The processes that this attempt started, known by the number that they sleep for.
    fn own_processes(&self, name: &str) -> Vec<u32> {
        self.naps.get(name).map(|nap| with_argument(nap)).unwrap_or_default()
    }
}

/// Processes with this word among their arguments.
pub(super) fn with_argument(word: &str) -> Vec<u32> {
    let of_word = |pid: &u32| {
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        arguments.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
            // The attempt's own program names it too, for a moment.
            && !contains(&arguments, b"attempt.py")
    };
    processes::all().into_iter().filter(of_word).collect()
}

/// What the attempts said of themselves, for people who wonder why; nothing is judged by it.
pub(super) fn said(stage: &Stage) -> BTreeMap<&'static str, String> {
    let mut said = BTreeMap::new();
    for request in stage.model.requests() {
        let text = request.to_string();
        for line in text.split("\\n") {
            let Some((name, words)) = line.split_once(": ") else { continue };
            let own = ATTEMPTS.iter().find(|attempt| name.rsplit('"').next() == Some(attempt.name));
            if let Some(attempt) = own {
                said.insert(attempt.name, words.chars().take(SAID_CHARS).collect());
            }
        }
    }
    said
}

fn holds(path: &Path, text: &str) -> bool {
    fs::read(path).is_ok_and(|bytes| contains(&bytes, text.as_bytes()))
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    let Some(first) = part.first() else { return false };
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| byte == first) {
        if rest[at..].starts_with(part) {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_found_wherever_it_stands() {
        for (bytes, part, found) in
            [("aab", "ab", true), ("aab", "b", true), ("aab", "ba", false), ("", "a", false), ("a", "", false)]
        {
            assert_eq!(contains(bytes.as_bytes(), part.as_bytes()), found, "{bytes} {part}");
        }
    }
}
