use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use super::file::{CLAIM, IDLE, SESSIONS, SaleFile};
use super::score::{SaleSecond, SaleTotal};
use super::visitors::{LEAVE, VISITORS, WITHIN};
use crate::tools::demo::picture::{Picture, bar};
use crate::tools::demo::screen::{HEADING_EVERY, say};
use crate::tools::demo::tally::TENTHS;

/// The names of the columns.
const HEADING: &str =
    "      come  waiting  gone   ask again   inside          let in   after  the shop gets";

/// An introduction for users who see the demo for the first time.
pub(super) fn introduction(file: &SaleFile) -> io::Result<()> {
    say(format!(
        "drip demo --scene sale: {VISITORS} visitors in {} seconds before a shop of {SESSIONS} \
         places\n\n\
         \x20 the shop      http://{}/  <- open it in a browser: wait, and be let in\n\
         \x20 visitors      keep a ticket and no connection, and ask again when they are told to;\n\
         \x20               {:.0} % of those who wait never come back\n\
         \x20 the gateway   calls the next one when a place is free: {IDLE} after the last\n\
         \x20               request of a visitor, or if a called one does not come within {CLAIM}\n\
         \x20 live page     http://{}/\n\
         \x20 its file      {}\n\
         \x20               edit sessions, save, and watch the places change; Ctrl-C ends\n",
        WITHIN / TENTHS,
        file.gateway(),
        LEAVE * 100.0,
        file.admin(),
        file.path().display(),
    ))
}

/// The line of one second.
pub(super) fn line(
    number: u64,
    second: &SaleSecond,
    places: Option<u32>,
    left: u32,
) -> io::Result<()> {
    if (number - 1).is_multiple_of(HEADING_EVERY) {
        say(HEADING)?;
    }
    let picture = Picture::of_stdout();
    let after = second.median_wait().map_or("-".to_owned(), shown);
    let mut line = format!(
        "{number:>4}s {:>4}  {:>7}  {:>4}  {:>9}   {} {:>3}  {:>7}  {after:>6}  {left:>6}",
        second.came,
        second.waiting,
        second.went,
        second.polls,
        bar(second.inside, places.unwrap_or(0)),
        second.inside,
        second.let_in,
    );
    if second.failed > 0 {
        let failed = picture.warn(second.failed, format!("{} failed", second.failed));
        // Writing to a string does not fail.
        let _ = write!(line, "  {failed}");
    }
    say(line)
}

/// Notes that the file was saved with another number of places.
pub(super) fn changed(file: &SaleFile, places: Option<u32>) -> io::Result<()> {
    let places = places.map_or("without a bound".to_owned(), |it| it.to_string());
    let text = format!(
        "{} was saved and is in force: places {places}",
        file.path().display()
    );
    say(Picture::of_stdout().note(&text))
}

/// The summary at the end.
pub(super) fn summary(seconds: u64, total: &SaleTotal) -> io::Result<()> {
    let mut line = format!(
        "\n{seconds} s: {} visitors came, {} were let in, {} never came back, {} still waiting",
        total.came, total.let_in, total.went, total.waiting
    );
    if total.failed > 0 {
        let _ = write!(line, ", {} failed", total.failed);
    }
    say(line)?;
    say(format!(
        "at most {} inside at once; the longest wait {}; at most {} asked again in a second",
        total.max_inside,
        shown(total.longest),
        total.max_polls
    ))
}

fn shown(wait: Duration) -> String {
    format!("{:.0} s", wait.as_secs_f64())
}
