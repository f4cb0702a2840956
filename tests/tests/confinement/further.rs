//! What the configuration grants beyond the workspace, on the real server: that and nothing beside it.

use std::fs;
use std::path::Path;
use std::process::Command;

use gatepost_tests::Scene;
use serde_json::Value;

use crate::door::run;

fn git(directory: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=A", "-c", "user.email=a@example.org"]).args(arguments).current_dir(directory);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn granted_directories_are_reached_and_a_worktree_s_repository_is_used_without_its_hooks() {
    let mut scene = Scene::ordinary();
    let base = scene.home().path().canonicalize().unwrap();
    let (repository, worktree) = (base.join("home/repo"), base.join("src/linked"));
    for name in ["home/cache", "home/tools", "home/beside", "home/repo"] {
        fs::create_dir(base.join(name)).unwrap();
    }
    for name in ["home/tools/own", "home/beside/secret"] {
        fs::write(base.join(name), "content").unwrap();
    }
    git(&repository, &["init", "-q"]);
    git(&repository, &["commit", "-q", "--allow-empty", "-m", "first"]);
    git(&repository, &["worktree", "add", "-q", &worktree.to_string_lossy()]);

    // Not granted: nothing of it is reached, and the session says why git does not work.
    scene.home_mut().reconfigure(|_setup| {}).unwrap();
    let session = scene.session_in(&worktree);
    let said = run(&session, "git status 2>&1 || echo refused");
    assert!(said.contains("refused"), "{said}");
    let notes = scene.status().confinement_notes;
    let hint = format!("git_dirs = [\"{}\"]", repository.join(".git").display());
    assert!(notes.iter().any(|note| note.contains("does not work") && note.contains(&hint)), "{notes:?}");

    scene.stop_daemon();
    scene
        .home_mut()
        .reconfigure(|setup| {
            setup.workspaces = "git_dirs = [\"~/repo/.git\"]\n".to_owned();
            setup.tables = "read = [\"~/tools\"]\nwrite = [\"~/cache\"]\n".to_owned();
        })
        .unwrap();
    scene.serve_again();
    let session = scene.session_in(&worktree);
    let home = base.join("home");
    let home = home.display();
    let script = format!(
        "cat {home}/tools/own; echo one > {home}/cache/made && cat {home}/cache/made; \
         for path in {home}/tools/made {home}/made {home}/beside/made {home}/repo/made {home}/repo/.git/hooks/post-checkout \
         {home}/repo/.git/config; do (echo x >> $path) 2>/dev/null && echo wrote $path; done; \
         cat {home}/beside/secret 2>/dev/null; \
         git -c user.name=A -c user.email=a@example.org commit -q --allow-empty -m second 2>/dev/null && git log --format=%s -1"
    );
    let said = run(&session, &script);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines, ["contentone", "second"], "{said}");
    let approval = session.propose("run: true");
    let attested = session.client().get(&session.path("/attestation")).unwrap().expect_status(200).unwrap();
    let attested: Vec<&str> =
        attested["document"]["confinement_notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for word in ["may read the further", "may read and write the further", "may use the git directory"] {
        assert!(scene.status().confinement_notes.iter().any(|note| note.contains(word)), "{word}");
        assert!(approval.notes.iter().any(|note| note.contains(word)), "{word}: {:?}", approval.notes);
        assert!(attested.iter().any(|note| note.contains(word)), "{word}: {attested:?}");
    }
    session.reject(&approval);
    scene.finish();
}
