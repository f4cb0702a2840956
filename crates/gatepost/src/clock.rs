//! Time, for records and for names of files. Always UTC: no local time, and so no step of summer time, reaches a record.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970, UTC.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Now, for the name of a file: `20260131T070509Z`.
pub(crate) fn stamp() -> String {
    let now = time::OffsetDateTime::from(SystemTime::now());
    let (date, at) = (now.date(), now.time());
    format!(
        "{:04}{:02}{:02}T{:02}{:02}{:02}Z",
        date.year(),
        u8::from(date.month()),
        date.day(),
        at.hour(),
        at.minute(),
        at.second()
    )
}
