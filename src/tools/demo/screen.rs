use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use config;

use super::aim::{Aim, AimError};
use super::picture::{self, Picture};
use super::tally::{Second, Total};
use super::{place, words};

/// Lines between two headings, so that one is always visible.
const HEADING_EVERY: u64 = 20;

/// Standard output. If the reader closes it, the error ends the demo.
#[derive(Debug)]
pub(super) struct Screen<'a> {
    file: &'a Path,
    picture: Picture,
    /// Number of seconds shown so far.
    seconds: u64,
}

impl<'a> Screen<'a> {
    pub(super) fn new(file: &'a Path) -> Self {
        Self {
            file,
            picture: Picture::of_stdout(),
            seconds: 0,
        }
    }

    pub(super) fn introduction(&self, aim: &Aim) -> io::Result<()> {
        let knob = self.picture.knob(&self.place(aim), aim);
        say(format!("{}\n{knob}\n", words::introduction(aim)))
    }

    pub(super) fn line(&mut self, second: &Second, aim: &Aim) -> io::Result<()> {
        if self.seconds.is_multiple_of(HEADING_EVERY) {
            say(picture::HEADING)?;
        }
        self.seconds += 1;
        say(self.picture.line(self.seconds, second, aim))
    }

    /// Notes that the file was saved and is in force.
    pub(super) fn changed(&self, old: &Aim, new: &Aim) -> io::Result<()> {
        let place = self.place(new);
        let text = if (&old.zone, old.rate) == (&new.zone, new.rate) {
            format!(
                "{} was saved and is in force; the rate is still {}",
                self.file.display(),
                new.rate
            )
        } else {
            format!(
                "{place} was saved and is in force: {} is now {}",
                old.rate, new.rate
            )
        };
        say(self.picture.note(&text))
    }

    /// Notes that the file was saved and leaves nothing to show.
    pub(super) fn unclear(&self, error: &AimError) -> io::Result<()> {
        say(self
            .picture
            .note(&format!("{} was saved: {error}", self.file.display())))
    }

    pub(super) fn summary(&self, total: &Total) -> io::Result<()> {
        // The terminal has printed ^C on the line.
        let gap = if io::stdout().is_terminal() { "\n" } else { "" };
        say(format!(
            "{gap}{}\n{}",
            words::summary(self.seconds, total),
            words::OTHER_SCENE
        ))
    }

    /// The file, and the line number of the rate.
    fn place(&self, aim: &Aim) -> String {
        let file = self.file.display();
        let text = config::read(self.file).ok();
        match text.and_then(|text| place::of_rate(&text, &aim.zone)) {
            Some(line) => format!("{file}:{line}"),
            None => file.to_string(),
        }
    }
}

/// Writes a line to standard output.
pub(super) fn say(text: impl Display) -> io::Result<()> {
    writeln!(io::stdout(), "{text}")
}
