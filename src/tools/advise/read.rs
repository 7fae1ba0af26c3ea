//! Reads the access logs that a command names.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use gateway::replay::{Form, Trace};
use indicatif::ProgressBar;
use limit::Moment;

use super::survey::Survey;
use crate::complain::complain;
use crate::trace::{each_request, length, open, progress};

/// Number of lines at the start of a log that are searched for a time.
const LOOKED_AT: usize = 1000;

/// Reads logs into `survey`, the log with the earliest request first.
///
/// `form`: format of the logs, if known. Reports on standard error what could not be read. Returns
/// the number of requests.
///
/// # Errors
///
/// Returns an error if the survey cannot store more.
pub fn read(logs: &[PathBuf], form: Option<Form>, survey: &mut Survey) -> io::Result<u64> {
    let mut logs = each_once(logs);
    let progress = progress(logs.iter().map(|log| length(log)).sum());
    // A pipe can be opened only once, so its start is unknown. It is read first.
    logs.sort_by_cached_key(|log| length(log).and_then(|_| begin(log, form)));
    let (mut read, mut bad) = (0, 0);
    for log in logs {
        let mut trace = match lines(log, form, &progress) {
            Ok(trace) => trace,
            Err(error) => {
                complain(format_args!("{}: {error}", log.display()));
                continue;
            }
        };
        each_request(log, &mut trace, &mut bad, |line| {
            read += 1;
            survey.add(line)
        })?;
        // The survey reports the format of the first log.
        survey.form = survey.form.or(trace.form());
    }
    progress.finish_and_clear();
    if bad > 0 {
        complain(format_args!("{bad} lines could not be read"));
    }
    Ok(read)
}

fn lines(log: &Path, form: Option<Form>, progress: &ProgressBar) -> io::Result<Trace> {
    open(log, progress).and_then(|input| Trace::new(input, form))
}

/// Returns the time of the first request of a log.
fn begin(log: &Path, form: Option<Form>) -> Option<Moment> {
    let mut trace = lines(log, form, &ProgressBar::hidden()).ok()?;
    for _ in 0..LOOKED_AT {
        if let (_, Ok(line)) = trace.take().ok()?? {
            return Some(line.time);
        }
    }
    None
}

/// Returns the logs without duplicates.
///
/// `access.log *.log` names a log twice, and its requests would count twice.
fn each_once(logs: &[PathBuf]) -> Vec<&Path> {
    let mut known = HashSet::new();
    let is_new = |log: &&Path| {
        let file = length(log).and_then(|_| fs::canonicalize(log).ok());
        let is_new = file.is_none_or(|file| known.insert(file));
        if !is_new {
            let log = log.display();
            complain(format_args!("{log}: listed twice, read once"));
        }
        is_new
    };
    logs.iter().map(PathBuf::as_path).filter(is_new).collect()
}
