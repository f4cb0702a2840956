//! What a program gets that goes through the wrapper.

use std::os::unix::process::{CommandExt, ExitStatusExt};

use crate::stage::{Stage, inheritable};

#[test]
fn a_program_gets_its_name_arguments_and_environment_less_what_is_stripped() {
    let stage = Stage::new();
    let script = "printf '%s|' \"$0\" \"$@\" \"$KEPT\" \"${SECRET-none}\" \"${OH_KEY-none}\" \"${SECRET_TOO-none}\"";
    let mut wrapped = stage.wrapped("/bin/sh", &["sh", "-c", script, "another name", "--plan-fd", "", "a b"]);
    for (name, value) in [("KEPT", "x=y "), ("SECRET", "1"), ("OH_KEY", "2"), ("SECRET_TOO", "3")] {
        wrapped.command.env(name, value);
    }
    let output = wrapped.output();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "another name|--plan-fd||a b|x=y |none|none|3|", "{output:?}");
}

#[test]
fn a_program_is_called_what_the_caller_says() {
    let stage = Stage::new();
    let output = stage.wrapped("/bin/sh", &["-a name of its own", "-c", "tr '\\0' '|' < /proc/$$/cmdline"]).output();
    assert!(output.stdout.starts_with(b"-a name of its own|-c|"), "{output:?}");
}

#[test]
fn a_program_has_the_descriptors_of_its_caller_but_not_the_plan() {
    let stage = Stage::new();
    let kept = host::memfile::memfile("kept", b"content of the kept one").unwrap();
    let (number, mut wrapped) = (inheritable(&kept), stage.wrapped("/bin/sh", &["sh"]));
    let plan = wrapped.plan_fd();
    let plan = format!("readlink /proc/$$/fd/{plan}");
    let seen = stage.bare("/bin/sh").args(["-c", &plan]).output().unwrap();
    assert!(seen.stdout.starts_with(b"/memfd:plan"), "{seen:?}");
    let output = wrapped.command.args(["-c", &format!("{plan}; cat <&{number}")]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "content of the kept one", "{output:?}");
}

#[test]
fn a_program_ends_as_itself() {
    let stage = Stage::new();
    assert_eq!(stage.wrapped("/bin/sh", &["sh", "-c", "exit 7"]).output().status.code(), Some(7));
    assert_eq!(stage.wrapped("/bin/sh", &["sh", "-c", "kill -TERM $$"]).output().status.signal(), Some(15));
}

#[test]
fn one_plan_serves_many_processes_at_once() {
    let stage = Stage::new();
    let mut wrapped = stage.wrapped("/bin/sh", &["sh", "-c", "exit 3"]);
    let mut children: Vec<_> = (0..20).map(|_| wrapped.command.spawn().unwrap()).collect();
    for child in &mut children {
        assert_eq!(child.wait().unwrap().code(), Some(3));
    }
}

#[test]
fn the_caller_may_name_the_wrapper_as_it_likes() {
    let stage = Stage::new();
    let mut wrapped = stage.wrapped("/bin/sh", &["sh", "-c", "exit 3"]);
    assert_eq!(wrapped.command.arg0("sh").output().unwrap().status.code(), Some(3));
}
