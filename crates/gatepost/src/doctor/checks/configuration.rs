//! The configuration file, and the workspace roots it names.

use std::path::Path;

use settings::{Settings, SettingsError};

use super::super::finding::Finding;

const CHECK: &str = "configuration";

/// The configuration, each of its mistakes, and what it leads to.
pub(super) fn all(loaded: &Result<Settings, SettingsError>, file: &Path) -> Vec<Finding> {
    let at = file.display();
    match loaded {
        Ok(settings) => {
            let how = if settings.from_file { "is valid" } else { "does not exist; the defaults are in force" };
            let mut findings = vec![Finding::ok(CHECK, format!("{at} {how}")), model(settings, file)];
            findings.extend(roots(settings));
            findings
        }
        Err(SettingsError::Invalid { mistakes, .. }) => {
            let finding = |mistake| Finding::failed(CHECK, format!("{at}: {mistake}"), format!("correct {at}"));
            mistakes.iter().map(finding).collect()
        }
        Err(error) => vec![Finding::failed(CHECK, error.to_string(), format!("correct {at}, its owner or its mode"))],
    }
}

fn model(settings: &Settings, file: &Path) -> Finding {
    if settings.model.is_some() {
        return Finding::ok("model", "configured");
    }
    let remedy = format!(
        "add to {}: [model] with name = \"…\" and api_key = {{ file = \"…\" }} (config/example.toml shows it)",
        file.display()
    );
    Finding::warning("model", "no [model] is configured; no session can be started", remedy)
}

fn roots(settings: &Settings) -> Vec<Finding> {
    const CHECK: &str = "workspace_root";
    let roots = settings.workspaces.resolve();
    if roots.is_empty() {
        let detail = "[workspaces] roots is empty; no session can be started anywhere";
        return vec![Finding::warning(CHECK, detail, "name the directories agents may work in")];
    }
    let finding = |root: settings::Root| match root.resolved {
        Ok(directory) => Finding::ok(CHECK, directory.display().to_string()),
        Err(refusal) => Finding::failed(CHECK, refusal.detail, "create the directory, or correct [workspaces] roots"),
    };
    roots.into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use settings::Sources;

    use super::super::super::finding::State;
    use super::*;

    fn found(text: &str) -> (tempfile::TempDir, Vec<Finding>) {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("config.toml");
        host::secure_fs::write_private_new(&file, text.as_bytes()).unwrap();
        let sources =
            Sources { config_file: Some(file.clone()), home: home.path().to_path_buf(), ..Sources::default() };
        let findings = all(&Settings::load(&sources), &file);
        (home, findings)
    }

    #[test]
    fn every_mistake_is_a_finding_of_its_own() {
        let (_home, findings) = found("[agent_server]\nmax_servers = 99\nfoo = 1\n");
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings.iter().all(|finding| finding.state == State::Failed), "{findings:?}");
        assert!(findings[0].detail.contains("max_servers") && findings[1].detail.contains("foo"), "{findings:?}");
    }

    #[test]
    fn without_a_model_it_is_said_what_to_add_and_a_missing_root_fails() {
        let (_home, findings) = found("[workspaces]\nroots = [\"~/missing\", \"~\"]\n");
        let states: Vec<_> = findings.iter().map(|finding| (finding.check, finding.state)).collect();
        let wanted = [
            (CHECK, State::Ok),
            ("model", State::Warning),
            ("workspace_root", State::Failed),
            ("workspace_root", State::Ok),
        ];
        assert_eq!(states, wanted);
        assert!(findings[1].remedy.as_ref().unwrap().contains("[model]"));
    }
}
