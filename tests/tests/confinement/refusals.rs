//! When the wrapper executes nothing.

use std::fs;
use std::os::fd::AsRawFd;
use std::process::Output;

use crate::stage::{Stage, Wrapped, inheritable};

const MARK: &str = "workspace/was-executed";

/// The wrapper around a program that leaves a mark.
fn marking(stage: &Stage, plan: &[u8]) -> Wrapped {
    stage.wrapped_with(plan, "/bin/sh", &["sh", "-c", "echo > was-executed"])
}

/// Nothing was executed, and the reason holds these words.
fn assert_refused(stage: &Stage, output: &Output, words: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(126), "{said}");
    assert!(said.starts_with("gatepost: nothing was executed: ") && said.contains(words), "{words}: {said}");
    assert!(!stage.path(MARK).exists(), "{words}");
}

#[test]
fn a_fit_plan_is_carried_out() {
    let stage = Stage::new();
    assert!(marking(&stage, &stage.plan.to_bytes().unwrap()).output().status.success());
    assert!(stage.path(MARK).exists());
}

#[test]
fn an_unfit_plan_is_refused() {
    let stage = Stage::new();
    let fit = String::from_utf8(stage.plan.to_bytes().unwrap()).unwrap();
    let workspace = stage.plan.workspace.to_str().unwrap();
    for (plan, words) in [
        (String::new(), "the plan: EOF"),
        ("{}".to_owned(), "missing field"),
        (fit.replace("\"v\":1", "\"v\":2"), "v 2 is not 1"),
        (fit.replace("\"tmp\"", "\"temp\""), "unknown field `temp`"),
        (fit.replace(workspace, "/"), "no plain absolute path"),
        (fit.replace(workspace, "relative"), "no plain absolute path"),
        (format!("{}{fit}", " ".repeat(65_536)), "too large"),
    ] {
        assert_refused(&stage, &marking(&stage, plan.as_bytes()).output(), words);
    }
}

#[test]
fn a_plan_that_others_could_change_is_refused() {
    let stage = Stage::new();
    stage.write("plan", &String::from_utf8(stage.plan.to_bytes().unwrap()).unwrap());
    let file = fs::File::open(stage.path("plan")).unwrap().into();
    let number = inheritable(&file).to_string();
    let mut wrapper = stage.bare(testkit::daemon::gatepost_binary().unwrap());
    wrapper.args(["__confine", "--plan-fd", &number, "--", "/bin/sh", "sh", "-c", "echo > was-executed"]);
    assert_refused(&stage, &wrapper.output().unwrap(), "not a sealed file");
}

#[test]
fn a_wrong_command_line_is_refused() {
    let stage = Stage::new();
    let plan = host::memfile::memfile("plan", &stage.plan.to_bytes().unwrap()).unwrap();
    inheritable(&plan);
    let number = plan.as_raw_fd().to_string();
    let number = number.as_str();
    for (arguments, words) in [
        (&["--plan-fd", number, "/bin/sh", "sh"][..], "usage"),
        (&["--plan-fd", number, "--", "/bin/sh"], "usage"),
        (&["--", "/bin/sh", "sh"], "usage"),
        (&["--plan-fd", "1", "--", "/bin/sh", "sh"], "standard descriptor"),
        (&["--plan-fd", "987654", "--", "/bin/sh", "sh"], "Bad file descriptor"),
    ] {
        let mut wrapper = stage.bare(testkit::daemon::gatepost_binary().unwrap());
        assert_refused(&stage, &wrapper.arg("__confine").args(arguments).output().unwrap(), words);
    }
}

#[test]
fn a_link_in_place_of_the_workspace_is_refused() {
    let mut stage = Stage::new();
    let link = stage.path("link");
    std::os::unix::fs::symlink(&stage.plan.workspace, &link).unwrap();
    stage.plan.workspace = link;
    assert_refused(&stage, &marking(&stage, &stage.plan.to_bytes().unwrap()).output(), "a symbolic link leads to");
}

/// What is only read can be done without: a directory of programs that became a link does not stop the work.
#[test]
fn a_link_in_place_of_what_is_read_grants_nothing_and_stops_nothing() {
    let mut stage = Stage::new();
    let (tools, outside) = (stage.path("tools"), stage.path("outside"));
    for directory in [&tools, &outside] {
        fs::create_dir(directory).unwrap();
    }
    stage.write("tools/own", "tools");
    stage.write("outside/secret", "secret");
    stage.plan.readable = vec![tools.clone(), stage.path("absent")];
    assert_eq!(stage.says(&format!("cat {}/own", tools.display())), "tools");
    fs::rename(&tools, stage.path("before")).unwrap();
    std::os::unix::fs::symlink(&outside, &tools).unwrap();
    for way in [tools.join("secret"), outside.join("secret")] {
        assert_eq!(stage.says(&format!("cat {} 2>/dev/null || echo refused", way.display())), "refused");
    }
}

/// Within an outer namespace a link is not to be seen: what is mounted there is another directory.
#[test]
fn another_directory_than_was_granted_is_refused_where_it_is_written_and_passed_over_where_it_is_read() {
    let mut stage = Stage::new();
    let tools = stage.path("tools");
    fs::create_dir(&tools).unwrap();
    stage.plan.readable = vec![tools.clone()];
    let identify = |path: &std::path::Path| {
        let (device, inode) = host::confine::identity(path).unwrap();
        (path.to_path_buf(), rules::confinement::Identity { device, inode })
    };
    stage.plan.identities = stage.plan.granted().map(|path| identify(path)).collect();
    let read = format!("ls {} 2>/dev/null || echo refused", tools.display());
    assert_eq!(stage.says(&read), "");
    let replace = |place: &std::path::Path| {
        fs::rename(place, place.with_extension("before")).unwrap();
        fs::create_dir(place).unwrap();
    };
    replace(&tools);
    assert_eq!(stage.says(&read), "refused");
    replace(&stage.plan.workspace);
    let plan = stage.plan.to_bytes().unwrap();
    assert_refused(&stage, &marking(&stage, &plan).output(), "is not what it was");
}

#[test]
fn a_program_that_is_not_there_or_may_not_be_executed_has_the_codes_of_shells() {
    let stage = Stage::new();
    let code = |program: &str| stage.wrapped(program, &["name"]).output().status.code();
    assert_eq!(code("/usr/bin/no such program"), Some(127));
    assert_eq!(code("/etc/passwd"), Some(126));
    // It may be executed by the user, and is granted by no rule.
    fs::copy("/bin/true", stage.path("true")).unwrap();
    let program = stage.path("true");
    assert!(stage.bare(&program).status().unwrap().success());
    assert_eq!(code(program.to_str().unwrap()), Some(126));
}
