//! `drip simulate --collapse`: what collapsing would save, by path.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use super::SimulateArguments;
use super::rows::field;
use crate::config::{Collapse, Settings};
use crate::observe::escape::escape;
use crate::replay::{Simulator, Trace};
use crate::tools::collapse::{CollapseSurvey, Collapsed, KEEPS, notes, table};
use crate::tools::complain::complain;
use crate::tools::trace::{Progress, SHOWN, length, open};

/// Maximum number of paths in the table.
const MAX_PATHS: usize = 20;

/// The lines of a trace, by what became of them.
#[derive(Default)]
struct Lines {
    read: u64,
    bad: u64,
    unrouted: u64,
    rejected: u64,
    untold: u64,
}

/// Prints what collapsing saves of the requests that the zones of `settings` let through.
pub(super) fn simulate(settings: &Settings, trace: &Path, wanted: &SimulateArguments) -> ExitCode {
    let name = trace.display();
    let progress = Progress::of(length(trace));
    let opened = open(trace, &progress).and_then(|input| Trace::of_form(input, wanted.format));
    let opened = match opened {
        Ok(opened) => opened,
        Err(error) => {
            progress.finish();
            complain(format_args!("{name}: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let mut lines = Lines::default();
    let collapsed = read(settings, &name.to_string(), opened, &mut lines);
    progress.finish();
    lines.tell();
    if lines.read == 0 {
        complain(format_args!("{name}: it has no request"));
        return ExitCode::FAILURE;
    }
    if lines.untold == lines.read || collapsed.all.requests > 0 && !collapsed.has_paths() {
        complain(format_args!(
            "{name}: it does not say what was requested; take an access log, or CSV lines \
             time_seconds,key,route_path"
        ));
        return ExitCode::FAILURE;
    }
    let text = if wanted.has_rows() {
        rows(&collapsed)
    } else {
        format!("{}\n{}", table(&collapsed, MAX_PATHS), notes(&collapsed))
    };
    let mut out = BufWriter::new(io::stdout().lock());
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(format_args!("drip: {error}"));
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

fn read(settings: &Settings, name: &str, mut trace: Trace, lines: &mut Lines) -> Collapsed {
    let mut zones = Simulator::new(settings);
    let mut survey = CollapseSurvey::new();
    // For routes that do not collapse yet.
    let usual = Collapse::default();
    loop {
        let (number, line) = match trace.take() {
            Ok(Some(taken)) => taken,
            Ok(None) => break,
            Err(error) => {
                complain(format_args!("{name}: {error}"));
                break;
            }
        };
        let line = match line {
            Ok(line) => line,
            Err(error) => {
                lines.bad += 1;
                if lines.bad <= SHOWN {
                    complain(format_args!("line {number}: {error}"));
                }
                continue;
            }
        };
        lines.read += 1;
        let Some(route) = zones.route(&line) else {
            lines.unrouted += 1;
            continue;
        };
        let Some(delay) = zones.judge_on(route, &line).delay() else {
            lines.rejected += 1;
            continue;
        };
        let collapse = route.collapse.as_deref().unwrap_or(&usual);
        let follow_limit = route.follow_limit(collapse.follow_timeout, delay);
        // A line may stand behind later ones, so it counts from its own time.
        match survey.read(&line, follow_limit) {
            Some(request) => survey.count(line.time + delay, request),
            None => lines.untold += 1,
        }
    }
    for variable in zones.untold() {
        complain(format_args!(
            "the trace does not have ${variable}; keys were made without it"
        ));
    }
    survey.end()
}

impl Lines {
    fn tell(&self) {
        for (count, what) in [
            (self.bad, "lines could not be read"),
            (
                self.unrouted,
                "requests matched no route, or one that refuses them",
            ),
            (self.rejected, "requests are rejected by a zone"),
            (self.untold, "requests have no target in the log"),
        ] {
            if count > 0 {
                complain(format_args!("{count} {what}"));
            }
        }
    }
}

/// A line of CSV for each path.
fn rows(collapsed: &Collapsed) -> String {
    let sent: Vec<String> = KEEPS
        .iter()
        .map(|(_, keep)| format!("sent_keep_{keep}"))
        .collect();
    let mut text = format!("path,requests,{}\n", sent.join(","));
    let mut row = |path: &str, requests: u64, sent: [u64; 3]| {
        text.push_str(path);
        for number in std::iter::once(requests).chain(sent) {
            text.push(',');
            text.push_str(&number.to_string());
        }
        text.push('\n');
    };
    for it in &collapsed.paths {
        row(&field(&escape(&it.path)), it.tally.requests, it.tally.sent);
    }
    let beyond = &collapsed.beyond;
    if beyond.requests > 0 {
        row("", beyond.requests, beyond.sent);
    }
    text
}
