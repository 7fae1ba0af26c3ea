//! What nginx protects, or answers itself, is refused.

use super::annotations::{Annotation, Annotations};
use crate::tools::import::notes::Notes;

/// Names of annotations that let nobody in without proof.
const AUTH: [&str; 5] = [
    "auth-url",
    "auth-type",
    "auth-secret",
    "auth-signin",
    "auth-tls-secret",
];

/// Further annotations about the same, with which nothing is protected alone.
const OF_AUTH: [&str; 20] = [
    "auth-realm",
    "auth-secret-type",
    "auth-tls-verify-depth",
    "auth-tls-verify-client",
    "auth-tls-error-page",
    "auth-tls-pass-certificate-to-upstream",
    "auth-tls-match-cn",
    "auth-method",
    "auth-cache-key",
    "auth-cache-duration",
    "auth-keepalive",
    "auth-keepalive-share-vars",
    "auth-keepalive-requests",
    "auth-keepalive-timeout",
    "auth-response-headers",
    "auth-proxy-set-headers",
    "auth-request-redirect",
    "auth-signin-redirect-param",
    "auth-always-set-cookie",
    "enable-global-auth",
];

const SNIPPETS: [&str; 3] = ["configuration-snippet", "server-snippet", "auth-snippet"];

const REDIRECTS: [&str; 2] = ["permanent-redirect", "temporal-redirect"];

/// Beginnings of words in a snippet that may refuse requests, or send them elsewhere.
const REFUSING: [&str; 10] = [
    "deny",
    "allow",
    "auth",
    "return",
    "internal",
    "satisfy",
    "access_by",
    "rewrite",
    "location",
    "limit",
];

/// The status of requests for an Ingress whose requests must not be forwarded as they are.
///
/// `of_server`: whether this counts for all paths of its hosts.
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) of_server: bool,
}

/// Reads whether the requests of an Ingress are refused, with notes.
pub(super) fn read(annotations: &Annotations, notes: &mut Notes) -> Option<Refusal> {
    let mut refusal = None;
    let mut refuse = |status, of_server| {
        let known = refusal.get_or_insert(Refusal { status, of_server });
        known.of_server |= of_server;
    };
    for annotation in all(annotations, &AUTH) {
        let of_server = annotation.name.starts_with("auth-tls");
        let remedy = if of_server {
            "see client_ca of [server.tls]"
        } else {
            "let the application or a proxy such as oauth2-proxy ask for it"
        };
        let what = format!(
            "drip does not ask for this proof, so requests get 403; {remedy}, and put an origin in place of refuse"
        );
        annotations.note(annotation, &what, notes);
        refuse(403, of_server);
    }
    for annotation in all(annotations, &SNIPPETS) {
        let words = annotation
            .value
            .split(|c: char| !c.is_alphanumeric() && c != '_');
        let refuses =
            |word: &str| word == "if" || REFUSING.iter().any(|known| word.starts_with(known));
        let found = words.into_iter().find(|word| refuses(word));
        let what = match found {
            Some(word) => format!("snippets are not translated; this one has {word}, so requests get 403. Write what it does as a route, and put an origin in place of refuse"),
            None => "snippets are not translated; request_headers and response_headers of a route set fields".to_owned(),
        };
        annotations.note(annotation, &what, notes);
        if found.is_some() {
            refuse(403, annotation.name == "server-snippet");
        }
    }
    if annotations.flag("ssl-passthrough", notes) == Some(true)
        && let Some(annotation) = annotations.get("ssl-passthrough")
    {
        annotations.note(annotation, "drip ends TLS itself and passes no connections on, so requests get 503; give drip the certificate, and put an origin in place of refuse", notes);
        refuse(503, true);
    }
    for annotation in all(annotations, &REDIRECTS) {
        let what = format!(
            "drip makes no redirects but those to https, so requests get 404; let an application redirect to {}",
            annotation.value
        );
        annotations.note(annotation, &what, notes);
        refuse(404, false);
    }
    for name in ["permanent-redirect-code", "temporal-redirect-code"]
        .iter()
        .chain(&OF_AUTH)
    {
        if let Some(annotation) = annotations.get(name)
            && refusal.is_none()
        {
            annotations.note(
                annotation,
                "not translated, and without effect of its own",
                notes,
            );
        }
    }
    let satisfies = annotations.get("satisfy");
    if let Some(annotation) = satisfies {
        annotations.note(
            annotation,
            "not translated: networks of allow and deny always count",
            notes,
        );
    }
    refusal
}

fn all<'a>(annotations: &'a Annotations, names: &[&str]) -> Vec<&'a Annotation> {
    let found = names.iter().filter_map(|name| annotations.get(name));
    found.filter(|it| !it.value.is_empty()).collect()
}
