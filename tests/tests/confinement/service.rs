//! The shipped units under a real user manager, with every restriction in them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use gatepost_tests::{LIMIT, Session, UserManager, in_own_mounts, wait_until};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};
use testkit::daemon::{Client, Home, Setup, UNPRIVILEGED_USER, gatepost_binary, unprivileged_install};
use testkit::development::Course;
use testkit::model::ScriptedModel;

use crate::development::judge;

const SERVICE: &str = "gatepost.service";
const SOCKET: &str = "gatepost.socket";
/// The worst exposure of the shipped unit that `systemd-analyze security` may find, in tenths.
const WORST_EXPOSURE: &str = "32";

/// What `gatepost service` says with these words, which must succeed, for a user with this home.
fn said(home: &Path, words: &[&str]) -> Value {
    let mut command = Command::new(gatepost_binary().unwrap());
    command.args(["--json", "service"]).args(words).env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin");
    let output = command.env("XDG_RUNTIME_DIR", home.join("run")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text_of<'a>(printed: &'a Value, name: &str) -> &'a str {
    let units = printed["units"].as_array().unwrap();
    units.iter().find(|unit| unit["name"] == name).unwrap()["text"].as_str().unwrap()
}

#[test]
fn the_units_are_sound_and_their_exposure_is_bounded() {
    let home = tempfile::tempdir().unwrap();
    let printed = said(home.path(), &["print"]);
    let units: Vec<_> = [SERVICE, SOCKET].map(|name| home.path().join(name)).to_vec();
    for unit in &units {
        fs::write(unit, text_of(&printed, &unit.file_name().unwrap().to_string_lossy())).unwrap();
    }
    let analyze = |words: &[&str]| {
        let mut command = Command::new("systemd-analyze");
        command.args(words).args(&units[..1]).env("SYSTEMD_UNIT_PATH", format!("{}:", home.path().display()));
        command.env("XDG_RUNTIME_DIR", home.path()).output().expect("install the package systemd")
    };
    let verified = analyze(&["verify", "--user", "--man=no"]);
    let complained = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success() && complained.is_empty(), "{complained}");
    let threshold = format!("--threshold={WORST_EXPOSURE}");
    let judged = analyze(&["security", "--offline=true", &threshold]);
    let table = String::from_utf8_lossy(&judged.stdout);
    assert!(judged.status.success() && table.contains("Overall exposure level"), "{table}{judged:?}");
    eprintln!("{}", table.lines().last().unwrap());
    // A bound that nothing exceeds would judge nothing.
    assert!(!analyze(&["security", "--offline=true", "--threshold=10"]).status.success());
}

#[test]
fn the_launch_agent_is_a_property_list_with_the_keys_that_launchd_knows() {
    let home = tempfile::tempdir().unwrap();
    let printed = said(home.path(), &["print", "--launchd"]);
    assert_eq!(printed["units"].as_array().unwrap().len(), 1);
    let agent = plist::Value::from_reader_xml(text_of(&printed, "org.gatepost.daemon.plist").as_bytes()).unwrap();
    let agent = agent.as_dictionary().unwrap();
    let keys: Vec<&str> = agent.keys().map(String::as_str).collect();
    let expected = [
        "Label",
        "ProgramArguments",
        "EnvironmentVariables",
        "RunAtLoad",
        "KeepAlive",
        "ThrottleInterval",
        "ExitTimeOut",
        "ProcessType",
        "Umask",
        "StandardErrorPath",
    ];
    assert_eq!(keys, expected);
    let words: Vec<_> =
        agent["ProgramArguments"].as_array().unwrap().iter().flat_map(|word| word.as_string()).collect();
    assert_eq!(words, [gatepost_binary().unwrap().to_str().unwrap(), "serve"]);
    assert_eq!(agent["Label"].as_string(), Some("org.gatepost.daemon"));
    assert_eq!(agent["Umask"].as_unsigned_integer(), Some(0o077));
    assert_eq!(agent["KeepAlive"].as_dictionary().unwrap()["SuccessfulExit"].as_boolean(), Some(false));
}

