//! Reads a text again, to locate values whose problem lies outside of the file.

use std::net::SocketAddr;
use std::path::Path;

use super::{Fields, Node, Report, Shared, environment};
use crate::table_settings::TableSettings;
use crate::tables::file::FILE;
use crate::{Log, Problem, Server, Tls};

/// Value of a file whose problem lies outside of the file. Most of them name another file.
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
    reread(text, path, |mut root, report| {
        for (field, why) in messages {
            if let Some(node) = named(&mut root, *field) {
                node.report_as_is(why);
            }
        }
        report.take(&report.problems)
    })
}

/// Returns `server.admin` of a text that has problems elsewhere.
///
/// The outer `None`: the field is missing or unreadable. The inner `None`: it is `"off"`.
pub fn admin_of_broken(text: &str, path: &Path) -> Option<Option<SocketAddr>> {
    reread(text, path, |mut root, _| {
        let admin = root.section("server", Server::TABLE).get("admin")?;
        match admin.value.as_str()? {
            "off" => Some(None),
            address => address.parse().ok().map(Some),
        }
    })
}

/// Reads a text again for some of its values.
fn reread<T>(text: &str, path: &Path, look: impl FnOnce(Fields<'_>, &Report<'_>) -> T) -> T {
    let shared = Shared::default();
    let (mut file, report) = Report::parse(text, path, Path::new(""), &shared);
    environment::expand(file.get_mut(), &report, &environment::of_process);
    look(Fields::root(FILE, &file, &report), &report)
}

/// Returns the value of a field, or the item of a list.
fn named<'r>(root: &mut Fields<'r>, field: FileField) -> Option<Node<'r>> {
    let mut tls = |name, index| {
        let mut server = root.section("server", Server::TABLE);
        let node = server.section("tls", Tls::TABLE).get(name)?;
        let items = node.items();
        let item = items.and_then(|items| items.get::<usize>(index).copied());
        Some(item.unwrap_or(node))
    };
    match field {
        FileField::Cert(index) => tls("cert", index),
        FileField::Key(index) => tls("key", index),
        FileField::ClientCa(entry) => client(root, entry, "client_ca"),
        FileField::ClientCrl(entry) => client(root, entry, "client_crl"),
        FileField::AccessLog => root.section("log", Log::TABLE).get("access"),
        FileField::MaxConnections => root.section("server", Server::TABLE).get("max_connections"),
    }
}

/// Returns a field about client certificates.
///
/// An entry of `listen` without the field uses the one of `[server.tls]`. Then the entry itself is
/// returned.
fn client<'r>(root: &mut Fields<'r>, entry: Option<usize>, name: &'static str) -> Option<Node<'r>> {
    let mut server = root.section("server", Server::TABLE);
    let Some(entry) = entry else {
        return server.section("tls", Tls::TABLE).get(name);
    };
    let entry = server.get("listen")?.items()?.get(entry).copied()?;
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
