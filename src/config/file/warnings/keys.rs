//! Warnings about the key of a zone, whose values select the buckets.

use crate::node::Node;
use crate::{KeyError, Part, Variable, Zone};

/// Returns whether the value of a header field authenticates a client, or identifies its session.
fn is_secret_field(name: &str) -> bool {
    let is_api_key = matches!(name, "x-api-key" | "api-key" | "apikey" | "x-apikey");
    let is_token = matches!(name, "x-auth-token" | "x-access-token");
    is_api_key || is_token || matches!(name, "authorization" | "proxy-authorization" | "cookie")
}

/// Query arguments whose value authenticates a client.
const SECRET_ARGUMENTS: [&str; 5] = ["api_key", "apikey", "token", "access_token", "auth_token"];

/// Warns of a key with a wrong or missing variable, and of a key that is a secret.
///
/// `node`: the zone in the file.
pub(super) fn check(zone: &Zone, node: Node) {
    let Some(node) = node.field("key") else {
        return;
    };
    let parts = zone.key.parts();
    if let [Part::Text(text)] = parts
        && let Some(variable) = intended_variable(text)
    {
        node.warn(&format!(
            "{} has no variable, so all requests share one bucket; write \"${variable}\", or another text if that is what you want",
            node.found()
        ));
    }
    for variable in zone.key.variables() {
        if let Variable::Header(name) = variable
            && (name.starts_with("x-forwarded-") || name == "x-real-ip" || name == "forwarded")
        {
            node.warn(&format!(
                "each client chooses ${variable}, and so its bucket; write \"$remote_addr\", and the proxies in trusted_proxies"
            ));
        }
    }
    let secret = zone.key.variables().find(|variable| is_secret(variable));
    if let Some(secret) = secret.filter(|_| !zone.mask_keys) {
        node.warn(&format!(
            "${secret} is a secret of the client, and stands in logs, in metrics and on the page; write mask_keys = true in the zone"
        ));
    }
    let written = node.value.as_str().unwrap_or_default();
    for pair in parts.windows(2) {
        if let [Part::Variable(variable), Part::Text(text)] = pair
            && let Some(longer) = longer_header(variable, text)
            // Braces show that the variable is meant to end there.
            && !written.contains('{')
        {
            node.warn(&format!(
                "the variable ends before \"{text}\": - is written _ in the name of a variable; write \"${longer}\", or \"${{{variable}}}{text}\" if the text is meant",
            ));
        }
    }
}

/// Returns whether the value of a variable is a client's secret.
fn is_secret(variable: &Variable) -> bool {
    match variable {
        Variable::Header(name) => is_secret_field(name),
        Variable::Cookie(_) => true,
        Variable::Arg(name) => SECRET_ARGUMENTS.contains(&&*name.to_ascii_lowercase()),
        _ => false,
    }
}

/// Returns the variable that a text without one was probably meant to be.
fn intended_variable(text: &str) -> Option<Variable> {
    let name = text.trim_matches(['{', '}', '%', ' ', '<', '>']);
    match name.replace('-', "_").parse() {
        Err(KeyError::BinaryRemoteAddr) => Some(Variable::RemoteAddr),
        variable => variable.ok(),
    }
}

/// Returns the variable of the longer header name that was probably meant.
///
/// `text`: the text after the variable, such as `-key` after `$http_x_api`.
fn longer_header(variable: &Variable, text: &str) -> Option<Variable> {
    let rest = text.strip_prefix('-')?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_');
    let name = &rest[..end.unwrap_or(rest.len())];
    if !matches!(variable, Variable::Header(_))
        || !name.starts_with(|c: char| c.is_ascii_alphanumeric())
    {
        return None;
    }
    let longer = format!("{variable}_{}", name.replace('-', "_"));
    longer.parse().ok()
}
