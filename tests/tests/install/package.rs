//! The Debian package: what is in it, that it works from where it is installed, for each user, and that nothing is left of it.

use cargo_metadata::{DependencyKind, MetadataCommand, PackageId};
use gatepost_tests::{Terminal, UserManager, in_own_mounts};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use testkit::daemon::{UNPRIVILEGED_USER, gatepost_binary, workspace_root};
use testkit::package::{self, Build};

const SERVICE: &str = "gatepost.service";
const SOCKET: &str = "gatepost.socket";
const UNITS: &str = "/usr/lib/systemd/user";

/// The standard output of a command, which must succeed.
#[track_caller]
fn said(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn object(command: &mut Command) -> Value {
    serde_json::from_str(&said(command.arg("--json"))).unwrap()
}

/// The object that a command says, which must fail.
#[track_caller]
fn said_by_failing(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_package_works_for_each_user_and_leaves_nothing() {
    in_own_mounts("package::the_package_works_for_each_user_and_leaves_nothing", || {
        let machine = Machine::new();
        let deb = package::build(Build::Trial, machine.0.path()).unwrap().deb;
        machine.has_no_scripts_and_says_what_it_needs(&deb);
        let before = machine.files();
        let user = User::new();
        machine.dpkg(&["--install", machine.older(&deb).to_str().unwrap()]);
        assert_eq!((machine.version().as_str(), machine.root().join(NO_LONGER).is_file()), (OLDER, true));
        machine.serves(&user);
        let of_user = user.files();
        machine.dpkg(&["--install", deb.to_str().unwrap()]);
        assert_eq!(machine.version(), format!("{}-1", env!("CARGO_PKG_VERSION")));
        machine.holds_what_the_program_says();
        assert_eq!(user.files(), of_user, "an upgrade touched what is a user's");
        machine.serves(&user);
        assert_eq!(user.token(), of_user[TOKEN], "the daemon after the upgrade began anew");
        let of_user = user.files();
        machine.dpkg(&["--purge", "gatepost"]);
        assert_eq!(user.files(), of_user, "a purge touched what is a user's");
        assert_eq!(machine.files(), before);
        let records = fs::read_dir(machine.root().join("var/lib/dpkg/info")).unwrap().flatten();
        let left: Vec<_> = records.map(|entry| entry.file_name()).filter(|name| name != "format").collect();
        assert_eq!(left, Vec::<std::ffi::OsString>::new());
    });
}

/// A version of the package before this one, and a file that this one has no more.
const OLDER: &str = "0.0.9-1";
const NO_LONGER: &str = "usr/share/doc/gatepost/no-longer";
const CONFIGURATION: &str = ".config/gatepost/config.toml";
const TOKEN: &str = ".local/state/gatepost/owner.token";

/// Someone who uses the program, with a configuration of their own.
struct User(TempDir);

impl User {
    fn new() -> Self {
        let user = Self(tempfile::tempdir().unwrap());
        let configuration = user.0.path().join(CONFIGURATION);
        fs::create_dir_all(configuration.parent().unwrap()).unwrap();
        fs::write(&configuration, "[events]\nretention_days = 7\n").unwrap();
        for (path, mode) in [("", 0o700), (".config", 0o700), (".config/gatepost", 0o700), (CONFIGURATION, 0o600)] {
            let path = user.0.path().join(path);
            chown(&path, Some(UNPRIVILEGED_USER), Some(UNPRIVILEGED_USER)).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        user
    }

    /// What stands in each file, and who may do what with it.
    fn files(&self) -> BTreeMap<String, (Vec<u8>, u32, u32)> {
        let mut found = BTreeMap::new();
        let mut directories = vec![self.0.path().to_path_buf()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap().flatten() {
                let (path, about) = (entry.path(), entry.metadata().unwrap());
                if about.is_dir() {
                    directories.push(path);
                } else if about.is_file() {
                    let name = path.strip_prefix(self.0.path()).unwrap().to_string_lossy().into_owned();
                    found.insert(name, (fs::read(&path).unwrap(), about.permissions().mode(), about.uid()));
                }
            }
        }
        assert!(found.contains_key(CONFIGURATION) && found.contains_key(TOKEN), "{:?}", found.keys());
        found
    }

    fn token(&self) -> (Vec<u8>, u32, u32) {
        self.files()[TOKEN].clone()
    }
}

/// A machine on which nothing is installed, as far as `dpkg` sees it.
struct Machine(TempDir);

impl Machine {
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        let records = machine.root().join("var/lib/dpkg");
        for directory in ["info", "updates", "triggers"] {
            fs::create_dir_all(records.join(directory)).unwrap();
        }
        fs::write(records.join("status"), "").unwrap();
        machine
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("root")
    }

    /// Nothing of this machine counts: neither its log, nor what its settings leave out. What is depended on is not there.
    fn dpkg(&self, words: &[&str]) {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg(format!("--root={}", self.root().display())).args(["--log=/dev/null", "--path-include=*"]);
        said(dpkg.arg("--force-depends").args(words));
    }

    /// This package as an earlier one, with a file more.
    fn older(&self, deb: &Path) -> PathBuf {
        let (unpacked, older) = (self.0.path().join("older"), self.0.path().join("older.deb"));
        said(Command::new("dpkg-deb").arg("--raw-extract").arg(deb).arg(&unpacked));
        let control = unpacked.join("DEBIAN/control");
        let text = fs::read_to_string(&control).unwrap();
        let version = format!("Version: {}-1\n", env!("CARGO_PKG_VERSION"));
        assert!(text.contains(&version), "{text}");
        fs::write(&control, text.replace(&version, &format!("Version: {OLDER}\n"))).unwrap();
        fs::write(unpacked.join(NO_LONGER), "").unwrap();
        said(Command::new("dpkg-deb").args(["--build", "-Znone"]).arg(&unpacked).arg(&older));
        older
    }

    /// Of the package that is installed.
    fn version(&self) -> String {
        let mut query = Command::new("dpkg-query");
        query.arg(format!("--admindir={}", self.root().join("var/lib/dpkg").display()));
        said(query.args(["--show", "--showformat=${Version}", "gatepost"]))
    }

    /// All files and directories with their modes, those of dpkg's records aside.
    fn files(&self) -> BTreeMap<String, u32> {
        let mut found = BTreeMap::new();
        let mut directories = vec![self.root()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap().flatten() {
                let (path, about) = (entry.path(), entry.metadata().unwrap());
                assert_eq!((about.uid(), about.gid()), (0, 0), "{}", path.display());
                let name = path.strip_prefix(self.root()).unwrap().to_string_lossy().into_owned();
                if about.is_dir() && name != "var/lib/dpkg" {
                    directories.push(path);
                }
                found.insert(name, about.permissions().mode());
            }
        }
        found
    }

    fn has_no_scripts_and_says_what_it_needs(&self, deb: &Path) {
        let control = self.0.path().join("control");
        said(Command::new("dpkg-deb").arg("--control").arg(deb).arg(&control));
        let names: Vec<_> = fs::read_dir(&control).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(names, ["control"]);
        let field = |name: &str| said(Command::new("dpkg-deb").arg("--field").arg(deb).arg(name)).trim().to_owned();
        assert_eq!(field("Version"), format!("{}-1", env!("CARGO_PKG_VERSION")));
        assert_eq!(field("Recommends"), "bubblewrap, git, tmux");
        let needed = field("Depends");
        let names: BTreeSet<_> = needed.split(", ").filter_map(|one| one.split(' ').next()).collect();
        assert_eq!(names, ["libc6", "libgcc-s1"].into(), "{needed}");
        assert!(needed.contains("libc6 (>= "), "{needed}");
    }

    fn holds_what_the_program_says(&self) {
        let pages = cli::pages::manual_pages().unwrap();
        let mut expected = BTreeMap::from(
            [
                "usr/lib/systemd/user/gatepost.service",
                "usr/lib/systemd/user/gatepost.socket",
                "usr/share/bash-completion/completions/gatepost",
                "usr/share/doc/gatepost/README.md",
                "usr/share/doc/gatepost/changelog.Debian.gz",
                "usr/share/doc/gatepost/changelog.gz",
                "usr/share/doc/gatepost/copyright",
                "usr/share/fish/vendor_completions.d/gatepost.fish",
                "usr/share/zsh/vendor-completions/_gatepost",
            ]
            .map(|name| (name.to_owned(), 0o100_644)),
        );
        expected.insert("usr/bin/gatepost".to_owned(), 0o100_755);
        let manual = |name: &str| format!("usr/share/man/man1/{name}.gz");
        expected.extend(pages.iter().map(|page| (manual(&page.name), 0o100_644)));
        let mut installed = self.files();
        installed.retain(|_, mode| *mode & 0o170_000 != 0o040_000);
        assert_eq!(installed, expected);

        let unpacked = |names: &mut dyn Iterator<Item = String>| {
            said(
                Command::new("gzip").arg("--decompress").arg("--stdout").args(names.map(|name| self.root().join(name))),
            )
        };
        let texts: String = pages.iter().map(|page| page.text.as_str()).collect();
        assert!(unpacked(&mut pages.iter().map(|page| manual(&page.name))) == texts, "other manual pages");
        let changelog = unpacked(&mut ["usr/share/doc/gatepost/changelog.gz".to_owned()].into_iter());
        assert!(changelog == fs::read_to_string(workspace_root().join("CHANGELOG.md")).unwrap());
        // As Debian's own tools read it.
        let mut parsed = Command::new("dpkg-parsechangelog");
        parsed.arg("-l").arg(self.root().join("usr/share/doc/gatepost/changelog.Debian.gz")).args(["-S", "Version"]);
        assert_eq!(said(&mut parsed).trim(), format!("{}-1", env!("CARGO_PKG_VERSION")));
        let text = |name: &str| fs::read_to_string(self.root().join(name)).unwrap();
        assert!(text("usr/share/doc/gatepost/copyright").contains("Permission is hereby granted, free of charge"));

        let home = tempfile::tempdir().unwrap();
        let program = |words: &[&str]| {
            let mut command = Command::new(self.root().join("usr/bin/gatepost"));
            command.args(words).env_clear().env("HOME", home.path()).env("PATH", "/usr/bin:/bin");
            command
        };
        assert_eq!(said(&mut program(&["--version"])), format!("gatepost {}\n", env!("CARGO_PKG_VERSION")));
        for (shell, name) in [
            ("bash", "bash-completion/completions/gatepost"),
            ("zsh", "zsh/vendor-completions/_gatepost"),
            ("fish", "fish/vendor_completions.d/gatepost.fish"),
        ] {
            assert!(said(&mut program(&["completions", shell])) == text(&format!("usr/share/{name}")), "{shell}");
        }
        let printed = object(&mut program(&["service", "print", "--package"]));
        let units = printed["units"].as_array().unwrap();
        assert_eq!(units.len(), 2, "{printed}");
        for (unit, name) in units.iter().zip([SOCKET, SERVICE]) {
            let installed = text(&format!("{UNITS}/{name}")[1..]);
            assert_eq!((unit["name"].as_str(), unit["text"].as_str()), (Some(name), Some(installed.as_str())));
        }
        let listed = auditable_info::audit_info_from_file(&self.root().join("usr/bin/gatepost"), Default::default());
        assert!(listed.is_ok_and(|listed| listed.packages.len() > 100), "the list went with the symbols");
        // Some things fail on an empty machine; what counts is that it looks.
        let found = said_by_failing(&mut program(&["doctor", "--json"]));
        assert_eq!(of_service(&found), "not installed as a service of this user", "{found}");
    }

    /// With the package in its place, as far as the processes of this test see it.
    fn serves(&self, user: &User) {
        let directories = format!("lowerdir={}:/usr", self.root().join("usr").display());
        said(Command::new("mount").args(["-t", "overlay", "none", "-o", &directories, "/usr"]));
        let home = user.0.path();
        let manager = UserManager::start(UNPRIVILEGED_USER, home);
        let gatepost = |words: &[&str]| object(manager.command("gatepost").args(words));
        let doctor = || of_service(&said_by_failing(manager.command("gatepost").args(["doctor", "--json"])));

        manager.systemctl(&["enable", "--now", SOCKET, SERVICE]);
        assert_eq!(manager.property(SERVICE, "FragmentPath"), format!("{UNITS}/{SERVICE}"));
        // Blocked, since no Agent Server is installed.
        let status = said_by_failing(manager.command("gatepost").args(["status", "--json"]));
        assert_eq!(status["pid"].to_string(), manager.property(SERVICE, "MainPID"), "{status}");
        assert_eq!(doctor(), format!("installed by a package in {UNITS}, current"));
        // On a terminal that belongs to somebody else, as after `su`.
        let mut console = manager.command("gatepost");
        console.arg("console").env("TERM", "xterm");
        let terminal = Terminal::start(console, 24, 80);
        terminal.wait_for("gatepost console");
        terminal.write("q");
        terminal.wait_end().assert_as_found();

        // Units of one's own come before those of the package.
        let own = home.join(".config/systemd/user");
        let package_units = json!([SOCKET, SERVICE].map(|name| format!("{UNITS}/{name}")));
        assert_eq!(gatepost(&["service", "install"])["package_units"], package_units);
        assert_eq!(manager.property(SERVICE, "FragmentPath"), own.join(SERVICE).to_str().unwrap());
        assert_eq!(doctor(), format!("installed in {}, current", own.display()));

        let removed = gatepost(&["service", "uninstall"]);
        assert_eq!(removed["package_units"], package_units);
        assert_eq!((removed["stopped"].as_bool(), removed["removed"].as_array().map(Vec::len)), (Some(true), Some(2)));
        assert_eq!(manager.property(SERVICE, "FragmentPath"), format!("{UNITS}/{SERVICE}"));
        assert_eq!(manager.property(SERVICE, "ActiveState"), "inactive");
        drop(manager);
        said(Command::new("umount").args(["--lazy", "/usr"]));
    }
}

/// What `doctor` found of the service.
fn of_service(found: &Value) -> String {
    let finding = found["findings"].as_array().unwrap().iter().find(|one| one["check"] == "service").unwrap();
    finding["detail"].as_str().unwrap().to_owned()
}

#[test]
fn the_binary_says_what_it_was_built_from() {
    let listed = |binary: &Path| auditable_info::audit_info_from_file(binary, Default::default());
    let listed_in_package = listed(&package::binary(Build::Trial).unwrap()).unwrap();
    let said: BTreeSet<(String, String)> =
        listed_in_package.packages.iter().map(|one| (one.name.clone(), one.version.to_string())).collect();
    assert_eq!(said, reachable());
    // An ordinary build has no list, so the one above is not found by chance.
    assert!(listed(&gatepost_binary().unwrap()).is_err());
}

/// What the lock file has for the program on this system, tools of the build among it, with versions.
fn reachable() -> BTreeSet<(String, String)> {
    let host = said(Command::new("rustc").arg("-vV"));
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned();
    let metadata = MetadataCommand::new()
        .manifest_path(workspace_root().join("crates/gatepost/Cargo.toml"))
        .other_options(["--locked".to_owned(), "--filter-platform".to_owned(), host])
        .exec()
        .unwrap();
    let resolved = metadata.resolve.as_ref().unwrap();
    let nodes: BTreeMap<&PackageId, _> = resolved.nodes.iter().map(|node| (&node.id, node)).collect();
    let mut found = BTreeSet::new();
    let mut next = vec![resolved.root.as_ref().unwrap()];
    while let Some(id) = next.pop() {
        if found.insert(id) {
            let ships = |kinds: &[cargo_metadata::DepKindInfo]| {
                kinds.iter().any(|info| info.kind != DependencyKind::Development)
            };
            next.extend(nodes[id].deps.iter().filter(|dep| ships(&dep.dep_kinds)).map(|dep| &dep.pkg));
        }
    }
    found.into_iter().map(|id| (metadata[id].name.to_string(), metadata[id].version.to_string())).collect()
}