#[test]
fn under_a_user_manager_everything_works_with_every_restriction() {
    in_own_mounts("service::under_a_user_manager_everything_works_with_every_restriction", || {
        let stage = Stage::new();
        stage.install();
        stage.activated_by_a_client();
        stage.configuration_is_read_again();
        stage.development();
        stage.hung_is_started_again();
        stage.stopped_and_removed();
    });
}

struct Stage {
    manager: UserManager,
    home: Home,
    model: ScriptedModel,
}

impl Stage {
    fn new() -> Self {
        let model = ScriptedModel::start().unwrap();
        let install = unprivileged_install().unwrap();
        let mut setup = Setup::new(&model.base_url()).as_unprivileged(&install);
        setup.confinement = "full";
        setup.is_developer = true;
        setup.credential = Some("model".to_owned());
        let home = Home::new(setup).unwrap();
        let manager = UserManager::start(UNPRIVILEGED_USER, &home.path().join("home"));
        // What the tests have below /tmp, where a user has it elsewhere.
        let drop_in = home.path().join("home/.config/systemd/user/gatepost.service.d");
        fs::create_dir_all(&drop_in).unwrap();
        let (root, log) = (home.path().display(), home.path().join("daemon.log"));
        let shared = install.state.parent().unwrap().display().to_string();
        let text = format!(
            "[Service]\nBindPaths={root}\nBindReadOnlyPaths={shared}\nStandardError=append:{}\n",
            log.display()
        );
        fs::write(drop_in.join("test.conf"), text).unwrap();
        fs::create_dir_all(home.path().join("home/.config/gatepost/credentials")).unwrap();
        let key = home.path().join("home/.config/gatepost/credentials/model");
        fs::write(&key, home.model_key()).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        home.give_away().unwrap();
        Self { manager, home, model }
    }

    /// The command, as the user types it.
    fn gatepost(&self, words: &[&str]) -> Value {
        let mut command = self.home.command();
        command.args(words).arg("--json").arg("--state-dir").arg(self.home.state());
        command.arg("--config").arg(self.home.path().join("config.toml"));
        let output = command.env("XDG_RUNTIME_DIR", format!("/run/user/{UNPRIVILEGED_USER}")).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn client(&self) -> Client {
        let client = Client::new(&self.home.socket()).as_user(UNPRIVILEGED_USER);
        self.home.owner_token().map_or(client.clone(), |token| client.with_token(&token))
    }

    fn main_pid(&self) -> Pid {
        Pid::from_raw(self.manager.property(SERVICE, "MainPID").parse().unwrap()).unwrap()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.home.path().join("daemon.log")).unwrap_or_default()
    }

    fn install(&self) {
        let installed = self.gatepost(&["service", "install"]);
        assert_eq!(installed["next"], json!(["systemctl --user enable --now gatepost.socket gatepost.service"]));
        assert_eq!(self.gatepost(&["service", "install"])["changed"], false);
        let found = self.gatepost(&["doctor"]);
        let finding = found["findings"].as_array().unwrap().iter().find(|one| one["check"] == "service").unwrap();
        assert_eq!(finding["state"], "ok", "{finding}");
    }

    /// The manager holds the socket; a first client brings the daemon up. It reads its key from the credential.
    fn activated_by_a_client(&self) {
        self.manager.systemctl(&["start", SOCKET]);
        let mode = fs::metadata(self.home.socket()).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        assert_eq!(self.manager.property(SERVICE, "ActiveState"), "inactive");
        let reply = self.client().get("/v1/healthz");
        assert!(reply.as_ref().is_ok_and(|reply| reply.status == 200), "{reply:?}\n{}", self.log());
        wait_until("the service to be active", LIMIT, || {
            (self.manager.property(SERVICE, "ActiveState") == "active").then_some(())
        });
        wait_until("its status line", LIMIT, || {
            (self.manager.property(SERVICE, "StatusText") == "ready: 0 servers, 0 sessions").then_some(())
        });
    }

