//! The file to send to whoever helps: findings, versions, settings and ends of logs, without a secret in it.

mod logs;
mod redaction;
mod shapes;

use std::path::Path;

use agent_contract::Contract;
use api_types::ExitCode;
use cli::Failure;
use serde_json::{Value, json};
use settings::{ApiKey, Model, ModelSource, Settings};

use super::finding::{self, Finding};
use crate::places::Places;
use redaction::Secrets;

/// Refuses a name that is taken.
///
/// # Errors
/// `bundle_exists`.
pub(super) fn refuse_existing(file: &Path) -> Result<(), Failure> {
    // A link to nowhere is something too.
    if std::fs::symlink_metadata(file).is_ok() { Err(taken(file)) } else { Ok(()) }
}

fn taken(file: &Path) -> Failure {
    let detail = format!("{} exists, and nothing is overwritten", file.display());
    Failure::new(ExitCode::Usage, "bundle_exists", detail).hint("name a new file with --bundle")
}

/// Writes the bundle as a new file of mode 0600.
///
/// # Errors
/// `bundle_exists`; `bundle_failed` when it cannot be written.
pub(super) fn write(
    file: &Path,
    places: &Places,
    settings: Option<&Settings>,
    findings: &[Finding],
) -> Result<(), Failure> {
    let secrets = Secrets::read(places, settings);
    let content = json!({
        "findings": finding::list(findings),
        "versions": versions(places),
        "settings": settings.map(described),
        "places": where_things_are(places),
        "logs": logs::all(&places.paths.bindings_dir, &secrets),
    });
    let content = format!("{:#}\n", secrets.redact(&content));
    host::secure_fs::write_private_new(file, content.as_bytes()).map_err(|error| {
        if error.is_already_there() {
            taken(file)
        } else {
            Failure::new(ExitCode::Failed, "bundle_failed", error.to_string())
        }
    })
}

fn versions(places: &Places) -> Value {
    let install = |one: &process::install::Installed| {
        json!({
            "version": one.version,
            "root": one.root,
            "python": one.python,
            "manifest_sha256": one.manifest_sha256,
        })
    };
    let installs = process::install::list(&places.paths.state_dir);
    json!({
        "gatepost": crate::serve::VERSION,
        "contracts": Contract::versions(),
        "system": std::env::consts::OS,
        "architecture": std::env::consts::ARCH,
        "kernel": host::kernel::release(),
        "installs": installs.iter().map(install).collect::<Vec<Value>>(),
    })
}

fn described(settings: &Settings) -> Value {
    let Settings { agent_server, workspaces, model, approval, confinement, events, log, from_file, .. } = settings;
    json!({
        "from_file": from_file,
        "agent_server": {
            "version": agent_server.version,
            "executable": agent_server.executable,
            "python": agent_server.python,
            "start_timeout_s": agent_server.start_timeout_s,
            "standby": agent_server.standby,
            "max_servers": agent_server.max_servers,
            "idle_stop_min": agent_server.idle_stop_min,
            "probe_interval_s": agent_server.probe_interval_s,
        },
        "workspaces": {"roots": workspaces.roots, "git_dirs": workspaces.git_dirs},
        "model": model.as_ref().map(model_described),
        "approval": {"expires_min": approval.expires_min, "reviewed_content": approval.reviewed_content},
        "confinement": {
            "level": confinement.level.as_str(),
            "read": confinement.read,
            "write": confinement.write,
        },
        "events": {
            "retention_days": events.retention_days,
            "rest_after_s": events.rest_after_s,
            "rest_read_s": events.rest_read_s,
        },
        "log": {"json": log.format == settings::LogFormat::Json, "level": log.level},
    })
}

fn model_described(model: &Model) -> Value {
    let mut object = match &model.source {
        ModelSource::Named { name, base_url, api_key } => json!({
            "name": name,
            "base_url": base_url.as_deref().map(host_only),
            "key_read_from": api_key.as_ref().map(|api_key| match api_key {
                ApiKey::File(path) => format!("file {}", path.display()),
                ApiKey::Credential(name) => format!("service credential {name}"),
            }),
        }),
        ModelSource::Profile { profile_id } => json!({"profile_id": profile_id}),
    };
    object["choices"] = json!(model.choices);
    object["tools"] = json!(model.tools);
    object
}

/// Without the path, where some services want a key.
fn host_only(base_url: &str) -> String {
    base_url.split('/').take(3).collect::<Vec<&str>>().join("/")
}

/// Where things are. The names are no secrets' names, so that the paths are kept.
fn where_things_are(places: &Places) -> Value {
    let paths = &places.paths;
    json!({
        "config_file": paths.config_file,
        "state_dir": paths.state_dir,
        "runtime_dir": paths.runtime_dir,
        "socket": paths.socket,
        "token_file": places.token_file,
        "secret_key_file": paths.secret_key,
        "signing_key_file": paths.signing_key,
        "ledger": paths.ledger,
        "journal": paths.journal,
        "servers_dir": paths.servers_dir,
        "bindings_dir": paths.bindings_dir,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_address_only_the_host_is_told() {
        assert_eq!(host_only("https://example.org:8443/k/0123456789abcdef/v1"), "https://example.org:8443");
        assert_eq!(host_only("http://localhost"), "http://localhost");
    }
}
