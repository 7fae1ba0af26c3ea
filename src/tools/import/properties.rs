//! Property tests of the import with arbitrary bytes.
//!
//! No input causes a panic, notes are printable, and the settings are valid.

use std::io;
use std::path::Path;

use config::is_printable;
use proptest::prelude::*;
use testing::{bytes, cases, replay};

use super::{Files, Import, import};

/// A file system in which all files have this content, and each folder has two files.
struct EqualFiles<'t>(&'t [u8]);

impl Files for EqualFiles<'_> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if path.ends_with("mime.types") {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(self.0.to_owned())
    }

    fn list(&self, _: &Path) -> Vec<String> {
        vec!["a.conf".to_owned(), "b.conf".to_owned()]
    }

    fn check_pair(&self, cert: &Path, _: &Path) -> Result<(), String> {
        if cert.starts_with("/nowhere") {
            Err("it is not there".to_owned())
        } else {
            Ok(())
        }
    }
}

/// Imports a text, and checks the notes and the settings.
fn check_import(text: &[u8]) -> Result<(), TestCaseError> {
    let Import {
        settings, notes, ..
    } = import(
        Path::new("/etc/nginx/nginx.conf"),
        text,
        &EqualFiles(b"x y; location / { z; }"),
    );
    for note in &notes {
        prop_assert!(
            note.starts_with('/') && note.chars().all(is_printable),
            "{:?}",
            note
        );
        // All printed settings are valid. The import never drops a setting because the whole file
        // failed to parse.
        prop_assert!(
            !note.contains("cannot be expressed in gateway.toml"),
            "{:?}",
            note
        );
    }
    if let Some(settings) = settings {
        let checked = config::parse(&settings, Path::new("/etc/drip/gateway.toml"), false);
        prop_assert!(checked.is_ok(), "{}\n{}", settings, checked.unwrap_err());
    }
    Ok(())
}

#[test]
fn the_corpus_becomes_valid_settings() {
    replay("nginx", check_import);
}

#[test]
fn includes_that_include_each_other_end() {
    let text =
        b"http { include a.conf; include *.conf; server { location / { proxy_pass http://a; } } }";
    let Import {
        settings, notes, ..
    } = import(
        Path::new("/etc/nginx/nginx.conf"),
        text,
        &EqualFiles(b"include *.conf; include b.conf;"),
    );
    assert!(settings.is_some());
    assert!(notes.iter().any(|note| note.contains("it includes itself")));
}

proptest! {
    #![proptest_config(cases(12, 2048))]

    #[test]
    fn any_bytes_give_printable_notes_and_valid_settings(text in bytes("nginx")) {
        check_import(&text)?;
    }
}

#[test]
fn a_file_of_too_many_words_is_read_up_to_a_bound() {
    // Comments are no words.
    for (text, is_long) in [("a ", true), ("#a ", false)] {
        let text = text.repeat(1_000_001);
        let files = EqualFiles(b"");
        let import = import(Path::new("/etc/nginx/nginx.conf"), text.as_bytes(), &files);
        let is_noted = import
            .notes
            .first()
            .is_some_and(|note| note.contains("too many words"));
        assert_eq!((is_noted, import.loss.is_some()), (is_long, is_long));
    }
}
