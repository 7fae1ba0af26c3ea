//! `drip simulate`: what would have become of this traffic?

use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::Path;
use std::process::ExitCode;

use super::trace::{SHOWN, length, open, progress};
use crate::access::escape;
use crate::config;
use crate::limit::Moment;
use crate::replay::{Line, Outcome, Simulator, Trace};

/// Replays `trace` (`-`: standard input) against `file`, and prints a line for each request.
#[must_use]
pub fn simulate(file: &Path, trace: &Path) -> ExitCode {
    let settings = match config::load(file) {
        Ok(settings) => settings,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let mut replay = Replay {
        simulator: Simulator::new(&settings),
        read: 0,
        bad: 0,
        unrouted: 0,
        late: 0,
    };
    let progress = progress(length(trace));
    let opened = open(trace, &progress).and_then(Trace::new);
    match opened.and_then(|trace| replay.run(trace)) {
        // Whoever reads the output has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", trace.display());
            ExitCode::FAILURE
        }
        Ok(()) => replay.report(),
    }
}

struct Replay<'a> {
    simulator: Simulator<'a>,
    read: u64,
    bad: u64,
    unrouted: u64,
    late: u64,
}

impl Replay<'_> {
    fn run(&mut self, mut trace: Trace) -> io::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
        writeln!(out, "time,key,verdict,departure,delay,excess")?;
        while let Some((number, line)) = trace.take()? {
            match line {
                Ok(line) => self.judge(&line, &mut out)?,
                Err(error) => {
                    self.bad += 1;
                    if self.bad <= SHOWN {
                        eprintln!("line {number}: {error}");
                    }
                }
            }
        }
        out.flush()
    }

    fn judge(&mut self, line: &Line, out: &mut BufWriter<StdoutLock>) -> io::Result<()> {
        let Some(outcome) = self.simulator.judge(line) else {
            self.unrouted += 1;
            return Ok(());
        };
        self.read += 1;
        self.late += u64::from(outcome.time > line.time);
        write_row(out, line, &outcome)
    }

    fn report(&self) -> ExitCode {
        let Self {
            read,
            bad,
            unrouted,
            late,
            ..
        } = self;
        let told = [
            (*bad, "lines could not be read"),
            (*unrouted, "requests were taken by no route"),
            (
                *late,
                "requests stood behind later ones, and were judged at the time of those",
            ),
        ];
        for (count, what) in told {
            if count > 0 {
                eprintln!("{count} {what}");
            }
        }
        for variable in self.simulator.untold() {
            eprintln!("the trace does not tell ${variable}; keys were made without it");
        }
        if *read == 0 && *bad > 0 {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }
}

fn write_row(out: &mut impl Write, line: &Line, outcome: &Outcome) -> io::Result<()> {
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

fn write_seconds(out: &mut impl Write, moment: Moment) -> io::Result<()> {
    let nanos = moment.as_nanos();
    write!(
        out,
        "{}.{:09}",
        nanos / 1_000_000_000,
        nanos % 1_000_000_000
    )
}

/// A field of CSV: in quotes where it has a comma.
fn field(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains(',') {
        format!("\"{text}\"").into()
    } else {
        text.into()
    }
}
