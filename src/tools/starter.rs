//! The `gateway.toml` that people start from: the file at the root of the repository.

use config::toml_string;

/// Its text.
const TEXT: &str = include_str!("../../gateway.toml");

/// The addresses in it.
const LISTEN: &str = "127.0.0.1:8080";
const ADMIN: &str = "127.0.0.1:9090";
const ORIGIN: &str = "http://127.0.0.1:9000";

/// Its text.
#[must_use]
pub fn plain() -> String {
    TEXT.to_owned()
}

/// Its text, with another origin.
#[must_use]
pub fn with_origin(origin: &str) -> String {
    TEXT.replacen(&toml_string(ORIGIN), &toml_string(origin), 1)
}

/// Its text, with other addresses, and with that of the admin port.
pub(crate) fn with_addresses(listen: &str, admin: &str, origin: &str) -> String {
    with_origin(origin)
        .replacen(LISTEN, listen, 1)
        .replacen(ADMIN, admin, 1)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use config;

    #[test]
    fn the_addresses_are_in_the_text_once_and_are_replaced() {
        for address in [LISTEN, ADMIN, ORIGIN] {
            assert_eq!(TEXT.matches(address).count(), 1, "{address}");
        }
        let text = with_addresses("127.0.0.1:1081", "127.0.0.1:1091", "http://127.0.0.1:1090");
        let settings = config::parse(&text, Path::new("gateway.toml"), false).unwrap();
        assert_eq!(settings.server.admin, "127.0.0.1:1091".parse().ok());
        assert_eq!(settings.server.listen[0].to_string(), "127.0.0.1:1081");
        let server = &settings.origins[0].servers[0];
        assert_eq!(server.to_string(), "http://127.0.0.1:1090");
        assert_eq!(with_origin(ORIGIN), TEXT);
    }
}
