//! Pages in which a program updates the part that it measured.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the path of a file in the folder `benches`.
pub fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("benches")
        .join(file)
}

/// Replaces a part of a page.
///
/// `text` goes between the two marks of the part `name` in `file`: `<!-- name -->` and `<!-- /name
/// -->`.
pub fn replace(file: &Path, name: &str, text: &str) -> io::Result<()> {
    let page = fs::read_to_string(file)?;
    let (begin, end) = (format!("<!-- {name} -->"), format!("<!-- /{name} -->"));
    let missing = || io::Error::other(format!("{} has no {begin} … {end}", file.display()));
    let (before, rest) = page.split_once(&begin).ok_or_else(missing)?;
    let (_, after) = rest.split_once(&end).ok_or_else(missing)?;
    fs::write(
        file,
        format!("{before}{begin}\n\n{}\n\n{end}{after}", text.trim()),
    )
}

/// A Markdown table. The first column has words, the others numbers.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let marks = (0..head.len()).map(|column| if column == 0 { "---" } else { "--:" });
    let marks = marks.collect::<Vec<_>>().join(" | ");
    let rows = rows.iter().map(|row| format!("| {} |\n", row.join(" | ")));
    let rows = rows.collect::<String>();
    format!("| {} |\n| {marks} |\n{rows}", head.join(" | "))
}
