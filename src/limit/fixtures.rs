//! Values and generators that the unit tests of this crate share.

use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;

use crate::{Cost, Delay, Limit, Moment, Rate};

/// Instant at which most tests begin: 2027, at the beginning of a minute.
pub(crate) const START: Moment = Moment::from_nanos(1_800_000_000_000_000_000);

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Returns the instant `millis` milliseconds after [`START`].
pub(crate) fn at(millis: u64) -> Moment {
    START + ms(millis)
}

/// Returns the milliseconds from [`START`] to an instant.
pub(crate) fn millis_of(moment: Moment) -> u64 {
    u64::try_from(moment.since(START).as_millis()).expect("soon")
}

pub(crate) fn rate(text: &str) -> Rate {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub(crate) fn cost(cost: u32) -> Cost {
    Cost::new(cost).expect("from 1 to 255")
}

pub(crate) const fn nonzero(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).expect("above zero")
}

/// Returns a limit with nginx's `burst` and `delay`, for a request of cost 1.
pub(crate) fn limit(burst: u32, delay: Delay) -> Limit {
    Limit {
        burst,
        ..Limit::unlimited(delay, Cost::ONE)
    }
}

/// Generates the nanoseconds before a request: none, few, many, or tenths of a second.
pub(crate) fn any_gap() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        0..2_000_000_u64,
        0..200_000_000_u64,
        (0..40_u64).prop_map(|tenths| tenths * 100_000_000),
    ]
}

/// Generates rates whose intervals are whole nanoseconds, or are not.
pub(crate) fn any_rate() -> impl Strategy<Value = Rate> {
    let rates = [
        "1r/s", "3r/s", "10r/s", "7r/250ms", "2r/7ms", "5r/m", "0.7r/s",
    ];
    prop::sample::select(rates.to_vec()).prop_map(rate)
}
