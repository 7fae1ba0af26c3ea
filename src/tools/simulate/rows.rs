//! Writes one line of CSV for each request.

use std::borrow::Cow;
use std::io::{self, BufWriter, StdoutLock, Write};

use crate::limit::Moment;
use crate::observe::escape::escape;
use crate::tools::replay::{Line, Outcome};

/// Writes the lines to standard output.
pub(super) struct Rows(BufWriter<StdoutLock<'static>>);

impl Rows {
    pub(super) fn new() -> Self {
        Self(BufWriter::with_capacity(1 << 20, io::stdout().lock()))
    }

    pub(super) fn begin(&mut self) -> io::Result<()> {
        writeln!(self.0, "time,key,verdict,departure,delay,excess")
    }

    pub(super) fn write(&mut self, line: &Line, outcome: &Outcome) -> io::Result<()> {
        let out = &mut self.0;
        write_seconds(out, outcome.time)?;
        match (
            &line.key,
            line.recorded.as_ref().and_then(|recorded| recorded.client),
        ) {
            (Some(key), _) => write!(out, ",{}", field(&escape(key)))?,
            (None, Some(client)) => write!(out, ",{client}")?,
            (None, None) => out.write_all(b",")?,
        }
        write!(out, ",{},", outcome.status.label())?;
        if let (Some(departure), Some(delay)) = (outcome.departure, outcome.delay()) {
            write_seconds(out, departure)?;
            write!(out, ",{}.{:09}", delay.as_secs(), delay.subsec_nanos())?;
        } else {
            out.write_all(b",")?;
        }
        writeln!(out, ",{:.9}", outcome.excess.requests())
    }

    pub(super) fn end(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn write_seconds(out: &mut impl Write, moment: Moment) -> io::Result<()> {
    let nanos = moment.as_nanos();
    write!(
        out,
        "{}.{:09}",
        nanos / 1_000_000_000,
        nanos % 1_000_000_000
    )
}

/// A CSV field, quoted if it contains a comma.
fn field(text: &str) -> Cow<'_, str> {
    if text.contains(',') {
        format!("\"{text}\"").into()
    } else {
        text.into()
    }
}
