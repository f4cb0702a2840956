//! `gatepost service`: the units of a service manager.

mod files;
mod manager;
pub(crate) mod package;
mod units;

use std::path::PathBuf;

use api_types::ExitCode;
use cli::args::{ServiceCommand, ServiceKind, ServicePrintArgs};
use cli::{Cli, Failure, sanitize};
use serde_json::{Value, json};
use settings::{ApiKey, ModelSource, Settings};

use crate::places::Places;
use crate::{Look, say};
pub(crate) use files::{Standing, standing};
pub(crate) use units::{Installation, Manager, Unit};

/// Carries the command out.
///
/// # Errors
/// The configuration has mistakes; a unit is not ours to change; the system refuses.
pub(crate) fn run(cli: &Cli, places: &Places, command: &ServiceCommand, look: Look) -> Result<Value, Failure> {
    let installation = || installation(places, &places.settings()?, cli.socket.is_some());
    match command {
        // The package's are the same whatever the configuration says of those who make it.
        ServiceCommand::Print(ServicePrintArgs { package: true, .. }) => {
            Ok(json!({"units": shown(Manager::Systemd, &package::units(), look)}))
        }
        ServiceCommand::Print(args) => print(&installation()?, args.kind, look),
        ServiceCommand::Install(args) => install(places, &installation()?, chosen(args.kind), args.force, look),
        ServiceCommand::Uninstall(args) => uninstall(places, &installation()?, chosen(args.kind), args.force, look),
    }
}

/// The global options that were given, for the daemon.
fn given(places: &Places, is_socket_given: bool) -> Vec<(&'static str, PathBuf)> {
    let sources = &places.sources;
    let socket = is_socket_given.then(|| places.paths.socket.clone());
    let all =
        [("--config", sources.config_file.clone()), ("--state-dir", sources.state_dir.clone()), ("--socket", socket)];
    all.into_iter().filter_map(|(option, path)| path.map(|path| (option, path))).collect()
}

/// This installation: this very program, and what the configuration says.
pub(crate) fn installation(
    places: &Places,
    settings: &Settings,
    is_socket_given: bool,
) -> Result<Installation, Failure> {
    let key = match settings.model.as_ref().map(|model| &model.source) {
        Some(ModelSource::Named { api_key, .. }) => api_key.as_ref(),
        Some(ModelSource::Profile { .. }) | None => None,
    };
    let credential = match key {
        Some(ApiKey::Credential(name)) => {
            let file = places.paths.config_dir.join("credentials").join(name);
            Some((name.clone(), file))
        }
        Some(ApiKey::File(_)) | None => None,
    };
    let binary = std::env::current_exe().map_err(|error| {
        Failure::new(ExitCode::Failed, "system", format!("where this program is cannot be told: {error}"))
    })?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).filter(|directory| directory.is_absolute());
    let directories: Vec<String> = directories.map(|directory| directory.to_string_lossy().into_owned()).collect();
    Ok(Installation {
        binary,
        options: given(places, is_socket_given),
        socket: places.paths.socket.clone(),
        credential,
        path: directories.join(":"),
        home: places.sources.home.clone(),
    })
}

fn chosen(kind: ServiceKind) -> Manager {
    match (kind.systemd, kind.launchd) {
        (true, _) => Manager::Systemd,
        (false, true) => Manager::Launchd,
        (false, false) => Manager::of_this_system(),
    }
}

/// Where a service manager looks for the units of this user.
pub(crate) fn directory(places: &Places, manager: Manager) -> PathBuf {
    let home = &places.sources.home;
    match manager {
        Manager::Systemd => {
            let config = places.sources.xdg_config_home.clone().filter(|path| path.is_absolute());
            config.unwrap_or_else(|| home.join(".config")).join("systemd/user")
        }
        Manager::Launchd => home.join("Library/LaunchAgents"),
    }
}

fn print(installation: &Installation, kind: ServiceKind, look: Look) -> Result<Value, Failure> {
    let managers =
        if kind.systemd || kind.launchd { vec![chosen(kind)] } else { vec![Manager::Systemd, Manager::Launchd] };
    let mut units = Vec::new();
    for manager in managers {
        units.extend(shown(manager, &installation.units(manager)?, look));
    }
    Ok(json!({"units": units}))
}

fn shown(manager: Manager, units: &[Unit], look: Look) -> Vec<Value> {
    let mut objects = Vec::new();
    for unit in units {
        if !look.json {
            say(&format!("==> {} <==\n{}\n", unit.name, unit.text));
        }
        objects.push(json!({"manager": manager.as_str(), "name": unit.name, "text": unit.text}));
    }
    objects
}

fn install(
    places: &Places,
    installation: &Installation,
    manager: Manager,
    force: bool,
    look: Look,
) -> Result<Value, Failure> {
    let units = installation.units(manager)?;
    let directory = directory(places, manager);
    let changed = files::write(&directory, &units, force)?;
    let reloaded = changed && manager::reload(manager);
    let written: Vec<PathBuf> = units.iter().map(|unit| directory.join(unit.name)).collect();
    let next = manager::to_start(manager, reloaded || !changed, &written);
    let package_units = of_a_package(manager);
    let notes = noted("in place of the package's", &package_units);
    tell(look, if changed { "written" } else { "unchanged" }, &written, &notes, &next);
    Ok(json!({
        "manager": manager.as_str(),
        "units": written,
        "changed": changed,
        "package_units": package_units,
        "next": next,
    }))
}

fn uninstall(
    places: &Places,
    installation: &Installation,
    manager: Manager,
    force: bool,
    look: Look,
) -> Result<Value, Failure> {
    let units = installation.units(manager)?;
    let directory = directory(places, manager);
    files::may_change(&directory, &units, force)?;
    let stopped = manager::stop(manager);
    let removed = files::remove(&directory, &units)?;
    let reloaded = !removed.is_empty() && manager::reload(manager);
    let next = if removed.is_empty() || (stopped && reloaded) { Vec::new() } else { manager::to_forget(manager) };
    let package_units = of_a_package(manager);
    let notes = noted("left, the package's", &package_units);
    tell(look, "removed", &removed, &notes, &next);
    Ok(json!({
        "manager": manager.as_str(),
        "removed": removed,
        "stopped": stopped,
        "package_units": package_units,
        "next": next,
    }))
}

/// The units of a package that this manager finds where the user has none.
fn of_a_package(manager: Manager) -> Vec<PathBuf> {
    match manager {
        Manager::Systemd => package::present(),
        Manager::Launchd => Vec::new(),
    }
}

fn noted(what: &str, files: &[PathBuf]) -> String {
    files.iter().map(|file| format!("{what}: {}\n", sanitize::line(&file.to_string_lossy()))).collect()
}

fn tell(look: Look, what: &str, files: &[PathBuf], notes: &str, next: &[String]) {
    if look.json {
        return;
    }
    let mut words = noted(what, files);
    if files.is_empty() {
        words.push_str("there is no unit of yours\n");
    }
    words.push_str(notes);
    words.extend(next.iter().map(|command| format!("next: {}\n", sanitize::line(command))));
    say(&words);
}
