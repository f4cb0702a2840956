//! Every rule about files: what it grants works, and does not work without it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rules::confinement::{Access, Grant, Links, Policy};

use crate::common::{As, in_own_process};
use crate::stage::{Stage, confined, failure, write};

/// Where a rule's path leads to nothing on this machine, a directory of the stage stands for it.
fn policy_that_leads_somewhere(stage: &Stage) -> Policy {
    let mut policy = Policy::reviewed().unwrap();
    for path in policy.files.rules.iter_mut().flat_map(|rule| &mut rule.paths) {
        if path.starts_with('/') && !Path::new(path).exists() {
            let stand_in = stage.path().join("system").join(path.trim_start_matches('/'));
            fs::create_dir_all(&stand_in).unwrap();
            *path = stand_in.to_str().unwrap().to_owned();
        } else if let Some(below) = path.strip_prefix("{home}/") {
            let place = stage.plan.home.join(below);
            if below.contains("git") { write(&place, "[user]\n") } else { fs::create_dir_all(place).unwrap() }
        }
    }
    policy
}

/// A terminal made before anything is confined.
struct Terminal {
    _controller: File,
    device: PathBuf,
}

impl Terminal {
    fn new() -> Self {
        let controller = OpenOptions::new().read(true).write(true).open("/dev/ptmx").unwrap();
        let (unlocked, mut number): (libc::c_int, libc::c_uint) = (0, 0);
        // SAFETY: the two calls read and write one number of ours each.
        let answers = unsafe {
            let unlocked = libc::ioctl(controller.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlocked);
            (unlocked, libc::ioctl(controller.as_raw_fd(), libc::TIOCGPTN, &raw mut number))
        };
        assert_eq!(answers, (0, 0), "{}", io::Error::last_os_error());
        Self { _controller: controller, device: PathBuf::from(format!("/dev/pts/{number}")) }
    }
}

/// Tries what the grant is for. Only "permission denied" is the domain's word; a device may fail for other reasons.
fn works(grant: &Grant, terminal: &Terminal) -> bool {
    let path = &grant.path;
    let attempt = match grant.access {
        Access::Read if path.is_dir() => fs::read_dir(path).map(drop),
        Access::Read => File::open(path).map(drop),
        Access::Write => change(path),
        Access::Device if path.is_dir() => control(&terminal.device),
        Access::Device => control(path),
    };
    match failure(attempt) {
        None => true,
        Some(libc::EACCES) => false,
        Some(other) => {
            assert_eq!(grant.access, Access::Device, "{path:?}: {other}");
            true
        }
    }
}

/// Everything that a directory which may be written is for.
fn change(directory: &Path) -> io::Result<()> {
    let base = directory.join(format!("gatepost-test-{}", std::process::id()));
    fs::create_dir(&base)?;
    let changed = change_below(&base);
    fs::remove_dir_all(&base)?;
    changed
}

fn change_below(base: &Path) -> io::Result<()> {
    let (one, two) = (base.join("one"), base.join("two"));
    fs::create_dir(&one)?;
    fs::create_dir(&two)?;
    fs::write(one.join("file"), "content")?;
    OpenOptions::new().write(true).open(one.join("file"))?.set_len(3)?;
    fs::rename(one.join("file"), two.join("file"))?;
    fs::hard_link(two.join("file"), one.join("link"))?;
    std::os::unix::fs::symlink("file", two.join("symbolic"))?;
    assert_eq!(fs::read_to_string(two.join("symbolic"))?, "con");
    rustix::fs::mknodat(rustix::fs::CWD, base.join("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0)?;
    UnixListener::bind(base.join("socket")).map(drop)
}

fn control(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open(path)?;
    rustix::termios::tcgetattr(&file)?;
    Ok(())
}

/// The grants of this one path of a policy.
fn grants_of(policy: &Policy, stage: &Stage, rule: usize, path: &str) -> Vec<Grant> {
    let mut only = policy.clone();
    only.files.rules = vec![policy.files.rules[rule].clone()];
    only.files.rules[0].paths = vec![path.to_owned()];
    only.files.grants(&stage.plan)
}

/// Whether another grant reaches the same place: on many systems `/bin` and its like are links into `/usr`.
fn reached_otherwise(grant: &Grant, others: &[Grant]) -> bool {
    let place = grant.path.canonicalize().unwrap();
    let reaches = |other: &Grant| {
        other.access == grant.access && other.path.canonicalize().is_ok_and(|other| place.starts_with(other))
    };
    grant.links == Links::Followed && others.iter().any(reaches)
}

#[test]
fn each_path_of_each_rule_is_needed_for_what_it_grants() {
    in_own_process("grants::each_path_of_each_rule_is_needed_for_what_it_grants", As::Unprivileged, || {
        let (stage, terminal) = (Stage::new(), Terminal::new());
        let policy = policy_that_leads_somewhere(&stage);
        let of = |policy: &Policy| process::confine::file_grants(policy, &stage.plan);
        let mut needed = 0;
        for (index, rule) in policy.files.rules.iter().enumerate() {
            for path in &rule.paths {
                let own = grants_of(&policy, &stage, index, path);
                assert!(!own.is_empty(), "the stage has nothing for {path}");
                let mut without = policy.clone();
                without.files.rules[index].paths.retain(|other| other != path);
                for grant in &own {
                    assert!(confined(&of(&policy), &[], || works(grant, &terminal)), "granted: {grant:?}");
                    let still = confined(&of(&without), &[], || works(grant, &terminal));
                    assert_eq!(still, reached_otherwise(grant, &without.files.grants(&stage.plan)), "{grant:?}");
                    needed += usize::from(!still);
                }
            }
        }
        // All but the links into `/usr`, and at most that many.
        assert!(needed >= 24, "{needed}");
    });
}

#[test]
fn what_is_granted_for_reading_cannot_be_changed() {
    in_own_process("grants::what_is_granted_for_reading_cannot_be_changed", As::Unprivileged, || {
        let (stage, terminal) = (Stage::new(), Terminal::new());
        let policy = policy_that_leads_somewhere(&stage);
        let grants = policy.files.grants(&stage.plan);
        let read = grants.into_iter().filter(|grant| grant.access == Access::Read);
        // The user of the test may write those of the stage, were it not for the domain.
        let own: Vec<Grant> = read.filter(|grant| grant.path.starts_with(stage.path())).collect();
        assert!(own.len() >= 10, "{own:?}");
        let attempt = |grant: &Grant| {
            if grant.path.is_dir() {
                works(&Grant { access: Access::Write, ..grant.clone() }, &terminal)
            } else {
                failure(OpenOptions::new().append(true).open(&grant.path)) != Some(libc::EACCES)
            }
        };
        assert!(own.iter().all(attempt));
        confined(&process::confine::file_grants(&policy, &stage.plan), &[], || {
            for grant in &own {
                assert!(!attempt(grant), "{grant:?}");
            }
        });
    });
}
