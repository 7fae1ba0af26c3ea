//! The access log: one line for each request.
//!
//! A line is in nginx's combined format, followed by the limit's fields, or it is JSON.

mod lost;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::Serialize;

use super::backlog::{Backlog, Outcome, Waiting};
use super::escape::{escape, escape_unquoted};
use super::key_names::KeyNames;
use super::stream;
use crate::config::{Access, Format, Settings};
use crate::limit::{Excess, Moment};
use crate::observe::metrics::LimitStatus;

pub use lost::{LostLines, lost_lines};

/// The names that lead to its field of the file.
const ACCESS: [&str; 2] = ["log", "access"];

/// Bytes that may wait for the disk, in all access logs of the process. Further lines are dropped
/// and counted.
///
/// A slow disk must not slow requests down, nor fill the memory. After a reload the old log stays
/// open until its last line is written.
const MAX_BYTES: usize = 16 * 1024 * 1024;

static WAITING: Waiting = Waiting::new(
    "access log",
    MAX_BYTES,
    Outcome {
        lost: lost::count,
        failed: lost::tell_failed,
        caught_up: lost::note_written,
    },
);

/// Waits until all lines are written, but not longer than `limit`. Returns how many are not.
pub async fn finish(limit: Duration) -> usize {
    WAITING.finish(limit).await
}

/// An open access log. When it is dropped, the lines that still wait are written.
pub struct AccessLog {
    format: Format,
    backlog: Backlog,
}

/// One request as a line of the log. A field without a value is left out of the line.
#[derive(Debug)]
pub struct Entry<'a> {
    /// When the last byte of the response was sent.
    pub time: Moment,
    /// The client's address, after trusted proxies.
    pub client: Option<IpAddr>,
    /// The request line; `None` if it could not be read.
    pub line: Option<Line<'a>>,
    /// The status of the response; 499 if the client left before there was a response.
    pub status: u16,
    /// Bytes of the response's body that were sent.
    pub bytes: u64,
    /// Name of the route that took the request.
    pub route: Option<String>,
    /// Name of the origin that was asked.
    pub origin: Option<&'a str>,
    /// The server of that origin.
    pub server: Option<String>,
    /// The result of the request's limits.
    pub limited: Option<Limited<'a>>,
    /// The key of the request at the origin's gate, if it has a plan there.
    pub planned: Option<Planned<'a>>,
    /// How long the request waited for its turn.
    pub queue: Option<Duration>,
    /// How long the request waited at the origin's gate.
    pub origin_queue: Option<Duration>,
    /// Why the origin's gate rejected the request.
    pub origin_rejected: Option<&'static str>,
    /// The request's class at the origin's gate, if the origin has classes.
    pub class: Option<&'a str>,
    /// What the request was charged in its zones in the end; `None` if each costs the same there.
    pub cost: Option<u32>,
    /// How long the origin took until it began its response.
    pub origin_took: Option<Duration>,
    /// From the request's head to the last byte of the response.
    pub duration: Duration,
    /// The `Referer` field.
    pub referer: Option<Cow<'a, str>>,
    /// The `User-Agent` field.
    pub user_agent: Option<Cow<'a, str>>,
}

/// A key whose plan decides what its requests get at the origin's gate.
#[derive(Debug)]
pub struct Planned<'a> {
    /// Name of the zone that shares the gate.
    pub zone: &'a str,
    /// The key; any bytes.
    pub key: &'a [u8],
    /// How the keys of this zone are shown.
    pub names: KeyNames<'a>,
    /// Its plan.
    pub plan: &'a str,
}

impl Entry<'_> {
    /// The plan that decided at the limit, or else at the gate; then with the name of its zone.
    fn plan(&self) -> (Option<&str>, Option<&str>) {
        let of_limit = self.limited.as_ref().and_then(|limited| limited.plan);
        match &self.planned {
            Some(Planned { zone, plan, .. }) if of_limit.is_none() => (Some(plan), Some(zone)),
            _ => (of_limit, None),
        }
    }

    /// The name of the key at the limit that decided, or else at the gate.
    fn key(&self) -> Option<String> {
        let of_limit = self.limited.as_ref().map(|it| (it.names, it.key));
        let (names, key) = match of_limit {
            Some(of_limit) => of_limit,
            None => self.planned.as_ref().map(|it| (it.names, it.key))?,
        };
        Some(names.full_quoted(key))
    }
}

