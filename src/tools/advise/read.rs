use std::fmt::Display;
use std::io::{self, Read};

use gateway::replay::{Form, Trace};
use limit::Moment;

use super::survey::Survey;

/// A log that is opened when it is needed.
pub struct Log<'a> {
    /// The log's name in messages.
    pub name: String,
    /// Its format; `None` if that is to be detected.
    pub form: Option<Form>,
    /// Whether it can be opened more than once. A pipe can be read only once.
    pub is_file: bool,
    /// Opens the log. A file is read from its start each time.
    pub open: Box<dyn Fn() -> io::Result<Box<dyn Read>> + 'a>,
}

/// Counts of the lines read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Lines that were requests.
    pub read: u64,
    /// Lines that were not requests.
    pub bad: u64,
}

/// How many lines at the start of a log are searched for a time.
const LOOKED_AT: usize = 1000;

/// Reads logs into `survey`, one after another, the one with the earliest request first.
///
/// Problems are reported to `complain` with log and line, and the rest is read.
///
/// # Errors
///
/// Returns an error if the survey cannot store more.
pub fn read(
    mut logs: Vec<Log>,
    survey: &mut Survey,
    mut complain: impl FnMut(&str, Option<u64>, &dyn Display),
) -> io::Result<Reading> {
    let mut reading = Reading::default();
    // A pipe is opened only once, so its start is unknown and it is read first.
    logs.sort_by_cached_key(|log| log.is_file.then(|| begin(log)).flatten());
    for log in logs {
        let mut trace = match log.lines() {
            Ok(trace) => trace,
            Err(error) => {
                complain(&log.name, None, &error);
                continue;
            }
        };
        loop {
            match trace.take() {
                Ok(Some((_, Ok(line)))) => {
                    reading.read += 1;
                    survey.add(&line)?;
                    // That of the first log is told.
                    survey.form = survey.form.or(trace.form());
                }
                Ok(Some((number, Err(error)))) => {
                    reading.bad += 1;
                    complain(&log.name, Some(number), &error);
                }
                Ok(None) => break,
                Err(error) => {
                    complain(&log.name, None, &error);
                    break;
                }
            }
        }
    }
    Ok(reading)
}

impl Log<'_> {
    fn lines(&self) -> io::Result<Trace> {
        (self.open)().and_then(|input| Trace::of_form(input, self.form))
    }
}

/// The time of the first request of a log.
fn begin(log: &Log) -> Option<Moment> {
    let mut trace = log.lines().ok()?;
    for _ in 0..LOOKED_AT {
        if let (_, Ok(line)) = trace.take().ok()?? {
            return Some(line.time);
        }
    }
    None
}
