//! Writes the functions that run for a request to files, so that two builds can be compared.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Number of functions that are printed.
const PRINTED: usize = 12;

/// The folder that a run writes, and that of an earlier run.
#[derive(Clone, Debug)]
pub struct Functions {
    pub written: PathBuf,
    pub before: Option<PathBuf>,
}

impl Functions {
    /// Writes the functions of a kind of request, the most costly first.
    ///
    /// Prints the functions that grew or shrank most, if there is an earlier run.
    pub fn write(&self, kind: &str, functions: &[(String, f64)]) -> io::Result<()> {
        let mut sorted = functions.to_vec();
        sorted.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        let mut text = String::new();
        for (name, instructions) in &sorted {
            // Writing to a string does not fail.
            let _taken = writeln!(text, "{instructions:.0} {name}");
        }
        fs::create_dir_all(&self.written)?;
        let before = match &self.before {
            Some(folder) => Some(read(folder, kind)?),
            None => None,
        };
        fs::write(file(&self.written, kind), text)?;
        if let Some(before) = before {
            print_changes(&before, &sorted);
        }
        Ok(())
    }
}

fn print_changes(before: &HashMap<String, f64>, now: &[(String, f64)]) {
    let now: HashMap<_, _> = now.iter().cloned().collect();
    let mut names: Vec<_> = before.keys().chain(now.keys()).collect();
    names.sort();
    names.dedup();
    let instructions =
        |run: &HashMap<String, f64>, name: &String| run.get(name).copied().unwrap_or(0.0);
    let mut changes: Vec<_> = names
        .into_iter()
        .map(|name| (instructions(&now, name) - instructions(before, name), name))
        .collect();
    changes.sort_by(|(one, _), (other, _)| other.abs().total_cmp(&one.abs()));
    for (change, name) in changes.iter().take(PRINTED) {
        if change.abs() >= 1.0 {
            println!("    {change:+.0} {name}");
        }
    }
}

fn file(folder: &Path, kind: &str) -> PathBuf {
    folder.join(format!("{kind}.txt"))
}

fn read(folder: &Path, kind: &str) -> io::Result<HashMap<String, f64>> {
    let file = file(folder, kind);
    let named = |error| io::Error::other(format!("{}: {error}", file.display()));
    let text = fs::read_to_string(&file).map_err(named)?;
    let lines = text.lines().filter_map(|line| {
        let (instructions, name) = line.split_once(' ')?;
        Some((name.to_owned(), instructions.parse().ok()?))
    });
    Ok(lines.collect())
}
