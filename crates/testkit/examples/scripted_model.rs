//! Runs the scripted model by itself until it is interrupted, to drive an Agent Server by hand.

use std::io::Write;
use testkit::model::ScriptedModel;

fn main() -> std::io::Result<()> {
    let model = ScriptedModel::start()?;
    let mut output = std::io::stdout();
    writeln!(output, "{}", model.base_url())?;
    output.flush()?;
    loop {
        std::thread::park();
    }
}
