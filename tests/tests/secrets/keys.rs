//! The live keys, and how the test learns them.

use crate::memory;
use crate::outside::Secrets;
use gatepost_tests::Scene;
use host::hygiene::is_root;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The managed server's directory.
fn install(scene: &Scene) -> PathBuf {
    let servers = fs::read_dir(scene.home().state().join("servers")).unwrap().flatten();
    servers.map(|entry| entry.path()).find(|path| path.join("gatepost-manifest.json").exists()).unwrap()
}

/// The interpreter of the managed server, which the agent's user can run.
pub(crate) fn python(scene: &Scene) -> PathBuf {
    install(scene).canonicalize().unwrap().join("bin/python")
}

/// Hashes of the server's files and distributions: they look like keys, and the daemon has read them all.
fn public_hashes(scene: &Scene) -> BTreeSet<String> {
    let install = install(scene);
    let names = ["gatepost-manifest.json", "requirements.lock", "build-requirements.lock"];
    let read = |name: &str| memory::key_like_in(&fs::read(install.join(name)).unwrap());
    let hashes: BTreeSet<String> = names.into_iter().flat_map(read).collect();
    assert!(hashes.len() > 1000, "{}", hashes.len());
    hashes
}

/// Every live key, as root learns them.
pub(crate) struct Keys {
    /// Known to root alone, who sees what is hidden. For anyone else the agent's own search, which tries whatever it finds, is all
    /// that shows where that key is not.
    pub(crate) session: Option<String>,
    pub(crate) secret: String,
    pub(crate) owner: String,
    pub(crate) model: String,
    pub(crate) secret_file: PathBuf,
    pub(crate) owner_file: PathBuf,
}

impl Keys {
    pub(crate) fn learn(scene: &Scene, daemon: u32, port: u16) -> Self {
        let state = scene.home().state();
        let (secret_file, owner_file) = (state.join("secret.key"), state.join("owner.token"));
        let read = |path: &Path| fs::read_to_string(path).unwrap().trim().to_owned();
        let (secret, owner) = (read(&secret_file), read(&owner_file));
        assert_eq!(owner, scene.home().owner_token().unwrap());
        let model = scene.home().model_key().to_owned();
        // It is live: the model was asked with it.
        assert!(scene.model().authorizations().iter().any(|header| header.ends_with(&model)));
        let session = is_root().then(|| memory::session_key(daemon, port, &public_hashes(scene)));
        assert!(![Some(&secret), Some(&owner)].contains(&session.as_ref()));
        Self { session, secret, owner, model, secret_file, owner_file }
    }

    pub(crate) fn secrets(&self) -> Secrets {
        let mut named = vec![("secret key", &self.secret), ("owner token", &self.owner), ("model key", &self.model)];
        named.extend(self.session.iter().map(|session| ("session key", session)));
        Secrets::new(&named.into_iter().map(|(name, value)| (name, value.as_str())).collect::<Vec<_>>())
    }
}
