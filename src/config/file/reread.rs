//! Reads a text again, to locate values whose problem lies outside of the file.

use std::net::SocketAddr;
use std::path::Path;

use super::{Fields, Node, Report, Shared, environment};
use crate::Problem;
use crate::tables::file::FILE;

/// Value of a file whose problem lies outside of the file, such as the name of a missing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileField {
    /// `cert` in `[server.tls]`, of the pair with this index.
    Cert(usize),
    /// `key` in `[server.tls]`, of the pair with this index.
    Key(usize),
    /// `client_ca` of the entry of `listen` with this index; `None`: in `[server.tls]`.
    ClientCa(Option<usize>),
    /// `client_crl`, like [`FileField::ClientCa`].
    ClientCrl(Option<usize>),
    /// `access` in `[log]`.
    AccessLog,
    /// `max_connections` in `[server]`.
    MaxConnections,
}

/// Turns messages about fields into problems, with the location of each field in `text`.
///
/// `text`: the text that the settings were read from. `path`: its file.
pub fn at_fields(text: &str, path: &Path, messages: &[(FileField, String)]) -> Vec<Problem> {
    reread(text, path, |root, report| {
        for (field, message) in messages {
            if let Some(node) = find_field(root, *field) {
                node.report_as_is(message);
            }
        }
        report.take(&report.problems)
    })
}

/// Returns `server.admin` of a text that has problems elsewhere.
///
/// The outer `None`: the field is missing or unreadable. The inner `None`: it is `"off"`.
pub fn admin_of_broken(text: &str, path: &Path) -> Option<Option<SocketAddr>> {
    reread(text, path, |root, _| {
        let admin = root.value("server")?.field("admin")?;
        match admin.value.as_str()? {
            "off" => Some(None),
            address => address.parse().ok().map(Some),
        }
    })
}

/// Parses a text again, and calls `look` with its tables.
fn reread<T>(text: &str, path: &Path, look: impl FnOnce(&Fields<'_>, &Report<'_>) -> T) -> T {
    let shared = Shared::default();
    let (mut file, report) = Report::parse(text, path, Path::new(""), &shared);
    environment::expand(file.get_mut(), &report, &environment::of_process, 0);
    look(&Fields::root(FILE, &file, &report), &report)
}

/// Returns the value of a field, or an item of its list.
fn find_field<'r>(root: &Fields<'r>, field: FileField) -> Option<Node<'r>> {
    let server = root.value("server");
    match field {
        FileField::Cert(index) => find_tls_item(server?, "cert", index),
        FileField::Key(index) => find_tls_item(server?, "key", index),
        FileField::ClientCa(entry) => find_client_field(server?, entry, "client_ca"),
        FileField::ClientCrl(entry) => find_client_field(server?, entry, "client_crl"),
        FileField::AccessLog => root.value("log")?.field("access"),
        FileField::MaxConnections => server?.field("max_connections"),
    }
}

/// Returns an item of a field of `[server.tls]`. The field may also be written as a single value.
fn find_tls_item<'r>(server: Node<'r>, name: &'static str, index: usize) -> Option<Node<'r>> {
    let field = server.field("tls")?.field(name)?;
    let item = field.items().and_then(|items| items.get(index).copied());
    Some(item.unwrap_or(field))
}

/// Returns a field about client certificates. `entry`: as in [`FileField::ClientCa`].
///
/// An entry of `listen` without the field uses the one of `[server.tls]`. Then the entry itself is
/// returned.
fn find_client_field<'r>(
    server: Node<'r>,
    entry: Option<usize>,
    name: &'static str,
) -> Option<Node<'r>> {
    let Some(entry) = entry else {
        return server.field("tls")?.field(name);
    };
    let entry = server.field("listen")?.items()?.get(entry).copied()?;
    Some(entry.field(name).unwrap_or(entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_admin_port_is_read_from_a_text_with_other_problems() {
        let address = "10.0.0.1:9".parse().ok();
        for (text, expected) in [
            ("server.admin = \"10.0.0.1:9\"\nzones = 1\n", Some(address)),
            ("[server]\nadmin = \"10.0.0.1:9\"\n[zones\n", Some(address)),
            ("server = { admin = \"off\", nonsense = 1 }\n", Some(None)),
            ("server.admin = 1\n", None),
            ("server.admin = \"nonsense\"\n", None),
            ("[server]\n", None),
            ("server = 1\n", None),
            ("", None),
        ] {
            assert_eq!(
                admin_of_broken(text, Path::new("a.toml")),
                expected,
                "{text}"
            );
        }
    }
}
