//! `[server.tls]`: certificates for TLS connections of clients.
//!
//! In `table!`, an entry is a field of the file (see `table_settings`). The certificates are loaded
//! later, in the gateway.

use std::path::{Path, PathBuf};

use super::client_auth::{self, ClientAuth};
use super::prelude::*;

table! {
    /// `[server.tls]`: certificates for TLS connections of clients.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Tls {
        /// Certificates with their keys, without duplicates; never empty.
        ///
        /// A client gets the certificate for the name that it requests, or else the first one.
        pairs: Vec<CertPair>;
        + cert: Field::of_form(ONE_OR_LIST_FORM).required("\"server.pem\""), Restart,
            "PEM files of certificates with their chains.",
            |it, _| show_files(it.pairs.iter().map(|pair| &*pair.cert));
        + key: Field::of_form(KEY_FORM).required("\"server.key\""), Restart,
            "PEM files of the private keys, in the same order.",
            |it, _| show_files(it.pairs.iter().map(|pair| &*pair.key));
        /// Client authentication; `None`: no client needs a certificate.
        clients: Option<ClientAuth>;
        + client_ca: Field::of_form(NOT_EMPTY_FORM), Restart,
            "A PEM file of the authorities that sign certificates of clients.",
            |it, _| show_text(&it.clients.as_ref()?.ca.display());
        + client_auth: Field::of_form(client_auth::AUTH_FORM), Restart,
            "\"required\" (default with client_ca), \"optional\", or \"off\": whether clients need a certificate.",
            |it, _| show_text(client_auth::auth_word(it.clients.as_ref()?));
        + client_crl: Field::of_form(NOT_EMPTY_FORM), Restart,
            "A PEM file of revocation lists, one of each authority.",
            |it, _| show_text(&it.clients.as_ref()?.crl.as_ref()?.display());
    }
}

/// Form of `key`. The list may have duplicates, because several certificates may share one key.
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
    let certs = fields.read_required("cert", |node| {
        values::one_or_list(node, "[\"server.pem\"]", cert)
    });
    // Not `one_or_list`, which refuses duplicates: several certificates may share one key.
    let keys = fields.read_required("key", |node| {
        let items = match node.items() {
            Some(_) => values::require_items(node, "[\"server.key\"]")?,
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
        node.report_problem(&format!(
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
fn show_files<'p>(names: impl Iterator<Item = &'p Path>) -> Option<Shown> {
    let names: Vec<_> = names.map(Path::display).collect();
    show_one_or_texts(&names)
}

/// Reads the name of a file, and returns its absolute path. Messages show `example`.
fn file(node: Node, example: &str) -> Option<PathBuf> {
    let what = format!("the name of a file such as {example}, or a list of such names");
    values::file(node, &what)
}
