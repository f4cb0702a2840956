//! The texts of the units, with what is particular to this installation filled in.

use std::path::{Path, PathBuf};

use api_types::ExitCode;
use cli::Failure;
use rules::jcs::sha256_hex;

const SERVICE: &str = include_str!("../../../../config/services/gatepost.service");
const SOCKET: &str = include_str!("../../../../config/services/gatepost.socket");
const AGENT: &str = include_str!("../../../../config/services/org.gatepost.daemon.plist");
/// In the line by which a unit is known for one that was written here, before the SHA-256 of its other lines.
const MARK: &str = "gatepost-unit sha256:";

/// The line of an agent before that with the search path.
const PATH_KEY: &str = "<key>PATH</key>";

/// A service manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manager {
    /// systemd, as a user manager.
    Systemd,
    /// launchd, with agents. Never tried.
    Launchd,
}

impl Manager {
    /// The one that this system has.
    pub(crate) const fn of_this_system() -> Self {
        if cfg!(target_os = "macos") { Self::Launchd } else { Self::Systemd }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Systemd => "systemd",
            Self::Launchd => "launchd",
        }
    }
}

/// What is particular to an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Installation {
    /// The gatepost program.
    pub(crate) binary: PathBuf,
    /// Global options that were given, each with its path.
    pub(crate) options: Vec<(&'static str, PathBuf)>,
    /// The daemon's socket.
    pub(crate) socket: PathBuf,
    /// The credential that the configuration names, and the file it is loaded from.
    pub(crate) credential: Option<(String, PathBuf)>,
    /// Directories of programs.
    pub(crate) path: String,
    /// The owner's home.
    pub(crate) home: PathBuf,
}

/// One file of a service manager's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) name: &'static str,
    pub(crate) text: String,
}

impl Installation {
    /// The units, the one that others need first.
    ///
    /// # Errors
    /// A path cannot stand in a unit.
    pub(crate) fn units(&self, manager: Manager) -> Result<Vec<Unit>, Failure> {
        match manager {
            Manager::Systemd => self.systemd(),
            Manager::Launchd => self.launchd(),
        }
    }

    fn systemd(&self) -> Result<Vec<Unit>, Failure> {
        let mut serve = vec![word(text(&self.binary)?), "serve".to_owned()];
        for (option, path) in &self.options {
            serve.extend([(*option).to_owned(), word(text(path)?)]);
        }
        let socket = text(&self.socket)?;
        let directory = self.socket.parent().unwrap_or(Path::new("/"));
        let mut paths = vec![word(text(directory)?)];
        for (_, path) in &self.options {
            paths.push(format!("-{}", word(text(path)?)));
        }
        let credentials = match &self.credential {
            Some((name, file)) => format!("LoadCredential={}:{}", text(Path::new(name))?, specifiers(text(file)?)),
            None => "# No credential is named in the configuration.".to_owned(),
        };
        let blanks = Blanks {
            serve: serve.join(" ").replace('$', "$$"),
            environment: word(&format!("PATH={}", text(Path::new(&self.path))?)),
            credentials,
            paths: paths.join(" "),
            socket: specifiers(socket),
        };
        Ok(blanks.units())
    }

    fn launchd(&self) -> Result<Vec<Unit>, Failure> {
        let mut words = vec![text(&self.binary)?, "serve"];
        for (option, path) in &self.options {
            words.extend([*option, text(path)?]);
        }
        let words: Vec<String> = words.iter().map(|word| format!("        <string>{}</string>", xml(word))).collect();
        let log = self.home.join("Library/Logs/gatepost.log");
        let agent = AGENT
            .replace("@ARGUMENTS@", &words.join("\n"))
            .replace("@SEARCH_PATH@", &xml(text(Path::new(&self.path))?))
            .replace("@LOG@", &xml(text(&log)?));
        let text = marked(&agent, |mark| format!("<!-- {mark} -->\n"), "<plist");
        Ok(vec![Unit { name: "org.gatepost.daemon.plist", text }])
    }
}

/// What is filled into the units of systemd, each as it stands there.
pub(super) struct Blanks {
    /// The command that starts the daemon.
    pub(super) serve: String,
    /// The variables of its environment.
    pub(super) environment: String,
    /// The line that loads a credential, or a comment.
    pub(super) credentials: String,
    /// What else of the homes and of the runtime directory it sees.
    pub(super) paths: String,
    /// Where the socket listens.
    pub(super) socket: String,
}

impl Blanks {
    /// The units, the one that others need first.
    pub(super) fn units(&self) -> Vec<Unit> {
        let service = SERVICE
            .replace("@SERVE@", &self.serve)
            .replace("@ENVIRONMENT@", &self.environment)
            .replace("@CREDENTIALS@", &self.credentials)
            .replace("@PATHS@", &self.paths);
        let socket = SOCKET.replace("@SOCKET@", &self.socket);
        let unit = |name, text: String| Unit { name, text: marked(&text, |mark| format!("# {mark}\n"), "") };
        vec![unit("gatepost.socket", socket), unit("gatepost.service", service)]
    }
}

/// Whether a text is a unit as it was written here, of this or another installation.
pub(crate) fn is_ours(text: &str) -> bool {
    let Some(line) = text.lines().find(|line| line.contains(MARK)) else { return false };
    let digest: String = line.split(MARK).nth(1).unwrap_or_default().chars().take(64).collect();
    sha256_hex(text.replacen(&format!("{line}\n"), "", 1).as_bytes()) == digest
}

