//! `escapes [--json] [--without LAYER]… [--confinement off] [--only ATTEMPT]… [--no-development] [--table DIRECTORY [--kept]]`: attempts
//! to escape, made by the agent itself.
//!
//! Exits with 0 when every attempt was stopped, all development works and the level is `full`, 1 when not, 2 when the run could
//! not be made. One that was not made to its end, as on a machine that is too busy, is undecided, and not counted as stopped. With
//! `--table` it runs with all layers, without any and without each, then without several at a time for what no layer stops
//! alone, keeps the results in the directory, and writes the table of `docs/containment.md`; 0 then means that it was written. With
//! `--kept` it makes the table of the results that lie there already.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use testkit::daemon::workspace_root;
use testkit::escapes::{ATTEMPTS, Layer, Options, Shown, put, run, table};
use testkit::verdict::{Findings, run_tool};
use testkit::{Doing, Outcome};

const USAGE: &str = "escapes [--json] [--without LAYER]... [--confinement off] [--only ATTEMPT]... [--no-development] \
                     [--table DIRECTORY [--kept]]";

struct Asked {
    options: Options,
    json: bool,
    table: Option<PathBuf>,
    only_kept: bool,
}

fn main() -> ExitCode {
    let asked = parse(std::env::args().skip(1));
    if let Some(Asked { table: Some(directory), only_kept, .. }) = &asked {
        return match write_table(directory, *only_kept) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                eprintln!("escapes: {why}");
                ExitCode::from(2)
            }
        };
    }
    let layers: Vec<&str> = Layer::ALL.iter().map(|layer| layer.as_str()).collect();
    let usage = format!("{USAGE}\nlayers: {}", layers.join(", "));
    run_tool("escapes", &usage, asked.map(|asked| (asked.options, asked.json)), |options, tell| run(options, tell))
}

/// Runs whose results lie in a directory.
struct Kept<'a> {
    directory: &'a Path,
    /// None is made that does not lie there already.
    only_kept: bool,
}

impl Kept<'_> {
    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.json"))
    }

    fn is_wanted(&self, name: &str) -> bool {
        !self.only_kept || self.file(name).exists()
    }

    /// Made, unless it lies there already.
    fn run(&self, name: &str, layers: &[Layer], only: Option<BTreeSet<String>>) -> Outcome<Shown> {
        let file = self.file(name);
        if !file.exists() {
            eprintln!("{name}");
            let options = Options { without: layers.to_vec(), development: false, only };
            let summary = run(&options, &|line| eprintln!("{line}"))?;
            fs::write(&file, summary.json().to_string()).doing("a result could not be kept")?;
        }
        let text = fs::read_to_string(&file).doing("a result could not be read")?;
        serde_json::from_str(&text).doing(&format!("{} is no result", file.display()))
    }
}

/// Runs with all layers, without any, without each, and without several, but for those whose results lie in the directory
/// already.
fn write_table(directory: &Path, only_kept: bool) -> Outcome<()> {
    let kept = Kept { directory, only_kept };
    let (full, mut none) = (kept.run("full", &[], None)?, kept.run("none", &Layer::ALL, None)?);
    // What attacks a layer is tried where that one alone is there.
    for attacked in ATTEMPTS.iter().filter_map(|attempt| attempt.attacks).collect::<BTreeSet<_>>() {
        let others: Vec<Layer> = Layer::ALL.into_iter().filter(|layer| *layer != attacked).collect();
        let names = ATTEMPTS.iter().filter(|attempt| attempt.attacks == Some(attacked));
        let only = names.map(|attempt| attempt.name.to_owned()).collect();
        none.results.extend(kept.run(&format!("none-but-{}", attacked.as_str()), &others, Some(only))?.results);
    }
    let mut each = Vec::new();
    for layer in Layer::ALL.into_iter().filter(|layer| kept.is_wanted(layer.as_str())) {
        each.push(kept.run(layer.as_str(), &[layer], None)?);
    }
    let names = ATTEMPTS.iter().map(|attempt| attempt.name.to_owned());
    let by_several: BTreeSet<String> =
        names.filter(|name| !each.iter().any(|shown| shown.gets_through(name))).collect();
    let mut together = Vec::new();
    for layers in Layer::TOGETHER.into_iter().filter(|layers| kept.is_wanted(&Layer::words(layers))) {
        together.push(kept.run(&Layer::words(layers), layers, Some(by_several.clone()))?);
    }
    let path = workspace_root().join("docs/containment.md");
    let document = fs::read_to_string(&path).doing("the document could not be read")?;
    let document = put(&document, &table(&full, &none, &each, &together))?;
    fs::write(&path, document).doing("the document could not be written")
}

fn parse(mut words: impl Iterator<Item = String>) -> Option<Asked> {
    let mut asked = Asked {
        options: Options { without: Vec::new(), development: true, only: None },
        json: false,
        table: None,
        only_kept: false,
    };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--json" => asked.json = true,
            "--kept" => asked.only_kept = true,
            "--table" => asked.table = Some(PathBuf::from(words.next()?)),
            "--no-development" => asked.options.development = false,
            "--only" => {
                let name = words.next().filter(|name| ATTEMPTS.iter().any(|attempt| attempt.name == *name))?;
                asked.options.only.get_or_insert_default().insert(name);
            }
            "--without" => asked.options.without.push(Layer::parse(&words.next()?)?),
            "--confinement" if words.next()? == "off" => asked.options.without = Layer::ALL.to_vec(),
            _ => return None,
        }
    }
    Some(asked)
}
