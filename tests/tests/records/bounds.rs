//! No room and no permission: a clear refusal, and nothing half done.

use super::{changed, files, home_with};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use testkit::daemon::UNPRIVILEGED_USER;

/// As an ordinary user, whom a mode holds back.
#[test]
fn a_state_directory_that_cannot_be_written_is_told_of_and_nothing_is_changed() {
    let home = home_with(|setup| {
        if rustix::process::geteuid().is_root() {
            setup.user = Some(UNPRIVILEGED_USER);
        }
    });
    let daemon = home.serve().unwrap();
    assert!(daemon.stop().unwrap().status.success());
    let before = files(&home, "");
    let socket = home.path().join("elsewhere").join("gatepost.sock");
    let socket = socket.to_string_lossy().into_owned();
    fs::set_permissions(home.state(), Permissions::from_mode(0o500)).unwrap();
    let told = home.run(&["serve", "--json", "--socket", &socket]);
    fs::set_permissions(home.state(), Permissions::from_mode(0o700)).unwrap();
    let told = told.unwrap();
    assert!(matches!(told.code, Some(1 | 4)), "{told:?}");
    let code = told.json()["error"]["code"].as_str().unwrap_or_default().to_owned();
    assert!(["state_unusable", "records_read_only", "socket_unusable"].contains(&code.as_str()), "{told:?}");
    assert_eq!(changed(&before, &files(&home, "")), Vec::<String>::new());
    assert!(home.serve().unwrap().stop().unwrap().status.success());
}
