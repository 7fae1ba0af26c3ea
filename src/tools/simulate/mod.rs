//! `drip simulate`: what would these settings do to this traffic?

mod compare;
mod flow;
mod rows;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use self::compare::{Keys, Total, summary};
use self::flow::{Flow, picture};
use self::rows::Rows;
use super::trace::{SHOWN, length, open, progress, svg};
use crate::config::{self, Settings};
use crate::tools::replay::{Line, Outcome, Simulator, Trace};

/// The arguments of `drip simulate` besides its file.
#[derive(Debug, Args)]
pub struct Wanted {
    /// Compare with other settings: instead of each request, show which keys are better and worse
    /// off under these; may be given several times
    #[arg(long, value_name = "OTHER.toml")]
    against: Vec<PathBuf>,
    /// Draw over time the requests that arrive, wait and go on
    #[arg(long, value_name = "FILE.svg", value_parser = svg())]
    plot: Option<PathBuf>,
    /// CSV lines `time_seconds,key[,route_path]`, or an access log; plain or compressed by gzip; -
    /// for standard input
    trace: PathBuf,
}

/// Replays a trace against `file`.
///
/// Prints a line for each request, or compares `file` with others.
#[must_use]
pub fn simulate(file: &Path, wanted: &Wanted) -> ExitCode {
    let mut all = Vec::new();
    for file in std::iter::once(file).chain(wanted.against.iter().map(PathBuf::as_path)) {
        match config::load(file) {
            Ok(settings) => all.push((file, settings)),
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        }
    }
    let names = names(&all);
    let runs = all.iter().map(|(_, settings)| Run::new(settings)).collect();
    let mut replay = Replay {
        runs,
        keys: Keys::new(all.len()),
        rows: wanted.against.is_empty().then(Rows::new),
        is_drawn: wanted.plot.is_some(),
        read: 0,
        bad: 0,
        late: 0,
        is_cut: false,
    };
    let trace = &wanted.trace;
    let progress = progress(length(trace));
    let opened = open(trace, &progress).and_then(Trace::new);
    let name = trace.display().to_string();
    let replayed = opened.and_then(|trace| replay.run(&name, trace));
    progress.finish_and_clear();
    match replayed {
        // The reader closed the pipe because it has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", trace.display());
            return ExitCode::FAILURE;
        }
        Ok(()) => {}
    }
    let drawn = wanted
        .plot
        .as_deref()
        .is_none_or(|to| replay.draw(&names, trace, to));
    let told = replay.report(&names);
    if drawn { told } else { ExitCode::FAILURE }
}

fn name_of(file: &Path) -> String {
    let name = file.file_name().unwrap_or(file.as_os_str());
    name.to_string_lossy().into_owned()
}

/// The names shown for the files: the file name, or the path as given if two names are the same.
fn names(files: &[(&Path, Settings)]) -> Vec<String> {
    let name = |(file, _): &(&Path, Settings)| {
        let name = name_of(file);
        let same = files.iter().filter(|(file, _)| name_of(file) == name);
        if same.count() > 1 {
            file.display().to_string()
        } else {
            name
        }
    };
    files.iter().map(name).collect()
}

/// One file and the results of replaying the trace under it.
struct Run<'a> {
    simulator: Simulator<'a>,
    total: Total,
    flow: Flow,
}

impl<'a> Run<'a> {
    fn new(settings: &'a Settings) -> Self {
        Self {
            simulator: Simulator::new(settings),
            total: Total::new(),
            flow: Flow::new(),
        }
    }
}

struct Replay<'a> {
    /// The file first, then the files that it is compared with.
    runs: Vec<Run<'a>>,
    keys: Keys,
    /// Set if each request is printed.
    rows: Option<Rows>,
    is_drawn: bool,
    read: u64,
    bad: u64,
    late: u64,
    /// Whether the trace could not be read to its end.
    is_cut: bool,
}

