//! Tests of limits on a key's requests in flight, and of zones without a rate.
//!
//! `SMALLEST` in the parent module is a valid file. Each case replaces a text in it.

use std::num::NonZeroU32;

use super::*;

/// Text in the smallest file that cases replace.
const LIMITED: &str = "rate = \"10r/s\"\n\n[[routes]]\npath   = \"/\"\norigin = \"app\"\nlimits = [{ zone = \"per_client\", burst = 20 }]";

/// A zone without a rate and with these lines, and one route with this limit.
macro_rules! without_rate {
    ($zone:literal, $limit:literal) => {
        concat!(
            "rate = \"none\"\n",
            $zone,
            "[[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{ zone = \"per_client\"",
            $limit,
            " }]"
        )
    };
}

/// Rows of replaced text, replacement and expected problems, as [`Case`] describes them.
#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    ("burst = 20", "in_flight = 2", ""),
    (LIMITED, without_rate!("plans.gold = { keys = [\"a\"] }\n", ", in_flight = 9"), ""),
    (LIMITED, without_rate!("", ", burst = 20"),
     "10:11: limits: zone per_client has no rate, so this limit limits nothing; give it in_flight, such as in_flight = 2, or remove it"),
    (LIMITED, without_rate!("", ", delay = 0, in_flight = 2"),
     "10:42: delay: zone per_client has no rate, so no request waits for a slot; remove delay and nodelay"),
    (LIMITED, without_rate!("store = \"redis\"\n", ", in_flight = 2"),
     "6:8: rate: a zone in Redis needs a rate; remove store, or give a rate such as \"10r/s\""),
    (LIMITED, "rate = \"10r/s\"\nstore = \"redis\"\nlease = \"20ms\"\n[[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{ zone = \"per_client\", in_flight = 2 }]",
     "12:46: in_flight: zone per_client has a lease, and Redis counts no permits of requests that pass under a lease; remove in_flight or lease"),
    (LIMITED, "rate = \"10r/s\"\nalgorithm = \"fixed_window\"\n[[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{ zone = \"per_client\", in_flight = 2 }]",
     "11:46: in_flight: the zone counts by fixed_window, which lets no request wait; remove in_flight, or choose algorithm = \"leaky_bucket\""),
];

#[test]
fn keys_of_a_plan_can_have_a_rate_where_the_zone_has_none_and_none_where_it_has_one() {
    let plan = without_rate!(
        "plans.slow = { keys = [\"a\"], rate = \"1r/s\" }\n",
        ", burst = 5, delay = 2"
    );
    let zone = &settings_with(LIMITED, plan).zones[0];
    assert!(zone.rate_of(b"b").is_unlimited());
    assert_eq!(zone.rate_of(b"a").to_string(), "1r/s");
    let free = "rate = \"10r/s\"\nplans.free = { keys = [\"a\"], rate = \"none\" }";
    let zone = &settings_with("rate = \"10r/s\"", free).zones[0];
    assert!(zone.rate_of(b"a").is_unlimited());
    assert_eq!(zone.rate_of(b"b").to_string(), "10r/s");
}

#[test]
fn a_cost_may_exceed_the_burst_where_no_rate_counts_it() {
    let limit = without_rate!("", ", in_flight = 2").replace("limits", "cost = 9\nlimits");
    assert_eq!(settings_with(LIMITED, &limit).routes.len(), 1);
}

#[test]
fn changed_numbers_are_found_by_their_routes() {
    let before = settings_with("burst = 20", "in_flight = 2");
    let after = settings_with("burst = 20", "in_flight = 5");
    let none = settings_with("burst = 20", "burst = 20");
    let [two, five] = [2, 5].map(|most| NonZeroU32::new(most).expect("not zero"));
    // New and old settings, and the old and new numbers of each route with a change. A removed
    // limit counts as the highest number. A new limit is no change: it has no earlier number.
    for (new, old, expected) in [
        (&after, &before, &[(two, five)][..]),
        (&after, &after, &[]),
        (&none, &before, &[(two, NonZeroU32::MAX)]),
        (&after, &none, &[]),
    ] {
        assert_eq!(new.in_flight_changes(old, "per_client"), expected);
    }
}
