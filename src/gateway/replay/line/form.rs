//! Formats of traces and access logs: their names, detection, and dispatch to the parsers.

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

impl Form {
    /// All formats, with their names on the command line.
    pub const NAMES: [(&'static str, Self); 7] = [
        ("csv", Self::Csv),
        ("combined", Self::Combined),
        ("json", Self::Json),
        ("haproxy", Self::Haproxy),
        ("caddy", Self::Caddy),
        ("traefik", Self::Traefik),
        ("alb", Self::Alb),
    ];

    /// Detects the format of a trace by its first line.
    pub fn detect(line: &str) -> Self {
        let is_json = line.trim_start().starts_with('{');
        // Formats whose parsers accept no line of another format. Some of their lines look like
        // JSON or `combined`, so they are tried first.
        let distinct = [Self::Traefik, Self::Caddy, Self::Alb, Self::Haproxy];
        let found = distinct.into_iter().find(|form| {
            let is_possible = match form {
                // The parser would accept any line with enough fields.
                Self::Alb => alb::begins_with_type(line),
                // A client may have written a line of HAProxy into a field of JSON.
                Self::Haproxy => !is_json,
                _ => true,
            };
            is_possible && form.read(line).is_ok()
        });
        found.unwrap_or_else(|| {
            if is_json {
                Self::Json
            } else if line.contains('[') && line.contains('"') {
                Self::Combined
            } else {
                Self::Csv
            }
        })
    }

    /// Returns whether `line`, the first of a trace, is a header of column names.
    ///
    /// The truncated first line of a log is not a header.
    pub fn is_header(self, line: &str) -> bool {
        let is_of_header = |c: char| c.is_alphanumeric() || " \t_-.$,\"()".contains(c);
        let (first, rest) = csv::field(line);
        self == Self::Csv
            && rest.is_some()
            && time::parse_seconds(&first).is_none()
            && line.chars().all(is_of_header)
    }

    /// Parses a line.
    ///
    /// # Errors
    ///
    /// Returns an error that says what is wrong with the line.
    pub fn read(self, line: &str) -> Result<Line<'_>, LineError> {
        match self {
            Self::Csv => csv::read(line),
            Self::Combined => combined::read(line),
            Self::Json => json::read(line),
            Self::Haproxy => haproxy::read(line),
            Self::Caddy => json::read_caddy(line),
            Self::Traefik => traefik::read(line),
            Self::Alb => alb::read(line),
        }
    }
}
