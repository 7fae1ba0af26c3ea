//! Settings of small configuration files, for unit tests.

use std::path::Path;

use config::Settings;

/// Parses a configuration file.
pub(crate) fn of_file(text: &str) -> Settings {
    config::parse(text, Path::new("/x/gateway.toml"), false).unwrap()
}

/// Parses a file with these tables, an origin `app`, and a route to it.
pub(crate) fn with(tables: &str) -> Settings {
    with_fields(tables, "", "")
}

/// As [`with`], with more fields of the origin and of its route.
pub(crate) fn with_fields(tables: &str, origin: &str, route: &str) -> Settings {
    of_file(&format!(
        "{tables}\n[origins.app]\nservers = [\"http://127.0.0.1:1\"]\n{origin}\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n{route}\n"
    ))
}
