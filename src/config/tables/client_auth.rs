//! Client certificates: the same fields in `[server.tls]` and in an entry of `listen`.

use std::path::PathBuf;

use super::prelude::*;

/// Client authentication by certificate, at one TLS address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientAuth {
    /// Absolute path of the PEM file with the accepted authorities.
    pub ca: PathBuf,
    /// Absolute path of the PEM file with the revocation lists of these authorities.
    pub crl: Option<PathBuf>,
    /// Rejects the connection of a client without a certificate.
    pub is_required: bool,
}

const AUTH: Kind<AuthWord> = word();
pub(super) const AUTH_FORM: Form = AUTH.form;

words! {
    enum AuthWord {
        Required = "required",
        Optional = "optional",
        Off = "off",
    }
}

/// Reads the fields of one table. Reports wrong values, which count as missing.
///
/// `default`: value for a table without these fields.
pub(super) fn read(fields: &mut Fields, default: Option<&ClientAuth>) -> Option<ClientAuth> {
    let ca = fields.read_given("client_ca", None, file);
    let crl = fields.read_given("client_crl", None, file);
    let word = fields.read_given("client_auth", None, AUTH.read);
    let Some(ca) = ca.or_else(|| Some(default?.ca.clone())) else {
        let auth_node = fields.value("client_auth");
        let nodes = [
            auth_node.filter(|_| word != Some(AuthWord::Off)),
            fields.value("client_crl"),
        ];
        if !fields.is_wrong("client_ca") {
            for node in nodes.into_iter().flatten() {
                node.report_as_is("there is no client_ca to verify certificates with; add client_ca = \"ca.pem\", or remove this");
            }
        }
        return None;
    };
    let is_required = match word {
        Some(AuthWord::Off) => return None,
        Some(word) => word == AuthWord::Required,
        None => default.is_none_or(|default| default.is_required),
    };
    let default = default.filter(|default| default.ca == ca);
    Some(ClientAuth {
        ca,
        crl: crl.or_else(|| default?.crl.clone()),
        is_required,
    })
}

fn file(node: Node) -> Option<PathBuf> {
    values::file(node, "the name of a PEM file such as \"ca.pem\"")
}

/// Returns the value of `client_auth` for these settings.
pub(super) fn shown_word(auth: &ClientAuth) -> &'static str {
    if auth.is_required {
        "required"
    } else {
        "optional"
    }
}
