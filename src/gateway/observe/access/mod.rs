//! The access log: one line for each request.
//!
//! A line is in nginx's combined format, followed by the limit's fields, or it is JSON.

mod format;
mod lost;

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use config::{Access, Format, Settings};
use limit::{Excess, Moment};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::backlog::{Backlog, Outcome, PendingLines, stdout};
use super::key_names::KeyNames;
use crate::observe::metrics::LimitStatus;

pub(crate) use format::{json, text};
pub use lost::{LostLines, lost_lines};

/// Path of the field `log.access` in the file.
const ACCESS: [&str; 2] = ["log", "access"];

/// Maximum bytes that wait for the disk, in all access logs of the process.
///
/// Further lines are dropped and counted: a slow disk must not slow requests down, nor fill the
/// memory. After a reload the old log stays open until its last line is written.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Lines that wait, in all access logs of the process.
static WAITING: PendingLines = PendingLines::new(
    "access log",
    MAX_BYTES,
    Outcome {
        lost: lost::count_line,
        failed: lost::note_failure,
        caught_up: lost::note_written,
    },
);

/// Waits for all lines to be written, at most `limit`. Returns the number of unwritten lines.
pub async fn finish(limit: Duration) -> usize {
    WAITING.finish(limit).await
}

/// An open access log. When it and its clones are dropped, the remaining lines are written.
#[derive(Clone)]
pub struct AccessLog {
    format: Format,
    backlog: Backlog,
}

/// One request as a line of the log. A field without a value is left out of the line.
#[derive(Debug, Default)]
pub struct Entry<'a> {
    /// Instant at which the last byte of the response was sent.
    pub time: Moment,
    /// Client's address, after trusted proxies.
    pub client: Option<IpAddr>,
    /// Request line; `None` if it could not be read.
    pub line: Option<Line<'a>>,
    /// Id of the request, if requests have one.
    pub request_id: Option<&'a str>,
    /// Status of the response; 499 if the client disconnected before there was a response.
    pub status: u16,
    /// Bytes of the response's body that were sent.
    pub bytes: u64,
    /// Name of the route that matched the request.
    pub route: Option<String>,
    /// Name of the origin of the request.
    pub origin: Option<&'a str>,
    /// Server of that origin.
    pub server: Option<String>,
    /// Source of the response, if it was shared.
    pub shared: Option<&'static str>,
    /// Whether `allow` and `deny` of the route refuse the client.
    pub is_refused: bool,
    /// Result of the request's limits.
    pub limited: Option<Limited<'a>>,
    /// Key of the request at the origin's gate, if it has a plan there.
    pub planned: Option<GatePlan<'a>>,
    /// Time that the request waited for its slot.
    pub queue: Option<Duration>,
    /// Time that the request waited at the origin's gate.
    pub origin_queue: Option<Duration>,
    /// Reason why the origin's gate rejected the request.
    pub origin_rejected: Option<&'static str>,
    /// Request's class at the origin's gate, if the origin has classes.
    pub class: Option<&'a str>,
    /// Final charge of the request in its zones; `None` if each request costs the same there.
    pub cost: Option<u32>,
    /// Time until the origin began its response.
    pub origin_took: Option<Duration>,
    /// Time from the request's head to the last byte of the response.
    pub duration: Duration,
    /// The `Referer` field.
    pub referer: Option<Cow<'a, str>>,
    /// The `User-Agent` field.
    pub user_agent: Option<Cow<'a, str>>,
}

/// Key whose plan decides the request's share at the origin's gate.
#[derive(Debug)]
pub struct GatePlan<'a> {
    /// Name of the zone that shares the gate.
    pub zone: &'a str,
    /// The key; any bytes.
    pub key: &'a [u8],
    /// Display of the keys of this zone.
    pub names: KeyNames<'a>,
    /// Plan of the key.
    pub plan: &'a str,
}

