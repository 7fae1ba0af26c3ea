//! Parses the text of a file a second time, to find the location of a value.
//!
//! Some problems are found only after the file was read, such as a certificate that does not exist.
//! Their messages then get the location of the value that caused them.

use std::net::SocketAddr;
use std::path::Path;

use super::{Fields, Node, Report, Shared, environment};
use crate::Problem;
use crate::tables::file::FILE;

/// Field whose value may be a problem although the file is valid, such as the name of a missing
/// file.
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

/// Returns the address in `server.admin` of a text that may have problems in other fields.
///
/// The outer `None`: the field is missing or wrong. The inner `None`: it is `"off"`.
pub fn admin_of_broken(text: &str, path: &Path) -> Option<Option<SocketAddr>> {
    reread(text, path, |root, _| {
        let admin = root.peek("server")?.field("admin")?;
        match admin.value.as_str()? {
            "off" => Some(None),
            address => address.parse().ok().map(Some),
        }
    })
}

/// Parses a text, and returns the result of `find` with its tables and its report.
fn reread<T>(text: &str, path: &Path, find: impl FnOnce(&Fields<'_>, &Report<'_>) -> T) -> T {
    let shared = Shared::default();
    let (mut file, report) = Report::parse(text, path, Path::new(""), &shared);
    environment::expand(file.get_mut(), &report, &environment::of_process, 0);
    find(&Fields::root(FILE, &file, &report), &report)
}

/// Returns the value that a [`FileField`] names, if the file has it.
fn find_field<'r>(root: &Fields<'r>, field: FileField) -> Option<Node<'r>> {
    let server = root.peek("server");
    match field {
        FileField::Cert(index) => find_tls_item(server?, "cert", index),
        FileField::Key(index) => find_tls_item(server?, "key", index),
        FileField::ClientCa(entry) => find_client_field(server?, entry, "client_ca"),
        FileField::ClientCrl(entry) => find_client_field(server?, entry, "client_crl"),
        FileField::AccessLog => root.peek("log")?.field("access"),
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
        // In `expected`, the inner `None` stands for "off".
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
            let admin = admin_of_broken(text, Path::new("a.toml"));
            assert_eq!(admin, expected, "{text}");
        }
    }
}
