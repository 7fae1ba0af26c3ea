//! Reads the access logs that a command names.

use std::collections::HashSet;
use std::fmt::Display;
use std::fs;
use std::io;
use std::path::PathBuf;

use crate::replay::Form;
use crate::tools::advise::{self, Log, Reading, Survey};
use crate::tools::complain::complain;
use crate::tools::trace::{Progress, SHOWN, length, open};

/// Reads logs of this format, if it is known, into `survey`.
///
/// Reports on standard error what could not be read.
///
/// # Errors
///
/// Returns an error if the survey cannot store more.
pub(super) fn read(
    logs: &[PathBuf],
    form: Option<Form>,
    survey: &mut Survey,
) -> io::Result<Reading> {
    let logs = each_once(logs);
    let lengths = logs.iter().map(|log| length(log));
    let progress = Progress::of(lengths.sum());
    let log = |path: &&PathBuf| {
        let (path, progress) = ((*path).clone(), &progress);
        Log {
            name: path.display().to_string(),
            form,
            is_file: length(&path).is_some(),
            open: Box::new(move || open(&path, progress)),
        }
    };
    let logs = logs.iter().map(log).collect();
    let mut told = 0;
    let tell = |log: &str, line: Option<u64>, what: &dyn Display| {
        told += 1;
        match line {
            // A problem with a whole log is always shown.
            None => complain(format_args!("{log}: {what}")),
            Some(line) if told <= SHOWN => complain(format_args!("{log}: line {line}: {what}")),
            Some(_) => {}
        }
    };
    let reading = advise::read(logs, survey, tell)?;
    progress.finish();
    if reading.bad > 0 {
        complain(format_args!("{} lines could not be read", reading.bad));
    }
    Ok(reading)
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
            complain(format_args!(
                "{}: is listed twice, and is read once",
                log.display()
            ));
        }
        is_new
    };
    logs.iter().filter(is_new).collect()
}
