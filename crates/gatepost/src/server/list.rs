//! `server list`.

use process::install::Installed;
use serde_json::{Value, json};

use crate::places::Places;
use crate::{Look, say};

/// `gatepost server list`.
pub(super) fn run(places: &Places, look: Look) -> Value {
    let installs = process::install::list(&places.paths.state_dir);
    if !look.json {
        say(&words(&installs));
    }
    json!({"installs": installs.iter().map(object).collect::<Vec<Value>>()})
}

/// One install.
pub(super) fn object(installed: &Installed) -> Value {
    json!({
        "version": installed.version,
        "root": installed.root,
        "python": installed.python,
        "distributions": installed.distributions.len(),
        "manifest_sha256": installed.manifest_sha256,
    })
}

fn words(installs: &[Installed]) -> String {
    if installs.is_empty() {
        return "nothing is installed; `gatepost server install` installs the reviewed Agent Server\n".to_owned();
    }
    let line = |one: &Installed| format!("{}  Python {}  {}\n", one.version, one.python, one.root.display());
    installs.iter().map(line).collect()
}
