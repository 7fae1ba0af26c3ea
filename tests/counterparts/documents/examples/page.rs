//! Parses the pages of docs/examples, and runs their commands.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::page::pages_of;

/// A page, and its blocks between fences: kind and text of each.
pub struct Page {
    name: String,
    text: String,
    blocks: Vec<(String, String)>,
}

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/examples")
}

/// Returns the names of the examples.
pub fn names() -> Vec<String> {
    let files = fs::read_dir(folder()).expect("a folder");
    let files = files.map(|file| file.expect("a file").path());
    let examples = files.filter(|file| file.extension().is_some_and(|end| end == "toml"));
    let name = |file: PathBuf| Some(file.file_stem()?.to_string_lossy().into_owned());
    let mut names: Vec<String> = examples.filter_map(name).collect();
    names.sort();
    names
}

impl Page {
    pub fn read(name: &str) -> Self {
        let text = fs::read_to_string(folder().join(format!("{name}.md")));
        let text = text.unwrap_or_else(|error| panic!("{name}.md: {error}"));
        let mut blocks = Vec::new();
        let mut parts = text.split("```");
        parts.next();
        while let (Some(block), Some(_)) = (parts.next(), parts.next()) {
            let (kind, text) = block.split_once('\n').expect("a line");
            blocks.push((kind.to_owned(), text.to_owned()));
        }
        Self {
            name: name.to_owned(),
            text,
            blocks,
        }
    }

    /// Returns the only block of a kind.
    pub fn block(&self, kind: &str) -> &str {
        let mut found = self.blocks.iter().filter(|(known, _)| known == kind);
        let block = found
            .next()
            .unwrap_or_else(|| panic!("{}: no {kind}", self.name));
        assert!(found.next().is_none(), "{}: two of {kind}", self.name);
        &block.1
    }

    /// Returns the text of the file.
    pub fn file(&self) -> &str {
        self.block("toml")
    }

    /// Fails if no test reads a kind of block, or a metric does not exist.
    pub fn check_blocks_and_metrics(&self) {
        for (kind, _) in &self.blocks {
            let known = ["toml", "console", "yaml"].contains(&&**kind);
            assert!(known, "{}: no test reads ```{kind}", self.name);
        }
        for part in ["\n## Try it\n", "\n## What to watch\n"] {
            assert!(self.text.contains(part), "{} has no {part}", self.name);
        }
        let operations = pages_of("operate");
        let is_of_name = |c: char| c.is_ascii_lowercase() || c == '_';
        for (at, _) in self.text.match_indices("`drip_") {
            let rest = &self.text[at + 1..];
            let end = rest.find(|c| !is_of_name(c)).expect("an end");
            let metric = format!("`{}`", &rest[..end]);
            assert!(operations.contains(&metric), "{}: {metric}", self.name);
        }
    }

    /// Runs the commands of the page, and compares their output with the page.
    pub fn try_it(&self, addresses: &[(&str, SocketAddr)]) -> Result<(), String> {
        let session = self.block("console");
        let mut commands = 0;
        for part in format!("\n{session}").split("\n$ ").skip(1) {
            let (command, shown) = part.split_once('\n').unwrap_or((part, ""));
            let mut moved = command.to_owned();
            for (from, to) in addresses {
                moved = moved.replace(from, &to.to_string());
            }
            let mut shell = Command::new("bash");
            shell.args(["-c", &moved]).stdin(Stdio::null());
            let output = shell.env("NO_PROXY", "*").output().expect("a shell");
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            if printed.trim_end() != shown.trim_end() {
                return Err(format!("{command}\nprinted\n{printed}and not\n{shown}"));
            }
            commands += 1;
        }
        assert!(commands > 0, "{} has no commands", self.name);
        Ok(())
    }
}
