//! The `gateway.toml` that people start from: the file at the root of the repository.

use config::toml_string;

/// Its text.
const TEXT: &str = include_str!("../../gateway.toml");

/// The addresses in it.
const LISTEN: &str = "127.0.0.1:8080";
const ADMIN: &str = "127.0.0.1:9090";
const ORIGIN: &str = "http://127.0.0.1:9000";

/// Its text.
pub fn plain() -> String {
    TEXT.to_owned()
}

/// Its text, with another origin.
pub fn with_origin(origin: &str) -> String {
    TEXT.replacen(&toml_string(ORIGIN), &toml_string(origin), 1)
}

/// Its text, with other addresses, and with that of the admin port.
pub(crate) fn with_addresses(listen: &str, admin: &str, origin: &str) -> String {
    with_origin(origin)
        .replacen(LISTEN, listen, 1)
        .replacen(ADMIN, admin, 1)
}
