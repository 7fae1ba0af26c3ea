//! `nginx.conf` as a `gateway.toml`: text to [`tree`], tree to settings, and what could not be taken over by line.
//!
//! Nothing here touches the disk but through [`Files`], and no input makes it panic.

mod glob;
mod lexer;
mod notes;
mod translate;
mod tree;
mod values;

#[cfg(test)]
mod properties;

use std::io;
use std::path::Path;

/// What an import reads beside the main file.
pub trait Files {
    /// The content of a file.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// The names of what is in a folder; none where it cannot be read.
    fn list(&self, folder: &Path) -> Vec<String>;

    /// Whether a certificate and its key can be loaded.
    ///
    /// # Errors
    ///
    /// They cannot, and why.
    fn pair(&self, cert: &Path, key: &Path) -> Result<(), String>;
}

/// What became of a file.
#[derive(Debug)]
pub struct Import {
    /// The text of a `gateway.toml` that is right; `None` where there is nothing to forward.
    pub settings: Option<String>,
    /// What needs a look, each one line that begins with its file and line.
    pub notes: Vec<String>,
}

/// Translates the text of `main`; includes and certificates are relative to its folder.
#[must_use]
pub fn import(main: &Path, text: &[u8], files: &dyn Files) -> Import {
    let mut reader = tree::Reader::new(files, main);
    let tree = reader.parse(main, text);
    let (page, mut notes) = translate::translate(tree, reader.notes, files, main);
    let settings = page.and_then(|page| {
        let checked = crate::config::parse(&page, Path::new("gateway.toml"), false);
        match checked {
            Ok(_) => Some(page),
            Err(problems) => {
                let place = notes::Place { file: 0, line: 1 };
                for problem in problems.problems {
                    notes.add(
                        place,
                        format!("cannot be said in gateway.toml: {}", problem.message),
                    );
                }
                None
            }
        }
    });
    Import {
        settings,
        notes: notes.all(),
    }
}
