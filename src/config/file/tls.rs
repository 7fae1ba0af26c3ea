use std::path::PathBuf;

use super::{Fields, Node, values};
use crate::config::{CertPair, Tls, schema};

/// Reads `[server.tls]`: the file names, not the files. Returns `None` if something is wrong.
pub(super) fn read(node: Node) -> Option<Tls> {
    let mut fields = Fields::of(node, "[server.tls]".to_owned(), schema::TLS)?;
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
