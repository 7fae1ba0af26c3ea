//! Reading of the traces and access logs that commands are given.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use clap::builder::{PathBufValueParser, PossibleValuesParser, TypedValueParser};

use crate::limit::Moment;
use crate::replay::Form;
use crate::time::clock;

/// How many bad lines are shown one by one. Further bad lines are only counted.
pub(crate) const SHOWN: u64 = 10;

/// Interval between two drawings of the progress.
const DRAWN_EVERY: Duration = Duration::from_millis(100);

/// How much of the files has been read, on a line of standard error.
///
/// It is drawn only if that is a terminal and the length is known. Clones share it.
#[derive(Clone)]
pub(crate) struct Progress(Rc<State>);

struct State {
    /// `None`: nothing is drawn.
    length: Option<u64>,
    read: Cell<u64>,
    drawn: Cell<Moment>,
}

impl Progress {
    /// Of files of `length` bytes in total.
    pub(crate) fn of(length: Option<u64>) -> Self {
        Self(Rc::new(State {
            length: length.filter(|_| io::stderr().is_terminal()),
            read: Cell::new(0),
            drawn: Cell::new(clock::now()),
        }))
    }

    fn add(&self, bytes: usize) {
        let Some(length) = self.0.length else {
            return;
        };
        let (read, now) = (self.0.read.get() + bytes as u64, clock::now());
        self.0.read.set(read);
        if now.since(self.0.drawn.get()) >= DRAWN_EVERY {
            self.0.drawn.set(now);
            let percent = read.saturating_mul(100) / length.max(1);
            draw(&format!("{percent} % of {} MB is read", length / 1_000_000));
        }
    }

    /// Removes the line.
    pub(crate) fn finish(&self) {
        if self.0.length.is_some() {
            draw("");
        }
    }
}

/// Replaces the present line of the terminal.
fn draw(line: &str) {
    // Without a terminal nobody misses it.
    let _gone = write!(io::stderr(), "\r\x1b[K{line}");
}

/// An input whose bytes are counted.
struct Counted {
    input: Box<dyn Read>,
    progress: Progress,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.progress.add(read);
        Ok(read)
    }
}

/// Parses the name of a plot's file.
///
/// It must end in `.svg`: any other name is a mistake, either of another format or of a log.
pub(crate) fn svg() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| {
        let is_svg = path
            .extension()
            .is_some_and(|kind| kind.eq_ignore_ascii_case("svg"));
        is_svg
            .then_some(path)
            .ok_or("plots are SVG; the name must end in .svg")
    })
}

/// Parses the name of a format. Completions and help list the names.
pub(crate) fn form() -> impl TypedValueParser<Value = Form> {
    PossibleValuesParser::new(Form::names()).try_map(|name| name.parse::<Form>())
}

/// The size of a file in bytes; `None` for standard input (`-`) and for non-files.
pub(crate) fn length(path: &Path) -> Option<u64> {
    if path == Path::new("-") {
        return None;
    }
    let metadata = std::fs::metadata(path).ok()?;
    metadata.is_file().then_some(metadata.len())
}

/// Opens a file, or standard input if the path is `-`.
pub(crate) fn open(path: &Path, progress: &Progress) -> io::Result<Box<dyn Read>> {
    let input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path)?)
    };
    Ok(Box::new(Counted {
        input,
        progress: progress.clone(),
    }))
}
