use std::io::{self, Read};

use super::line::{Form, Line, LineError};
use super::lines::Lines;

/// Reads a trace or access log line by line, with or without gzip.
///
/// The first line that can be read decides the format, unless the user names one.
pub struct Trace {
    lines: Lines,
    /// The format that the user names.
    wanted: Option<Form>,
    form: Option<Form>,
    /// Whether a non-empty line has been read.
    has_begun: bool,
    /// The last line that was not UTF-8, converted.
    mended: String,
}

impl Trace {
    /// Reads from `input`.
    ///
    /// # Errors
    ///
    /// Returns an error if the first bytes cannot be read.
    pub fn new(input: Box<dyn Read>) -> io::Result<Self> {
        Self::of_form(input, None)
    }

    /// Reads from `input`, whose lines have the format `wanted`; `None` if that is to be detected.
    ///
    /// # Errors
    ///
    /// Returns an error if the first bytes cannot be read.
    pub fn of_form(input: Box<dyn Read>, wanted: Option<Form>) -> io::Result<Self> {
        Ok(Self {
            lines: Lines::new(input)?,
            wanted,
            form: None,
            has_begun: false,
            mended: String::new(),
        })
    }

    /// The next line that is neither empty nor a header, with its number; `None` at the end.
    ///
    /// # Errors
    ///
    /// Returns an error if the input cannot be read further.
    pub fn take(&mut self) -> io::Result<Option<(u64, Result<Line<'_>, LineError>)>> {
        let (number, place, form) = loop {
            let Some(place) = self.lines.take().map_err(|error| self.told(&error))? else {
                return Ok(None);
            };
            let number = place.number;
            let Some(mut place) = place.bytes else {
                return Ok(Some((number, Err(LineError::TooLong))));
            };
            let bytes = self.lines.bytes(place.clone());
            if bytes.starts_with(b"\xef\xbb\xbf") {
                place.start += 3;
            }
            while place.end > place.start && self.lines.bytes(place.end - 1..place.end) == b"\r" {
                place.end -= 1;
            }
            if place.is_empty() {
                continue;
            }
            if let Some(form) = self.form {
                break (number, place, form);
            }
            let first = String::from_utf8_lossy(self.lines.bytes(place.clone()));
            let form = self.wanted.unwrap_or_else(|| Form::of(&first));
            // The first line may be the end of a line, after `tail -c` or rotation. So it does not
            // decide the format of the others.
            let is_first = !std::mem::replace(&mut self.has_begun, true);
            if !(is_first && form.is_header(&first)) {
                break (number, place, form);
            }
        };
        let bytes = self.lines.bytes(place);
        let text = if let Ok(text) = str::from_utf8(bytes) {
            text
        } else {
            self.mended = String::from_utf8_lossy(bytes).into_owned();
            &self.mended
        };
        let read = form.read(text);
        if read.is_ok() {
            self.form = Some(form);
        }
        Ok(Some((number, read)))
    }

    /// Adds to a read error the line number that it follows.
    fn told(&self, error: &io::Error) -> io::Error {
        let number = self.lines.number();
        io::Error::new(error.kind(), format!("{error}, after line {number}"))
    }

    /// The format, once a line was read.
    #[must_use]
    pub fn form(&self) -> Option<Form> {
        self.form
    }
}