/// The parts of a request line.
#[derive(Debug)]
pub struct Line<'a> {
    /// The method, such as `GET`.
    pub method: &'a str,
    /// The target as it was sent; any bytes.
    pub target: Cow<'a, [u8]>,
    /// The protocol, such as `HTTP/1.1`.
    pub protocol: &'a str,
}

/// The result of the limit that decided on a request.
#[derive(Debug)]
pub struct Limited<'a> {
    /// Name of the zone.
    pub zone: &'a str,
    /// The key; any bytes.
    pub key: &'a [u8],
    /// How the keys of this zone are shown.
    pub names: KeyNames<'a>,
    /// What the limit decided.
    pub status: LimitStatus,
    /// The excess including this request; `None` if it is not known.
    pub excess: Option<Excess>,
    /// The plan of the key, if it has one.
    pub plan: Option<&'a str>,
    /// Whether the request was counted in the bucket that unknown keys share.
    pub is_flood: bool,
}

impl AccessLog {
    /// Opens the access log that the settings ask for, if any.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be opened for appending.
    pub fn open(settings: &Settings) -> io::Result<Option<Self>> {
        let log = &settings.log;
        let backlog = match &log.access {
            Access::Off => return Ok(None),
            Access::Stdout => stream::stdout().and_then(|out| Backlog::new(&WAITING, out)),
            Access::File(path) => open_file(path).and_then(|file| Backlog::new(&WAITING, file)),
        };
        let backlog = backlog.map_err(|error| of_log(&error, settings));
        Ok(Some(Self {
            format: log.format,
            backlog: backlog?,
        }))
    }

