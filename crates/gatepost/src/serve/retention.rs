//! Events are kept for the configured time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use store::Journal;

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Empties what is older than `retention_days`, now and once a day.
pub(super) async fn prune_daily(journal: Journal, retention_days: u64) {
    loop {
        let journal = journal.clone();
        let before_ms = cutoff_ms(SystemTime::now(), retention_days);
        match tokio::task::spawn_blocking(move || journal.prune(before_ms)).await {
            Ok(Ok(0)) => {}
            Ok(Ok(emptied)) => tracing::info!(emptied, retention_days, "old events were emptied"),
            Ok(Err(error)) => tracing::warn!(%error, "old events could not be emptied"),
            // The runtime is ending.
            Err(_) => return,
        }
        tokio::time::sleep(DAY).await;
    }
}

fn cutoff_ms(now: SystemTime, retention_days: u64) -> i64 {
    let age = DAY.saturating_mul(u32::try_from(retention_days).unwrap_or(u32::MAX));
    let since_epoch = now.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(age);
    i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cutoff_is_so_many_days_ago_and_never_before_the_epoch() {
        let now = UNIX_EPOCH + DAY * 100;
        assert_eq!(cutoff_ms(now, 30), 70 * 86_400_000);
        assert_eq!(cutoff_ms(now, 3_650), 0);
    }
}
