//! An altered managed install: named, and never started.

use gatepost_tests::{Scene, refusal_code};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use testkit::daemon::{Server, cache_dir, shared_install};

/// A managed install whose files are those of the shared one, by further names; what is altered is copied first.
struct Copied {
    state: TempDir,
    root: PathBuf,
}

impl Copied {
    fn new() -> Self {
        let shared = shared_install().unwrap();
        // Beside the shared one, as only then further names are to be had.
        let state = tempfile::Builder::new().prefix("altered-").tempdir_in(cache_dir().unwrap()).unwrap();
        link_tree(&shared.join("servers"), &state.path().join("servers"));
        let installs = fs::read_dir(state.path().join("servers")).unwrap().map(|entry| entry.unwrap().path());
        let root = installs.into_iter().find(|path| path.join("bin/python").exists()).unwrap();
        Self { state, root }
    }

    /// A file of the server's own code.
    fn module(&self) -> PathBuf {
        let found = fs::read_dir(self.root.join("lib")).unwrap().map(|entry| entry.unwrap().path());
        let library = found.into_iter().find(|path| path.join("site-packages").is_dir()).unwrap();
        library.join("site-packages/openhands/agent_server/api.py")
    }

    /// Writes a file under a name that no other install has.
    fn write(&self, path: &Path, text: &str) {
        if path.exists() {
            fs::remove_file(path).unwrap();
        }
        fs::write(path, text).unwrap();
    }
}

fn link_tree(from: &Path, to: &Path) {
    let metadata = fs::symlink_metadata(from).unwrap();
    if metadata.is_dir() {
        fs::create_dir(to).unwrap();
        fs::set_permissions(to, metadata.permissions()).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            link_tree(&entry.path(), &to.join(entry.file_name()));
        }
    } else if metadata.is_symlink() {
        std::os::unix::fs::symlink(fs::read_link(from).unwrap(), to).unwrap();
    } else {
        fs::hard_link(from, to).unwrap();
    }
}

#[test]
fn an_altered_install_is_named_and_never_started() {
    let copied = Copied::new();
    let scene = Scene::with(|setup| setup.server = Server::ManagedAt(copied.state.path().to_owned()));
    let module = copied.module();
    let original = fs::read_to_string(&module).unwrap();
    let stranger = module.with_file_name("gatepost_was_here.py");
    let altered = [
        ("api.py", "changed", Some(&module), format!("{original}\n# altered\n")),
        ("gatepost_was_here.py", "unknown", Some(&stranger), "import os\n".to_owned()),
        ("api.py", "missing", None, String::new()),
    ];
    for (number, (name, kind, path, text)) in altered.into_iter().enumerate() {
        match path {
            Some(path) => copied.write(path, &text),
            None => fs::remove_file(&module).unwrap(),
        }
        let workspace = scene.home().new_workspace(&format!("altered-{number}")).unwrap();
        let reply = scene.client().post("/v1/sessions", &json!({"workspace": workspace})).unwrap();
        assert_eq!((reply.status, refusal_code(&reply).as_str()), (409, "installation_altered"), "{kind}");
        assert!(reply.text.contains(name) && reply.text.contains(kind), "{}", reply.text);
        let workspace = workspace.canonicalize().unwrap().to_string_lossy().into_owned();
        let server = scene.status().servers.into_iter().find(|server| server.workspace == workspace).unwrap();
        let result = server.canaries.iter().find(|result| result.canary == "installation").unwrap();
        assert!(!result.passed && result.code.as_deref() == Some("installation_altered"), "{result:?}");
        assert_eq!((server.pid, scene.daemon().processes().len()), (None, 0), "something was started");
        let told = scene.home().run(&["server", "verify", "--json"]).unwrap();
        assert_ne!(told.code, Some(0), "{told:?}");
        assert!(told.stdout.contains(name) && told.stdout.contains(kind), "{told:?}");
        // As it was: under a name of its own, so that the shared install is never written.
        if stranger.exists() {
            fs::remove_file(&stranger).unwrap();
        }
        copied.write(&module, &original);
    }
    assert_eq!(scene.home().run(&["server", "verify", "--json"]).unwrap().code, Some(0), "as it was, and not taken");
    scene.finish();
}
