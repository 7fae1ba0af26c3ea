use super::*;

fn ms(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

#[test]
fn only_gaps_in_which_somebody_waited_count() {
    let mut counts = Counts::default();
    counts.retune(TENTH);
    for _ in 0..3 {
        counts.came(0);
    }
    for at in [15, 115, 216, 900] {
        counts.left(ms(at), true);
    }
    let second = counts.next_second(ms(1000));
    assert_eq!(second.left, [1, 1, 1, 0, 0, 0, 0, 0, 0, 1]);
    let (mean, off) = second.gaps.evenness().unwrap();
    assert!((mean - 0.1005).abs() < 1e-9, "{mean}");
    assert!((off - 0.001 / 2f64.sqrt()).abs() < 1e-9, "{off}");
    assert_eq!(counts.next_second(ms(2000)).gaps.evenness(), None);
}

#[test]
fn a_gap_across_two_paces_does_not_count() {
    let mut counts = Counts::default();
    counts.retune(TENTH);
    for _ in 0..4 {
        counts.came(0);
    }
    counts.left(ms(0), true);
    counts.left(ms(100), true);
    counts.retune(TENTH / 10);
    counts.left(ms(170), true);
    counts.left(ms(180), true);
    let (mean, off) = counts.next_second(ms(1000)).gaps.evenness().unwrap();
    assert!((mean - 0.010).abs() < 1e-9 && off < 1e-9, "{mean} {off}");
    let (mean, off) = counts.total().gaps.evenness().unwrap();
    assert!((mean - 0.055).abs() < 1e-9 && off < 1e-9, "{mean} {off}");
}

#[test]
fn who_waits() {
    let mut counts = Counts::default();
    for _ in 0..5 {
        counts.came(3);
    }
    counts.left(ms(1), true);
    counts.left(ms(2), false);
    counts.rejected();
    counts.failed();
    let second = counts.next_second(ms(1000));
    assert_eq!((second.waiting, second.rejected, second.failed), (2, 1, 1));
    assert_eq!((second.came[3], counts.in_flight()), (5, 3));
    let Total {
        came,
        left,
        rejected,
        ..
    } = counts.total();
    assert_eq!((came, left, rejected), (5, 2, 1));
}
