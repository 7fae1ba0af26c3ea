//! `drip simulate`: what would these settings do to this traffic?

mod compare;
mod flow;
mod named_request;
mod rows;
mod run;

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use config::{self, Settings};
use gateway::replay::{Form, Line, Outcome, Trace};

use self::compare::{Keys, Total, summary};
use self::flow::{Flow, picture};
use self::named_request::{Name, NamedRequest, Pending};
use self::rows::Rows;
use self::run::Run;
use super::trace::{SHOWN, form, length, open, progress, svg};
use crate::complain::complain;
use crate::learned_costs;

/// The arguments of `drip simulate` besides its file.
#[derive(Debug, Args)]
pub struct SimulateArguments {
    /// Compare with other settings: instead of each request, show which keys are better and worse
    /// off under these; may be given several times
    #[arg(long, value_name = "OTHER.toml")]
    against: Vec<PathBuf>,
    /// Print how many requests are delayed and rejected, and of which keys [default on a terminal]
    #[arg(long)]
    summary: bool,
    /// Print a line of CSV for each request [default into a pipe or file]
    #[arg(long, conflicts_with_all = ["summary", "against"])]
    rows: bool,
    /// Draw over time the requests that arrive, wait and go on
    #[arg(long, value_name = "FILE.svg", value_parser = svg())]
    plot: Option<PathBuf>,
    /// The format of the trace; combined is that of nginx and Apache, json that of drip and nginx
    /// [default: what the first lines show]
    #[arg(long, value_name = "FORMAT", value_parser = form())]
    format: Option<Form>,
    /// CSV lines `time_seconds,key[,route_path[,cost]]`, or an access log of drip, nginx, Apache,
    /// HAProxy, Caddy, Traefik or an ALB; plain or compressed by gzip; - for standard input
    trace: PathBuf,
}

impl SimulateArguments {
    /// Whether to print each request, and not a summary.
    fn has_rows(&self) -> bool {
        let is_summed = self.summary || !self.against.is_empty();
        self.rows || !(is_summed || io::stdout().is_terminal())
    }
}

