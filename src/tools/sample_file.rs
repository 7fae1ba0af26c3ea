//! The sample `gateway.toml` at the root of the repository.

use config::toml_string;

const TEXT: &str = include_str!("../../gateway.toml");

/// Addresses that the sample file contains. The functions below replace them.
const LISTEN: &str = "127.0.0.1:8080";
const ADMIN: &str = "127.0.0.1:9090";
const ORIGIN: &str = "http://127.0.0.1:9000";

/// Returns the sample file.
pub fn text() -> String {
    TEXT.to_owned()
}

/// Returns the sample file with another origin.
pub fn with_origin(origin: &str) -> String {
    TEXT.replacen(&toml_string(ORIGIN), &toml_string(origin), 1)
}

/// Returns the sample file with other addresses, including that of the admin port.
pub(crate) fn with_addresses(listen: &str, admin: &str, origin: &str) -> String {
    with_origin(origin)
        .replacen(LISTEN, listen, 1)
        .replacen(ADMIN, admin, 1)
}
