//! Which processes belong to the demonstration: what descends from this process, and what names its directory.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes of a process's arguments or environment that are looked at; Linux allows about this much.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// The processes, this one aside, that descend from this one, or whose working directory, arguments or environment name the
/// directory. As this process is a subreaper, what loses its parent still descends from it.
///
/// # Errors
/// When `/proc` cannot be read: then nothing is known.
pub(super) fn of(directory: &Path) -> io::Result<BTreeSet<u32>> {
    let own = std::process::id();
    let mut found: BTreeSet<u32> = host::tree::descendants_of(own)?.into_iter().map(|process| process.pid).collect();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        if pid != own && names(pid, directory) {
            found.insert(pid);
        }
    }
    Ok(found)
}

/// A process in words.
pub(super) fn describe(pid: u32) -> String {
    let arguments = read(pid, "cmdline");
    let command = String::from_utf8_lossy(&arguments).replace('\0', " ");
    format!("{pid} {}", cli::sanitize::line(command.trim_end()))
}

fn names(pid: u32, directory: &Path) -> bool {
    if fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(directory)) {
        return true;
    }
    let words = directory.as_os_str().as_bytes();
    // Of a process that has ended nothing can be read.
    ["cmdline", "environ"].iter().any(|file| holds(&read(pid, file), words))
}

fn read(pid: u32, file: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    match fs::File::open(format!("/proc/{pid}/{file}")).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes)) {
        Ok(_) => bytes,
        Err(_) => Vec::new(),
    }
}

fn holds(bytes: &[u8], words: &[u8]) -> bool {
    !words.is_empty() && bytes.windows(words.len()).any(|window| window == words)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn start(change: impl FnOnce(&mut Command)) -> Child {
        let mut command = Command::new("/bin/sleep");
        command.arg("60").env_clear().stdout(Stdio::null());
        change(&mut command);
        let child = command.spawn().unwrap();
        // It is there before the kernel has laid out its arguments and environment.
        let is_there = |file| !read(child.id(), file).is_empty();
        for _ in 0..5_000 {
            if is_there("cmdline") && (is_there("environ") || command.get_envs().next().is_none()) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child
    }

    #[test]
    fn a_process_is_found_by_each_thing_that_names_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        let mut named = [
            start(|command| {
                command.current_dir(directory.path());
            }),
            start(|command| {
                command.env("HOME", directory.path().join("home"));
            }),
        ];
        let mut stranger = start(|_| {});
        let by_name: Vec<bool> = named.iter().map(|child| names(child.id(), directory.path())).collect();
        let stranger_named = names(stranger.id(), directory.path());
        let all = of(directory.path()).unwrap();
        let words = describe(stranger.id());
        for child in named.iter_mut().chain([&mut stranger]) {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(by_name, [true, true]);
        assert!(!stranger_named);
        // All three descend from this process.
        assert!(named.iter().chain([&stranger]).all(|child| all.contains(&child.id())), "{all:?}");
        assert_eq!(words, format!("{} /bin/sleep 60", stranger.id()));
        assert!(named.iter().all(|child| !names(child.id(), directory.path())));
    }

    #[test]
    fn an_empty_name_is_in_nothing() {
        assert!(!holds(b"abc", b""));
        assert!(holds(b"HOME=/tmp/x\0", b"/tmp/x") && !holds(b"HOME=/tmp/y\0", b"/tmp/x"));
    }
}
