//! Parses the README and the pages of docs/.

use std::fs;
use std::path::Path;

use super::files_below;

/// Programs with which documented commands begin. A new program in the documents belongs here.
#[rustfmt::skip]
const PROGRAMS: [&str; 16] = [
    "bash", "cargo", "curl", "docker", "drip", "git", "nginx", "packaging/build", "python3",
    "redis-server", "sed", "seq", "sh", "sudo", "target/release/drip", "tests/run.sh",
];

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the text of the README, and of each page of docs/ in the order of names.
///
/// Other tests run the commands of docs/examples.
pub fn pages() -> Vec<String> {
    let docs = root().join("docs");
    let examples = docs.join("examples");
    let mut files = files_below(&docs);
    files.retain(|file| file.extension().is_some_and(|end| end == "md"));
    files.retain(|file| !file.starts_with(&examples));
    files.sort();
    files.insert(0, root().join("README.md"));
    files
        .iter()
        .map(|file| fs::read_to_string(file).expect("a page"))
        .collect()
}

/// Returns the text of all pages of a folder of docs/.
pub fn pages_of(folder: &str) -> String {
    let mut files = files_below(&root().join("docs").join(folder));
    files.retain(|file| file.extension().is_some_and(|end| end == "md"));
    let pages = files.iter().map(fs::read_to_string);
    pages.map(|page| page.expect("a page")).collect()
}

/// The text between two fences, and its kind from the first fence.
#[derive(Debug)]
pub struct Block {
    pub kind: String,
    pub text: String,
}

/// Returns the blocks of all pages.
pub fn blocks() -> Vec<Block> {
    pages().iter().flat_map(|page| blocks_of(page)).collect()
}

fn blocks_of(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in page.lines() {
        match (&mut open, line.trim_start().strip_prefix("```")) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.text.extend([line, "\n"]),
            (None, Some(kind)) => {
                open = Some(Block {
                    kind: kind.to_owned(),
                    text: String::new(),
                });
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a fence is not closed");
    blocks
}

/// Returns the only block of commands that contains `part`.
pub fn commands_with(part: &str) -> String {
    let mut found = blocks()
        .into_iter()
        .filter(|block| matches!(&*block.kind, "sh" | "console") && block.text.contains(part));
    let block = found
        .next()
        .unwrap_or_else(|| panic!("no commands with {part}"));
    assert!(found.next().is_none(), "{part} stands in several blocks");
    block.text
}

/// Returns the commands between backticks in the text of all pages.
pub fn commands_in_text() -> Vec<String> {
    let pages = pages();
    pages
        .iter()
        .flat_map(|page| commands_in_text_of(page))
        .collect()
}

fn commands_in_text_of(page: &str) -> Vec<String> {
    let mut inside = false;
    let mut text = String::new();
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            text.extend([line, "\n"]);
        }
    }
    let spans = text.split('`').skip(1).step_by(2);
    let commands = spans.filter(|span| is_command(span));
    commands.map(ToOwned::to_owned).collect()
}

/// Returns whether a text is a program with arguments.
///
/// A number after the program is a version, as in a heading.
pub fn is_command(text: &str) -> bool {
    let is_setting = |word: &&str| {
        let name = word.split_once('=').map(|(name, _)| name);
        name.is_some_and(|name| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
    };
    let mut words = text.split_whitespace().skip_while(is_setting);
    let program = words.next().is_some_and(|word| PROGRAMS.contains(&word));
    let is_argument = |word: &str| !word.starts_with(|c: char| c.is_ascii_digit());
    program && words.next().is_some_and(is_argument)
}
