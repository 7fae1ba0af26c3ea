//! Tests of the counts of the scene `smooth`.

use super::*;

fn ms(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

#[test]
fn only_gaps_in_which_somebody_waited_count() {
    let mut counts = Counts::default();
    counts.retune(TENTH);
    for _ in 0..3 {
        counts.record_sent(0);
    }
    for now in [15, 115, 216, 900] {
        counts.record_reached(ms(now), true);
    }
    let second = counts.next_second(ms(1000));
    assert_eq!(second.reached, [1, 1, 1, 0, 0, 0, 0, 0, 0, 1]);
    let (mean, off) = second.gaps.evenness().unwrap();
    assert!((mean - 0.1005).abs() < 1e-9, "{mean}");
    assert!((off - 0.001 / 2f64.sqrt()).abs() < 1e-9, "{off}");
    assert_eq!(counts.next_second(ms(2000)).gaps.evenness(), None);
}
