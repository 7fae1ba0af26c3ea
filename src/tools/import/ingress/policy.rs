//! Reads the annotations that apply to all paths of an Ingress.
//!
//! An annotation is a setting of ingress-nginx. To refuse means to answer with an error status.

use std::time::Duration;

use super::limits::Zones;
use super::manifest::Ingress;
use super::networks::Access;
use super::protection;
use crate::import::translate::networks::Networks;
use crate::import::translate::page::{Fields, Section};
use crate::import::translate::probe;
use crate::import::values;

/// Default of ingress-nginx's `proxy-body-size`, in bytes.
pub(super) const BODY_SIZE: u64 = 1 << 20;

/// Default of ingress-nginx's `proxy-connect-timeout`.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest timeout that the settings accept.
const MAX_TIMEOUT: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Settings of an Ingress by its annotations.
pub(super) struct Policy {
    /// The limits, in TOML syntax.
    pub(super) limits: Vec<String>,
    /// Whether at least one limit is lost.
    pub(super) has_lost_limits: bool,
    /// Networks of allowed and of denied clients.
    pub(super) networks: Networks,
    /// Status with which all requests of the Ingress are refused; `None`: they are not.
    pub(super) refuse: Option<u16>,
    /// Status with which all requests of its hosts are refused, including paths of other Ingresses.
    pub(super) refuse_hosts: Option<u16>,
    /// Path that the origin gets instead of the requested one.
    pub(super) rewrite_target: Option<String>,
    /// Whether the paths are regular expressions.
    pub(super) uses_regex: bool,
    /// Maximum size of a request body in bytes. 0 means no limit.
    pub(super) body_size: u64,
    /// URL scheme of the origin's servers, such as `http`.
    pub(super) scheme: &'static str,
    /// Further fields of the origins, in TOML syntax.
    pub(super) origin_fields: Fields,
    /// Notes on the Ingress, to be written at its first route.
    pub(super) comments: Vec<String>,
}

impl Policy {
    /// Reads all annotations, and notes those that are not translated.
    ///
    /// Adds the zones of the Ingress to `zones`. `like`: start of their names.
    pub(super) fn read(ingress: &Ingress, like: &str, zones: &mut Zones) -> Self {
        let notes = ingress.at.notes;
        let notes_before = notes.count();
        let annotations = &ingress.annotations;
        let (limits, has_lost_limits) = zones.add(annotations, like);
        let access = Access::read(annotations);
        let refusals = protection::read(annotations);
        let mut refuse = access.refuse.or(refusals.paths);
        let scheme = scheme(ingress).unwrap_or_else(|| {
            refuse.get_or_insert(503);
            "http"
        });
        let rewrite_target = annotations.get("rewrite-target").map(|it| it.value.clone());
        // drip always sends requests to the Service, so the annotation changes nothing.
        let _ignored = annotations.flag("service-upstream");
        let mut policy = Self {
            limits,
            has_lost_limits,
            networks: access.networks,
            refuse,
            refuse_hosts: refusals.hosts,
            rewrite_target: rewrite_target.filter(|it| !it.is_empty()),
            uses_regex: annotations.flag("use-regex") == Some(true),
            body_size: body_size(ingress),
            scheme,
            origin_fields: origin_fields(ingress),
            comments: Vec::new(),
        };
        annotations.note_unread();
        policy.comments = notes.since(notes_before);
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
            annotations.note(annotation, format_args!("drip does not support {protocol}, so requests get 503; use HTTP, HTTPS, GRPC or GRPCS, and replace refuse by an origin"));
            None
        }
    }
}

/// Returns the maximum size of a request body in bytes.
fn body_size(ingress: &Ingress) -> u64 {
    let annotations = &ingress.annotations;
    let Some(annotation) = annotations.get("proxy-body-size") else {
        return BODY_SIZE;
    };
    values::size(&annotation.value).unwrap_or_else(|| {
        let what = format!("\"{}\" is not a size; 1m is used", annotation.value);
        annotations.note(annotation, what);
        BODY_SIZE
    })
}

/// Returns the fields of the origins, besides `servers`.
fn origin_fields(ingress: &Ingress) -> Fields {
    let annotations = &ingress.annotations;
    let mut section = Section::default();
    let seconds = |name| {
        let number = annotations.whole(name)?;
        if number == 0 {
            let annotation = annotations.get(name)?;
            annotations.note(annotation, "drip has no timeout of 0; the default is used");
            return None;
        }
        Some(Duration::from_secs(number.into()).min(MAX_TIMEOUT))
    };
    let connect = seconds("proxy-connect-timeout").unwrap_or(CONNECT_TIMEOUT);
    let read = seconds("proxy-read-timeout");
    let send = seconds("proxy-send-timeout");
    section.add_duration("connect_timeout", connect);
    if let Some(read) = read {
        section.add_duration("response_timeout", read);
    }
    // nginx's timeouts apply between two reads or two writes, for bodies and for WebSockets.
    if let Some(longer) = read.max(send) {
        section.add_duration("body_timeout", longer);
        section.add_duration("tunnel_timeout", longer);
    }
    if let Some(annotation) = annotations.get("upstream-vhost") {
        let host = &annotation.value;
        let is_keyword = ["preserve", "origin"].contains(&&**host);
        if probe::origin_host(host) && !is_keyword {
            section.add_text("host", host);
        } else {
            let what = "this is no host name that drip can send; the client's Host is kept";
            annotations.note(annotation, what);
        }
    }
    section.fields
}
