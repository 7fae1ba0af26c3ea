//! Tests of a room that opens at a set time.

use jiff::tz::{TimeZone, offset};
use jiff::{SignedDuration, Timestamp};

use super::{Chain, JSON, SECRET, Visitor, cookies, position, shop, stop};
use crate::support::{Origin, fetch_with};

/// Formats a time in the future, with an offset from UTC.
fn in_seconds(seconds: i64) -> String {
    let then = Timestamp::now() + SignedDuration::from_secs(seconds);
    let there = then.to_zoned(TimeZone::fixed(offset(2)));
    there.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

#[test]
fn visitors_before_the_opening_get_random_positions_before_later_ones() {
    const EARLY: usize = 40;
    let origin = Origin::start();
    let opens = in_seconds(5);
    let room = format!("{SECRET}admit = \"1r/h\"\nopens = \"{opens}\"");
    let site = Chain::new(false, true, &shop(origin.address, &room));
    let at = site.address;
    let gateway = site.start();
    let mut early = Vec::new();
    for nth in 0..EARLY {
        let mut visitor = Visitor::default();
        let answer = visitor.ask(at, "/", JSON);
        assert_eq!(answer.status, 429, "{}", answer.text());
        assert_eq!(position(&answer), None, "{}", answer.text());
        let after = answer.number("retry-after");
        assert!((2..=60).contains(&after), "{answer:?}");
        assert_eq!(visitor.number(), nth as u64 + 1);
        early.push(visitor);
    }
    let ticket = early[0].ticket.clone().expect("a ticket");
    let fields = format!("Accept: text/html\r\nCookie: drip_ticket_shop={ticket}\r\n");
    let page = fetch_with(at, "/", &fields);
    let shown = format!("datetime=\"{opens}\"");
    assert!(page.text().contains(&shown), "{shown}: {}", page.text());
    assert_eq!((page.status, cookies(&page)), (503, vec![]));
    // A restart before the opening changes nothing.
    stop(gateway);
    let gateway = site.start();
    crate::support::eventually("it opens", || {
        let metrics = gateway.metrics();
        metrics.count("drip_room_open", &[("origin", "shop")]) == 1
    });
    let mut late: Vec<_> = (0..3).map(|_| Visitor::draw(at)).collect();
    let positions = |visitors: &mut [Visitor]| -> Vec<Option<u64>> {
        let positions = visitors.iter_mut().map(|visitor| {
            let answer = visitor.ask(at, "/", JSON);
            (answer.status != 200).then(|| position(&answer))?
        });
        positions.collect()
    };
    let drawn = positions(&mut early);
    // One visitor was called, and entered with its poll.
    let undrawn = drawn.iter().filter(|it| it.is_none()).count();
    assert_eq!(undrawn, 1, "{drawn:?}");
    let mut sorted: Vec<_> = drawn.iter().flatten().copied().collect();
    let is_as_drawn = sorted.is_sorted();
    sorted.sort_unstable();
    assert!(sorted.iter().copied().eq(1..EARLY as u64), "{drawn:?}");
    assert!(!is_as_drawn, "they are in the order of arrival: {drawn:?}");
    let behind = EARLY as u64..;
    let next = positions(&mut late).into_iter().flatten();
    assert!(next.eq(behind.take(3)));
}
