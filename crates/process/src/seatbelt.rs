//! Confinement on macOS: the program `sandbox-exec` becomes the one that is asked for, after it told the kernel a profile that
//! nothing takes back. Written by what others say of it; **never run**.

mod found;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use host::confine::{ConfineError, FileGrant, Links};
use rules::confinement::{Access, Placed, Plan, Policy, PolicyError, ProfileError, SeatbeltPolicy};

use self::found::found;
use crate::confine::file_grant;

/// What applies a profile. By its path: macOS executes no program by a descriptor, and the system keeps this directory from
/// everybody, root too.
pub const SANDBOX: &str = "/usr/bin/sandbox-exec";

/// Why nothing can be confined.
#[derive(Debug, thiserror::Error)]
pub enum SeatbeltError {
    /// A wrong build.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// What stands at a granted path.
    #[error(transparent)]
    Grant(#[from] ConfineError),
    /// No profile can be made.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// There is nothing to apply it.
    #[error("{0} is missing, or not root's alone")]
    NoSandbox(&'static str),
    /// It would search PATH for another.
    #[error("{} is no absolute path", .0.display())]
    NotAbsolute(PathBuf),
}

/// The profile for the processes of the server of this plan. `own` may be executed besides.
///
/// # Errors
/// When the policy is unfit, a link stands where none may be, or a path cannot be written into a profile.
pub fn profile(plan: &Plan, own: Option<&Path>) -> Result<String, SeatbeltError> {
    let policy = SeatbeltPolicy::reviewed()?;
    let files = [Policy::reviewed()?.files, policy.files()];
    let grants = files.iter().flat_map(|files| files.grants(plan));
    let mut placed = Vec::new();
    for grant in grants {
        let access = grant.access;
        placed.extend(place(&file_grant(grant), access)?);
    }
    if let Some(path) = own {
        let (access, links) = (host::confine::Access::Read, Links::Followed);
        placed.extend(place(&FileGrant { path: path.to_path_buf(), access, links, identity: None }, Access::Read)?);
    }
    Ok(policy.profile(&placed, &plan.kept)?)
}

fn place(grant: &FileGrant, access: Access) -> Result<Option<Placed>, ConfineError> {
    Ok(found(grant)?.map(|found| Placed { path: found.path, access, is_directory: found.is_directory }))
}

/// What to execute, and its arguments from its own name on, so that it becomes `program` within the profile. `arguments` begins
/// with the name that the program was to be told it has: it is told its path instead, for `sandbox-exec` knows no other.
///
/// # Errors
/// When there is nothing to apply the profile, or the program's path is not absolute.
pub fn command(
    profile: &str,
    program: &OsStr,
    arguments: &[OsString],
) -> Result<(&'static OsStr, Vec<OsString>), SeatbeltError> {
    command_by(SANDBOX, profile, program, arguments)
}

fn command_by(
    sandbox: &'static str,
    profile: &str,
    program: &OsStr,
    arguments: &[OsString],
) -> Result<(&'static OsStr, Vec<OsString>), SeatbeltError> {
    if !fs::canonicalize(sandbox)
        .is_ok_and(|file| crate::install::is_executable(&file) && crate::install::is_roots(&file))
    {
        return Err(SeatbeltError::NoSandbox(sandbox));
    }
    // Also, a word that does not begin with a slash could be taken for an option.
    if !Path::new(program).is_absolute() {
        return Err(SeatbeltError::NotAbsolute(program.into()));
    }
    let mut words: Vec<OsString> = [sandbox, "-p", profile].map(OsString::from).to_vec();
    words.push(program.to_owned());
    words.extend(arguments.iter().skip(1).cloned());
    Ok((OsStr::new(sandbox), words))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn rule(profile: &str, path: &Path) -> Vec<String> {
        let naming = profile.lines().filter(|line| line.ends_with(&format!("{:?}))", path.to_str().expect("text"))));
        naming.map(str::to_owned).collect()
    }

    /// Paths of the system that are not there, as most of macOS's here, are granted to nobody.
    #[test]
    fn the_profile_names_what_is_there_and_where_it_is() {
        let directory = tempfile::tempdir().expect("dir");
        let root = directory.path().canonicalize().expect("root");
        let at = |name: &str| root.join(name);
        for name in ["work", "tmp", "home", "state/env", "elsewhere"] {
            fs::create_dir_all(at(name)).expect("dir");
        }
        fs::write(at("home/.gitconfig"), "").expect("file");
        symlink(at("elsewhere"), at("link")).expect("link");
        let mut plan = Plan::new(at("work"), at("tmp"), at("home"));
        plan.environment = vec![at("state/env")];
        plan.readable = vec![at("link"), at("gone")];
        plan.kept = vec![at("state")];
        let own = std::env::current_exe().expect("own").canonicalize().expect("own");
        let profile = profile(&plan, Some(&own)).expect("profile");
        assert!(rule(&profile, &at("work"))[0].contains("file-write* (subpath "), "{profile}");
        assert!(rule(&profile, &at("state/env"))[0].contains("process-exec* (subpath "), "{profile}");
        assert!(rule(&profile, &at("state"))[0].starts_with("(deny file* "), "{profile}");
        for file in [at("home/.gitconfig"), own] {
            assert!(rule(&profile, &file)[0].contains("process-exec* (literal "), "{profile}");
        }
        // Neither a link, nor where it leads, nor what is not there, nor the home itself.
        for path in ["link", "elsewhere", "gone", "home"].map(at).into_iter().chain(["/System/Library".into()]) {
            assert_eq!(rule(&profile, &path), [""; 0], "{profile}");
        }
        plan.workspace = at("link");
        assert!(matches!(super::profile(&plan, None), Err(SeatbeltError::Grant(ConfineError::Link(_)))));
    }

    #[test]
    fn the_program_is_started_by_the_sandbox_or_not_at_all() {
        let arguments = ["sh", "-c", "-p"].map(OsString::from);
        // Stands in for a program of the system's, which here is another.
        let (program, words) = command_by("/bin/sh", "(version 1)", OsStr::new("/bin/x"), &arguments).expect("words");
        assert_eq!(program, "/bin/sh");
        assert_eq!(words, ["/bin/sh", "-p", "(version 1)", "/bin/x", "-c", "-p"]);
        for name in ["sh", "-p", "./sh", ""] {
            let refused = command_by("/bin/sh", "", OsStr::new(name), &arguments);
            assert!(matches!(refused, Err(SeatbeltError::NotAbsolute(_))), "{name}");
        }
        for sandbox in ["/nowhere/sandbox-exec", "/etc/passwd"] {
            let refused = command_by(sandbox, "", OsStr::new("/bin/x"), &arguments);
            assert!(matches!(refused, Err(SeatbeltError::NoSandbox(_))), "{sandbox}");
        }
    }

    #[test]
    fn a_sandbox_that_another_could_have_put_there_is_none() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().expect("dir");
        let file = directory.path().join("sandbox-exec");
        fs::write(&file, "#!/bin/sh\n").expect("file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o777)).expect("mode");
        let path: &'static str = Box::leak(file.to_str().expect("text").to_owned().into_boxed_str());
        let refused = command_by(path, "", OsStr::new("/bin/x"), &["x".into()]);
        assert!(matches!(refused, Err(SeatbeltError::NoSandbox(_))));
    }
}
