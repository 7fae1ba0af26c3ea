//! Reads traces for commands. A trace is a list of requests: CSV lines, or an access log.
//!
//! `gateway::replay` parses the lines. [`Form`] is their format.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use gateway::replay::{Form, Line, Trace};

use crate::output::complain;

/// Maximum number of lines that are reported one by one. Further ones are only counted.
const MAX_REPORTED: u64 = 10;

/// Calls `submit` for each request of a trace. Returns whether the trace was read to its end.
///
/// Reports lines that cannot be parsed on standard error, and adds their number to `bad`. `name`:
/// the file in these messages.
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
            Ok(Some((_number, Ok(line)))) => submit(&line)?,
            Ok(Some((number, Err(error)))) => {
                *bad += 1;
                if *bad <= MAX_REPORTED {
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

/// Returns a parser of arguments that name a format. Completions and help list the names.
pub fn form() -> impl TypedValueParser<Value = Form> {
    PossibleValuesParser::new(Form::NAMES.map(|(name, _)| name)).try_map(|name| {
        let found = Form::NAMES.into_iter().find(|(known, _)| *known == name);
        found.map(|(_, form)| form).ok_or("not a known format")
    })
}

/// Returns whether a log can be read several times: it is neither standard input (`-`) nor a pipe.
pub(crate) fn is_file(path: &Path) -> bool {
    path != Path::new("-") && path.is_file()
}

/// Opens a trace, or standard input if the path is `-`.
///
/// `form`: format of the lines; `None`: it is detected.
pub(crate) fn open(path: &Path, form: Option<Form>) -> io::Result<Trace> {
    let input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path)?)
    };
    Trace::new(input, form)
}
