//! A spare that waits is as empty as it is said to be, and what it becomes is as good as any server.

use crate::keys::Keys;
use crate::{descriptors, memory, outside, processes_user};
use api_types::{Server, Status};
use gatepost_tests::{LIMIT, Scene, wait_until};
use host::hygiene::is_root;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use testkit::daemon::{guards_of, server_port};

/// On the real server, as an ordinary user with everything that confines: what is not there is looked for by root.
#[test]
fn a_spare_that_waits_holds_no_key_and_listens_nowhere_and_becomes_a_server_like_any() {
    let scene = Scene::ordinary_with(|setup| {
        setup.agent_server = "standby = true\n".to_owned();
        setup.confinement = "full";
    });
    let session = scene.session();
    // The model is asked, with its key.
    session.turn("say: hello");
    let (before, status) = (only_server(&scene), scene.status());
    let server = before.pid.unwrap();
    let spare = scene.wait_spare(&[]);
    let (port, keys) =
        (server_port(spare).unwrap(), Keys::learn(&scene, scene.daemon().pid(), server_port(server).unwrap()));
    let secrets = keys.secrets();

    let refused = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map(drop).unwrap_err().kind();
    assert_eq!(refused, ErrorKind::ConnectionRefused, "something listens at the port of a server that is not there");
    assert!(guards_of(spare).is_some(), "no guards above the spare");
    assert_closed_to_its_own_user(spare);
    if is_root() {
        assert_eq!(listening(spare), BTreeSet::new());
        // That the same look shows a listener where there is one, and memory a key.
        assert_eq!(listening(server).len(), 1);
        assert!(secrets.in_memory(server).contains("session key"), "root does not see the session key in the server");
        assert_eq!(secrets.in_memory(spare), BTreeSet::new());
        for file in descriptors(spare).iter().filter(|file| file.to_string_lossy().contains("memfd:")) {
            assert!(file.to_string_lossy().contains("gatepost-nothing"), "{}", file.display());
        }
        for entry in fs::read_dir(format!("/proc/{spare}/fd")).unwrap().flatten() {
            if fs::metadata(entry.path()).is_ok_and(|file| file.is_file()) {
                assert_eq!(secrets.in_bytes(&fs::read(entry.path()).unwrap()), BTreeSet::new(), "{entry:?}");
            }
        }
    }
    for file in ["environ", "cmdline"] {
        let read = fs::read(format!("/proc/{spare}/{file}")).unwrap_or_default();
        assert!(!is_root() || !read.is_empty());
        assert_eq!(secrets.in_bytes(&read), BTreeSet::new(), "{file}");
    }
    let data = data_dir(&scene);
    assert!(outside::count_files(&data) > 3, "{}", data.display());
    assert_eq!(secrets.in_files(&data, &[]), [] as [String; 0]);

    kill_process(Pid::from_raw(server.cast_signed()).unwrap(), Signal::KILL).unwrap();
    wait_until("the spare to be the server", LIMIT, || (scene.server_pid() == Some(spare)).then_some(()));
    let after = only_server(&scene);
    assert_eq!(told(&after), told(&before));
    assert_ne!(after.server_start_id, before.server_start_id);
    assert_eq!(level(&scene.status()), level(&status));
    assert_eq!(level(&status), ("full", &[] as &[String]), "is bubblewrap installed, and may it make namespaces?");
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    if is_root() {
        let found = memory::key_like(spare);
        assert!(!found.contains(keys.session.as_ref().unwrap()), "it has the key of the one before");
        assert_eq!(listening(spare).len(), 1);
        let carriers = descriptors(spare).into_iter().filter(|file| file.to_string_lossy().contains("gatepost-config"));
        assert_eq!(carriers.collect::<Vec<_>>(), [] as [PathBuf; 0], "it still holds what carried the keys");
    }
    scene.finish();
}

fn only_server(scene: &Scene) -> Server {
    let [server] = scene.status().servers.try_into().unwrap();
    server
}

/// What a server shows that must not depend on how it came about.
fn told(server: &Server) -> (Option<String>, Option<String>, Vec<(String, bool)>) {
    let canaries = server.canaries.iter().map(|canary| (canary.canary.clone(), canary.passed)).collect();
    (server.version.clone(), server.launch_config_digest.clone(), canaries)
}

fn level(status: &Status) -> (&str, &[String]) {
    (&status.confinement_level, &status.confinement_missing)
}

/// The directory of the spare.
fn data_dir(scene: &Scene) -> PathBuf {
    let entries = fs::read_dir(scene.home().state().join("bindings")).unwrap().flatten();
    let spares = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("spare-"));
    let [data] = spares.map(|entry| entry.path()).collect::<Vec<_>>().try_into().unwrap();
    data
}

/// Its own user's other processes see neither what it was started with nor what it holds.
fn assert_closed_to_its_own_user(pid: u32) {
    let owner = processes_user(pid);
    for file in ["environ", "maps", "mem", "fd/3", "fd/5"] {
        let mut command = Command::new("/usr/bin/head");
        command.args(["-c", "1", &format!("/proc/{pid}/{file}")]);
        if is_root() {
            command.uid(owner).gid(owner);
        }
        let said = String::from_utf8(command.output().unwrap().stderr).unwrap();
        assert!(said.contains("Permission denied"), "{file}: {said}");
    }
}

/// The inodes of the listening sockets that a process holds, as root sees them.
fn listening(pid: u32) -> BTreeSet<String> {
    let mut inodes = BTreeSet::new();
    for (table, is_listening, inode) in [
        ("tcp", (|row: &[&str]| row[3] == "0A") as fn(&[&str]) -> bool, 9),
        ("tcp6", |row| row[3] == "0A", 9),
        ("unix", |row| u32::from_str_radix(row[3], 16).is_ok_and(|flags| flags & 0x1_0000 != 0), 6),
    ] {
        let text = fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        let rows = text.lines().skip(1).map(|row| row.split_whitespace().collect::<Vec<_>>());
        inodes.extend(rows.filter(|row| is_listening(row)).map(|row| format!("socket:[{}]", row[inode])));
    }
    let open = descriptors(pid).into_iter().map(|target| target.to_string_lossy().into_owned());
    open.filter(|target| inodes.contains(target)).collect()
}
