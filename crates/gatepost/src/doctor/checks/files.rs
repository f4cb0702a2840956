//! Directories and files that must be private, and the socket's path. Nothing is made, and no secret is read.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use host::secure_fs::{self, SecureFsError};
use rustix::net::SocketAddrUnix;
use settings::{ApiKey, Model, ModelSource, Settings};

use super::super::finding::{Finding, State};
use crate::places::Places;

/// All of them.
pub(super) fn all(places: &Places, settings: Option<&Settings>) -> Vec<Finding> {
    let paths = &places.paths;
    // Installs may lie elsewhere, behind a link; what is verified is every file of them.
    let installs = std::fs::canonicalize(&paths.servers_dir).unwrap_or_else(|_| paths.servers_dir.clone());
    let mut findings = vec![
        directory("state_directory", &paths.state_dir),
        directory("runtime_directory", &paths.runtime_dir),
        directory("servers_directory", &installs),
        directory("bindings_directory", &paths.bindings_dir),
        config_directory(&paths.config_dir),
    ];
    findings.extend(of_bindings(&paths.bindings_dir));
    let secrets = [
        ("secret_key", paths.secret_key.as_path()),
        ("owner_token", paths.owner_token.as_path()),
        ("signing_key", paths.signing_key.as_path()),
    ];
    findings.extend(secrets.map(|(check, path)| file(check, path)));
    if places.token_file != paths.owner_token {
        findings.push(file("token_file", &places.token_file));
    }
    findings.extend(settings.and_then(|settings| settings.model.as_ref()).and_then(model_key));
    findings.push(socket(&paths.socket));
    findings
}

fn directory(check: &'static str, path: &Path) -> Finding {
    if !is_there(path) {
        return Finding::ok(check, format!("{} does not exist; the first start makes it", path.display()));
    }
    // It exists, so nothing is made.
    privacy(check, path, 0o700, secure_fs::ensure_private_dir(path))
}

/// Of the bindings' own directories, those that are not private.
fn of_bindings(bindings: &Path) -> Vec<Finding> {
    let Ok(entries) = std::fs::read_dir(bindings) else { return Vec::new() };
    let each = entries.filter_map(Result::ok).map(|entry| directory("bindings_directory", &entry.path()));
    each.filter(|finding| finding.state != State::Ok).collect()
}

/// Whoever may write there says what the daemon does.
fn config_directory(path: &Path) -> Finding {
    const CHECK: &str = "config_directory";
    let at = path.display();
    let remedy = || format!("`chmod go-w {at}`, and `chown` it to the user who runs gatepost");
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Finding::ok(CHECK, format!("{at} does not exist; the defaults are in force"))
        }
        Err(error) => Finding::failed(CHECK, format!("{at} cannot be looked at: {error}"), remedy()),
        Ok(about) if about.uid() != host::hygiene::effective_user() => {
            Finding::failed(CHECK, format!("{at} belongs to user {}", about.uid()), remedy())
        }
        Ok(about) if about.is_dir() && about.mode() & 0o022 != 0 => Finding::failed(
            CHECK,
            format!("{at} may be written by others (mode {:o})", about.mode() & 0o7777),
            remedy(),
        ),
        Ok(_) => Finding::ok(CHECK, format!("{at} is written by nobody else")),
    }
}

fn file(check: &'static str, path: &Path) -> Finding {
    if !is_there(path) {
        return Finding::ok(check, format!("{} does not exist; the first start makes it", path.display()));
    }
    privacy(check, path, 0o600, secure_fs::inspect_private(path).map(drop))
}

/// The key of a model must be there already; `None` where none is asked for.
fn model_key(model: &Model) -> Option<Finding> {
    const CHECK: &str = "model_key";
    let ModelSource::Named { api_key: Some(api_key), .. } = &model.source else { return None };
    Some(match api_key {
        ApiKey::File(path) if is_there(path) => privacy(CHECK, path, 0o600, secure_fs::inspect_private(path).map(drop)),
        ApiKey::File(path) => {
            let detail = format!("{} does not exist", path.display());
            Finding::failed(CHECK, detail, format!("put the provider's key into {}, mode 0600", path.display()))
        }
        ApiKey::Credential(name) => {
            Finding::ok(CHECK, format!("the service credential {name:?}, which only the service can see"))
        }
    })
}

