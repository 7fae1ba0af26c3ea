//! Reads the access logs that a command names.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use gateway::replay::Form;
use limit::Moment;

use super::survey::Survey;
use crate::output::complain;
use crate::trace::{each_request, is_file, open};

/// Reads logs into `survey`, the log with the earliest request first.
///
/// `form`: format of the logs, if known. Reports on standard error what could not be read. Returns
/// the number of requests.
///
/// # Errors
///
/// Returns an error if the survey cannot store more.
pub fn read(logs: &[PathBuf], form: Option<Form>, survey: &mut Survey) -> io::Result<u64> {
    let mut logs = without_duplicates(logs);
    logs.sort_by_cached_key(|log| first_time(log, form));
    let (mut read, mut bad) = (0, 0);
    for log in logs {
        let mut trace = match open(log, form) {
            Ok(trace) => trace,
            Err(error) => {
                complain(format_args!("{}: {error}", log.display()));
                continue;
            }
        };
        // If a log cannot be read to its end, this is reported, and the rest counts.
        each_request(log, &mut trace, &mut bad, |line| {
            read += 1;
            survey.add(line)
        })?;
        // The survey reports the format of the first log.
        survey.form = survey.form.or(trace.form);
    }
    if bad > 0 {
        complain(format_args!("{bad} lines could not be read"));
    }
    Ok(read)
}

/// Returns the time of the first request of a log; `None` if it is not known.
///
/// A pipe can be opened only once, so its first request is not known. It is read before the files.
fn first_time(log: &Path, form: Option<Form>) -> Option<Moment> {
    let mut trace = is_file(log).then(|| open(log, form).ok())??;
    trace.first_time().ok()?
}

/// Returns the logs without duplicates.
///
/// In `access.log *.log`, a log is named twice. Its requests must not count twice.
fn without_duplicates(logs: &[PathBuf]) -> Vec<&Path> {
    let mut known = HashSet::new();
    let is_new = |log: &&Path| {
        let file = is_file(log).then(|| fs::canonicalize(log).ok()).flatten();
        let is_new = file.is_none_or(|file| known.insert(file));
        if !is_new {
            let log = log.display();
            complain(format_args!("{log}: listed twice, read once"));
        }
        is_new
    };
    logs.iter().map(PathBuf::as_path).filter(is_new).collect()
}
