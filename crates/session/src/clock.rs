//! Time for records and replies.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Milliseconds since 1970, UTC.
#[must_use]
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Milliseconds since 1970, UTC, for what expires: as [`now_ms`], and it never goes back. A clock that is set back makes
/// nothing live longer; one that is set forward, or a machine that slept, makes it end sooner.
pub(crate) fn steady_ms() -> i64 {
    static LAST: Mutex<Option<(Instant, i64)>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let (at, wall_ms) = (Instant::now(), now_ms());
    let now_ms = last.map_or(wall_ms, |(before, ms)| forward(ms, at.saturating_duration_since(before), wall_ms));
    *last = Some((at, now_ms));
    now_ms
}

fn forward(last_ms: i64, elapsed: Duration, wall_ms: i64) -> i64 {
    let elapsed_ms = i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX);
    wall_ms.max(last_ms.saturating_add(elapsed_ms))
}

/// RFC 3339 with milliseconds, UTC.
#[must_use]
pub fn rfc3339(ms: i64) -> String {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(ms) * 1_000_000)
        .ok()
        .and_then(|at| at.format(&Rfc3339).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_stops_nothing_from_expiring() {
        let hour_ms = 3_600_000;
        let second = Duration::from_secs(1);
        assert_eq!(forward(10 * hour_ms, second, 10 * hour_ms + 1000), 10 * hour_ms + 1000);
        // Set back, as by hand or where local time was taken for UTC at the end of summer.
        assert_eq!(forward(10 * hour_ms, second, 9 * hour_ms), 10 * hour_ms + 1000);
        assert_eq!(forward(10 * hour_ms, second, 0), 10 * hour_ms + 1000);
        // Set forward, or asleep: what expires is over.
        assert_eq!(forward(10 * hour_ms, second, 11 * hour_ms), 11 * hour_ms);
        assert!(steady_ms() <= steady_ms());
    }

    #[test]
    fn times_are_written_in_rfc_3339() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(1_796_004_844_601), "2026-11-30T02:14:04.601Z");
    }
}
