//! The settings of small files, for unit tests.

use std::path::Path;

use config::Settings;

/// The settings of this file.
pub(crate) fn of_file(text: &str) -> Settings {
    config::parse(text, Path::new("/x/gateway.toml"), false).unwrap()
}

/// The settings of a file with these tables, origin `app`, and a route to it.
pub(crate) fn with(tables: &str) -> Settings {
    with_fields(tables, "", "")
}

/// The same with more fields of the origin and of its route.
pub(crate) fn with_fields(tables: &str, origin: &str, route: &str) -> Settings {
    of_file(&format!(
        "{tables}\n[origins.app]\nservers = [\"http://127.0.0.1:1\"]\n{origin}\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n{route}\n"
    ))
}
