//! The size of the binary that ships, without its symbols.

use super::{Figure, Options, Tell};
use crate::daemon::gatepost_binary;
use crate::failure::{Doing, Failure, Outcome};
use serde_json::json;
use std::fs;
use std::process::Command;

const BOUND_MB: f64 = 15.0;

pub(super) fn measure(_options: &Options, _tell: Tell<'_>) -> Outcome<Vec<Figure>> {
    let binary = gatepost_binary()?;
    let directory = tempfile::tempdir().doing("no temporary directory")?;
    let stripped = directory.path().join("gatepost");
    let status = Command::new("strip").arg("-o").arg(&stripped).arg(&binary).status().doing("strip cannot be run")?;
    if !status.success() {
        return Err(Failure::new(format!("strip ended with {status}")));
    }
    let mb = |path| Ok::<f64, Failure>(fs::metadata(path).doing("a size cannot be read")?.len() as f64 / 1e6);
    let made_of = json!({"unstripped_mb": mb(binary)?});
    Ok(vec![Figure::new("binary_size", mb(stripped)?, "MB", BOUND_MB, &made_of)])
}
