//! The daemon as it ships, but without the layers of confinement that its own file name names. For tests that show what each
//! is needed for.

use gatepost::Guards;
use gatepost_tests::changed_contract;
use host::confine::Parts;
use rules::passage::Watch;
use std::process::ExitCode;
use testkit::escapes::{Layer, without_layers};

fn main() -> ExitCode {
    let Some(taken) = by_file_name() else {
        eprintln!("this program's file name names no layers");
        return ExitCode::from(2);
    };
    let has = |layer| !taken.contains(&layer);
    let privileges = has(Layer::Privileges);
    let confinement = Parts {
        privileges,
        // The kernel takes neither from an ordinary user who could still gain privileges.
        files: privileges && has(Layer::LandlockFiles),
        scopes: privileges && has(Layer::LandlockScopes),
        calls: privileges && has(Layer::Seccomp),
    };
    let guards = Guards {
        confinement,
        unreadable: has(Layer::NotDumpable),
        tree: has(Layer::TreeGuard),
        peers: has(Layer::Peers),
    };
    gatepost::run_guarded(
        |reviewed| changed_contract(reviewed, |files| without_layers(&by_file_name().unwrap_or_default(), files)),
        &Watch::default(),
        guards,
    )
}

/// What is taken away, which the file name tells, since what it starts has another environment.
fn by_file_name() -> Option<Vec<Layer>> {
    let own = std::env::current_exe().ok()?;
    Layer::of_file_name(own.file_name()?.to_str()?)
}
