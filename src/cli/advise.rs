//! `drip advise`: which rate and burst fit this traffic?

use std::collections::HashSet;
use std::fmt::Display;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::config::KeyTemplate;
use crate::tools::advise::{self, Advice, Hours, Log, MOST_KEYS, Span, Survey};
use crate::tools::trace::{SHOWN, length, open, progress, svg};

/// What `drip advise` is told.
#[derive(Debug, Args)]
pub struct Wanted {
    /// What tells one client from another, in nginx's variables as far as the log has them; a text alone: all together
    #[arg(long, value_name = "KEY", default_value = "$remote_addr")]
    key: KeyTemplate,
    /// Of drip's own log: take the keys as this zone had them, whatever they are made of, and no request on which
    /// another zone decided
    #[arg(long, value_name = "NAME")]
    zone: Option<String>,
    /// Hours without trouble, by the clock of the log: none of their requests is to be rejected [default: all that are
    /// not bad]
    #[arg(long, value_name = "FROM/TO")]
    good: Vec<Span>,
    /// Hours whose traffic was too much
    #[arg(long, value_name = "FROM/TO")]
    bad: Vec<Span>,
    /// Draw it, too
    #[arg(long, value_name = "FILE.svg", value_parser = svg())]
    plot: Option<PathBuf>,
    /// Access logs in nginx's combined format, drip's or nginx's JSON, or CSV lines `time_seconds,key`; packed by gzip or not;
    /// - for standard input
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
    let mut survey = survey.of_zone(wanted.zone.clone());
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
                "there is no request to go by".to_owned()
            } else if let Some(zone) = wanted.zone.as_ref().filter(|_| is_keyless) {
                format!("no line of the log says that zone {zone} decided on its request")
            } else if untold.is_empty() {
                "there is no request in the good hours to go by".to_owned()
            } else {
                format!(
                    "no request has a key: the log does not tell {untold}; choose another --key"
                )
            }
        );
    }
    Ok(advice)
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
            eprintln!("{}: is named twice, and read once", log.display());
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
    match advise::picture(advice).save(file) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", file.display());
            ExitCode::FAILURE
        }
    }
}
