//! `drip simulate`: replays a trace of requests against a configuration file.

mod chart;
mod flow;
mod pending;
mod rows;
mod summary;

use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use config::Settings;
use gateway::replay::{Form, Line, Simulator, Trace};
use gateway::server::file_name;

use self::flow::Flow;
use self::pending::{NamedRequest, Pending};
use self::rows::Rows;
use self::summary::Summary;
use super::trace::{SHOWN, form, length, open, progress, svg};
use crate::complain::{complain, print};
use crate::learned_costs;

/// The arguments of `drip simulate` besides its file.
#[derive(Debug, Args)]
pub struct SimulateArguments {
    /// Print how many requests are delayed and rejected, and of which keys [default on a terminal]
    #[arg(long)]
    summary: bool,
    /// Print a line of CSV for each request [default into a pipe or file]
    #[arg(long, conflicts_with = "summary")]
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

/// Replays a trace against `file`.
///
/// Prints a line for each request, or a summary.
pub fn simulate(file: &Path, arguments: &SimulateArguments) -> ExitCode {
    let settings = match config::load(file) {
        Ok(settings) => settings,
        Err(error) => {
            complain(error.with_remedy());
            return ExitCode::FAILURE;
        }
    };
    let (name, trace) = (file_name(file), arguments.trace.as_path());
    if let Some(learned) = learned_costs(&settings, |_| true) {
        complain(format_args!(
            "{name}: {learned} by a running gateway, not by this replay; a request costs what its line says, or 1"
        ));
    }
    let has_rows = arguments.rows || !(arguments.summary || io::stdout().is_terminal());
    let mut replay = Replay {
        simulator: Simulator::new(&settings),
        summary: Summary::default(),
        rows: has_rows.then(|| Rows::new(has_gate(&settings))),
        pending: Pending::new(),
        flow: arguments.plot.is_some().then(Flow::new),
        read: 0,
        bad: 0,
        late: 0,
        is_cut: false,
    };
    let progress = progress(length(trace));
    let opened = open(trace, &progress).and_then(|input| Trace::of_form(input, arguments.format));
    let replayed = opened.and_then(|lines| replay.run(trace, lines));
    progress.finish_and_clear();
    match replayed {
        // The reader has closed the pipe because it has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
        Err(error) => {
            complain(format_args!("{}: {error}", trace.display()));
            return ExitCode::FAILURE;
        }
        Ok(()) => {}
    }
    let mut code = replay.report(&name);
    if let (Some(flow), Some(plot)) = (&replay.flow, &arguments.plot) {
        let picture = flow.picture(&format!("Replay of {}", file_name(trace)));
        if let Err(error) = fs::write(plot, picture) {
            complain(format_args!("{}: {error}", plot.display()));
            code = ExitCode::FAILURE;
        }
    }
    code
}

/// Returns whether an origin has a gate.
fn has_gate(settings: &Settings) -> bool {
    let mut origins = settings.origins.iter();
    origins.any(|origin| origin.gate_limits().is_some())
}

struct Replay<'a> {
    simulator: Simulator<'a>,
    summary: Summary,
    /// Set if each request is printed.
    rows: Option<Rows>,
    pending: Pending,
    /// Set if a picture is drawn.
    flow: Option<Flow>,
    read: u64,
    bad: u64,
    late: u64,
    /// Whether reading the trace stopped before its end.
    is_cut: bool,
}

impl Replay<'_> {
    fn run(&mut self, trace: &Path, mut lines: Trace) -> io::Result<()> {
        if let Some(rows) = &mut self.rows {
            rows.begin()?;
        }
        loop {
            match lines.take() {
                Ok(Some((_, Ok(line)))) => self.submit(&line)?,
                Ok(Some((number, Err(error)))) => {
                    self.bad += 1;
                    if self.bad <= SHOWN {
                        complain(format_args!("line {number}: {error}"));
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    complain(format_args!("{}: {error}", trace.display()));
                    self.is_cut = true;
                    break;
                }
            }
        }
        self.simulator.end();
        self.settle()?;
        if let Some(flow) = &mut self.flow {
            flow.end();
        }
        self.rows.as_mut().map_or(Ok(()), Rows::end)
    }

    fn submit(&mut self, line: &Line) -> io::Result<()> {
        self.read += 1;
        let admission = self.simulator.submit(self.pending.next_number(), line);
        self.pending.add(NamedRequest::of(line), admission)?;
        self.settle()
    }

    /// Counts and prints the requests whose outcomes are known, in the order of the lines.
    fn settle(&mut self) -> io::Result<()> {
        for (number, outcome) in self.simulator.take_known() {
            self.pending.set(number, outcome);
        }
        while let Some((request, outcome)) = self.pending.take() {
            let outcome = outcome.as_ref();
            self.summary.add(outcome);
            self.late += u64::from(outcome.is_some_and(|it| it.time > request.time));
            if let (Some(flow), Some(outcome)) = (&mut self.flow, outcome) {
                flow.add(outcome);
            }
            match (&mut self.rows, outcome) {
                (Some(rows), Some(outcome)) => rows.write(&request, outcome)?,
                (Some(_), None) => {}
                (None, _) => {
                    let key = request.key.as_deref().unwrap_or(b"-");
                    self.summary.add_of_key(key, outcome);
                }
            }
        }
        Ok(())
    }

    /// Reports lines that were not read or not understood, and prints the summary.
    fn report(&self, name: &str) -> ExitCode {
        for (count, what) in [
            (self.bad, "lines could not be read"),
            (
                self.summary.unrouted,
                "requests matched no route, or one that refuses them",
            ),
            (
                self.late,
                "requests stood behind later ones, and were judged at the time of those",
            ),
            (
                self.simulator.untimed(),
                "requests have no time at the origin in the trace: they hold no place of max_in_flight or in_flight",
            ),
        ] {
            if count > 0 {
                complain(format_args!("{count} {what}"));
            }
        }
        for variable in self.simulator.missing_variables() {
            complain(format_args!(
                "the trace does not have ${variable}; keys were made without it"
            ));
        }
        let printed = match self.rows {
            Some(_) => ExitCode::SUCCESS,
            None => print(&self.summary.text(name)),
        };
        if self.read == 0 && (self.bad > 0 || self.is_cut) {
            ExitCode::FAILURE
        } else {
            printed
        }
    }
}