impl Entry<'_> {
    /// Returns the plan at the limit that decided; else the plan at the gate, and its zone's name.
    fn plan(&self) -> (Option<&str>, Option<&str>) {
        let of_limit = self.limited.as_ref().and_then(|limited| limited.plan);
        match &self.planned {
            Some(GatePlan { zone, plan, .. }) if of_limit.is_none() => (Some(plan), Some(zone)),
            _ => (of_limit, None),
        }
    }

    /// Returns the name of the key at the limit that decided, or else at the gate.
    fn key(&self) -> Option<String> {
        let of_limit = self.limited.as_ref().map(|it| (it.names, it.key));
        let (names, key) = match of_limit {
            Some(of_limit) => of_limit,
            None => self.planned.as_ref().map(|it| (it.names, it.key))?,
        };
        Some(names.full_quoted(key))
    }
}

/// Parts of a request line.
#[derive(Debug)]
pub struct Line<'a> {
    /// Method, such as `GET`.
    pub method: &'a str,
    /// Target as it was sent; any bytes.
    pub target: Cow<'a, [u8]>,
    /// Protocol, such as `HTTP/1.1`.
    pub protocol: &'a str,
}

/// Result of the limit that decided on a request.
#[derive(Debug)]
pub struct Limited<'a> {
    /// Name of the zone.
    pub zone: &'a str,
    /// The key; any bytes.
    pub key: &'a [u8],
    /// Display of the keys of this zone.
    pub names: KeyNames<'a>,
    /// Decision of the limit.
    pub status: LimitStatus,
    /// Excess including this request; `None` if it is not known.
    pub excess: Option<Excess>,
    /// Plan of the key, if it has one.
    pub plan: Option<&'a str>,
    /// Whether the request was counted in the bucket that unknown keys share.
    pub is_flood: bool,
}

impl AccessLog {
    /// Opens the access log of the settings, if they have one.
    ///
    /// # Errors
    ///
    /// The file cannot be opened for appending.
    pub fn open(settings: &Settings) -> io::Result<Option<Self>> {
        let log = &settings.log;
        let backlog = match &log.access {
            Access::Off => return Ok(None),
            Access::Stdout => stdout().and_then(|out| Backlog::new(&WAITING, out)),
            Access::File(path) => open_file(path).and_then(|file| Backlog::new(&WAITING, file)),
        };
        let backlog = backlog.map_err(|error| name_log(&error, settings));
        Ok(Some(Self {
            format: log.format,
            backlog: backlog?,
        }))
    }

    /// Reopens the file of the log, for all later lines.
    ///
    /// `settings` must be the ones from opening the log. Returns whether the log has a file.
    ///
    /// # Errors
    ///
    /// The file cannot be opened. The lines then go to the old file.
    pub fn reopen(&self, settings: &Settings) -> io::Result<bool> {
        let Access::File(path) = &settings.log.access else {
            return Ok(false);
        };
        let file = open_file(path).map_err(|error| name_log(&error, settings))?;
        self.backlog.replace_sink(file);
        Ok(true)
    }

    /// Writes one line.
    pub fn write(&self, entry: &Entry) {
        let mut line = match self.format {
            Format::Text => text(entry),
            Format::Json => json(entry),
        };
        line.push('\n');
        self.backlog.push(line);
    }
}

/// Adds to `error` the log's name as it is in the file, without values of the environment.
fn name_log(error: &io::Error, settings: &Settings) -> io::Error {
    // The field's text, if it names variables of the environment.
    let written = settings
        .from_environment
        .get(&ACCESS.map(str::to_owned)[..]);
    let name = match (&settings.log.access, written) {
        (_, Some(written)) => written.clone(),
        (Access::File(path), None) => path.display().to_string(),
        (Access::Stdout, None) => "stdout".to_owned(),
        (Access::Off, None) => "off".to_owned(),
    };
    io::Error::new(error.kind(), format!("log.access {name}: {error}"))
}

/// Opens a file for appending. It never waits.
///
/// A named pipe without a reader is an error (fifo(7)): waiting for a reader would stop the whole
/// gateway.
fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o666);
    let file =
        rustix::fs::open(path, flags | OFlags::NONBLOCK, mode).map_err(|error| match error {
            Errno::NXIO => {
                io::Error::new(io::ErrorKind::NotFound, "no program reads this named pipe")
            }
            error => error.into(),
        })?;
    // From here on a write may wait: it is on a thread of its own.
    rustix::fs::fcntl_setfl(&file, OFlags::APPEND)?;
    Ok(File::from(file))
}

#[cfg(test)]
mod tests;
