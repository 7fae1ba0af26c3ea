//! Draws the lines of the scene `smooth`.
//!
//! `Picture`, `say` and `milliseconds` are also used by the scene `fair`.

use std::env;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write as _};

use super::pace::Pace;
use super::tally::Second;

/// Width of the bar of waiting requests, in characters.
const BAR_WIDTH: usize = 10;

/// The names of the columns.
pub(super) const HEADING: &str =
    "      in              waiting         out             one every  rejected  rate";

/// Draws lines, with or without colours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Picture {
    pub(super) colours: bool,
}

/// Colours, with their numbers in escape sequences of terminals.
#[derive(Clone, Copy)]
enum Colour {
    Red = 31,
    Green = 32,
    Yellow = 33,
    Cyan = 36,
}

impl Picture {
    /// Returns a picture with colours if standard output is a terminal and `NO_COLOR` is not set.
    pub(super) fn of_stdout() -> Self {
        let is_plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            colours: io::stdout().is_terminal() && !is_plain,
        }
    }

    /// Formats a line that says where to change the rate.
    pub(super) fn rate_hint(self, file: &str, pace: Pace) -> String {
        let rate = self.paint(Colour::Cyan, format!("{file}  rate = \"{}\"", pace.rate));
        format!("  {rate}   <- edit, save, and watch the pace change; Ctrl-C ends\n")
    }

    /// Formats the line of one second. `number`: the number of the second, from 1.
    pub(super) fn line(self, number: u64, second: &Second, pace: Pace) -> String {
        let arrivals = self.paint(Colour::Yellow, sparkline(&second.sent));
        let departures = self.paint(Colour::Green, sparkline(&second.reached));
        let [sent, reached] =
            [second.sent, second.reached].map(|tenths| tenths.iter().sum::<u32>());
        let queue = bar(second.waiting, pace.burst);
        let every = second
            .gaps
            .evenness()
            .map_or(String::new(), |(mean, deviation)| {
                format!("{} ±{:.2}", milliseconds(mean, 1), deviation * 1000.0)
            });
        let rejected = self.warn(second.rejected, format!("{:>3}", second.rejected));
        let mut line = format!(
            "{number:>4}s {arrivals} {sent:>3}  {queue} {:>3}  {departures} {reached:>3}  {every:<15} {rejected}  {}",
            second.waiting, pace.rate
        );
        if second.failed > 0 {
            line += &self.warn(second.failed, format!("  {} failed", second.failed));
        }
        line
    }

    /// Formats a note about an event between two lines.
    pub(super) fn note(self, text: &str) -> String {
        self.paint(Colour::Cyan, format!("      {text}"))
    }

    /// Paints `text`, which is about `number`, if the number is not zero as it should be.
    pub(super) fn warn(self, number: u32, text: String) -> String {
        if number > 0 {
            self.paint(Colour::Red, text)
        } else {
            text
        }
    }

    /// Adds a colour to a text, if the picture has colours.
    fn paint(self, colour: Colour, text: String) -> String {
        if self.colours {
            format!("\x1b[{}m{text}\x1b[0m", colour as u8)
        } else {
            text
        }
    }
}

/// Draws one bar for each number. The highest bar stands for eight or more.
fn sparkline(numbers: &[u32]) -> String {
    const BARS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let bar = |number: &u32| BARS[usize::try_from(*number).map_or(8, |index| index.min(8))];
    numbers.iter().map(bar).collect()
}

/// Draws a bar that is filled by the share of `waiting` in `burst`, rounded up.
fn bar(waiting: usize, burst: u32) -> String {
    let burst = usize::try_from(burst).unwrap_or(usize::MAX).max(1);
    let filled = waiting.min(burst).saturating_mul(BAR_WIDTH).div_ceil(burst);
    let filled = filled.min(BAR_WIDTH);
    "█".repeat(filled) + &"░".repeat(BAR_WIDTH - filled)
}

/// Writes a line to standard output.
pub(super) fn say(text: impl Display) -> io::Result<()> {
    writeln!(io::stdout(), "{text}")
}

/// Formats seconds as milliseconds.
pub(super) fn milliseconds(seconds: f64, decimals: usize) -> String {
    format!("{:.decimals$} ms", seconds * 1000.0)
}
