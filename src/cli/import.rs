//! `drip import`: converts an `nginx.conf`, or Ingress objects, to a `gateway.toml`.
//!
//! The translation is in `tools`. This module reads the files and prints the result.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;

use config::CertPair;
use gateway::http::downstream::Certificates;
use tools::import::{Files, import as translate};
use tools::output::{complain, print};

/// Maximum size of a file in bytes. A larger file is not a settings file.
const MAX_SIZE: u64 = 16 * 1024 * 1024;

/// Maximum number of notes that are printed. Further notes are only counted.
const MAX_NOTES: usize = 1000;

/// Maximum number of notes that are printed for a binary file.
const MAX_NOTES_OF_BINARY: usize = 10;

/// Prints the settings that are closest to those of nginx.
///
/// Reports on standard error what the user must check.
pub fn import(file: &Path) -> ExitCode {
    translated(file).map_or(ExitCode::FAILURE, |settings| print(&settings))
}

/// Returns the settings that are closest to those of nginx; `None` if there are none.
///
/// Reports on standard error what the user must check.
pub(super) fn translated(file: &Path) -> Option<String> {
    let text = match Disk.read(file) {
        Ok(text) => text,
        Err(error) => {
            complain(format_args!("{}: {error}", file.display()));
            return None;
        }
    };
    let import = translate(file, &text, &Disk);
    // Notes on a binary file, such as a picture, help nobody.
    let is_binary = import.settings.is_none() && text.contains(&0);
    let max_notes = if is_binary {
        MAX_NOTES_OF_BINARY
    } else {
        MAX_NOTES
    };
    for note in import.notes.iter().take(max_notes) {
        complain(note);
    }
    // Summary of the settings that were lost in the translation, after the number of notes.
    let loss = import.loss.map_or(String::new(), |it| format!(": {it}"));
    match import.notes.len() {
        0 => {}
        1 => complain(format_args!("1 note to check{loss}")),
        count => complain(format_args!("{count} notes to check{loss}")),
    }
    if import.settings.is_none() {
        complain(format_args!(
            "{}: found no {} to translate",
            file.display(),
            import.subject
        ));
    }
    import.settings
}

/// Files on disk.
struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        // A pipe never ends, and opening one may block forever.
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::other("not a file"));
        }
        let mut text = Vec::new();
        File::open(path)?
            .take(MAX_SIZE + 1)
            .read_to_end(&mut text)?;
        if text.len() as u64 > MAX_SIZE {
            return Err(io::Error::other("larger than 16 MB"));
        }
        Ok(text)
    }

    fn list(&self, folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect()
    }

    fn check_pair(&self, cert: &Path, key: &Path) -> Result<(), String> {
        let (cert, key) = (cert.to_owned(), key.to_owned());
        let loaded = Certificates::load(&[CertPair { cert, key }]);
        loaded.map(drop).map_err(|error| error.to_string())
    }
}
