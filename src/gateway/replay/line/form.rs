//! Formats of traces and access logs: names, detection, and dispatch to the parsers.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::{Line, LineError, alb, combined, csv, haproxy, json, time, traefik};

/// Format of a trace's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `time_seconds,key[,route_path[,cost]]`.
    Csv,
    /// The `combined` access log of nginx and Apache, with or without more fields after it.
    Combined,
    /// JSON access log: the gateway's own, or nginx's with the names of its variables.
    Json,
    /// HAProxy's HTTP log.
    Haproxy,
    /// Caddy's JSON.
    Caddy,
    /// Traefik's common log format or JSON.
    Traefik,
    /// Access log of an AWS Application Load Balancer.
    Alb,
}

/// The formats and their names.
pub(super) const NAMES: [(Form, &str); 7] = [
    (Form::Csv, "csv"),
    (Form::Combined, "combined"),
    (Form::Json, "json"),
    (Form::Haproxy, "haproxy"),
    (Form::Caddy, "caddy"),
    (Form::Traefik, "traefik"),
    (Form::Alb, "alb"),
];

/// Error: no format has this name.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "write one of csv, combined (nginx, Apache), json (drip, nginx), haproxy, caddy, traefik, alb"
)]
pub struct UnknownForm;

impl FromStr for Form {
    type Err = UnknownForm;

    fn from_str(name: &str) -> Result<Self, UnknownForm> {
        let found = NAMES.iter().find(|(_, known)| *known == name);
        found.map(|(form, _)| *form).ok_or(UnknownForm)
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = NAMES.iter().find(|(form, _)| form == self);
        f.write_str(found.map_or("", |(_, name)| name))
    }
}

impl Form {
    /// Returns the names of all formats.
    pub fn names() -> [&'static str; 7] {
        NAMES.map(|(_, name)| name)
    }

    /// Detects the format of a trace by its first line.
    pub fn of(line: &str) -> Self {
        let line = line.trim_start();
        if traefik::is(line) {
            Self::Traefik
        } else if line.starts_with('{') && json::is_caddy(line) {
            Self::Caddy
        } else if line.starts_with('{') {
            Self::Json
        } else if alb::is(line) {
            Self::Alb
        } else if haproxy::is(line) {
            Self::Haproxy
        } else if line.contains('[') && line.contains('"') {
            Self::Combined
        } else {
            Self::Csv
        }
    }

    /// Returns whether `line`, the first of a trace, is a header with only names.
    ///
    /// The truncated first line of a log is not a header.
    pub fn is_header(self, line: &str) -> bool {
        let is_of_names = |c: char| c.is_alphanumeric() || " \t_-.$,\"()".contains(c);
        let (first, rest) = csv::field(line);
        self == Self::Csv
            && rest.is_some()
            && time::seconds(&first).is_none()
            && line.chars().all(is_of_names)
    }

    /// Returns whether the times of this format are the ends of responses.
    ///
    /// In the other formats, the times are arrivals, or the lines have the duration of a request.
    pub fn has_end_times(self) -> bool {
        self == Self::Combined
    }

    /// Parses a line.
    ///
    /// # Errors
    ///
    /// Returns an error that says what is wrong with the line.
    pub fn read(self, line: &str) -> Result<Line<'_>, LineError> {
        match self {
            Self::Csv => csv::read(line),
            Self::Combined => combined(line),
            Self::Json => json::read(line),
            Self::Haproxy => haproxy::read(line),
            Self::Caddy => json::read_caddy(line),
            Self::Traefik => traefik::read(line),
            Self::Alb => alb::read(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_has_a_name() {
        for (form, name) in NAMES {
            assert_eq!(
                (form.to_string(), name.parse()),
                (name.to_owned(), Ok(form))
            );
            assert!(UnknownForm.to_string().contains(name), "{name}");
        }
        assert_eq!("nginx".parse::<Form>(), Err(UnknownForm));
    }
}
