//! A gate that rejects, because as many requests wait as may.

use std::thread;
use std::time::Duration;

use super::scene::{Wanted, begin, calm, told};
use super::traffic::{Load, Traffic};
use crate::support::{Gateway, Origin, one_origin};

#[test]
fn a_gate_that_is_full_is_told_with_the_part_that_it_rejects() {
    let origin = Origin::answering(|exchange| {
        thread::sleep(Duration::from_millis(50));
        exchange.reply(b"ok")
    });
    // Two places give 40 answers a second: enough for the steady traffic of 25.
    let gateway = Gateway::start(&one_origin(
        origin.address,
        "",
        "max_in_flight = 2\nmax_queue = 10",
    ));
    let traffic = Traffic::start(gateway.address());
    begin(&gateway);
    traffic.add(Load::Flood);
    let wanted = Wanted {
        cause: "rejecting",
        is_bad: true,
        says: &[
            "The gate of app rejects ",
            "as many requests wait as `max_queue` allows",
        ],
        remedy: "raise its `max_in_flight`, which is 2; otherwise limit clients earlier",
    };
    let headline = told(&gateway, &wanted);
    assert_eq!(headline["about"], "app");
    traffic.add(Load::Steady);
    calm(&gateway);
}