    /// Opens the file of the log again, for the lines that are written from here on.
    ///
    /// `settings` must be those that the log was opened with. Returns whether it has a file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be opened. The lines then go where they went before.
    pub fn reopen(&self, settings: &Settings) -> io::Result<bool> {
        let Access::File(path) = &settings.log.access else {
            return Ok(false);
        };
        let file = open_file(path).map_err(|error| of_log(&error, settings))?;
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

/// Adds to `error` the name of the log as it is written in the file, without values of the
/// environment.
fn of_log(error: &io::Error, settings: &Settings) -> io::Error {
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
/// A named pipe that nobody reads is an error (fifo(7)): waiting for a reader would stop the whole
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
    // From here on a write waits, on a thread of its own.
    rustix::fs::fcntl_setfl(&file, OFlags::APPEND)?;
    Ok(File::from(file))
}

impl std::fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccessLog")
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

/// A line in nginx's `combined` format, followed by the limit's fields.
///
/// These are `zone="…" key="…" limit_status=… excess=… queue=… origin_queue=… origin=… duration=…
/// origin_rejected=…`.
pub(crate) fn text(entry: &Entry) -> String {
    let mut line = String::with_capacity(256);
    let client = entry
        .client
        .map_or_else(|| "-".to_owned(), |client| client.to_string());
    let time = timestamp(entry.time).strftime("%d/%b/%Y:%H:%M:%S +0000");
    let asked = entry.line.as_ref().map_or_else(
        || "-".to_owned(),
        |line| {
            let (method, target) = (escape(line.method.as_bytes()), escape(&line.target));
            format!("{method} {target} {}", line.protocol)
        },
    );
    let quoted =
        |text: Option<&str>| text.map_or_else(|| "-".to_owned(), |text| escape(text.as_bytes()));
    // Writing to a string does not fail.
    let _ = write!(
        line,
        "{client} - - [{time}] \"{asked}\" {} {} \"{}\" \"{}\"",
        entry.status,
        entry.bytes,
        quoted(entry.referer.as_deref()),
        quoted(entry.user_agent.as_deref()),
    );
    if let Some(limited) = &entry.limited {
        let _ = write!(line, " zone=\"{}\"", limited.zone);
    }
    if let Some(key) = entry.key() {
        let _ = write!(line, " key=\"{key}\"");
    }
    if let Some(limited) = &entry.limited {
        let _ = write!(line, " limit_status={}", limited.status.label());
        if let Some(excess) = limited.excess {
            let _ = write!(line, " excess={:.3}", excess.requests());
        }
        if limited.is_flood {
            line.push_str(" flooded");
        }
    }
    for (name, span) in [
        ("queue", entry.queue),
        ("origin_queue", entry.origin_queue),
        ("origin", entry.origin_took),
        ("duration", Some(entry.duration)),
    ] {
        if let Some(span) = span {
            let _ = write!(line, " {name}={:.6}", span.as_secs_f64());
        }
    }
    if let Some(reason) = entry.origin_rejected {
        let _ = write!(line, " origin_rejected={reason}");
    }
    let (plan, plan_zone) = entry.plan();
    if let Some(plan) = plan {
        let _ = write!(line, " plan={plan}");
    }
    if let Some(zone) = plan_zone {
        let _ = write!(line, " plan_zone={zone}");
    }
    if let Some(class) = entry.class {
        let _ = write!(line, " class={class}");
    }
    if let Some(cost) = entry.cost {
        let _ = write!(line, " cost={cost}");
    }
    line
}

#[derive(Serialize)]
struct Json<'a> {
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<&'a str>,
    status: u16,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_status: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    excess: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flooded: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin_queue_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin_rejected: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_zone: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin_seconds: Option<f64>,
    duration_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    referer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_agent: Option<&'a str>,
}

pub(crate) fn json(entry: &Entry) -> String {
    let (limited, line) = (entry.limited.as_ref(), entry.line.as_ref());
    let (plan, plan_zone) = entry.plan();
    let line = Json {
        time: timestamp(entry.time).to_string(),
        client: entry.client,
        method: line.map(|line| line.method),
        target: line.map(|line| text_of(&line.target)),
        protocol: line.map(|line| line.protocol),
        status: entry.status,
        bytes: entry.bytes,
        route: entry.route.as_deref(),
        origin: entry.origin,
        server: entry.server.as_deref(),
        zone: limited.map(|limited| limited.zone),
        key: entry.key(),
        limit_status: limited.map(|limited| limited.status.label()),
        excess: limited
            .and_then(|limited| limited.excess)
            .map(Excess::requests),
        flooded: limited.and_then(|limited| limited.is_flood.then_some(true)),
        queue_seconds: entry.queue.map(|span| span.as_secs_f64()),
        origin_queue_seconds: entry.origin_queue.map(|span| span.as_secs_f64()),
        origin_rejected: entry.origin_rejected,
        plan,
        plan_zone,
        class: entry.class,
        cost: entry.cost,
        origin_seconds: entry.origin_took.map(|span| span.as_secs_f64()),
        duration_seconds: entry.duration.as_secs_f64(),
        referer: entry.referer.as_deref(),
        user_agent: entry.user_agent.as_deref(),
    };
    // Strings and numbers always have a JSON form.
    serde_json::to_string(&line).unwrap_or_default()
}

/// Bytes as text: unchanged if they are UTF-8, otherwise escaped.
fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    str::from_utf8(bytes).map_or_else(|_| escape_unquoted(bytes).into(), Cow::Borrowed)
}

