//! `[server.tls]`.

use std::path::{Path, PathBuf};

use super::client_auth::{self, ClientAuth};
use super::prelude::*;

table! {
    /// `[server.tls]`.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Tls {
        /// Certificates with their keys, without duplicates; never empty.
        ///
        /// A client gets the certificate for the name that it requests, or else the first one.
        pairs: Vec<CertPair>;
        + cert: Field::of(ONE_OR_LIST_FORM).required("\"server.pem\""), Restart,
            "PEM files of certificates with their chains.",
            |it, _| shown_files(it.pairs.iter().map(|pair| &*pair.cert));
        + key: Field::of(KEY_FORM).required("\"server.key\""), Restart,
            "PEM files of the private keys, in the same order.",
            |it, _| shown_files(it.pairs.iter().map(|pair| &*pair.key));
        /// Client authentication; `None`: no client needs a certificate.
        clients: Option<ClientAuth>;
        + client_ca: Field::of(NOT_EMPTY_FORM), Restart,
            "A PEM file of the authorities that sign certificates of clients.",
            |it, _| shown(&it.clients.as_ref()?.ca.display());
        + client_auth: Field::of(client_auth::AUTH_FORM), Restart,
            "\"required\" (default with client_ca), \"optional\", or \"off\": whether clients need a certificate.",
            |it, _| shown(client_auth::shown_word(it.clients.as_ref()?));
        + client_crl: Field::of(NOT_EMPTY_FORM), Restart,
            "A PEM file of revocation lists, one of each authority.",
            |it, _| shown(&it.clients.as_ref()?.crl.as_ref()?.display());
    }
}

/// Several certificates may share one key.
const KEY_FORM: Form = Form::OneOf(&[NOT_EMPTY_FORM, Form::List(&NOT_EMPTY_FORM, 1)]);

/// Files of a certificate.
///
/// Their existence and match are not checked here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertPair {
    /// Absolute path of the certificate and its chain up to the root.
    pub cert: PathBuf,
    /// Absolute path of the private key.
    pub key: PathBuf,
}

/// Reads `[server.tls]`: the file names, not the files. `None` if a value is wrong.
pub(super) fn read(mut fields: Fields) -> Option<Tls> {
    let cert = |item: Node| file(item, "\"server.pem\"");
    let certs = fields.required("cert", |node| {
        values::one_or_list(node, "[\"server.pem\"]", cert)
    });
    // Several certificates may share one key.
    let keys = fields.required("key", |node| {
        let items = match node.items() {
            Some(_) => values::filled(node, "[\"server.key\"]")?,
            None => vec![node],
        };
        let key = |item| file(item, "\"server.key\"");
        let keys: Vec<Option<PathBuf>> = items.into_iter().map(key).collect();
        Some((node, keys.into_iter().collect::<Option<Vec<_>>>()?))
    });
    let clients = client_auth::read(&mut fields, None);
    fields.finish();
    let (certs, (node, keys)) = (certs?, keys?);
    if certs.len() != keys.len() {
        node.wrong(&format!(
            "each file in cert needs its key here, in the same order; found {} in cert and {} here",
            certs.len(),
            keys.len()
        ));
    }
    let pairs = certs.into_iter().zip(keys);
    let pairs = pairs.map(|(cert, key)| CertPair { cert, key });
    Some(Tls {
        pairs: pairs.collect(),
        clients,
    })
}

/// Shows file names: one as a string, several as a list.
fn shown_files<'p>(names: impl Iterator<Item = &'p Path>) -> Option<Shown> {
    let names: Vec<_> = names.map(Path::display).collect();
    one_or_texts(&names)
}

/// Returns the absolute path of a file.
fn file(node: Node, example: &str) -> Option<PathBuf> {
    let what = format!("the name of a file such as {example}, or a list of such names");
    values::file(node, &what)
}
