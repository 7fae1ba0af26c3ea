//! Locations as the routes that they become.

use std::time::Duration;

use super::fields::Fields;
use super::limits::Limits;
use super::networks::Networks;
use super::page::Section;
use crate::import::notes::Place;

/// A location that became a route.
#[derive(Clone, Debug)]
pub(in crate::import) struct Location<A = Action> {
    pub(in crate::import) pattern: Pattern,
    pub(in crate::import) action: A,
    pub(in crate::import) comments: Vec<String>,
    pub(in crate::import) place: Place,
}

/// What happens to the requests of a location.
pub(in crate::import) trait Refuses {
    /// Whether they are not forwarded.
    fn refuses(&self) -> bool;
}

/// The paths of a location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::import) enum Pattern {
    Exact(String),
    /// `stops`: it has `^~`, so no regular expressions are compared with its paths.
    Prefix {
        path: String,
        stops: bool,
    },
    /// In drip's syntax.
    Regex(String),
}

/// What happens to the requests of a location.
#[derive(Clone, Debug)]
pub(in crate::import) enum Action {
    Forward(Box<Forward>),
    /// nginx protects them, and they get this status.
    Refuse(u16),
    /// nginx answers them itself, and they get 404.
    Absent,
}

/// A location whose requests go to an origin.
#[derive(Clone, Debug)]
pub(in crate::import) struct Forward {
    pub(super) origin: String,
    /// `None`: that of the origin.
    pub(super) response_timeout: Option<Duration>,
    pub(super) limits: Limits,
    /// What is removed from paths, and what is put before them.
    pub(super) rewrite: Option<(String, String)>,
    /// What the origin gets instead of the client's fields.
    pub(super) fields: Fields,
    /// What clients get instead of the origin's fields.
    pub(super) responses: Fields,
    /// The clients that may come.
    pub(super) networks: Networks,
}

impl Forward {
    /// Writes the fields of its route.
    pub(super) fn write(&self, section: &mut Section) {
        section.text("origin", &self.origin);
        if let Some(timeout) = self.response_timeout {
            section.span("response_timeout", timeout);
        }
        self.networks.write(section);
        if let Some((strip, add)) = &self.rewrite {
            section.text("strip_prefix", strip);
            section.text("add_prefix", add);
        }
        if let Some(fields) = self.fields.toml() {
            section.fields.push(("request_headers", fields));
        }
        if let Some(fields) = self.responses.toml() {
            section.fields.push(("response_headers", fields));
        }
        let limits = &self.limits;
        if limits.list.is_empty() {
            return;
        }
        let fields = &mut section.fields;
        fields.push(("limits", format!("[{}]", limits.list.join(", "))));
        fields.push(("reject_status", limits.status.to_string()));
        if limits.dry_run {
            fields.push(("dry_run", "true".to_owned()));
        }
    }
}

impl Refuses for Action {
    fn refuses(&self) -> bool {
        !matches!(self, Self::Forward(_))
    }
}

impl<A> Location<A> {
    /// The path in the form of a route.
    pub(in crate::import) fn path(&self) -> String {
        match &self.pattern {
            Pattern::Exact(path) => format!("= {path}"),
            Pattern::Prefix { path, .. } => path.clone(),
            Pattern::Regex(text) => format!("regex:{text}"),
        }
    }

    pub(super) fn prefix(&self) -> Option<&str> {
        match &self.pattern {
            Pattern::Prefix { path, .. } => Some(path),
            Pattern::Exact(_) | Pattern::Regex(_) => None,
        }
    }

    pub(super) fn regex(&self) -> Option<&str> {
        match &self.pattern {
            Pattern::Regex(text) => Some(text),
            Pattern::Exact(_) | Pattern::Prefix { .. } => None,
        }
    }
}
