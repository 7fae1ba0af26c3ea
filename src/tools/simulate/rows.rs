//! Writes one row of CSV for each request, to standard output.
//!
//! A gate is the limit in front of an origin. It has columns only if an origin has a gate.

use std::borrow::Cow;
use std::io::{self, BufWriter, StdoutLock, Write};
use std::time::Duration;

use gateway::observe::escape::escape;
use gateway::observe::metrics::GateRejected;
use gateway::replay::Outcome;
use limit::Moment;

use super::pending::NamedRequest;

/// Writes the rows to standard output.
pub(super) struct Rows {
    out: BufWriter<StdoutLock<'static>>,
    /// Whether the output has columns for the gate.
    has_gates: bool,
}

impl Rows {
    pub(super) fn new(has_gates: bool) -> Self {
        Self {
            out: BufWriter::with_capacity(1 << 20, io::stdout().lock()),
            has_gates,
        }
    }

    /// Writes the names of the columns.
    pub(super) fn write_header(&mut self) -> io::Result<()> {
        let gate = if self.has_gates {
            ",origin_queue,origin_rejected"
        } else {
            ""
        };
        writeln!(self.out, "time,key,verdict,departure,delay,excess{gate}")
    }

    /// Writes the row of a request. `departure` and `delay` are empty for a rejected request.
    pub(super) fn write(&mut self, request: &NamedRequest, outcome: &Outcome) -> io::Result<()> {
        let out = &mut self.out;
        write_seconds(out, outcome.time)?;
        let key = request.key.as_deref().unwrap_or_default();
        let (key, status) = (escape(key), outcome.status.label());
        write!(out, ",{},{status},", field(&key))?;
        if let (Some(departure), Some(delay)) = (outcome.departure, outcome.delay()) {
            write_seconds(out, departure)?;
            out.write_all(b",")?;
            write_duration(out, delay)?;
        } else {
            out.write_all(b",")?;
        }
        write!(out, ",{:.9}", outcome.excess.requests())?;
        match &outcome.at_gate {
            Some(gate) => {
                out.write_all(b",")?;
                write_duration(out, gate.until.since(gate.since))?;
                writeln!(out, ",{}", gate.rejected.map_or("", GateRejected::label))
            }
            None if self.has_gates => writeln!(out, ",,"),
            None => writeln!(out),
        }
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes an instant in seconds, by the clock of the trace.
fn write_seconds(out: &mut impl Write, moment: Moment) -> io::Result<()> {
    write_duration(out, Duration::from_nanos(moment.as_nanos()))
}

/// Writes a duration in seconds, with nine decimals.
fn write_duration(out: &mut impl Write, duration: Duration) -> io::Result<()> {
    write!(out, "{}.{:09}", duration.as_secs(), duration.subsec_nanos())
}

/// Formats a CSV field, quoted if it contains a comma. `escape` has replaced quotes and line feeds.
fn field(text: &str) -> Cow<'_, str> {
    if text.contains(',') {
        format!("\"{text}\"").into()
    } else {
        text.into()
    }
}
