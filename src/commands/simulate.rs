//! `drip simulate`: what would have become of this traffic?

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, StdoutLock, Write};
use std::path::Path;
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressStyle};

use crate::access::escape;
use crate::config;
use crate::limit::Moment;
use crate::replay::{Form, Line, Outcome, Simulator};

/// How many bad lines are shown one by one; the rest is counted.
const SHOWN: u64 = 10;

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
        form: None,
        read: 0,
        bad: 0,
        unrouted: 0,
        late: 0,
    };
    match open(trace).and_then(|lines| replay.run(lines)) {
        // Whoever reads the output has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", trace.display());
            ExitCode::FAILURE
        }
        Ok(()) => replay.report(),
    }
}

fn open(trace: &Path) -> io::Result<Box<dyn BufRead>> {
    let style = ProgressStyle::with_template("{bar:40} {percent}% of {total_bytes}, {eta} to go");
    let (input, length): (Box<dyn Read>, _) = if trace == Path::new("-") {
        (Box::new(io::stdin()), None)
    } else {
        let file = File::open(trace)?;
        let length = file.metadata()?.len();
        (Box::new(file), Some(length))
    };
    // Drawn on standard error, and only where that is a terminal.
    let progress = length.map_or_else(ProgressBar::no_length, ProgressBar::new);
    let progress = match style {
        Ok(style) => progress.with_style(style),
        Err(_) => progress,
    };
    Ok(Box::new(BufReader::with_capacity(
        1 << 20,
        progress.wrap_read(input),
    )))
}

struct Replay<'a> {
    simulator: Simulator<'a>,
    form: Option<Form>,
    read: u64,
    bad: u64,
    unrouted: u64,
    late: u64,
}

impl Replay<'_> {
    fn run(&mut self, mut lines: Box<dyn BufRead>) -> io::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
        writeln!(out, "time,key,verdict,departure,delay,excess")?;
        let mut bytes = Vec::new();
        for number in 1u64.. {
            bytes.clear();
            if lines.read_until(b'\n', &mut bytes)? == 0 {
                break;
            }
            let text = String::from_utf8_lossy(&bytes);
            let text = text
                .trim_start_matches('\u{feff}')
                .trim_end_matches(['\n', '\r']);
            if text.is_empty() {
                continue;
            }
            let first = self.form.is_none();
            let form = *self.form.get_or_insert_with(|| Form::of(text));
            if first && form.is_header(text) {
                continue;
            }
            match form.read(text) {
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
