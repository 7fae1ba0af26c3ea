//! Lines of traces and access logs: parsed into the time and the data of a request.
//!
//! `form` detects the format. Each format has a module with its parser. This file has the types and
//! what several parsers use.

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::Duration;

use limit::{Cost, Moment};
use thiserror::Error;

use crate::observe::escape::unescape;

mod alb;
mod combined;
mod csv;
mod form;
mod haproxy;
mod json;
mod spans;
mod time;
mod traefik;

pub use form::Form;

/// One line of a trace: one request.
#[derive(Debug, PartialEq)]
pub struct Line<'a> {
    /// Instant at which the request arrived.
    pub time: Moment,
    /// Key of the request, for each zone of its route, if the trace has keys.
    pub key: Option<Cow<'a, [u8]>>,
    /// Path, not decoded; `/` if the trace has none.
    pub path: Cow<'a, str>,
    /// Cost of the request, if the trace has it. Otherwise the route determines it.
    pub cost: Option<Cost>,
    /// Further data from an access log.
    pub recorded: Option<Recorded<'a>>,
}

/// Data of a request from an access log.
#[derive(Debug, Default, PartialEq)]
pub struct Recorded<'a> {
    /// `$remote_addr`.
    pub client: Option<IpAddr>,
    /// `$request_method`.
    pub method: Cow<'a, str>,
    /// `$request_uri`.
    pub target: Cow<'a, str>,
    /// `$http_referer`.
    pub referer: Cow<'a, str>,
    /// `$http_user_agent`.
    pub user_agent: Cow<'a, str>,
    /// Zone that decided on the request, and the escaped key there. Only in the gateway's own log.
    pub keyed: Option<(Cow<'a, str>, Cow<'a, str>)>,
    /// Time from `Line::time` to the last byte of the response; zero if the log does not have it.
    pub took: Duration,
    /// Time at the origin, until the last byte of the response.
    ///
    /// `None` if the log does not have it, or if the request did not reach an origin.
    pub at_origin: Option<Duration>,
    /// Offset of the log's clock from UTC, in seconds. Positive: ahead of UTC.
    pub utc_offset: i32,
}

impl<'a> Line<'a> {
    /// Creates the line of an access log for a request that arrived at `time`.
    fn logged(time: Moment, recorded: Recorded<'a>) -> Self {
        let path = match &recorded.target {
            Cow::Borrowed(target) => path_of(target).into(),
            Cow::Owned(target) => path_of(target).to_owned().into(),
        };
        Self {
            time,
            key: None,
            path,
            cost: None,
            recorded: Some(recorded),
        }
    }
}

impl Recorded<'_> {
    /// Returns the query of the target; empty if there is none.
    pub(super) fn query(&self) -> &str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }

    /// Returns the zone that decided on the request, and the unescaped key there.
    ///
    /// `None` unless the line is from the gateway's own log.
    pub fn decided(&self) -> Option<(&str, Cow<'_, [u8]>)> {
        let (zone, key) = self.keyed.as_ref()?;
        // Without a backslash nothing is escaped. An invalid key is taken as it is.
        let unescaped = key.contains('\\').then(|| unescape(key)).flatten();
        let key = unescaped.map_or(Cow::Borrowed(key.as_bytes()), Cow::Owned);
        Some((zone, key))
    }
}

/// Reason why a line could not be parsed.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum LineError {
    /// The line does not have the format, which the text describes.
    #[error("this is not {0}")]
    Format(&'static str),
    /// The line is not the JSON of an access log.
    #[error("this is not a line of a JSON access log: {0}")]
    Json(String),
    /// The time is not valid.
    #[error(
        "{0:?} is not a time; write seconds since the Unix epoch, such as 12 or 1795232027.349"
    )]
    Seconds(String),
    /// The cost is not valid.
    #[error("{0:?} is not a cost; write a whole number from 1 to 255")]
    Cost(String),
    /// The time of an access log is not valid.
    #[error("{0:?} is not a time of an access log")]
    Time(String),
    /// The line is longer than the maximum.
    #[error("this line is longer than 1 MB")]
    TooLong,
}

/// Returns the method and target of a request line.
///
/// A log also has requests that were not valid HTTP, which count, too. So anything is accepted.
fn request_parts(request: &str) -> (&str, &str) {
    let (method, target) = request.split_once(' ').unwrap_or((request, "/"));
    let target = target.rsplit_once(' ').map_or(target, |(target, _)| target);
    (method, without_host(target))
}

/// Returns the start of a text, for an error message.
fn truncated(text: &str) -> String {
    const MAX_CHARACTERS: usize = 60;
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns the value of a log field; `-` means that there is none.
fn field_value(field: Option<&str>) -> Cow<'_, str> {
    field.filter(|field| *field != "-").unwrap_or("").into()
}

/// Returns the target without its scheme and host (RFC 9112, section 3.2.2).
fn without_host(target: &str) -> &str {
    let mut schemes = ["http://", "https://"].into_iter();
    let after_scheme = schemes.find_map(|scheme| {
        let (begin, rest) = target.split_at_checked(scheme.len())?;
        begin.eq_ignore_ascii_case(scheme).then_some(rest)
    });
    let Some(rest) = after_scheme else {
        return target;
    };
    let path = rest.find(['/', '?', '#']);
    path.map_or("/", |path| &rest[path..])
}

/// Parses an address. As in the gateway, IPv4-mapped IPv6 becomes IPv4.
fn parse_address(text: &str) -> Option<IpAddr> {
    Some(text.parse::<IpAddr>().ok()?.to_canonical())
}

/// Returns an address without the port after it.
fn without_port(text: &str) -> &str {
    text.rsplit_once(':').map_or(text, |(address, _)| address)
}

/// Returns the path of a target, without query and fragment.
fn path_of(target: &str) -> &str {
    let path = target.split(['?', '#']).next().unwrap_or_default();
    if path.is_empty() { "/" } else { path }
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests;
