//! `gatepost demo` does the whole job, with no configuration, on the real server.

use testkit::daemon::{Home, Server, Setup, processes_of, shared_install};

#[test]
fn the_demonstration_does_what_it_says() {
    let setup = Setup { server: Server::Managed, ..Setup::new("http://127.0.0.1:9/v1") };
    let home = Home::new(setup).unwrap();
    assert!(shared_install().unwrap().join("servers").is_dir());
    let output = home
        .command()
        .args(["demo", "--json", "--state-dir"])
        .arg(home.state())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}\n{told}");
    assert_eq!(said.trim().lines().count(), 1, "exactly one object: {said}");
    let object: serde_json::Value = serde_json::from_str(&said).unwrap();
    let number = |name: &str| object[name].as_u64().unwrap_or_else(|| panic!("{name} is no number: {object}"));

    assert!(number("actions_approved") >= 1, "{object}");
    assert_eq!(number("actions_executed"), number("actions_approved"), "{object}");
    assert_eq!(object["bypass_refused"], "approval_pending");
    assert_eq!(number("leftover_processes"), 0);
    assert_eq!(object["server_version"], "1.40.0");
    assert_eq!(object["confinement_level"], "weak");
    assert_eq!(object["already_installed"], true);
    assert!(number("events") > 0 && number("actions_proposed") >= number("actions_approved"), "{object}");
    assert!(number("sessions") >= 2, "it forks: {object}");
    assert_eq!(processes_of(home.path(), &[]), []);
}
