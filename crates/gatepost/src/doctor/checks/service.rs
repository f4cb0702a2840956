//! The units of the service manager, where they are installed.

use std::path::Path;

use cli::Failure;
use settings::Settings;

use super::super::finding::Finding;
use crate::places::Places;
use crate::service::{self, Installation, Manager, Standing, Unit, package};

const CHECK: &str = "service";
const NOT_INSTALLED: &str = "not installed as a service of this user";

/// Who wrote units, and what is said of those that are not as they would be written now.
struct Source {
    remedy: &'static str,
    /// For one that somebody changed.
    remedy_of_changed: &'static str,
    older: &'static str,
    /// Whether another search path is of somebody else's making, and does.
    path_varies: bool,
}

/// `gatepost service install`, for this user.
const USER: Source = Source {
    remedy: "`gatepost service install`, with the options it was installed with, then restart the service",
    remedy_of_changed: "look at it; changes of yours belong into gatepost.service.d/",
    older: "another version, program, configuration or options",
    path_varies: true,
};
/// A package, for every user.
const PACKAGE: Source = Source {
    remedy: "install the package again, then `systemctl --user daemon-reload`",
    remedy_of_changed: "install the package again, then `systemctl --user daemon-reload`",
    older: "another version",
    path_varies: false,
};

/// Whether the units of this system's service manager are there, and as this program would write them.
pub(super) fn installed(places: &Places, settings: Option<&Settings>) -> Vec<Finding> {
    let Some(settings) = settings else {
        let detail = "what the units must hold is not known without a configuration";
        return vec![Finding::warning(CHECK, detail, "mend the configuration first")];
    };
    let manager = Manager::of_this_system();
    let directory = service::directory(places, manager);
    let own = service::installation(places, settings, false);
    let (own, units) = match own.and_then(|own| own.units(manager).map(|units| (own, units))) {
        Ok(found) => found,
        Err(failure) => return vec![Finding::warning(CHECK, failure.detail, USER.remedy)],
    };
    vec![match (are_current(&directory, &units, &USER), manager) {
        (Ok(true), _) => Finding::ok(CHECK, format!("installed in {}, current", directory.display())),
        (Ok(false), Manager::Systemd) => of_a_package(Path::new(package::DIRECTORY), &own),
        (Ok(false), Manager::Launchd) => Finding::ok(CHECK, NOT_INSTALLED),
        (Err(wrong), _) => wrong,
    }]
}

/// Whether these units are there and current; `false` when none of them is there.
///
/// # Errors
/// What is to be said of them otherwise.
fn are_current(directory: &Path, units: &[Unit], source: &Source) -> Result<bool, Finding> {
    let standings: Result<Vec<Standing>, Failure> =
        units.iter().map(|unit| service::standing(directory, unit)).collect();
    let standings = standings.map_err(|failure| Finding::warning(CHECK, failure.detail, source.remedy))?;
    let place = directory.display();
    let older = || {
        let detail = format!("the units in {place} are those of {}", source.older);
        Err(Finding::warning(CHECK, detail, source.remedy))
    };
    match standings.iter().copied().reduce(worse) {
        None => Ok(false),
        Some(Standing::Missing) if standings.iter().all(|one| *one == Standing::Missing) => Ok(false),
        Some(Standing::Missing) => {
            Err(Finding::warning(CHECK, format!("a unit is missing from {place}"), source.remedy))
        }
        Some(Standing::Foreign) => {
            let detail = format!("a unit in {place} was not written by gatepost, or was changed since");
            Err(Finding::warning(CHECK, detail, source.remedy_of_changed))
        }
        Some(Standing::Older) => older(),
        Some(Standing::OtherPath) if !source.path_varies => older(),
        Some(Standing::Current | Standing::OtherPath) => Ok(true),
    }
}

/// The units of a package, which count where the user has none.
fn of_a_package(directory: &Path, own: &Installation) -> Finding {
    let place = directory.display();
    match (are_current(directory, &package::units(), &PACKAGE), unfit(own)) {
        (Ok(true), None) => Finding::ok(CHECK, format!("installed by a package in {place}, current")),
        (Ok(true), Some(why)) => Finding::warning(CHECK, format!("the package's units in {place} {why}"), USER.remedy),
        (Ok(false), _) => Finding::ok(CHECK, NOT_INSTALLED),
        (Err(wrong), _) => wrong,
    }
}

/// Why units for every user do not do for this installation.
fn unfit(own: &Installation) -> Option<String> {
    if own.binary != Path::new(package::PROGRAM) {
        return Some(format!("start {}, which is not this program", package::PROGRAM));
    }
    if let Some((option, _)) = own.options.first() {
        return Some(format!("start the daemon without {option}"));
    }
    own.credential
        .as_ref()
        .map(|(name, _)| format!("do not load the credential {name}, unless a drop-in of yours does"))
}

/// The one that more is to be said about.
fn worse(one: Standing, other: Standing) -> Standing {
    let rank = |standing| match standing {
        Standing::Current => 0,
        Standing::OtherPath => 1,
        Standing::Older => 2,
        Standing::Missing => 3,
        Standing::Foreign => 4,
    };
    if rank(other) > rank(one) { other } else { one }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::super::finding::State;
    use super::*;

    #[test]
    fn what_is_foreign_or_missing_is_told_before_what_is_older() {
        use Standing::{Current, Foreign, Missing, Older, OtherPath};
        for (standings, told) in [
            ([Current, Current], Current),
            ([OtherPath, Current], OtherPath),
            ([Older, OtherPath], Older),
            ([Current, Missing], Missing),
            ([Foreign, Missing], Foreign),
        ] {
            assert_eq!(standings.into_iter().reduce(worse), Some(told));
        }
    }

    #[test]
    fn the_units_of_a_package_count_where_they_do_for_this_user() {
        let root = tempfile::tempdir().unwrap();
        let told = |own: &Installation| of_a_package(root.path(), own);
        assert_eq!(told(&package::installation()).detail, NOT_INSTALLED);
        let units = package::units();
        fs::write(root.path().join(units[0].name), &units[0].text).unwrap();
        assert_eq!(told(&package::installation()).state, State::Warning, "one is missing");
        let service = root.path().join(units[1].name);
        fs::write(&service, &units[1].text).unwrap();
        let fit = told(&package::installation());
        assert_eq!(fit.state, State::Ok);
        assert!(fit.detail.starts_with("installed by a package in "), "{}", fit.detail);

        let elsewhere = Installation { binary: "/opt/gatepost".into(), ..package::installation() };
        let with_options = Installation { options: vec![("--state-dir", "/srv".into())], ..package::installation() };
        let with_credential =
            Installation { credential: Some(("model".into(), "/k".into())), ..package::installation() };
        for (own, why) in [(elsewhere, package::PROGRAM), (with_options, "--state-dir"), (with_credential, "model")] {
            let finding = told(&own);
            assert!(finding.state == State::Warning && finding.detail.contains(why), "{}", finding.detail);
        }

        let other =
            Installation { binary: "/opt/gatepost".into(), ..package::installation() }.units(Manager::Systemd).unwrap();
        let searched_elsewhere = package::units_with("/usr/bin")[1].text.clone();
        for (text, why) in [
            (other[1].text.clone(), "another version"),
            (searched_elsewhere, "another version"),
            (format!("{}#\n", units[1].text), "changed"),
        ] {
            fs::write(&service, text).unwrap();
            let finding = told(&package::installation());
            assert!(finding.state == State::Warning && finding.detail.contains(why), "{}", finding.detail);
        }
    }
}
