//! Trace: reads the requests of a trace or access log, line by line.

use std::io::{self, Read};

use limit::Moment;

use super::line::{Form, Line, LineError};
use super::lines::Lines;

/// Number of lines in which [`Trace::first_time`] searches for a request.
const SEARCHED_LINES: usize = 1000;

/// Reads a trace or access log line by line, with or without gzip.
///
/// The first line that can be parsed determines the format, unless the user requests one.
pub struct Trace {
    lines: Lines,
    /// Format that the user requested; `None`: it is detected.
    requested: Option<Form>,
    /// Format of the first line that could be parsed. All later lines are parsed in this format.
    pub form: Option<Form>,
    /// Whether a non-empty line was read.
    has_begun: bool,
    /// Last line that was not UTF-8, converted to it.
    converted: String,
}

impl Trace {
    /// Reads from `input`. `requested`: format of the lines; `None`: it is detected.
    ///
    /// # Errors
    ///
    /// Returns an error if the first bytes cannot be read.
    pub fn new(input: Box<dyn Read>, requested: Option<Form>) -> io::Result<Self> {
        Ok(Self {
            lines: Lines::new(input)?,
            requested,
            form: None,
            has_begun: false,
            converted: String::new(),
        })
    }

    /// Returns the next line and its number; `None` at the end. Skips empty lines and the header.
    ///
    /// # Errors
    ///
    /// Returns an error if the input cannot be read further.
    pub fn take(&mut self) -> io::Result<Option<(u64, Result<Line<'_>, LineError>)>> {
        let (number, form) = loop {
            let taken = self.lines.take();
            let Some(number) = taken.map_err(|error| self.with_line_number(&error))? else {
                return Ok(None);
            };
            let Some(line) = self.lines.line().map(trimmed) else {
                return Ok(Some((number, Err(LineError::TooLong))));
            };
            if line.is_empty() {
                continue;
            }
            if let Some(form) = self.form {
                break (number, form);
            }
            let first = String::from_utf8_lossy(line);
            let form = self.requested.unwrap_or_else(|| Form::detect(&first));
            // Only a line that can be parsed determines the format (below): the first one may be
            // truncated, after `tail -c` or rotation.
            let is_first = !std::mem::replace(&mut self.has_begun, true);
            if !(is_first && form.is_header(&first)) {
                break (number, form);
            }
        };
        let bytes = trimmed(self.lines.line().unwrap_or_default());
        let text = if let Ok(text) = str::from_utf8(bytes) {
            text
        } else {
            self.converted = String::from_utf8_lossy(bytes).into_owned();
            &self.converted
        };
        let read = form.read(text);
        if read.is_ok() {
            self.form = Some(form);
        }
        Ok(Some((number, read)))
    }

    /// Returns the time of the first request; `None` if the first 1000 lines have none.
    ///
    /// # Errors
    ///
    /// Returns an error if the input cannot be read further.
    pub fn first_time(&mut self) -> io::Result<Option<Moment>> {
        for _ in 0..SEARCHED_LINES {
            match self.take()? {
                Some((_, Ok(line))) => return Ok(Some(line.time)),
                Some((_, Err(_))) => {}
                None => break,
            }
        }
        Ok(None)
    }

    /// Adds the number of the last line to a read error.
    fn with_line_number(&self, error: &io::Error) -> io::Error {
        let number = self.lines.number();
        io::Error::new(error.kind(), format!("{error}, after line {number}"))
    }
}

/// Returns a line without a byte order mark at its start and carriage returns at its end.
fn trimmed(line: &[u8]) -> &[u8] {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let end = line.iter().rposition(|byte| *byte != b'\r');
    &line[..end.map_or(0, |end| end + 1)]
}
