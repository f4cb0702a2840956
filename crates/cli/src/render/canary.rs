//! Canaries: what each saw and, where something is wrong, what mends it.

use api_types::{Canary, CanaryState};

use super::style::Style;
use crate::sanitize;

/// A line for each that was read, with its remedy, then one for those that are not, which say nothing but that.
pub(crate) fn list(canaries: &[Canary], style: &Style) -> String {
    let mut out = String::new();
    let (mut starting, mut stopped) = (Vec::new(), Vec::new());
    for canary in canaries {
        let name = sanitize::line(&canary.canary);
        let mark = match canary.state {
            CanaryState::Starting => {
                starting.push(name);
                continue;
            }
            CanaryState::Stopped => {
                stopped.push(name);
                continue;
            }
            CanaryState::Ready => style.good("ready"),
            CanaryState::Degraded => style.warn("degraded"),
            CanaryState::Blocked => style.bad("blocked"),
            CanaryState::CrashLooping => style.bad("crash-looping"),
        };
        out.push_str(&format!("    {mark}  {name}  {}\n", sanitize::line(&canary.detail)));
        if let Some(remedy) = &canary.remedy {
            out.push_str(&format!("      remedy: {}\n", sanitize::line(remedy)));
        }
    }
    for (mark, names) in [(style.warn("starting"), starting), (style.dim("stopped"), stopped)] {
        if !names.is_empty() {
            out.push_str(&format!("    {mark}  {}\n", names.join(", ")));
        }
    }
    out
}
