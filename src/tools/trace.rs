//! Reads the traces and access logs that are given to commands.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, PossibleValuesParser, TypedValueParser};
use gateway::replay::{Form, Line, Trace};
use indicatif::{ProgressBar, ProgressStyle};

use crate::complain::complain;

/// Maximum number of bad lines that are reported individually. Further ones are only counted.
const SHOWN: u64 = 10;

/// Calls `submit` for each request of a trace. Returns whether all lines were read.
///
/// Reports lines that cannot be read on standard error, and adds their number to `bad`.
///
/// # Errors
///
/// Returns the errors of `submit`.
pub(crate) fn each_request(
    name: &Path,
    trace: &mut Trace,
    bad: &mut u64,
    mut submit: impl FnMut(&Line) -> io::Result<()>,
) -> io::Result<bool> {
    let name = name.display();
    loop {
        match trace.take() {
            Ok(Some((_, Ok(line)))) => submit(&line)?,
            Ok(Some((number, Err(error)))) => {
                *bad += 1;
                if *bad <= SHOWN {
                    complain(format_args!("{name}: line {number}: {error}"));
                }
            }
            Ok(None) => return Ok(true),
            Err(error) => {
                complain(format_args!("{name}: {error}"));
                return Ok(false);
            }
        }
    }
}

/// Creates a progress bar for files of `length` bytes in total.
///
/// The bar is drawn on standard error, and only on a terminal.
pub fn progress(length: Option<u64>) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {percent}% of {total_bytes}, {eta} to go");
    let progress = length.map_or_else(ProgressBar::no_length, ProgressBar::new);
    match style {
        Ok(style) => progress.with_style(style),
        Err(_) => progress,
    }
}

/// Parses the name of a plot's file.
///
/// The name must end in `.svg`. Any other name is a mistake: another format, or a log.
pub(crate) fn svg() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| {
        let kind = path.extension();
        let is_svg = kind.is_some_and(|kind| kind.eq_ignore_ascii_case("svg"));
        let svg = is_svg.then_some(path);
        svg.ok_or("plots are SVG; the name must end in .svg")
    })
}

/// Parses the name of a format. Completions and help list the names.
pub fn form() -> impl TypedValueParser<Value = Form> {
    PossibleValuesParser::new(Form::NAMES.map(|(name, _)| name)).try_map(|name| {
        let found = Form::NAMES.into_iter().find(|(known, _)| *known == name);
        found.map(|(_, form)| form).ok_or("not a known format")
    })
}

/// Returns the size of a file in bytes; `None` for standard input (`-`) and for non-files.
pub fn length(path: &Path) -> Option<u64> {
    if path == Path::new("-") {
        return None;
    }
    let metadata = std::fs::metadata(path).ok()?;
    metadata.is_file().then_some(metadata.len())
}

/// Opens a file, or standard input if the path is `-`.
pub fn open(path: &Path, progress: &ProgressBar) -> io::Result<Box<dyn Read>> {
    let input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path)?)
    };
    Ok(Box::new(progress.wrap_read(input)))
}