/// Replays a trace against `file`.
///
/// Prints a line for each request, or a summary, which compares `file` with others.
#[must_use]
pub fn simulate(file: &Path, wanted: &SimulateArguments) -> ExitCode {
    let mut all = Vec::new();
    for file in std::iter::once(file).chain(wanted.against.iter().map(PathBuf::as_path)) {
        match config::load(file) {
            Ok(settings) => all.push((file, settings)),
            Err(error) => {
                complain(error.with_remedy());
                return ExitCode::FAILURE;
            }
        }
    }
    let names = names(&all);
    let trace = wanted.trace.as_path();
    for (name, (_, settings)) in names.iter().zip(&all) {
        if let Some(learned) = learned_costs(settings, |_| true) {
            complain(format_args!(
                "{name}: {learned} by a running gateway, not by this replay; a request costs what its line says, or 1"
            ));
        }
    }
    let runs: Vec<Run> = all.iter().map(|(_, settings)| Run::new(settings)).collect();
    let has_gate = runs.iter().any(Run::has_gate);
    let is_eventual = runs.iter().any(Run::is_eventual);
    let mut replay = Replay {
        runs,
        keys: Keys::new(all.len()),
        rows: wanted.has_rows().then(|| Rows::new(has_gate)),
        pending: is_eventual.then(Pending::new),
        is_drawn: wanted.plot.is_some(),
        read: 0,
        bad: 0,
        late: 0,
        is_cut: false,
    };
    let progress = progress(length(trace));
    let opened = open(trace, &progress).and_then(|input| Trace::of_form(input, wanted.format));
    let name = trace.display().to_string();
    let replayed = opened.and_then(|trace| replay.run(&name, trace));
    progress.finish_and_clear();
    match replayed {
        // The reader closed the pipe because it has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
        Err(error) => {
            complain(format_args!("{}: {error}", trace.display()));
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

struct Replay<'a> {
    /// The file first, then the files that it is compared with.
    runs: Vec<Run<'a>>,
    keys: Keys,
    /// Set if each request is printed.
    rows: Option<Rows>,
    /// Set if an origin has a gate, so that outcomes may depend on later requests.
    pending: Option<Pending>,
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
                    complain(format_args!("{name}: {error}"));
                    self.is_cut = true;
                    break;
                }
            };
            match line {
                Ok(line) => self.judge(&line, &mut outcomes)?,
                Err(error) => {
                    self.bad += 1;
                    if self.bad <= SHOWN {
                        complain(format_args!("line {number}: {error}"));
                    }
                }
            }
        }
        self.runs.iter_mut().for_each(Run::end);
        self.settle(&mut outcomes)?;
        self.runs.iter_mut().for_each(|run| run.flow.end());
        match &mut self.rows {
            Some(rows) => rows.end(),
            None => Ok(()),
        }
    }

    fn judge(&mut self, line: &Line, outcomes: &mut Vec<Option<Outcome>>) -> io::Result<()> {
        self.read += 1;
        if let Some(pending) = &mut self.pending {
            let number = pending.next_number();
            let judged = self.runs.iter_mut().map(|run| run.judge(number, line));
            pending.add(NamedRequest::of(line), judged)?;
            return self.settle(outcomes);
        }
        outcomes.clear();
        for run in &mut self.runs {
            outcomes.push(run.judge(self.read, line).outcome());
        }
        self.tell(&NamedRequest::of(line), outcomes)
    }

    /// Tells the outcomes that are known, in the order of the lines.
    fn settle(&mut self, outcomes: &mut Vec<Option<Outcome>>) -> io::Result<()> {
        let Some(pending) = &mut self.pending else {
            return Ok(());
        };
        for (nth, run) in self.runs.iter_mut().enumerate() {
            run.take_known(|(number, outcome)| pending.set(number, nth, outcome));
        }
        while let Some(asked) = self.pending.as_mut().and_then(|it| it.take(outcomes)) {
            self.tell(&asked, outcomes)?;
        }
        Ok(())
    }

    /// Counts and prints a request, with its outcome under each file.
    fn tell(&mut self, asked: &NamedRequest, outcomes: &[Option<Outcome>]) -> io::Result<()> {
        for (run, outcome) in self.runs.iter_mut().zip(outcomes) {
            run.count(outcome.as_ref(), self.is_drawn);
        }
        if let Some(Some(outcome)) = outcomes.first() {
            self.late += u64::from(outcome.time > asked.time);
        }
        match (&mut self.rows, outcomes.first()) {
            (Some(rows), Some(Some(outcome))) => rows.write(asked, outcome),
            (Some(_), _) => Ok(()),
            (None, _) => {
                match &asked.by {
                    Name::Key(key) => self.keys.add(key, outcomes),
                    Name::Client(client) => self.keys.add(client.to_string().as_bytes(), outcomes),
                    Name::Unknown => self.keys.add(b"-", outcomes),
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
            complain(format_args!("{}: {error}", file.display()));
        }
        drawn.is_ok()
    }

    fn report(&self, names: &[String]) -> ExitCode {
        let (read, bad) = (self.read, self.bad);
        let unrouted = self.runs.first().map_or(0, |run| run.total.unrouted());
        let told = [
            (bad, "lines could not be read"),
            (
                unrouted,
                "requests matched no route, or one that refuses them",
            ),
            (
                self.late,
                "requests stood behind later ones, and were judged at the time of those",
            ),
        ];
        for (count, what) in told {
            if count > 0 {
                complain(format_args!("{count} {what}"));
            }
        }
        let mut untold: Vec<&str> = self.runs.iter().flat_map(Run::untold).collect();
        untold.sort_unstable();
        untold.dedup();
        for variable in untold {
            complain(format_args!(
                "the trace does not have ${variable}; keys were made without it"
            ));
        }
        let untimed = self.runs.iter().map(Run::untimed).max();
        if let Some(untimed) = untimed.filter(|untimed| *untimed > 0) {
            complain(format_args!(
                "{untimed} requests have no time at the origin in the trace: they hold no place of \
                 max_in_flight or in_flight"
            ));
        }
        if self.rows.is_none() {
            let totals = names.iter().zip(&self.runs);
            let totals: Vec<(&str, &Total)> = totals
                .map(|(name, run)| (name.as_str(), &run.total))
                .collect();
            let text = summary(&totals, &self.keys);
            match io::stdout().write_all(text.as_bytes()) {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                    complain(format_args!("drip: {error}"));
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
