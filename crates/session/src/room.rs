//! When there is no room for records: known from the first write that fails, told of, and looked at until there is room
//! again; then what could not be written is.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rules::refusal::{Refusal, RefusalCode};
use tokio::sync::watch;

use crate::records::settle;
use crate::supervisor::Supervisor;
use crate::view::Finding;

/// First and longest pause between two looks; each is twice the one before.
const FIRST_LOOK: Duration = Duration::from_millis(250);
const LONGEST_LOOK: Duration = Duration::from_secs(5);

/// Whether records can be written. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Room {
    directory: PathBuf,
    trouble: Arc<watch::Sender<Option<Refusal>>>,
}

impl Room {
    pub(crate) fn of(directory: &Path) -> Self {
        Self { directory: directory.to_path_buf(), trouble: Arc::new(watch::Sender::new(None)) }
    }

    /// A write failed.
    pub(crate) fn note(&self, refusal: &Refusal) {
        if matches!(refusal.code, RefusalCode::DiskFull | RefusalCode::RecordsReadOnly) {
            self.trouble.send_if_modified(|trouble| {
                let begins = trouble.is_none();
                if begins {
                    tracing::error!(%refusal, "nothing can be recorded, so nothing is sent until that is mended");
                    *trouble = Some(refusal.clone());
                }
                begins
            });
        }
    }

    /// Why nothing can be recorded, when that is so.
    pub(crate) fn trouble(&self) -> Option<Refusal> {
        self.trouble.borrow().clone()
    }

    /// Looks whether there is room now.
    ///
    /// # Errors
    /// `disk_full`, `records_read_only`, `store_failed`.
    pub(crate) async fn check(&self) -> Result<(), Refusal> {
        let directory = self.directory.clone();
        let looked = tokio::task::spawn_blocking(move || store::check_room(&directory)).await;
        settle(looked, RefusalCode::StoreFailed).inspect_err(|refusal| self.note(refusal))
    }

    /// What status says of it.
    pub(crate) fn finding(&self) -> Option<Finding> {
        self.trouble().map(|Refusal { code, detail }| {
            let directory = self.directory.display();
            let remedy = if code == RefusalCode::DiskFull {
                format!("make room on the file system of {directory}; nothing else is to be done")
            } else {
                format!("make {directory} and its files writable again; nothing else is to be done")
            };
            Finding { code, detail, remedy }
        })
    }
}

impl Supervisor {
    /// After a write that found no room: looks for room, and then records what is still owed. Runs until the daemon stops.
    pub(crate) async fn tend_records(self) {
        let room = self.shared().records.room().clone();
        let mut trouble = room.trouble.subscribe();
        loop {
            if trouble.wait_for(Option::is_some).await.is_err() {
                return;
            }
            let mut pause = FIRST_LOOK;
            loop {
                tokio::time::sleep(pause).await;
                if self.is_stopping() {
                    return;
                }
                if room.check().await.is_ok() && self.record_what_is_owed().await.is_ok() {
                    break;
                }
                pause = (pause * 2).min(LONGEST_LOOK);
            }
            room.trouble.send_replace(None);
            tracing::info!("records can be written again");
        }
    }

    /// Closes receipts that could not be closed, those of accepts that never left among them, and journals events that could not be.
    async fn record_what_is_owed(&self) -> Result<(), Refusal> {
        for (client_action_id, refusal) in self.unclosed() {
            self.close_failed(&client_action_id, &refusal).await?;
            self.forget_unclosed(&client_action_id);
        }
        for session in self.shared().sessions() {
            session.withdraw_not_sent().await?;
            session.journal_owed().await?;
            session.mark_stale();
        }
        Ok(())
    }
}
