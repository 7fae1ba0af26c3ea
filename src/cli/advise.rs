//! `drip advise`: which rate and burst fit this traffic?

use std::collections::HashSet;
use std::fmt::Display;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::config::{self, KeyTemplate, Zone};
use crate::tools::advise::{self, Advice, Hours, Log, MOST_KEYS, Span, Survey};
use crate::tools::trace::{SHOWN, length, open, progress, svg};

/// The arguments of `drip advise`.
#[derive(Debug, Args)]
pub struct Wanted {
    /// The key that identifies a client, made of those of nginx's variables that the log has; a text
    /// without variables counts all requests together
    #[arg(long, value_name = "KEY", default_value = "$remote_addr")]
    key: KeyTemplate,
    /// For drip's own log: use the keys that this zone logged, and only the requests on which it
    /// decided
    #[arg(long, value_name = "NAME")]
    zone: Option<String>,
    /// A gateway.toml: key and plans of the zone are those of this file, for any log
    #[arg(
        short,
        long,
        value_name = "FILE",
        requires = "zone",
        conflicts_with = "key"
    )]
    config: Option<PathBuf>,
    /// Hours without trouble, by the clock of the log: none of their requests should be rejected
    /// [default: all hours that are not bad]
    #[arg(long, value_name = "FROM/TO")]
    good: Vec<Span>,
    /// Hours with too much traffic
    #[arg(long, value_name = "FROM/TO")]
    bad: Vec<Span>,
    /// Also draw a plot
    #[arg(long, value_name = "FILE.svg", value_parser = svg())]
    plot: Option<PathBuf>,
    /// Access logs in nginx's combined format, drip's or nginx's JSON, or CSV lines
    /// `time_seconds,key`; plain or compressed by gzip; - for standard input
    #[arg(value_name = "ACCESS_LOG", required = true)]
    logs: Vec<PathBuf>,
}

/// Reads the logs and prints the settings that they suggest.
#[must_use]
pub fn advise(wanted: &Wanted) -> ExitCode {
    match read(wanted) {
        Ok(Some(advice)) => tell(wanted, &advice),
        Ok(None) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("drip: {error}");
            ExitCode::FAILURE
        }
    }
}

fn read(wanted: &Wanted) -> io::Result<Option<Advice>> {
    let hours = Hours::new(wanted.good.clone(), wanted.bad.clone());
    let survey = Survey::new(wanted.key.clone(), hours, MOST_KEYS)?;
    let mut survey = match (&wanted.config, &wanted.zone) {
        (_, None) => survey,
        (None, Some(zone)) => survey.of_zone(zone.clone()),
        (Some(file), Some(zone)) => survey.of_zone_in_file(zone_in(file, zone)?),
    };
    let logs = each_once(&wanted.logs);
    let lengths = logs.iter().map(|log| length(log));
    let progress = progress(lengths.sum());
    let log = |path: &&PathBuf| {
        let (path, progress) = ((*path).clone(), &progress);
        Log {
            name: path.display().to_string(),
            is_file: length(&path).is_some(),
            open: Box::new(move || open(&path, progress)),
        }
    };
    let logs = logs.iter().map(log).collect();
    let mut told = 0;
    let complain = |log: &str, line: Option<u64>, what: &dyn Display| {
        told += 1;
        match line {
            // A problem with a whole log is always shown.
            None => eprintln!("{log}: {what}"),
            Some(line) if told <= SHOWN => eprintln!("{log}: line {line}: {what}"),
            Some(_) => {}
        }
    };
    let reading = advise::read(logs, &mut survey, complain)?;
    progress.finish_and_clear();
    if reading.bad > 0 {
        eprintln!("{} lines could not be read", reading.bad);
    }
    let untold = survey.untold().join(", ");
    let is_keyless = reading.read > 0 && survey.is_keyless();
    let advice = Advice::new(survey)?;
    if advice.is_none() {
        eprintln!(
            "{}",
            if reading.read == 0 {
                "the logs have no request".to_owned()
            } else if let Some(zone) = wanted.zone.as_ref().filter(|_| is_keyless) {
                format!("the log has no request on which zone {zone} decided")
            } else if untold.is_empty() {
                "there is no request in the good hours".to_owned()
            } else {
                format!(
                    "no request has a key: the log does not have {untold}; choose another --key"
                )
            }
        );
    }
    Ok(advice)
}

/// The zone of this name in a file.
fn zone_in(file: &Path, name: &str) -> io::Result<Zone> {
    let settings = config::load(file).map_err(io::Error::other)?;
    let names: Vec<_> = settings.zones.iter().map(|zone| &*zone.name).collect();
    let names = names.join(", ");
    let found = settings.zones.into_iter().find(|zone| zone.name == name);
    found.ok_or_else(|| {
        let file = file.display();
        io::Error::other(format!("{file} has no zone {name}; it has: {names}"))
    })
}

/// The logs without duplicates.
///
/// `access.log *.log` names a log twice, and its requests would count twice.
fn each_once(logs: &[PathBuf]) -> Vec<&PathBuf> {
    let mut known = HashSet::new();
    let is_new = |log: &&PathBuf| {
        let file = length(log).and_then(|_| fs::canonicalize(log).ok());
        let is_new = file.is_none_or(|file| known.insert(file));
        if !is_new {
            eprintln!("{}: is listed twice, and is read once", log.display());
        }
        is_new
    };
    logs.iter().filter(is_new).collect()
}

fn tell(wanted: &Wanted, advice: &Advice) -> ExitCode {
    let plotted = wanted.plot.as_deref().map(|file| draw(advice, file));
    let report = advise::report(advice);
    match io::stdout().write_all(report.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("drip: {error}");
            ExitCode::FAILURE
        }
        _ => plotted.unwrap_or(ExitCode::SUCCESS),
    }
}

fn draw(advice: &Advice, file: &Path) -> ExitCode {
    let Some(picture) = advise::picture(advice) else {
        eprintln!(
            "{}: there is no request without a plan to draw",
            file.display()
        );
        return ExitCode::FAILURE;
    };
    match picture.save(file) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", file.display());
            ExitCode::FAILURE
        }
    }
}
