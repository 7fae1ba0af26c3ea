//! Client certificates: `client_ca`, `client_auth` and `client_crl`.
//!
//! `[server.tls]` and an entry of `listen` have the same fields. An entry without them has the
//! values of `[server.tls]`.

use std::path::PathBuf;

use super::prelude::*;

/// Client authentication by certificate, at one TLS address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientAuth {
    /// Absolute path of the PEM file with the accepted authorities.
    pub ca: PathBuf,
    /// Absolute path of the PEM file with the revocation lists of these authorities.
    pub crl: Option<PathBuf>,
    /// Whether the connection of a client without a certificate is rejected.
    pub is_required: bool,
}

/// Kind of the value of `client_auth`: how it is read and shown, and its form.
const AUTH: Kind<AuthWord> = word();
/// Form of the value of `client_auth` in the file, for the JSON Schema.
pub(super) const AUTH_FORM: Form = AUTH.form;

words! {
    /// Whether clients need a certificate.
    enum AuthWord {
        /// Each client needs one.
        Required = "required",
        /// A certificate is verified if a client presents one.
        Optional = "optional",
        /// No certificate is requested.
        Off = "off",
    }
}

/// Reads the fields of one table. Reports wrong values, which count as missing.
///
/// `default`: value for a table without these fields. With authorities and without `client_auth`,
/// a certificate is required, unless `default` does not require one. Returns `None` if no
/// certificate is requested.
pub(super) fn read(fields: &mut Fields, default: Option<&ClientAuth>) -> Option<ClientAuth> {
    let ca = fields.read_optional("client_ca", file);
    let crl = fields.read_optional("client_crl", file);
    let word = fields.read_optional("client_auth", AUTH.read);
    let Some(ca) = ca.or_else(|| Some(default?.ca.clone())) else {
        // Without authorities, the other fields have no effect, except `"off"`.
        let auth_node = fields.peek("client_auth");
        let nodes = [
            auth_node.filter(|_| word != Some(AuthWord::Off)),
            fields.peek("client_crl"),
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
    // Revocation lists belong to authorities: those of other authorities do not apply.
    let default = default.filter(|default| default.ca == ca);
    Some(ClientAuth {
        ca,
        crl: crl.or_else(|| default?.crl.clone()),
        is_required,
    })
}

/// Reads the name of a file, and returns its absolute path.
fn file(node: Node) -> Option<PathBuf> {
    values::file(node, "the name of a PEM file such as \"ca.pem\"")
}

/// Returns the value of `client_auth` that gives these settings.
pub(super) fn auth_word(auth: &ClientAuth) -> &'static str {
    if auth.is_required {
        "required"
    } else {
        "optional"
    }
}