fn is_there(path: &Path) -> bool {
    // What cannot be looked at is left to the check itself, which says why.
    !std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

fn privacy(check: &'static str, path: &Path, mode: u32, outcome: Result<(), SecureFsError>) -> Finding {
    let at = path.display();
    match outcome {
        Ok(()) => Finding::ok(check, format!("{at} is private")),
        Err(error) => {
            let remedy = format!("do what is said; `chmod {mode:o} {at}` where it is the mode, as its owner");
            Finding::failed(check, error.to_string(), remedy)
        }
    }
}

fn socket(path: &Path) -> Finding {
    const CHECK: &str = "socket_path";
    let length_bytes = path.as_os_str().len();
    match SocketAddrUnix::new(path) {
        Ok(_) => Finding::ok(CHECK, format!("{} ({length_bytes} bytes)", path.display())),
        Err(error) => {
            let detail = format!("{} ({length_bytes} bytes) cannot be a socket's path: {error}", path.display());
            Finding::failed(CHECK, detail, "use a shorter --socket or --state-dir")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn every_binding_s_directory_is_looked_at_and_nobody_else_writes_the_configuration() {
        let home = tempfile::tempdir().unwrap();
        for (name, mode) in [("a", 0o700), ("b", 0o755)] {
            std::fs::create_dir(home.path().join(name)).unwrap();
            std::fs::set_permissions(home.path().join(name), std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let found = of_bindings(home.path());
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].state == State::Failed && found[0].remedy.as_ref().unwrap().contains("chmod 700"),
            "{found:?}"
        );
        let config = home.path().join("b");
        assert_eq!(config_directory(&config).state, State::Ok);
        assert_eq!(config_directory(&home.path().join("none")).state, State::Ok);
        for mode in [0o775, 0o757] {
            std::fs::set_permissions(&config, std::fs::Permissions::from_mode(mode)).unwrap();
            let open = config_directory(&config);
            assert!(open.state == State::Failed && open.remedy.unwrap().contains("go-w"), "{mode:o}");
        }
    }

    #[test]
    fn what_others_may_read_fails_and_what_is_not_there_is_not_made() {
        let home = tempfile::tempdir().unwrap();
        let (open, closed, none) = (home.path().join("open"), home.path().join("closed"), home.path().join("none"));
        for (path, mode) in [(&open, 0o644), (&closed, 0o600)] {
            std::fs::write(path, "secret").unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        assert_eq!(file("owner_token", &closed).state, State::Ok);
        let refused = file("owner_token", &open);
        assert_eq!(refused.state, State::Failed);
        assert!(refused.remedy.unwrap().contains("chmod 600"));
        for finding in [file("owner_token", &none), directory("state_directory", &none)] {
            assert_eq!(finding.state, State::Ok);
        }
        assert!(!none.exists());
        std::fs::create_dir(&none).unwrap();
        std::fs::set_permissions(&none, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(directory("state_directory", &none).state, State::Failed);
    }

    #[test]
    fn a_missing_model_key_fails() {
        let with = |api_key| Model {
            source: ModelSource::Named { name: "m".to_owned(), base_url: None, api_key },
            choices: Vec::new(),
            tools: Vec::new(),
        };
        let missing = model_key(&with(Some(ApiKey::File("/nonexistent/key".into())))).unwrap();
        assert_eq!(missing.state, State::Failed);
        assert_eq!(model_key(&with(Some(ApiKey::Credential("c".to_owned())))).unwrap().state, State::Ok);
        assert_eq!(model_key(&with(None)), None);
    }

    #[test]
    fn a_socket_s_path_has_107_bytes_at_most() {
        let of = |bytes: usize| socket(Path::new(&format!("/{}", "a".repeat(bytes - 1)))).state;
        assert_eq!((of(107), of(109)), (State::Ok, State::Failed));
    }
}