impl Replay<'_> {
    fn run(&mut self, name: &str, mut trace: Trace) -> io::Result<()> {
        if let Some(rows) = &mut self.rows {
            rows.begin()?;
        }
        let mut outcomes = Vec::with_capacity(self.runs.len());
        loop {
            let (number, line) = match trace.take() {
                Ok(Some(taken)) => taken,
                Ok(None) => break,
                Err(error) => {
                    eprintln!("{name}: {error}");
                    self.is_cut = true;
                    break;
                }
            };
            match line {
                Ok(line) => self.judge(&line, &mut outcomes)?,
                Err(error) => {
                    self.bad += 1;
                    if self.bad <= SHOWN {
                        eprintln!("line {number}: {error}");
                    }
                }
            }
        }
        self.runs.iter_mut().for_each(|run| run.flow.end());
        match &mut self.rows {
            Some(rows) => rows.end(),
            None => Ok(()),
        }
    }

    fn judge(&mut self, line: &Line, outcomes: &mut Vec<Option<Outcome>>) -> io::Result<()> {
        outcomes.clear();
        self.read += 1;
        for run in &mut self.runs {
            let outcome = run.simulator.judge(line);
            run.total.add(outcome.as_ref());
            if let Some(outcome) = outcome.as_ref().filter(|_| self.is_drawn) {
                run.flow.add(outcome);
            }
            outcomes.push(outcome);
        }
        if let Some(Some(outcome)) = outcomes.first() {
            self.late += u64::from(outcome.time > line.time);
        }
        match (&mut self.rows, outcomes.first()) {
            (Some(rows), Some(Some(outcome))) => rows.write(line, outcome),
            (Some(_), _) => Ok(()),
            (None, _) => {
                match (&line.key, line.recorded.as_ref().and_then(|it| it.client)) {
                    (Some(key), _) => self.keys.add(key, outcomes),
                    (None, Some(client)) => self.keys.add(client.to_string().as_bytes(), outcomes),
                    (None, None) => self.keys.add(b"-", outcomes),
                }
                Ok(())
            }
        }
    }

    fn draw(&self, names: &[String], trace: &Path, file: &Path) -> bool {
        let flows: Vec<(&str, &Flow)> = names
            .iter()
            .zip(&self.runs)
            .map(|(name, run)| (name.as_str(), &run.flow))
            .collect();
        let title = format!("Replay of {}", name_of(trace));
        let drawn = picture(&title, &flows).save(file);
        if let Err(error) = &drawn {
            eprintln!("{}: {error}", file.display());
        }
        drawn.is_ok()
    }

    fn report(&self, names: &[String]) -> ExitCode {
        let (read, bad) = (self.read, self.bad);
        let unrouted = self.runs.first().map_or(0, |run| run.total.unrouted());
        let told = [
            (bad, "lines could not be read"),
            (unrouted, "requests matched no route"),
            (
                self.late,
                "requests stood behind later ones, and were judged at the time of those",
            ),
        ];
        for (count, what) in told {
            if count > 0 {
                eprintln!("{count} {what}");
            }
        }
        let mut untold: Vec<&str> = self
            .runs
            .iter()
            .flat_map(|run| run.simulator.untold())
            .collect();
        untold.sort_unstable();
        untold.dedup();
        for variable in untold {
            eprintln!("the trace does not have ${variable}; keys were made without it");
        }
        if self.rows.is_none() {
            let totals = names.iter().zip(&self.runs);
            let totals: Vec<(&str, &Total)> = totals
                .map(|(name, run)| (name.as_str(), &run.total))
                .collect();
            let text = summary(&totals, &self.keys);
            match io::stdout().write_all(text.as_bytes()) {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                    eprintln!("drip: {error}");
                    return ExitCode::FAILURE;
                }
                _ => {}
            }
        }
        if read == 0 && (bad > 0 || self.is_cut) {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }
}
