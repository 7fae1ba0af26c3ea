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

/// Reads the fields of one table.
///
/// `usual`: value for a table without these fields. Reports wrong values, and then returns the
/// value that applies without them.
pub(super) fn read(fields: &mut Fields, usual: Option<&ClientAuth>) -> Option<ClientAuth> {
    let ca = fields.get("client_ca").and_then(file);
    let crl_node = fields.get("client_crl");
    let crl = crl_node.and_then(file);
    let auth_node = fields.get("client_auth");
    let word = auth_node.and_then(AUTH.read);
    let Some(ca) = ca.or_else(|| usual.map(|usual| usual.ca.clone())) else {
        if !fields.is_wrong("client_ca") {
            let nodes = [auth_node.filter(|_| word != Some(AuthWord::Off)), crl_node];
            for node in nodes.into_iter().flatten() {
                node.report_as_is("there is no client_ca to verify certificates with; add client_ca = \"ca.pem\", or remove this");
            }
        }
        return None;
    };
    let usually = usual.is_none_or(|usual| usual.is_required);
    let is_required = match word {
        Some(AuthWord::Off) => return None,
        Some(AuthWord::Required) => true,
        Some(AuthWord::Optional) => false,
        None => usually,
    };
    let usual = usual.filter(|usual| usual.ca == ca);
    Some(ClientAuth {
        ca,
        crl: crl.or_else(|| usual?.crl.clone()),
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
