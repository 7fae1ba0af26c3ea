//! Tests of the counts of the demo.

use super::*;

fn ms(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

#[test]
fn a_gap_counts_only_if_a_request_waited_in_it() {
    let mut counts = Counts::default();
    counts.retune(TENTH);
    for _ in 0..3 {
        counts.record_sent(0);
    }
    // After the third, no request waits: the gap before the last one does not count.
    for now in [15, 115, 216, 900] {
        counts.record_reached(ms(now), true);
    }
    let second = counts.next_second(ms(1000));
    assert_eq!(second.reached, [1, 1, 1, 0, 0, 0, 0, 0, 0, 1]);
    let (mean, rms) = second.gaps.evenness().unwrap();
    assert!((mean - 0.1005).abs() < 1e-9, "{mean}");
    assert!((rms - 0.001 / 2f64.sqrt()).abs() < 1e-9, "{rms}");
    assert_eq!(counts.next_second(ms(2000)).gaps.evenness(), None);
}