    fn configuration_is_read_again(&self) {
        let before = self.main_pid();
        let config = self.home.path().join("config.toml");
        let text = fs::read_to_string(&config).unwrap();
        let digest = "ab".repeat(32);
        fs::write(&config, format!("{text}\n[approval]\nreviewed_content = [\"{digest}\"]\n")).unwrap();
        self.manager.systemctl(&["reload", SERVICE]);
        wait_until("the configuration to be read", LIMIT, || {
            self.log().contains("the configuration was read again reviewed_content=1").then_some(())
        });
        fs::write(&config, format!("{text}\n[approval]\nreviewed_content = 7\n")).unwrap();
        self.manager.systemctl(&["reload", SERVICE]);
        wait_until("the mistake to be told", LIMIT, || {
            self.log().contains("the configuration is not taken over").then_some(())
        });
        fs::write(&config, text).unwrap();
        assert_eq!(self.main_pid(), before);
        wait_until("the service to be active", LIMIT, || {
            (self.manager.property(SERVICE, "ActiveState") == "active").then_some(())
        });
    }

    /// The agent's own commands, in full confinement, within the unit.
    fn development(&self) {
        let workspace = self.home.workspace().canonicalize().unwrap();
        let session = Session::start(&self.client(), &workspace);
        let course = Course::place(&workspace, |name| self.home.has_program(name).unwrap()).unwrap();
        let proposed = session.propose(&format!("run: {}", course.command()));
        assert_eq!(proposed.confinement_level, "full", "{:?}", proposed.notes);
        judge(&session, &course, &proposed);
        let shown = self.model.authorizations();
        assert!(shown.iter().any(|shown| shown.contains(self.home.model_key())), "the credential was not used");
        assert!(self.manager.processes(SERVICE).len() > 1, "the server runs in the unit");
    }

    /// One that shows no sign of life is killed with everything, and started again.
    fn hung_is_started_again(&self) {
        let drop_in = self.home.path().join("home/.config/systemd/user/gatepost.service.d/watchdog.conf");
        fs::write(drop_in, "[Service]\nWatchdogSec=4\nRestartSec=0\n").unwrap();
        self.manager.systemctl(&["daemon-reload"]);
        self.manager.systemctl(&["restart", SERVICE]);
        let (hung, processes) = (self.main_pid(), self.manager.processes(SERVICE));
        kill_process(hung, Signal::STOP).unwrap();
        wait_until("it to be started again", LIMIT, || {
            (self.manager.property(SERVICE, "NRestarts") == "1").then_some(())
        });
        wait_until("the service to be active", LIMIT, || {
            (self.manager.property(SERVICE, "ActiveState") == "active").then_some(())
        });
        assert_ne!(self.main_pid(), hung);
        let left = processes.into_iter().filter_map(Pid::from_raw).filter(|pid| test_kill_process(*pid).is_ok());
        assert_eq!(left.collect::<Vec<_>>(), [], "processes of the one that hung are left");
    }

    fn stopped_and_removed(&self) {
        let processes = self.manager.processes(SERVICE);
        assert!(!processes.is_empty());
        let removed = self.gatepost(&["service", "uninstall"]);
        assert_eq!((removed["stopped"].clone(), removed["removed"].as_array().map(Vec::len)), (json!(true), Some(2)));
        let left = processes.into_iter().filter_map(Pid::from_raw).filter(|pid| test_kill_process(*pid).is_ok());
        assert_eq!(left.collect::<Vec<_>>(), [], "processes are left");
        assert!(!self.home.socket().exists());
        assert_eq!(self.gatepost(&["service", "uninstall"])["removed"], json!([]));
    }
}
