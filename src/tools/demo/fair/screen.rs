//! The text that the scene `fair` prints.

use std::io;
use std::time::Duration;

use super::clients::{FLOOD_IN_A_TENTH, LIGHT_EVERY};
use super::score::{Group, Results};
use super::{QUEUE_TIMEOUT, RATE, SHARE};
use crate::demo::config_file::ConfigFile;
use crate::demo::picture::{Picture, milliseconds, say};
use crate::demo::tally::TENTHS;

/// The names of the columns.
const HEADING: &str = "      \
    nine light clients                     the flooding client                    the origin\n      \
    answered  rejected   median    worst   answered  rejected   median    worst   gets";

/// Prints an introduction for new users, and the first heading.
pub(super) fn introduction(file: &ConfigFile) -> io::Result<()> {
    let path = file.path.display();
    say(format!(
        "drip demo --scene fair: one client floods a backend, nine do not\n\n\
         \x20 the origin    stands in for your backend; its gate sends it {RATE}, all clients together\n\
         \x20 one client    floods: it sends {} requests a second\n\
         \x20 nine clients  are light: each sends {} requests a second\n\
         \x20 the gateway   listens on http://{}; requests that wait {QUEUE_TIMEOUT} get 503\n\
         \x20 live page     http://{}/\n\
         \x20 its file      {path}\n",
        FLOOD_IN_A_TENTH * TENTHS,
        TENTHS / LIGHT_EVERY,
        file.addresses.gateway,
        file.addresses.admin,
    ))?;
    print_title("without share: all requests wait in one queue")
}

/// Prints that the file was saved with `share` and is in force.
pub(super) fn shared(file: &ConfigFile) -> io::Result<()> {
    let path = file.path.display();
    say("")?;
    print_title(&format!(
        "{path} was saved with {SHARE}: clients take turns"
    ))
}

/// Prints the title of a part, and the names of the columns.
fn print_title(title: &str) -> io::Result<()> {
    let title = Picture::of_stdout().note(title);
    say(format!("{title}\n\n{HEADING}"))
}

/// Prints the line of one second. `reached`: number of requests that reached the origin.
pub(super) fn line(number: u64, second: &Results, reached: u32) -> io::Result<()> {
    let picture = Picture::of_stdout();
    let Results { flood, light } = second;
    let mut line = format!(
        "{number:>4}s {}   {}   {reached:>4}",
        columns(light, picture),
        columns(flood, picture)
    );
    let failed = light.failed + flood.failed;
    if failed > 0 {
        line += &picture.warn(failed, format!("  {failed} failed"));
    }
    say(line)
}

/// Formats the results of one kind of clients.
fn columns(group: &Group, picture: Picture) -> String {
    format!(
        "{:>8}  {}  {:>7}  {:>7}",
        group.waits.len(),
        picture.warn(group.rejected, format!("{:>8}", group.rejected)),
        show_wait(group.median()),
        show_wait(group.worst())
    )
}

/// Formats a wait in milliseconds; `-` if no request was answered.
fn show_wait(wait: Option<Duration>) -> String {
    wait.map_or("-".to_owned(), |wait| milliseconds(wait.as_secs_f64(), 0))
}

/// Prints a comparison of the parts. Leaves out a part that was not reached.
pub(super) fn summary(without: &Results, with: &Results) -> io::Result<()> {
    say("")?;
    for (part, Results { light, .. }) in [("without share:", without), ("with share:", with)] {
        if light.is_empty() {
            continue;
        }
        let mut line = format!(
            "{part:<14} the nine got {} answers and {} rejections; median wait {}, worst {}",
            light.waits.len(),
            light.rejected,
            show_wait(light.median()),
            show_wait(light.worst())
        );
        if light.failed > 0 {
            line += &format!("; {} failed", light.failed);
        }
        say(line)?;
    }
    Ok(())
}
