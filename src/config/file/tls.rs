use std::path::{Path, PathBuf};

use toml::de::DeTable;

use super::{Fields, Node, Report, Shared, Source, environment, values};
use crate::config::{CertPair, Problems, Tls, schema};

/// Reads `[server.tls]`: the file names, not the files. Returns `None` if something is wrong.
pub(super) fn read(node: Node) -> Option<Tls> {
    let mut fields = Fields::of(node, "[server.tls]".to_owned(), &schema::TLS)?;
    let certs = fields.required("cert", "\"server.pem\"", |node| {
        let certs = files(node, "\"server.pem\"")?;
        twice(&certs);
        Some(certs)
    });
    let keys = fields.required("key", "\"server.key\"", |node| {
        Some((node, files(node, "\"server.key\"")?))
    });
    fields.finish();
    let (certs, (node, keys)) = (certs?, keys?);
    if certs.len() != keys.len() {
        node.wrong(&format!(
            "each file in cert needs its key here, in the same order; found {} and {}",
            count(certs.len(), "certificate"),
            count(keys.len(), "key")
        ));
    }
    let name = |file: Option<(Node, PathBuf)>| file.map(|(_, name)| name);
    let pairs = certs.into_iter().zip(keys).map(|(cert, key)| {
        Some(CertPair {
            cert: name(cert)?,
            key: name(key)?,
        })
    });
    Some(Tls {
        pairs: pairs.collect::<Option<_>>()?,
    })
}

/// Reports why files of `[server.tls]` cannot be used, at their names in `text`.
///
/// `text` is the text that the settings were read from, and `path` its file. `unusable` has for
/// each such file the index of its pair, its field (`cert` or `key`) and the reason.
#[must_use]
pub fn unusable_certificates(
    text: &str,
    path: &Path,
    unusable: &[(usize, &'static str, String)],
) -> Problems {
    let shared = Shared::default();
    let source = Source {
        file: path,
        is_included: false,
        folder: Path::new(""),
        shared: &shared,
    };
    let (mut file, errors) = DeTable::parse_recoverable(text);
    let report = Report::new(text, &errors, source);
    environment::expand(file.get_mut(), &report, &environment::of_process);
    let mut root = Fields::root(&file, &report);
    let mut tls = root
        .section("server", &schema::SERVER)
        .section("tls", &schema::TLS);
    for (index, field, why) in unusable {
        let Some(node) = tls.get(field) else {
            continue;
        };
        let item = node.items().and_then(|items| items.get(*index).copied());
        item.unwrap_or(node).tell(why);
    }
    Problems::new(path, report.take_problems())
}

/// A named file: its place in the text and its absolute path; `None` if it is wrong.
type File<'r> = Option<(Node<'r>, PathBuf)>;

/// One file, or a list of files that must not be empty.
fn files<'r>(node: Node<'r>, example: &str) -> Option<Vec<File<'r>>> {
    let items = match node.items() {
        Some(_) => {
            values::filled(&format!("[{example}]"), node).filter(|items| !items.is_empty())?
        }
        None => vec![node],
    };
    let file = |item: Node<'r>| match item.value.as_str() {
        None | Some("") => item.expected(&format!(
            "the name of a file such as {example}, or a list of such names"
        )),
        Some(name) => Some((item, item.in_folder(name))),
    };
    Some(items.into_iter().map(file).collect())
}

/// Reports files that are named a second time.
fn twice(files: &[File]) {
    let files = files.iter().flatten().collect::<Vec<_>>();
    for (index, (item, name)) in files.iter().enumerate() {
        if files[..index].iter().any(|(_, earlier)| earlier == name) {
            item.wrong(&format!("{} is listed twice; remove one", item.found()));
        }
    }
}

fn count(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}
