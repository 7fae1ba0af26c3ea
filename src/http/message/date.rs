//! The value of the `Date` field (RFC 9110, section 5.6.7), built once per second and thread.

use std::cell::RefCell;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;

use crate::limit::Moment;

/// Calls `put` with the value of a `Date` field for `now`.
pub fn with_date<T>(now: Moment, put: impl FnOnce(&[u8]) -> T) -> T {
    thread_local! {
        static SHOWN: RefCell<(u64, String)> = const { RefCell::new((u64::MAX, String::new())) };
    }
    let second = now.as_nanos() / 1_000_000_000;
    SHOWN.with_borrow_mut(|(shown, text)| {
        if *shown != second {
            *shown = second;
            *text = written(second);
        }
        put(text.as_bytes())
    })
}

fn written(second: u64) -> String {
    let second = i64::try_from(second).unwrap_or_default();
    let moment = Timestamp::from_second(second).unwrap_or_default();
    DateTimePrinter::new()
        .timestamp_to_rfc9110_string(&moment)
        .unwrap_or_default()
}
