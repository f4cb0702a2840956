//! What a server's death leaves, and what its files decide at the next start.

use super::stage::{Kind, Stage};
use super::talk::Talk;
use agent_contract::SessionId;
use rules::log::ExecutionStatus;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Waiting conversations wait on, a turn that was cut off is an error, and the policy is what the files say until it is set.
pub(crate) async fn a_killed_server_comes_back_as_it_was(stage: Stage) {
    let kind = stage.kind();
    let stage = Arc::new(stage);
    let waiting = stage.talk().await;
    let pending = waiting.propose(&waiting.marker().directive()).await;
    let weakened = stage.talk().await;
    let weak_pending = weakened.propose(&weakened.marker().directive()).await;
    let cut_off = stage.talk().await;
    cut_off.say("slow 60000: say: never").await;
    cut_off.until_running().await;
    let known = [&waiting, &weakened, &cut_off].map(|talk| (talk.id.clone(), talk.directory.clone()));
    let log = waiting.log().await;
    let weakened_id = weakened.id.clone();
    drop((waiting, weakened, cut_off));
    let stage = Arc::into_inner(stage).expect("nobody else holds the stage");
    let stage = stage.crash_and_restart(|data| weaken(kind, data, &weakened_id)).await;
    let begun = Instant::now();
    let stage = Arc::new(stage);
    let [waiting, weakened, cut_off] = known.map(|(id, directory)| Talk::new(Arc::clone(&stage), id, directory));

    // No lease of the dead server delays this.
    assert_eq!(waiting.status().await, ExecutionStatus::WaitingForConfirmation);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(waiting.info().await.policy_kind, "AlwaysConfirm");
    assert_eq!(waiting.pending().await, pending);
    assert!(waiting.log().await.starts_with(&log), "the log has changed");
    assert_eq!(cut_off.status().await, ExecutionStatus::Error);
    assert!(cut_off.settled().await);

    assert_eq!(weakened.info().await.policy_kind, "NeverConfirm", "the stored policy does not count");
    stage.client.set_policy(&weakened.id).await.unwrap();
    assert_eq!(weakened.info().await.policy_kind, "AlwaysConfirm");
    assert_eq!(weakened.pending().await, weak_pending);
    weakened.marker().stays_absent().await;

    // The turn ends as the script has it only when the model is shown its call beside the result.
    waiting.accept(&pending, ExecutionStatus::Finished).await;
    assert_eq!(waiting.marker().runs(), 1, "what waited cannot be accepted any more");
    cut_off.turn("say: back", ExecutionStatus::Finished).await;
    drop((waiting, weakened, cut_off));
    Arc::into_inner(stage).expect("nobody else holds the stage").stop().await;
}

/// Makes the stored confirmation policy of a conversation one that asks for nothing.
fn weaken(kind: Kind, data: &Path, id: &SessionId) {
    let files = match kind {
        Kind::Real => {
            let directory = data.join("conversations").join(id.as_str().replace('-', ""));
            ["base_state.json", "meta.json"].map(|name| directory.join(name)).to_vec()
        }
        Kind::Fake => vec![data.join("conversations/fake").join(format!("{id}.json"))],
    };
    let changed: usize = files.iter().map(weaken_file).sum();
    assert!(changed > 0, "no stored policy was found in {files:?}");
}

fn weaken_file(path: &PathBuf) -> usize {
    let text = std::fs::read_to_string(path).unwrap();
    let mut value: Value = serde_json::from_str(&text).unwrap();
    let changed = weaken_in(&mut value);
    std::fs::write(path, value.to_string()).unwrap();
    changed
}

fn weaken_in(value: &mut Value) -> usize {
    match value {
        Value::Object(fields) if fields.get("kind").is_some_and(|kind| kind == "AlwaysConfirm") => {
            fields.insert("kind".to_owned(), Value::from("NeverConfirm"));
            1
        }
        Value::Object(fields) => fields.values_mut().map(weaken_in).sum(),
        Value::Array(items) => items.iter_mut().map(weaken_in).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