/// Whether two texts of ours say the same but for where programs are searched, which depends on who installs.
pub(crate) fn differ_in_path_alone(one: &str, other: &str) -> bool {
    let lines = |text: &str| -> Vec<String> {
        let mut is_path = false;
        let counts = |line: &&str| {
            let after_key = std::mem::replace(&mut is_path, line.trim() == PATH_KEY);
            !after_key && !line.contains(MARK) && !line.starts_with("Environment=")
        };
        text.lines().filter(counts).map(str::to_owned).collect()
    };
    lines(one) == lines(other)
}

/// Puts the line with the digest before the first line that begins with these words.
fn marked(text: &str, line: impl Fn(&str) -> String, before: &str) -> String {
    let line = line(&format!("{MARK}{}", sha256_hex(text.as_bytes())));
    let at = text.find(before).unwrap_or(0);
    let (head, rest) = text.split_at(at);
    format!("{head}{line}{rest}")
}

/// A path as text; what a unit could take for something else is refused.
fn text(path: &Path) -> Result<&str, Failure> {
    let text = path.to_str().filter(|text| !text.is_empty() && !text.chars().any(char::is_control));
    text.ok_or_else(|| {
        let detail = format!("{} cannot stand in a unit: it is empty or holds control characters", path.display());
        Failure::new(ExitCode::Usage, "usage", detail)
    })
}

/// A word of systemd's, in quotes, with nothing in it that stands for something else. A colon divides words of some directives
/// only, and is then part of them.
fn word(text: &str) -> String {
    format!("\"{}\"", specifiers(text).replace('\\', "\\\\").replace('"', "\\\""))
}

fn specifiers(text: &str) -> String {
    text.replace('%', "%%")
}

fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installation() -> Installation {
        Installation {
            binary: "/opt/a b/gate%h\"$post".into(),
            options: vec![("--state-dir", "/srv/state".into())],
            socket: "/srv/state/run/gatepost.sock".into(),
            credential: Some(("model".to_owned(), "/home/a/.config/gatepost/credentials/model".into())),
            path: "/usr/bin:/a&b".to_owned(),
            home: "/home/a".into(),
        }
    }

    #[test]
    fn everything_is_filled_in_and_nothing_in_a_path_means_something_else() {
        let units = installation().units(Manager::Systemd).unwrap();
        assert_eq!(units.iter().map(|unit| unit.name).collect::<Vec<_>>(), ["gatepost.socket", "gatepost.service"]);
        assert!(units[0].text.contains("\nListenStream=/srv/state/run/gatepost.sock\n"));
        for line in [
            "ExecStart=\"/opt/a b/gate%%h\\\"$$post\" serve --state-dir \"/srv/state\"",
            "LoadCredential=model:/home/a/.config/gatepost/credentials/model",
            "Environment=\"PATH=/usr/bin:/a&b\"",
            "BindPaths=%h %t/systemd/notify \"/srv/state/run\" -\"/srv/state\"",
        ] {
            assert!(units[1].text.lines().any(|found| found == line), "{line}\n{}", units[1].text);
        }
        let agent = installation().units(Manager::Launchd).unwrap().remove(0);
        assert!(agent.text.contains("<string>/opt/a b/gate%h\"$post</string>\n        <string>serve</string>"));
        assert!(agent.text.contains("<string>/usr/bin:/a&amp;b</string>"));
        for unit in units.iter().chain([&agent]) {
            // Sets of system calls begin with it too, in lower case.
            let left = unit.text.split('@').skip(1).any(|rest| rest.starts_with(char::is_uppercase));
            assert!(!left, "{}", unit.text);
        }
    }

    #[test]
    fn a_unit_is_known_for_ours_until_it_is_changed() {
        for manager in [Manager::Systemd, Manager::Launchd] {
            for unit in installation().units(manager).unwrap() {
                assert!(is_ours(&unit.text), "{}", unit.text);
                assert!(!is_ours(&unit.text.replacen("gatepost", "other", 1)));
                assert!(!is_ours(&format!("{}\n", unit.text)));
            }
        }
        assert!(!is_ours("") && !is_ours(SERVICE));
    }

    #[test]
    fn who_installs_with_another_path_writes_the_same_unit() {
        for manager in [Manager::Systemd, Manager::Launchd] {
            let text = |path: &str, binary: &str| {
                let own = Installation { path: path.to_owned(), binary: binary.into(), ..installation() };
                own.units(manager).unwrap().pop().unwrap().text
            };
            assert!(differ_in_path_alone(&text("/a", "/g"), &text("/b", "/g")), "{manager:?}");
            assert!(!differ_in_path_alone(&text("/a", "/g"), &text("/a", "/h")), "{manager:?}");
        }
    }

    #[test]
    fn a_path_that_could_begin_another_line_is_refused() {
        let mut bad = installation();
        bad.binary = "/opt/gate\nExecStartPre=post".into();
        assert!(bad.units(Manager::Systemd).is_err() && bad.units(Manager::Launchd).is_err());
        let mut bad = installation();
        bad.path = "/usr/bin\n".to_owned();
        assert!(bad.units(Manager::Systemd).is_err());
    }
}
