//! Locations of nginx that became routes of drip, and the tables of these routes.

use std::time::Duration;

use super::fields::Fields;
use super::limits::Limits;
use super::networks::Networks;
use super::page::Section;
use crate::import::notes::SourceLocation;

/// A location that became a route.
#[derive(Clone, Debug)]
pub(in crate::import) struct Location<'n> {
    pub(in crate::import) pattern: Pattern,
    pub(in crate::import) action: Action,
    /// Comments above the table of the route.
    pub(in crate::import) comments: Vec<String>,
    pub(in crate::import) at: SourceLocation<'n>,
}

/// The paths of a location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::import) enum Pattern {
    /// One path.
    Exact(String),
    /// A prefix. With `^~`, nginx compares no regular expressions with its paths.
    Prefix { path: String, skips_regexes: bool },
    /// A regular expression in drip's syntax.
    Regex(String),
}

/// Action of drip for the requests of a location.
#[derive(Clone, Debug)]
pub(in crate::import) enum Action {
    /// drip sends the requests to an origin.
    Forward(Box<Forward>),
    /// nginx protects the location: drip refuses its requests with this status.
    Refuse(u16),
    /// nginx answers the requests itself: drip answers 404.
    Absent,
}

/// Destination and settings of requests that go to an origin.
#[derive(Clone, Debug)]
pub(in crate::import) struct Forward {
    /// Name of the origin.
    pub(in crate::import) origin: String,
    /// `None`: the origin's timeout applies.
    pub(in crate::import) response_timeout: Option<Duration>,
    pub(in crate::import) limits: Limits,
    pub(in crate::import) strip_prefix: Option<String>,
    pub(in crate::import) add_prefix: Option<String>,
    pub(in crate::import) request_headers: Fields,
    pub(in crate::import) response_headers: Fields,
    /// Networks of allowed and of denied clients.
    pub(in crate::import) networks: Networks,
}

impl Forward {
    /// Writes the fields of the route.
    fn write(&self, section: &mut Section) {
        section.add_text("origin", &self.origin);
        if let Some(timeout) = self.response_timeout {
            section.add_duration("response_timeout", timeout);
        }
        self.networks.write(section);
        if let Some(prefix) = &self.strip_prefix {
            section.add_text("strip_prefix", prefix);
        }
        if let Some(prefix) = &self.add_prefix {
            section.add_text("add_prefix", prefix);
        }
        let fields = &mut section.fields;
        let headers = self.request_headers.toml();
        fields.extend(headers.map(|headers| ("request_headers", headers)));
        let headers = self.response_headers.toml();
        fields.extend(headers.map(|headers| ("response_headers", headers)));
        let limits = &self.limits;
        if !limits.list.is_empty() {
            fields.push(("limits", format!("[{}]", limits.list.join(", "))));
            fields.push(("reject_status", limits.status.to_string()));
            fields.extend(limits.dry_run.then(|| ("dry_run", "true".to_owned())));
        }
    }
}

/// Returns the tables of these routes. `comments` are written above the first.
pub(in crate::import) fn tables(
    locations: &[Location],
    host: Option<&str>,
    mut comments: Vec<String>,
) -> Vec<Section> {
    let table = |location: &Location| {
        let mut section = Section::new("[[routes]]");
        section.comments = std::mem::take(&mut comments);
        section.comments.extend(location.comments.iter().cloned());
        section.add_text("path", &location.pattern.route_path());
        if let Some(host) = host {
            section.add_text("host", host);
        }
        match &location.action {
            Action::Absent => section.fields.push(("refuse", "404".to_owned())),
            Action::Refuse(status) => section.fields.push(("refuse", status.to_string())),
            Action::Forward(forward) => forward.write(&mut section),
        }
        section
    };
    locations.iter().map(table).collect()
}

impl Pattern {
    /// Creates a prefix without `^~`.
    pub(in crate::import) fn prefix(path: impl Into<String>) -> Self {
        Self::Prefix {
            path: path.into(),
            skips_regexes: false,
        }
    }

    /// Returns the path; `None` for a regular expression.
    pub(super) fn literal_path(&self) -> Option<&str> {
        match self {
            Self::Exact(path) | Self::Prefix { path, .. } => Some(path),
            Self::Regex(_) => None,
        }
    }

    /// Returns the path in the syntax of a route.
    pub(in crate::import) fn route_path(&self) -> String {
        match self {
            Self::Exact(path) => format!("= {path}"),
            Self::Prefix { path, .. } => path.clone(),
            Self::Regex(text) => format!("regex:{text}"),
        }
    }
}

impl<'n> Location<'n> {
    /// Returns a location without comments.
    pub(in crate::import) fn new(pattern: Pattern, action: Action, at: SourceLocation<'n>) -> Self {
        Self {
            pattern,
            action,
            comments: Vec::new(),
            at,
        }
    }

    /// Returns the path of a prefix; `None` for other patterns.
    pub(super) fn prefix(&self) -> Option<&str> {
        match &self.pattern {
            Pattern::Prefix { path, .. } => Some(path),
            Pattern::Exact(_) | Pattern::Regex(_) => None,
        }
    }

    /// Returns the text of a regular expression; `None` for other patterns.
    pub(super) fn regex(&self) -> Option<&str> {
        match &self.pattern {
            Pattern::Regex(text) => Some(text),
            Pattern::Exact(_) | Pattern::Prefix { .. } => None,
        }
    }
}
