//! Locations, with the routes that they become.

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
    pub(in crate::import) comments: Vec<String>,
    pub(in crate::import) at: SourceLocation<'n>,
}

/// The paths of a location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::import) enum Pattern {
    Exact(String),
    /// A prefix. `stops`: it has `^~`, so nginx compares no regular expressions with its paths.
    Prefix {
        path: String,
        stops: bool,
    },
    /// A regular expression in drip's syntax.
    Regex(String),
}

/// Action for the requests of a location.
#[derive(Clone, Debug)]
pub(in crate::import) enum Action {
    Forward(Box<Forward>),
    /// nginx protects the location: drip refuses its requests with this status.
    Refuse(u16),
    /// nginx answers the requests itself: drip answers 404.
    Absent,
}

/// Destination and settings of requests that go to an origin.
#[derive(Clone, Debug)]
pub(in crate::import) struct Forward {
    pub(in crate::import) origin: String,
    /// `None`: the origin's timeout applies.
    pub(in crate::import) response_timeout: Option<Duration>,
    pub(in crate::import) limits: Limits,
    /// Prefix that is removed from paths, and prefix that is added instead.
    pub(in crate::import) strip: Option<String>,
    pub(in crate::import) add: Option<String>,
    /// Fields that the origin gets instead of the client's.
    pub(in crate::import) fields: Fields,
    /// Fields that clients get instead of the origin's.
    pub(in crate::import) responses: Fields,
    /// Clients that are allowed.
    pub(in crate::import) networks: Networks,
}

impl Forward {
    /// Writes the fields of the route.
    fn write(&self, section: &mut Section) {
        section.text("origin", &self.origin);
        if let Some(timeout) = self.response_timeout {
            section.span("response_timeout", timeout);
        }
        self.networks.write(section);
        for (name, prefix) in [("strip_prefix", &self.strip), ("add_prefix", &self.add)] {
            if let Some(prefix) = prefix {
                section.text(name, prefix);
            }
        }
        let fields = [
            ("request_headers", &self.fields),
            ("response_headers", &self.responses),
        ];
        let fields = fields.map(|(name, fields)| Some((name, fields.toml()?)));
        section.fields.extend(fields.into_iter().flatten());
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

/// Returns the tables of these routes. `comments` are written at the first.
pub(in crate::import) fn tables(
    locations: &[Location],
    host: Option<&str>,
    mut comments: Vec<String>,
) -> Vec<Section> {
    let table = |location: &Location| {
        let mut section = Section::new("[[routes]]");
        section.comments = std::mem::take(&mut comments);
        section.comments.extend(location.comments.iter().cloned());
        section.text("path", &location.pattern.path());
        if let Some(host) = host {
            section.text("host", host);
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

impl Action {
    /// Returns whether the requests are refused.
    pub(super) fn refuses(&self) -> bool {
        !matches!(self, Self::Forward(_))
    }
}

impl Pattern {
    /// Returns a prefix without `^~`.
    pub(in crate::import) fn prefix(path: impl Into<String>) -> Self {
        Self::Prefix {
            path: path.into(),
            stops: false,
        }
    }

    /// Returns the path; `None` for a regular expression.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Exact(path) | Self::Prefix { path, .. } => Some(path),
            Self::Regex(_) => None,
        }
    }

    pub(super) fn is_prefix(&self) -> bool {
        matches!(self, Self::Prefix { .. })
    }

    /// Returns the path in the syntax of a route.
    pub(in crate::import) fn path(&self) -> String {
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
