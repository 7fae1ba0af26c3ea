//! Finds annotations by which ingress-nginx protects requests or answers them itself.
//!
//! drip can do neither, so it refuses these requests instead of forwarding them. A snippet is a
//! part of an nginx configuration, written in an annotation.

use super::annotations::Annotations;

/// Directives that may refuse requests or send them elsewhere, or how their names begin.
const REFUSING: &str = "deny allow auth return internal satisfy access_by rewrite location limit";

/// Statuses with which requests are refused. `None`: they are forwarded.
#[derive(Default)]
pub(super) struct Refusals {
    /// For the paths of the Ingress.
    pub(super) paths: Option<u16>,
    /// For all paths of its hosts, including those of other Ingresses.
    pub(super) hosts: Option<u16>,
}

/// Returns the refusals of an Ingress. Notes the reasons.
pub(super) fn read(annotations: &Annotations) -> Refusals {
    let passes_through = annotations.flag("ssl-passthrough") == Some(true);
    let mut refusals = Refusals::default();
    for annotation in &annotations.all {
        let (name, value) = (&*annotation.name, &*annotation.value);
        let (status, why) = match name {
            _ if value.is_empty() => continue,
            "configuration-snippet" | "server-snippet" | "auth-snippet" => {
                let mut words = value.split(|c: char| !c.is_alphanumeric() && c != '_');
                let refuses = |word: &&str| {
                    *word == "if" || REFUSING.split(' ').any(|it| word.starts_with(it))
                };
                let Some(word) = words.find(refuses) else {
                    continue;
                };
                (403, format!("this snippet has {word}"))
            }
            "permanent-redirect" | "temporal-redirect" => {
                let why = "drip only redirects to https";
                (404, why.to_owned())
            }
            "ssl-passthrough" if passes_through => {
                let why = "drip ends TLS itself and passes no connections on";
                (503, why.to_owned())
            }
            _ if name.starts_with("auth-") => {
                (403, "drip does not check this authentication".to_owned())
            }
            _ => continue,
        };
        let what = format!(
            "{why}, so requests get {status}; replace refuse by an origin if they may pass"
        );
        annotations.note(annotation, what);
        // The first annotation decides the status.
        let first_status = *refusals.paths.get_or_insert(status);
        if name.starts_with("auth-tls") || ["server-snippet", "ssl-passthrough"].contains(&name) {
            refusals.hosts = Some(first_status);
        }
    }
    refusals
}
