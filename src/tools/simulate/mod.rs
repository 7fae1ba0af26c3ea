//! `drip simulate`: replays a trace of requests against a configuration file.
//!
//! `gateway::replay` decides the requests, in simulated time. This module prints a row for each, or
//! a summary, and draws a picture.

mod arguments;
mod chart;
mod flow;
mod pending;
mod rows;
mod summary;
mod timeline;

use std::fs;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use config::Origin;
use gateway::replay::{Line, Simulator, Trace};
use gateway::server::file_name;

pub use self::arguments::SimulateArguments;
use self::flow::Flow;
use self::pending::{MAX_BYTES, NamedRequest, Pending};
use self::rows::Rows;
use self::summary::Summary;
use crate::learned_costs;
use crate::output::{complain, exit_code, print};
use crate::trace::{each_request, open};

/// Replays a trace against `file`. Prints a row for each request, or a summary.
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
            "{name}: {learned} by a running gateway, not by this replay: a request costs the value in its line, or 1"
        ));
    }
    let has_rows = arguments.rows || !(arguments.summary || io::stdout().is_terminal());
    let has_gate = |origin: &Origin| origin.gate_limits().is_some();
    let mut replay = Replay {
        simulator: Simulator::new(&settings),
        summary: Summary::default(),
        rows: has_rows.then(|| Rows::new(settings.origins.iter().any(has_gate))),
        pending: Pending::new(MAX_BYTES),
        flow: arguments.plot.is_some().then(Flow::new),
        read: 0,
        bad: 0,
        late: 0,
        is_incomplete: false,
    };
    let opened = open(trace, arguments.format);
    let replayed = opened.and_then(|lines| replay.run(trace, lines));
    if let Err(error) = replayed {
        return exit_code(&trace.display().to_string(), Err(error));
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

/// A replay, with what it counts and prints.
struct Replay<'a> {
    simulator: Simulator<'a>,
    summary: Summary,
    /// Set if each request is printed.
    rows: Option<Rows>,
    pending: Pending,
    /// Set if a picture is drawn.
    flow: Option<Flow>,
    /// Number of requests read.
    read: u64,
    /// Number of lines that could not be read.
    bad: u64,
    /// Number of requests whose line has an earlier time than a line before it.
    late: u64,
    /// Whether reading the trace stopped before its end.
    is_incomplete: bool,
}

impl Replay<'_> {
    /// Replays all lines, and counts or prints their requests. `trace`: the name in messages.
    fn run(&mut self, trace: &Path, mut lines: Trace) -> io::Result<()> {
        if let Some(rows) = &mut self.rows {
            rows.write_header()?;
        }
        let mut bad = 0;
        let is_complete = each_request(trace, &mut lines, &mut bad, |line| self.submit(line))?;
        (self.bad, self.is_incomplete) = (bad, !is_complete);
        self.simulator.end();
        self.output_known()?;
        if let Some(flow) = &mut self.flow {
            flow.end();
        }
        self.rows.as_mut().map_or(Ok(()), Rows::flush)
    }

    /// Replays one line.
    fn submit(&mut self, line: &Line) -> io::Result<()> {
        self.simulator.submit(self.read, line);
        self.read += 1;
        self.pending.add(NamedRequest::of(line))?;
        self.output_known()
    }

    /// Counts and prints the requests whose outcomes are known, in the order of the lines.
    fn output_known(&mut self) -> io::Result<()> {
        for (number, outcome) in self.simulator.take_known() {
            self.pending.set(number, outcome);
        }
        while let Some((request, outcome)) = self.pending.take() {
            self.summary.add(outcome.as_ref());
            // Only the summary shows keys.
            if self.rows.is_none() {
                let key = request.key.as_deref().unwrap_or(b"-");
                self.summary.add_for_key(key, outcome.as_ref());
            }
            let Some(outcome) = outcome else {
                continue;
            };
            // The simulator moves a request that is out of order to a later time.
            self.late += u64::from(outcome.time > request.time);
            if let Some(flow) = &mut self.flow {
                flow.add(&outcome);
            }
            if let Some(rows) = &mut self.rows {
                rows.write(&request, &outcome)?;
            }
        }
        Ok(())
    }

    /// Reports what the replay left out or changed. Prints the summary, unless rows are printed.
    ///
    /// Fails if no request was read because of bad lines or an error.
    fn report(&self, name: &str) -> ExitCode {
        for (count, what) in [
            (self.bad, "lines could not be read"),
            (
                self.summary.unrouted,
                "requests matched no route, or one that refuses them",
            ),
            (
                self.late,
                "requests are out of order, and were replayed at the time of the line before them",
            ),
            (
                self.simulator.untimed,
                "requests have no time at the origin in the trace: they hold no permit of max_in_flight or in_flight",
            ),
        ] {
            if count > 0 {
                complain(format_args!("{count} {what}"));
            }
        }
        for variable in self.simulator.missing_variables() {
            complain(format_args!(
                "the trace does not contain ${variable}: keys were made without it"
            ));
        }
        let printed = match self.rows {
            Some(_) => ExitCode::SUCCESS,
            None => print(&self.summary.text(name)),
        };
        if self.read == 0 && (self.bad > 0 || self.is_incomplete) {
            ExitCode::FAILURE
        } else {
            printed
        }
    }
}
