//! Value of the `Date` field (RFC 9110, section 5.6.7), built once per second and thread.

use std::cell::RefCell;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use limit::Moment;

use crate::time::clock;

/// Calls `put` with the value of a `Date` field for the wall-clock time at `now`.
pub fn with_date<T>(now: Moment, put: impl FnOnce(&[u8]) -> T) -> T {
    thread_local! {
        /// Last second, and its text. `u64::MAX`: none yet.
        static SHOWN: RefCell<(u64, String)> = const { RefCell::new((u64::MAX, String::new())) };
    }
    let second = clock::to_wall(now).as_nanos() / 1_000_000_000;
    SHOWN.with_borrow_mut(|(shown_second, text)| {
        if *shown_second != second {
            *shown_second = second;
            *text = format_date(second);
        }
        put(text.as_bytes())
    })
}

/// Formats a second as in a `Date` field.
fn format_date(second: u64) -> String {
    let second = i64::try_from(second).unwrap_or_default();
    let moment = Timestamp::from_second(second).unwrap_or_default();
    let text = DateTimePrinter::new().timestamp_to_rfc9110_string(&moment);
    text.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::simulated::step_wall;

    #[test]
    fn a_date_follows_a_step_of_the_wall_clock() {
        let shown = || {
            let now = Moment::from_nanos(784_111_777_000_000_000);
            with_date(now, |date| String::from_utf8_lossy(date).into_owned())
        };
        assert_eq!(shown(), "Sun, 06 Nov 1994 08:49:37 GMT");
        step_wall(7200);
        assert_eq!(shown(), "Sun, 06 Nov 1994 10:49:37 GMT");
        step_wall(-7200);
        assert_eq!(shown(), "Sun, 06 Nov 1994 06:49:37 GMT");
    }
}
