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

/// A log that is being read.
struct Open {
    name: String,
    trace: Trace,
    /// Its next request: the time, and the slot of its key.
    next: Option<(u64, u32)>,
}

/// How many lines at the start of a log are searched for a time.
const LOOKED_AT: usize = 1000;

/// Reads logs into `survey`, the oldest first.
///
/// Logs whose times overlap are read side by side. Problems are reported to `complain` with log and
/// line, and the rest is read.
///
/// # Errors
///
/// Returns an error if the survey cannot store more.
pub fn read(
    logs: Vec<Log>,
    survey: &mut Survey,
    mut complain: impl FnMut(&str, Option<u64>, &dyn Display),
) -> io::Result<Reading> {
    let mut reading = Reading::default();
    // A pipe is opened only once, so its start is unknown and it is opened first.
    let of = |log: &Log| log.is_file.then(|| begin(log)).flatten();
    let logs = logs.into_iter();
    let mut waiting: Vec<(Moment, Log)> = logs
        .map(|log| (of(&log).unwrap_or_default(), log))
        .collect();
    waiting.sort_by_key(|(begin, _)| std::cmp::Reverse(*begin));
    let mut open: Vec<Open> = Vec::new();
    loop {
        let earliest = open
            .iter()
            .filter_map(|log| log.next.map(|next| next.0))
            .min();
        let is_due = |begin: Moment| earliest.is_none_or(|earliest| begin.as_nanos() <= earliest);
        if let Some((_, log)) = waiting.pop_if(|(begin, _)| is_due(*begin)) {
            match (log.open)().and_then(|input| Trace::of_form(input, log.form)) {
                Ok(trace) => open.push(Open {
                    name: log.name,
                    trace,
                    next: None,
                }),
                Err(error) => complain(&log.name, None, &error),
            }
            if let Some(last) = open.last_mut() {
                last.advance(survey, &mut reading, &mut complain);
            }
        } else {
            let next = open.iter_mut().min_by_key(|log| log.next);
            let Some((log, (time, slot))) = next.and_then(|log| log.next.map(|next| (log, next)))
            else {
                break;
            };
            survey.count(time, slot)?;
            log.advance(survey, &mut reading, &mut complain);
        }
        open.retain(|log| log.next.is_some());
        if open.is_empty() && waiting.is_empty() {
            break;
        }
    }
    Ok(reading)
}

impl Open {
    /// Reads on to the next request that counts.
    fn advance(
        &mut self,
        survey: &mut Survey,
        reading: &mut Reading,
        complain: &mut impl FnMut(&str, Option<u64>, &dyn Display),
    ) {
        self.next = None;
        while self.next.is_none() {
            match self.trace.take() {
                Ok(Some((_, Ok(line)))) => {
                    reading.read += 1;
                    self.next = survey.item(&line);
                    survey.set_form(self.trace.form());
                }
                Ok(Some((number, Err(error)))) => {
                    reading.bad += 1;
                    complain(&self.name, Some(number), &error);
                }
                Ok(None) => break,
                Err(error) => {
                    complain(&self.name, None, &error);
                    break;
                }
            }
        }
    }
}

/// The time of the first request of a log.
fn begin(log: &Log) -> Option<Moment> {
    let input = (log.open)().ok()?;
    let mut trace = Trace::of_form(input, log.form).ok()?;
    for _ in 0..LOOKED_AT {
        if let (_, Ok(line)) = trace.take().ok()?? {
            return Some(line.time);
        }
    }
    None
}
