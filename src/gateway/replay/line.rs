use std::borrow::Cow;
use std::net::IpAddr;
use std::time::Duration;

use limit::{Cost, Moment};
use thiserror::Error;

use crate::observe::escape::unescape;

mod alb;
mod csv;
mod form;
mod haproxy;
mod json;
mod spans;
mod time;
mod traefik;

pub use form::{Form, UnknownForm};

/// One line of a trace.
#[derive(Debug, PartialEq)]
pub struct Line<'a> {
    /// When the request came.
    pub time: Moment,
    /// The request's key in each of its route's zones, if the trace has it.
    pub key: Option<Cow<'a, [u8]>>,
    /// The path, not decoded; `/` if the trace has none.
    pub path: Cow<'a, str>,
    /// What the request counts for, if the trace tells; otherwise its route says.
    pub cost: Option<Cost>,
    /// Further data from an access log.
    pub recorded: Option<Recorded<'a>>,
}

/// The data that an access log has of a request.
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
    /// The zone that decided on it, and its key there, escaped, from the gateway's own log.
    pub keyed: Option<(Cow<'a, str>, Cow<'a, str>)>,
    /// The time from that of the line to the last byte of the response, as far as the log tells.
    pub took: Duration,
    /// How long the request was at its origin, until the last byte of the response.
    ///
    /// `None` if the log does not tell, or the request did not reach an origin.
    pub at_origin: Option<Duration>,
    /// How far the log's clock is ahead of UTC, in seconds.
    pub ahead: i32,
}

impl<'a> Line<'a> {
    /// The line of an access log: of a request that came at `time`.
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
    /// The zone that decided on the request, and its key there, from the gateway's own log.
    ///
    /// The log has the key escaped; these are its bytes.
    pub fn decided(&self) -> Option<(&str, Cow<'_, [u8]>)> {
        let (zone, key) = self.keyed.as_ref()?;
        let escaped = key.contains('\\').then(|| unescape(key)).flatten();
        let key = escaped.map_or(Cow::Borrowed(key.as_bytes()), Cow::Owned);
        Some((zone, key))
    }
}

/// Why a line could not be read.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum LineError {
    /// Not CSV.
    #[error("this is not time_seconds,key[,route_path[,cost]]")]
    Csv,
    /// Not the combined format.
    #[error(
        "this is not nginx's combined format: address - user [time] \"request\" status bytes \"referer\" \"agent\""
    )]
    Combined,
    /// Not the JSON of an access log.
    #[error("this is not a line of a JSON access log: {0}")]
    Json(String),
    /// Not HAProxy's HTTP log.
    #[error(
        "this is not HAProxy's HTTP log: client:port [time] frontend backend/server timers status bytes ... \"request\""
    )]
    Haproxy,
    /// Not Traefik's access log.
    #[error("this is not Traefik's access log: its common format, or JSON")]
    Traefik,
    /// Not an ALB's access log.
    #[error(
        "this is not the access log of an ALB: type time elb client:port target:port ... \"request\" \"agent\""
    )]
    Alb,
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
    /// Longer than the maximum length of a line.
    #[error("this line is longer than 1 MB")]
    TooLong,
}

/// The fields that the gateway's own log adds after the agent: `zone="…" key="…"`.
fn keyed<'a>(quoted: &mut impl Iterator<Item = &'a str>) -> Option<(Cow<'a, str>, Cow<'a, str>)> {
    let zone = (quoted.next()? == " zone=").then(|| quoted.next())??;
    let key = (quoted.next()? == " key=").then(|| quoted.next())??;
    Some((zone.into(), key.into()))
}

/// The method and target of a request line.
///
/// A log also has requests that were not HTTP. They count too.
fn asked(request: &str) -> (&str, &str) {
    let (method, target) = request.split_once(' ').unwrap_or((request, "/"));
    let target = target.rsplit_once(' ').map_or(target, |(target, _)| target);
    (method, without_host(target))
}

/// The start of a text that is not a valid time, cut for a message.
fn shown(text: &str) -> String {
    const MAX_CHARACTERS: usize = 60;
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The value of a log field; `-` means none.
fn said(field: Option<&str>) -> Cow<'_, str> {
    field.filter(|field| *field != "-").unwrap_or("").into()
}

fn combined(line: &str) -> Result<Line<'_>, LineError> {
    let (first, rest) = line.split_once(' ').ok_or(LineError::Combined)?;
    let (client, rest) = behind_host(first, rest);
    let (_, rest) = rest.split_once('[').ok_or(LineError::Combined)?;
    let (time, rest) = rest.split_once("] \"").ok_or(LineError::Combined)?;
    let mut quoted = unescaped(rest);
    let (Some(request), Some(_), referer, _, agent) = (
        quoted.next(),
        quoted.next(),
        quoted.next(),
        quoted.next(),
        quoted.next(),
    ) else {
        return Err(LineError::Combined);
    };
    // The user field comes from the client and may contain brackets.
    let time = time.rsplit_once('[').map_or(time, |(_, time)| time);
    let (time, ahead) = time::local(time).ok_or_else(|| LineError::Time(shown(time)))?;
    let (method, target) = asked(request);
    let recorded = Recorded {
        client: address(client),
        method: method.into(),
        target: target.into(),
        referer: said(referer),
        user_agent: said(agent),
        keyed: keyed(&mut quoted),
        at_origin: spans::of_text(rest),
        ahead,
        ..Recorded::default()
    };
    Ok(Line::logged(time, recorded))
}

/// The client and what follows it. Apache's `vhost_combined` begins with `host:port`.
fn behind_host<'a>(first: &'a str, rest: &'a str) -> (&'a str, &'a str) {
    let second = rest.split_once(' ').filter(|(second, _)| {
        first.contains(':') && first.parse::<IpAddr>().is_err() && second.parse::<IpAddr>().is_ok()
    });
    second.unwrap_or((first, rest))
}

/// The parts of a text between quotes. Apache and Traefik write `\\"` for a quote within them.
fn unescaped(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = text.match_indices('"').map(|(at, _)| at).find(|at| {
            let before = text[..*at].bytes().rev();
            before.take_while(|byte| *byte == b'\\').count() % 2 == 0
        });
        rest = end.map(|end| &text[end + 1..]);
        Some(end.map_or(text, |end| &text[..end]))
    })
}

/// The target without its scheme and host (RFC 9112, section 3.2.2).
fn without_host(target: &str) -> &str {
    let authority = ["http://", "https://"].into_iter().find_map(|scheme| {
        let begin = target.get(..scheme.len())?;
        begin
            .eq_ignore_ascii_case(scheme)
            .then_some(&target[scheme.len()..])
    });
    let Some(authority) = authority else {
        return target;
    };
    let end = authority.find(['/', '?', '#']).unwrap_or(authority.len());
    match &authority[end..] {
        "" => "/",
        rest => rest,
    }
}

/// The same of a target that may be owned.
fn bare_target(target: Cow<'_, str>) -> Cow<'_, str> {
    match without_host(&target) {
        bare if bare.len() == target.len() => target,
        bare => bare.to_owned().into(),
    }
}

/// An address in the gateway's form: IPv4-mapped IPv6 becomes IPv4.
fn address(text: &str) -> Option<IpAddr> {
    Some(text.parse::<IpAddr>().ok()?.to_canonical())
}

/// An address without the port behind it.
fn without_port(text: &str) -> &str {
    text.rsplit_once(':').map_or(text, |(address, _)| address)
}

fn path_of(target: &str) -> &str {
    let path = target.split(['?', '#']).next().unwrap_or_default();
    if path.is_empty() { "/" } else { path }
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests;
