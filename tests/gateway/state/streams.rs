//! Tests that the origin gets one even stream over a restart.

use std::panic::catch_unwind;

use super::restart::{check_both_gates, stamps_over_a_restart};
use super::{MS, Rest, excess, gate, side_by_side, zone};
use crate::support::{MARGIN, Origin, best_of_three, check_gaps, longest_pause};

/// Over a restart, new requests leave behind those that wait in the old process.
///
/// With `state`, a zone or a gate of 5r/s gives the origin one even stream. Without it, the origin
/// gets two streams at once.
#[test]
fn newcomers_leave_behind_those_who_wait_in_the_process_before() {
    let cases: [(bool, Rest); 3] = [
        (true, zone),
        (false, zone),
        (true, |origin| gate(origin, "5r/s")),
    ];
    let check = |(is_held, rest): &(bool, Rest), keeps: bool| {
        let origin = Origin::start();
        let rest = rest(&origin);
        let newcomers = ["/?key=a"; 8];
        let (stamps, start_up) = stamps_over_a_restart(*is_held, keeps, &rest, &newcomers, &origin);
        assert_eq!(stamps.len(), 21);
        let most = excess(&stamps, 5.0);
        if !keeps {
            assert!(most > 3.0, "without state only {most} beyond the rate");
            return;
        }
        let pause = longest_pause(stamps[0], stamps[20]);
        // The queue of 2.4 s bridges the start, unless that takes longer.
        let bridged = start_up.saturating_sub(2_000 * MS);
        let slack = MARGIN + pause + bridged;
        check_gaps(&stamps, 200 * MS, slack).expect("one even stream");
        let slack = (MARGIN + pause).as_secs_f64() * 5.0;
        assert!(most <= 1.0 + slack, "{most} in a window beyond the rate");
    };
    // A process without processor time departs late, and the other one cannot know.
    best_of_three(|_| {
        let measured = catch_unwind(|| side_by_side(&cases, check));
        measured.map_err(|_| "no even stream".to_owned())
    });
}

#[test]
fn who_comes_to_the_old_gate_from_a_zone_has_a_slot_that_the_new_gate_keeps() {
    best_of_three(|_| {
        let measured = catch_unwind(|| {
            side_by_side(&[true, false], |is_held, keeps| {
                check_both_gates(*is_held, keeps, None);
            });
        });
        measured.map_err(|_| "two streams".to_owned())
    });
}
