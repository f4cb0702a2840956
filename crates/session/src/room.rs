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

    /// There is room again.
    fn note_mended(&self) {
        if self.trouble.send_replace(None).is_some() {
            tracing::info!("records can be written again");
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
    /// After a write that found no room, or another that is to be made good: looks for room, and then records what is still
    /// owed. Runs until the daemon stops.
    pub(crate) async fn tend_records(self) {
        let room = self.shared().records.room().clone();
        let mut trouble = room.trouble.subscribe();
        loop {
            let is_over = tokio::select! {
                trouble = trouble.wait_for(Option::is_some) => trouble.is_err(),
                () = self.inner.owes.notified() => false,
            };
            if is_over {
                return;
            }
            let mut pause = FIRST_LOOK;
            loop {
                tokio::time::sleep(pause).await;
                if self.is_stopping() {
                    return;
                }
                if room.check().await.is_ok() {
                    // First: what fails from here on is noted anew.
                    room.note_mended();
                    match self.record_what_is_owed().await {
                        Ok(()) => break,
                        Err(refusal) => tracing::debug!(%refusal, "something cannot be recorded yet"),
                    }
                }
                pause = (pause * 2).min(LONGEST_LOOK);
            }
        }
    }

    /// Closes receipts that could not be closed, those of accepts that never left among them, and journals events that could
    /// not be. What fails holds up nothing else.
    async fn record_what_is_owed(&self) -> Result<(), Refusal> {
        let mut outcome = Ok(());
        for (client_action_id, refusal) in self.unclosed() {
            match self.close_failed(&client_action_id, &refusal).await {
                Ok(_) => self.forget_unclosed(&client_action_id),
                Err(why) => outcome = outcome.and(Err(why)),
            }
        }
        for session in self.shared().sessions() {
            outcome = outcome.and(session.withdraw_not_sent().await);
            outcome = outcome.and(session.journal_owed().await);
            session.mark_stale();
        }
        outcome.and(self.journal_owed_of_closed().await)
    }
}
