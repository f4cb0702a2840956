//! Whatever is changed in an install is named, and such an install is not started.

use crate::{State, site_packages};
use gatepost_tests::{Scene, refusal_code};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::daemon::{Server, processes_of, shared_install};

/// A copy of the shared install, in a state directory of its own. Its files are the shared ones until they are replaced:
/// nothing may be written in place.
struct Copy {
    state: State,
    root: PathBuf,
    original: PathBuf,
}

impl Copy {
    fn make() -> Self {
        let state = State::new();
        let shared = shared_install().unwrap();
        let servers = state.path().join("servers");
        let mut made = fs::read_dir(shared.join("servers")).unwrap().flatten().map(|entry| entry.path());
        let original = made.find(|path| path.join("gatepost-manifest.json").is_file()).unwrap();
        fs::create_dir(&servers).unwrap();
        let copied = Command::new("cp").arg("-al").arg(&original).arg(&servers).status().unwrap();
        assert!(copied.success());
        let root = servers.join(original.file_name().unwrap());
        Self { state, root, original }
    }

    /// A file's path, relative to the root.
    fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap().to_string_lossy().into_owned()
    }

    /// Puts a new file in another one's place.
    fn replace(&self, path: &Path, content: &[u8]) {
        fs::remove_file(path).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Makes a path the shared install's again.
    fn restore(&self, path: &Path) {
        if fs::symlink_metadata(path).is_ok() {
            fs::remove_file(path).unwrap();
        }
        let original = self.original.join(self.relative(path));
        match fs::read_link(&original) {
            Ok(target) => symlink(target, path).unwrap(),
            Err(_) => fs::hard_link(original, path).unwrap(),
        }
    }

    /// `server verify` must fail and name exactly this.
    fn expect(&self, findings: &[(&str, &str)]) {
        let (code, said) = self.state.run(&["verify"]);
        assert_eq!((code, said["error"]["code"].as_str()), (Some(1), Some("installation_altered")), "{said}");
        assert_eq!(said["passed"], false);
        let found = said["findings"].as_array().unwrap();
        let mut found: Vec<(&str, &str)> = found.iter().map(finding).collect();
        found.sort_unstable();
        let mut expected = findings.to_vec();
        expected.sort_unstable();
        assert_eq!(found, expected);
        let detail = said["error"]["detail"].as_str().unwrap();
        assert!(findings.iter().all(|(kind, path)| detail.contains(&format!("{kind}: {path}"))), "{detail}");
    }

    fn expect_whole(&self) {
        let (code, said) = self.state.run(&["verify"]);
        assert_eq!((code, &said["passed"], &said["findings"]), (Some(0), &json!(true), &json!([])), "{said}");
    }
}

fn finding(found: &Value) -> (&str, &str) {
    (found["kind"].as_str().unwrap(), found["path"].as_str().unwrap())
}

#[test]
fn each_changed_file_is_named() {
    let copy = Copy::make();
    assert_eq!(copy.state.listed(), std::slice::from_ref(&copy.root));
    copy.expect_whole();
    let packages = site_packages(&copy.root);
    let server = packages.join("openhands/agent_server");

    let source = server.join("api.py");
    let path = copy.relative(&source);
    let content = [fs::read(&source).unwrap(), b"\n# changed\n".to_vec()].concat();
    copy.replace(&source, &content);
    copy.expect(&[("changed", &path), ("not_as_distributed", &path)]);
    fs::remove_file(&source).unwrap();
    copy.expect(&[("missing", &path)]);
    copy.restore(&source);

    // What runs is the bytecode, which no distribution's own record holds.
    let mut compiled = fs::read_dir(server.join("__pycache__")).unwrap().flatten().map(|entry| entry.path());
    let compiled = compiled.find(|path| path.to_string_lossy().contains("/api.")).unwrap();
    let mut content = fs::read(&compiled).unwrap();
    *content.last_mut().unwrap() ^= 1;
    copy.replace(&compiled, &content);
    copy.expect(&[("changed", &copy.relative(&compiled))]);
    copy.restore(&compiled);

    let (stranger, interpreter) = (packages.join("sitecustomize.py"), copy.root.join("bin/python"));
    fs::write(&stranger, "print('hello')\n").unwrap();
    fs::remove_file(&interpreter).unwrap();
    symlink("/bin/true", &interpreter).unwrap();
    copy.expect(&[("unknown", &copy.relative(&stranger)), ("changed", "bin/python")]);
    fs::remove_file(&stranger).unwrap();
    copy.restore(&interpreter);
    copy.expect_whole();

    // Without its record it is no install at all.
    fs::remove_file(copy.root.join("gatepost-manifest.json")).unwrap();
    assert_eq!(copy.state.listed(), [] as [PathBuf; 0]);
    let (code, said) = copy.state.run(&["verify"]);
    assert_eq!((code, said["error"]["code"].as_str()), (Some(1), Some("server_not_installed")), "{said}");
}

#[test]
fn a_changed_install_is_not_started() {
    let copy = Copy::make();
    let changed = site_packages(&copy.root).join("openhands/agent_server/config.py");
    let content = [fs::read(&changed).unwrap(), b"\n# changed\n".to_vec()].concat();
    copy.replace(&changed, &content);
    let scene = Scene::with(|setup| setup.server = Server::ManagedAt(copy.state.path().to_owned()));
    let reply = scene.client().post("/v1/sessions", &json!({"workspace": scene.workspace()})).unwrap();
    assert_eq!(refusal_code(&reply), "installation_altered");
    assert!(reply.body["detail"].as_str().unwrap().contains("openhands/agent_server/config.py"), "{}", reply.text);
    assert_eq!(processes_of(scene.home().path(), &[]).len(), 1, "more than the daemon runs");
    scene.finish();
}