/// The time with microseconds, as the log shows it.
fn timestamp(moment: Moment) -> Timestamp {
    let micros = i64::try_from(moment.as_nanos() / 1_000).unwrap_or(i64::MAX);
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry<'static> {
        Entry {
            time: Moment::from_nanos(1_795_232_027_349_286_123),
            client: Some("192.0.2.1".parse().unwrap()),
            line: Some(Line {
                method: "GET",
                target: b"/a?b=\"c\"".into(),
                protocol: "HTTP/1.1",
            }),
            status: 200,
            bytes: 66,
            route: Some("/".to_owned()),
            origin: Some("app"),
            server: Some("http://127.0.0.1:9000".to_owned()),
            limited: Some(Limited {
                zone: "per_client",
                key: b"a\n\xff\\",
                names: KeyNames::at_gate(None),
                status: LimitStatus::Delayed,
                excess: Some(Excess::default()),
                plan: Some("gold"),
                is_flood: false,
            }),
            planned: None,
            queue: Some(Duration::from_micros(950_200)),
            origin_queue: Some(Duration::from_millis(3)),
            origin_rejected: Some("queue"),
            class: Some("batch"),
            cost: Some(5),
            origin_took: Some(Duration::from_millis(12)),
            duration: Duration::from_millis(963),
            referer: None,
            user_agent: Some("curl\r\n\"8\"".into()),
        }
    }

    #[test]
    fn text_is_nginx_combined_with_the_limit_after_it() {
        assert_eq!(
            text(&entry()),
            "192.0.2.1 - - [21/Nov/2026:03:33:47 +0000] \"GET /a?b=\\x22c\\x22 HTTP/1.1\" 200 66 \"-\" \
             \"curl\\x0D\\x0A\\x228\\x22\" zone=\"per_client\" key=\"a\\x0A\\xFF\\\\\" limit_status=delayed excess=0.000 \
             queue=0.950200 origin_queue=0.003000 origin=0.012000 duration=0.963000 origin_rejected=queue \
             plan=gold class=batch cost=5"
        );
    }

    #[test]
    fn without_a_limit_there_is_the_plan_at_the_gate() {
        let at_gate = |limited| Entry {
            limited,
            planned: Some(Planned {
                zone: "z",
                key: b"alice",
                names: KeyNames::at_gate(None),
                plan: "silver",
            }),
            ..entry()
        };
        let only = at_gate(None);
        assert!(
            text(&only).contains("\" key=\"alice\" queue="),
            "{}",
            text(&only)
        );
        assert!(text(&only).contains(" plan=silver plan_zone=z "));
        let line: serde_json::Value = serde_json::from_str(&json(&only)).unwrap();
        assert_eq!(line["key"], "alice");
        assert_eq!(line["plan"], "silver");
        assert_eq!(line["plan_zone"], "z");
        assert!(line.get("zone").is_none());
        // What a limit says comes first.
        let both = json(&at_gate(entry().limited));
        assert!(both.contains("\"plan\":\"gold\""), "{both}");
        assert!(
            !both.contains("alice") && !both.contains("plan_zone"),
            "{both}"
        );
    }

    #[test]
    fn a_request_in_the_bucket_of_unknown_keys_says_so() {
        let mut entry = entry();
        assert!(!json(&entry).contains("flooded"));
        if let Some(limited) = &mut entry.limited {
            limited.is_flood = true;
        }
        assert!(json(&entry).contains("\"flooded\":true,\"queue_seconds\""));
        assert!(text(&entry).contains(" excess=0.000 flooded queue="));
    }

    #[test]
    fn what_ends_lines_or_turns_their_direction_is_escaped() {
        let cases = [
            ("a\u{2028}b", "a\\xE2\\x80\\xA8b"),
            ("\u{202e}exe.txt", "\\xE2\\x80\\xAEexe.txt"),
            ("\u{feff}", "\\xEF\\xBB\\xBF"),
            ("\u{85}", "\\xC2\\x85"),
            ("e\u{301}é😀", "e\u{301}é😀"),
        ];
        for (text, escaped) in cases {
            assert_eq!(escape(text.as_bytes()), escaped);
        }
    }

    #[test]
    fn json_has_the_fields_that_there_is_something_to_say_of() {
        let line: serde_json::Value = serde_json::from_str(&json(&entry())).unwrap();
        assert_eq!(line["time"], "2026-11-21T03:33:47.349286Z");
        assert_eq!(line["key"], "a\\x0A\\xFF\\\\");
        assert_eq!(line["queue_seconds"], 0.9502);
        assert_eq!(line["user_agent"], "curl\r\n\"8\"");
        assert!(line.get("referer").is_none());
        let bare = json(&Entry {
            line: None,
            limited: None,
            origin: None,
            queue: None,
            origin_queue: None,
            origin_rejected: None,
            ..entry()
        });
        for absent in [
            "method",
            "target",
            "protocol",
            "zone",
            "key",
            "limit_status",
            "excess",
            "origin\"",
            "queue_seconds",
            "origin_queue_seconds",
            "origin_rejected",
        ] {
            assert!(!bare.contains(&format!("\"{absent}")), "{bare}");
        }
    }
}
