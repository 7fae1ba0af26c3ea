//! Refuses requests that ingress-nginx protects or answers itself.

use super::annotations::Annotations;

/// Beginnings of snippet words that may refuse requests or send them elsewhere.
const REFUSING: &str = "deny allow auth return internal satisfy access_by rewrite location limit";

/// Refusal of an Ingress whose requests must not be forwarded unchanged.
///
/// `of_server`: the refusal applies to all paths of its hosts.
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) of_server: bool,
}

/// Returns the refusal of an Ingress, if any, and adds notes.
pub(super) fn read(annotations: &Annotations) -> Option<Refusal> {
    let passes_through = annotations.flag("ssl-passthrough") == Some(true);
    let mut refusal: Option<Refusal> = None;
    for annotation in annotations.all() {
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
        annotations.note(annotation, &what);
        let known = refusal.get_or_insert(Refusal {
            status,
            of_server: false,
        });
        known.of_server |=
            name.starts_with("auth-tls") || ["server-snippet", "ssl-passthrough"].contains(&name);
    }
    refusal
}
