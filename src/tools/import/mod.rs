//! Translates an `nginx.conf`, or Ingress objects of Kubernetes, to a `gateway.toml`.
//!
//! The text becomes a tree, and the tree becomes settings and notes. The notes name each line
//! that was not translated.
//!
//! This module reads the disk only through [`Files`], and no input makes it panic.

mod glob;
mod ingress;
mod leftovers;
mod lexer;
mod notes;
mod translate;
mod tree;
mod values;

#[cfg(test)]
mod properties;

use std::io;
use std::path::Path;

/// The files that an import reads besides the main file. A manifest names none.
pub trait Files {
    /// The content of a file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// The names in a folder; empty if it cannot be read.
    fn list(&self, folder: &Path) -> Vec<String>;

    /// Checks that a certificate and its key can be loaded.
    ///
    /// # Errors
    ///
    /// Returns the reason if they cannot be loaded.
    fn pair(&self, cert: &Path, key: &Path) -> Result<(), String>;

    /// Checks that a file can be a page of a route.
    ///
    /// # Errors
    ///
    /// Returns the reason if it cannot.
    fn page(&self, path: &Path) -> Result<(), String>;

    /// Checks that certificates of clients can be verified with these authorities and revocation
    /// lists.
    ///
    /// # Errors
    ///
    /// Returns the reason if they cannot.
    fn client_trust(&self, ca: &Path, crl: Option<&Path>) -> Result<(), String>;
}

/// The result of an import.
#[derive(Debug)]
pub struct Import {
    /// The text of a valid `gateway.toml`; `None` if there is nothing to forward.
    pub settings: Option<String>,
    /// Notes on what the user must check. Each is one line that begins with its file and line.
    /// Those on lost limits come first.
    pub notes: Vec<String>,
    /// How many limits are lost, and what is unlimited for that; `None` if no limit is lost.
    pub loss: Option<String>,
    /// What the input must have to be translated.
    pub subject: &'static str,
}

/// Translates the text of `main`. Includes and certificates are relative to its folder.
#[must_use]
pub fn import(main: &Path, text: &[u8], files: &dyn Files) -> Import {
    let (page, mut notes, subject) = if ingress::is_manifest(main, text) {
        let (page, notes) = ingress::translate(main, text);
        (page, notes, "Ingress with a path")
    } else {
        let mut reader = tree::Reader::new(files, main);
        let tree = reader.parse(main, text);
        let (page, notes) = translate::translate(tree, reader.notes, files, main);
        (page, notes, "location with a proxy_pass")
    };
    let settings = page.and_then(|page| {
        let checked = crate::config::parse(&page, Path::new("gateway.toml"), false);
        match checked {
            Ok(_) => Some(page),
            Err(problems) => {
                let place = notes::Place { file: 0, line: 1 };
                for problem in problems.problems {
                    notes.add(
                        place,
                        format!("cannot be expressed in gateway.toml: {}", problem.message),
                    );
                }
                None
            }
        }
    });
    let loss = notes.loss();
    let notes = notes.all();
    Import {
        loss,
        settings: settings.map(|page| leftovers::with_leftovers(&page, &notes)),
        notes,
        subject,
    }
}
