//! The Landlock domain: file rules, and no signals and no abstract sockets to the outside.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use crate::confine::{Access, ConfineError, FileGrant, Links, Parts};

/// Every right and scope that the running kernel has is asked for with the hard requirement, so that none is dropped in
/// silence. `None` when neither part is wanted.
pub(super) fn domain(
    kernel_abi: u32,
    grants: &[FileGrant],
    parts: Parts,
) -> Result<Option<RulesetCreated>, ConfineError> {
    if !parts.files && !parts.scopes {
        return Ok(None);
    }
    let abi = ABI::from(i32::try_from(kernel_abi).unwrap_or(i32::MAX));
    let handled = AccessFs::from_all(abi);
    let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    if parts.files {
        ruleset = ruleset.handle_access(handled).map_err(ConfineError::step("the rights to files"))?;
    }
    let scopes = if parts.scopes { Scope::from_all(abi) } else { BitFlags::empty() };
    if !scopes.is_empty() {
        ruleset = ruleset.scope(scopes).map_err(ConfineError::step("the scope of signals and sockets"))?;
    }
    let mut domain = ruleset.create().map_err(ConfineError::step("the file rules"))?;
    for grant in grants.iter().filter(|_| parts.files) {
        let Some(fd) = open(grant)? else { continue };
        let file = File::from(fd);
        let found = file.metadata().map_err(ConfineError::open(&grant.path))?;
        if grant.identity.is_some_and(|identity| identity != (found.dev(), found.ino())) {
            match grant.links {
                Links::Refused => return Err(ConfineError::Replaced(grant.path.clone())),
                Links::Followed | Links::Skipped => continue,
            }
        }
        let known = if found.is_dir() { handled } else { handled & AccessFs::from_file(abi) };
        let rule = PathBeneath::new(file, rights(grant.access) & known);
        domain = domain.add_rule(rule).map_err(ConfineError::step("a file rule"))?;
    }
    Ok(Some(domain))
}

pub(super) fn restrict(domain: RulesetCreated) -> Result<(), ConfineError> {
    let status = domain.restrict_self().map_err(ConfineError::step("the file rules"))?;
    if status.ruleset == RulesetStatus::FullyEnforced && status.no_new_privs {
        Ok(())
    } else {
        Err(ConfineError::step("the file rules")("only partly enforced"))
    }
}

fn rights(access: Access) -> BitFlags<AccessFs> {
    let read = AccessFs::Execute | AccessFs::ReadFile | AccessFs::ReadDir;
    match access {
        Access::Read => read,
        Access::Write => {
            read | AccessFs::WriteFile
                | AccessFs::Truncate
                | AccessFs::RemoveDir
                | AccessFs::RemoveFile
                | AccessFs::MakeDir
                | AccessFs::MakeReg
                | AccessFs::MakeSock
                | AccessFs::MakeFifo
                | AccessFs::MakeSym
                | AccessFs::Refer
                | AccessFs::ResolveUnix
        }
        Access::Device => AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev,
    }
}

/// A handle on the place of a grant; `None` where nothing is to be granted.
fn open(grant: &FileGrant) -> Result<Option<OwnedFd>, ConfineError> {
    let resolve = match grant.links {
        Links::Followed => ResolveFlags::empty(),
        Links::Refused | Links::Skipped => ResolveFlags::NO_SYMLINKS,
    };
    match openat2(CWD, &grant.path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve) {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        // Behind a directory that the user may not enter: nothing there could be used.
        Err(Errno::ACCESS) => Ok(None),
        Err(Errno::LOOP) => match grant.links {
            Links::Refused => Err(ConfineError::Link(grant.path.clone())),
            Links::Followed | Links::Skipped => Ok(None),
        },
        Err(error) => Err(ConfineError::open(&grant.path)(io::Error::from(error))),
    }
}
