//! What to do about annotations that are not translated.

use super::annotations::Annotations;
use crate::tools::import::notes::Notes;

/// Beginnings of names, and what to do about the annotations.
///
/// The first that fits counts.
const HINTS: [(&str, &str); 41] = [
    (
        "limit-rate",
        "drip does not limit the bytes a second of a response",
    ),
    (
        "affinity",
        "a Service is one server for drip, and the cluster chooses the pod; for a fixed pod, list the pods in servers of the origin, as those of a StatefulSet, and set balance = \"hash:$cookie_NAME\"",
    ),
    (
        "session-cookie-",
        "drip sets no cookie for an affinity; see affinity",
    ),
    (
        "load-balance",
        "a Service is one server for drip, and the cluster chooses the pod; see servers and balance of the origin",
    ),
    (
        "proxy-next-upstream",
        "drip sends a request again only if it could not be sent, or its connection broke; see servers and fail_on of the origin",
    ),
    (
        "canary",
        "drip has no canaries; give a part of the requests to another origin by match, or by weight in servers",
    ),
    (
        "custom-http-errors",
        "see pages and origin_pages of a route",
    ),
    (
        "default-backend",
        "requests go to the Service of the path whether it has pods or not; see pages of a route",
    ),
    (
        "disable-proxy-intercept-errors",
        "drip sends no page in place of an answer unless a route has origin_pages",
    ),
    (
        "enable-cors",
        "write [routes.cors] with the sites whose scripts may read responses",
    ),
    ("cors-", "see enable-cors"),
    (
        "custom-headers",
        "its ConfigMap is not read; see response_headers of a route",
    ),
    (
        "connection-proxy-header",
        "drip sets the Connection field itself",
    ),
    (
        "app-root",
        "drip makes no redirects but those to https; let the application redirect /",
    ),
    (
        "from-to-www-redirect",
        "drip makes no redirects but those to https; let the application redirect the other name",
    ),
    (
        "preserve-trailing-slash",
        "a redirect of drip to https keeps the whole target",
    ),
    (
        "use-port-in-redirects",
        "see redirect in listen of [server]",
    ),
    ("server-alias", "add the other names to host of the routes"),
    ("mirror-", "drip sends each request to one origin"),
    (
        "enable-modsecurity",
        "drip has no web application firewall; put one in front of the origin",
    ),
    (
        "enable-owasp-core-rules",
        "drip has no web application firewall",
    ),
    ("modsecurity-", "drip has no web application firewall"),
    (
        "proxy-ssl-",
        "drip verifies a server with the roots of the system; put the authority, the certificate and the name into files, and into ca, client_cert, client_key and server_name of the origin",
    ),
    (
        "ssl-ciphers",
        "drip has the ciphers of TLS 1.2 and 1.3 that rustls has",
    ),
    (
        "ssl-prefer-server-ciphers",
        "drip has the ciphers of TLS 1.2 and 1.3 that rustls has",
    ),
    (
        "proxy-cookie-",
        "cookies pass unchanged; let the application set them for the public name and path",
    ),
    (
        "proxy-redirect-",
        "a Location passes unchanged; let the application make links with the public name and path",
    ),
    (
        "proxy-buffering",
        "drip passes bodies on as they come; there is nothing to set",
    ),
    (
        "proxy-buffer",
        "drip passes bodies on as they come; there is nothing to set",
    ),
    (
        "proxy-busy-buffers-size",
        "drip passes bodies on as they come; there is nothing to set",
    ),
    (
        "proxy-max-temp-file-size",
        "drip writes no bodies to files; there is nothing to set",
    ),
    (
        "proxy-request-buffering",
        "drip passes bodies on as they come, as with off",
    ),
    (
        "client-body-buffer-size",
        "drip passes bodies on as they come; there is nothing to set",
    ),
    (
        "proxy-http-version",
        "drip speaks HTTP/1.1 with an http origin",
    ),
    (
        "enable-access-log",
        "the access log is for all routes; see access of [log]",
    ),
    ("enable-rewrite-log", "drip has no log of rewriting"),
    ("enable-opentelemetry", "see the feature otlp"),
    ("opentelemetry-", "see the feature otlp"),
    (
        "http2-push-preload",
        "browsers have no server push any more",
    ),
    (
        "fastcgi-",
        "drip does not speak FastCGI; put a server that does, such as nginx, beside the application",
    ),
    (
        "stream-snippet",
        "drip passes on HTTP only, and no other connections",
    ),
];

/// Notes each annotation that nothing has read.
pub(super) fn unread(annotations: &Annotations, notes: &mut Notes) {
    for annotation in annotations.unread() {
        let name = &annotation.name;
        let hint = HINTS.iter().find(|(known, _)| name.starts_with(known));
        let what = match hint {
            Some((_, remedy)) => format!("not translated: {remedy}"),
            None => "not translated: this annotation is not known".to_owned(),
        };
        annotations.note(annotation, &what, notes);
    }
}
