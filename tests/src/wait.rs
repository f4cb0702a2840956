//! Waiting for something, never for ever.

use std::time::{Duration, Instant};

/// How long anything may take that the tests wait for, beside the start of a server.
pub const LIMIT: Duration = Duration::from_secs(60);
/// How long a command that was let out in error would need to leave its mark: it is given this long before its absence counts.
pub const SETTLE: Duration = Duration::from_millis(1500);
/// How often is looked.
const LOOK: Duration = Duration::from_millis(100);

/// Looks again and again until there is something.
///
/// # Panics
/// When nothing came within the limit; the message says what was waited for.
#[track_caller]
#[expect(clippy::panic, reason = "a wait that is over ends the test")]
pub fn wait_until<T>(what: &str, limit: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        if begun.elapsed() > limit {
            panic!("waited {limit:?} in vain for {what}");
        }
        std::thread::sleep(LOOK);
    }
}
