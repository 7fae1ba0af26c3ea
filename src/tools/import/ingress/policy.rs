//! Reads the annotations that apply to all paths of an Ingress.

use std::time::Duration;

use config::{toml_string, toml_text};

use super::limits::Zones;
use super::networks::Access;
use super::object::Ingress;
use super::protection;
use crate::import::translate::probe;
use crate::import::values;

/// Default of ingress-nginx's `proxy-body-size`, in bytes.
pub(super) const BODY_SIZE: u64 = 1 << 20;

/// Default of ingress-nginx's `proxy-connect-timeout`.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) struct Policy {
    /// The limits, in TOML syntax.
    pub(super) limits: Vec<String>,
    pub(super) has_lost: bool,
    pub(super) access: Access,
    /// Status with which all requests of the Ingress are refused.
    pub(super) refuse: Option<u16>,
    /// Status with which all requests of its hosts are refused, including paths of other Ingresses.
    pub(super) refuse_hosts: Option<u16>,
    pub(super) rewrite_target: Option<String>,
    pub(super) uses_regex: bool,
    /// Maximum size of a request body in bytes. 0 means no limit.
    pub(super) body_size: u64,
    /// URL scheme of the origin's servers, such as `http`.
    pub(super) scheme: &'static str,
    /// Further fields of the origins, in TOML syntax.
    pub(super) of_origin: Vec<(&'static str, String)>,
    /// Notes on the Ingress, to be written at its first route.
    pub(super) comments: Vec<String>,
}

impl Policy {
    /// Reads all annotations. `like`: the zones get similar names.
    pub(super) fn read(ingress: &Ingress, like: &str, zones: &mut Zones) -> Self {
        let notes = ingress.at.notes;
        let before = notes.count();
        let annotations = &ingress.annotations;
        let (limits, has_lost) = zones.limits(annotations, like);
        let access = Access::read(annotations);
        let refusal = protection::read(annotations);
        let mut refuse = access.refuse;
        let mut refuse_hosts = None;
        if let Some(refusal) = refusal {
            refuse.get_or_insert(refusal.status);
            refuse_hosts = refusal.of_server.then_some(refusal.status);
        }
        let scheme = scheme(ingress).unwrap_or_else(|| {
            refuse.get_or_insert(503);
            "http"
        });
        let text = |name| annotations.get(name).map(|it| it.value.clone());
        let is_given = |text: &String| !text.is_empty();
        let rewrite_target = text("rewrite-target").filter(is_given);
        // drip always sends requests to the Service, so the annotation changes nothing.
        let _is_service = annotations.flag("service-upstream");
        let mut policy = Self {
            limits,
            has_lost,
            access,
            refuse,
            refuse_hosts,
            rewrite_target,
            uses_regex: annotations.flag("use-regex") == Some(true),
            body_size: body_size(ingress),
            scheme,
            of_origin: of_origin(ingress),
            comments: Vec::new(),
        };
        annotations.note_unread();
        policy.comments = notes.since(before);
        policy
    }
}

/// Returns the URL scheme of the servers; `None` if drip does not support the protocol.
fn scheme(ingress: &Ingress) -> Option<&'static str> {
    let annotations = &ingress.annotations;
    let Some(annotation) = annotations.get("backend-protocol") else {
        return Some("http");
    };
    match &*annotation.value.to_ascii_uppercase() {
        "HTTP" | "" => Some("http"),
        "GRPC" => Some("h2c"),
        "HTTPS" | "GRPCS" => {
            annotations.note(annotation, "drip verifies the certificate of the Service for its name in the cluster, and ingress-nginx does not; give the origin the authority as ca");
            Some("https")
        }
        protocol => {
            let what = format!(
                "drip does not support {protocol}, so requests get 503; use HTTP, HTTPS, GRPC or GRPCS, and replace refuse by an origin"
            );
            annotations.note(annotation, &what);
            None
        }
    }
}

fn body_size(ingress: &Ingress) -> u64 {
    let annotations = &ingress.annotations;
    let Some(annotation) = annotations.get("proxy-body-size") else {
        return BODY_SIZE;
    };
    values::size(&annotation.value).unwrap_or_else(|| {
        let what = format!("\"{}\" is not a size; 1m is used", annotation.value);
        annotations.note(annotation, &what);
        BODY_SIZE
    })
}

fn of_origin(ingress: &Ingress) -> Vec<(&'static str, String)> {
    let annotations = &ingress.annotations;
    let mut fields = Vec::new();
    let seconds = |name| {
        let number = annotations.whole(name)?;
        if number == 0 {
            let annotation = annotations.get(name)?;
            let what = "drip has no timeout of 0; the default is used";
            annotations.note(annotation, what);
            return None;
        }
        // Longest timeout that the settings accept.
        let longest = 366 * 24 * 60 * 60;
        Some(Duration::from_secs(u64::from(number).min(longest)))
    };
    let connect = seconds("proxy-connect-timeout").unwrap_or(CONNECT_TIMEOUT);
    let read = seconds("proxy-read-timeout");
    let send = seconds("proxy-send-timeout");
    let mut span = |name, span: Option<Duration>| {
        let shown = span.map(|span| toml_string(&limit::show_duration(span)));
        fields.extend(shown.map(|shown| (name, shown)));
    };
    span("connect_timeout", Some(connect));
    span("response_timeout", read);
    // nginx's timeouts apply between two reads or two writes, for bodies and for WebSockets.
    span("body_timeout", read.max(send));
    span("tunnel_timeout", read.max(send));
    if let Some(annotation) = annotations.get("upstream-vhost") {
        let host = &annotation.value;
        let has_meaning = ["preserve", "origin"].contains(&&**host);
        if probe::origin_host(host) && !has_meaning {
            fields.push(("host", toml_text(host)));
        } else {
            let what = "this is no host name that drip can send; the client's Host is kept";
            annotations.note(annotation, what);
        }
    }
    fields
}
