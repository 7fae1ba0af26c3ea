//! Tests of the pacer.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_core::Stream;
use limit::Moment;

use super::{Bell, Pacer};

const START: Moment = Moment::from_nanos(1_000);

/// Returns an instant after the start.
fn at(nanos: u64) -> Moment {
    START + Duration::from_nanos(nanos)
}

/// Polls a bell: ready if its alarm has rung since the last poll.
fn poll_bell(bell: &mut Bell) -> Poll<Option<()>> {
    pin!(bell).poll_next(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn an_alarm_rings_once_at_its_moment_and_not_before() {
    let pacer = Pacer::standing_at(START);
    let (alarm, mut bell) = pacer.alarm();
    alarm.set(Some(at(10)));
    pacer.advance(at(9));
    assert_eq!(poll_bell(&mut bell), Poll::Pending);
    pacer.advance(at(10));
    assert_eq!(poll_bell(&mut bell), Poll::Ready(Some(())));
    pacer.advance(at(1_000));
    assert_eq!(poll_bell(&mut bell), Poll::Pending);
}

#[test]
fn a_new_setting_of_an_alarm_replaces_the_previous_one() {
    let pacer = Pacer::standing_at(START);
    let (alarm, mut bell) = pacer.alarm();
    for (first, second) in [(10, 20), (20, 10)] {
        let from = pacer.now();
        alarm.set(Some(from + Duration::from_nanos(first)));
        alarm.set(Some(from + Duration::from_nanos(second)));
        pacer.advance(from + Duration::from_nanos(second - 1));
        assert_eq!(poll_bell(&mut bell), Poll::Pending);
        pacer.advance(from + Duration::from_nanos(second));
        assert_eq!(poll_bell(&mut bell), Poll::Ready(Some(())));
        pacer.advance(from + Duration::from_nanos(100));
        assert_eq!(poll_bell(&mut bell), Poll::Pending);
    }
    alarm.set(Some(pacer.now() + Duration::from_nanos(5)));
    alarm.set(None);
    pacer.advance(pacer.now() + Duration::from_nanos(5));
    assert_eq!(poll_bell(&mut bell), Poll::Pending);
}

#[test]
fn setting_an_alarm_later_repeatedly_takes_one_heap_entry() {
    let pacer = Pacer::standing_at(START);
    let (alarm, _bell) = pacer.alarm();
    for later in 1..10_000 {
        alarm.set(Some(at(later)));
    }
    assert_eq!(pacer.alarms.borrow().len(), 1);
}

#[test]
fn the_bell_of_a_dropped_alarm_ends() {
    let pacer = Pacer::standing_at(START);
    let (alarm, mut bell) = pacer.alarm();
    alarm.set(Some(at(10)));
    drop(alarm);
    pacer.advance(at(10));
    assert_eq!(poll_bell(&mut bell), Poll::Ready(None));
}

#[test]
fn an_alarm_on_the_machines_clock_rings_on_time_and_never_early() {
    // Half of a runtime's tick: the median lateness of a millisecond timer would always be larger.
    // A busy machine may need several attempts.
    let lateness: Vec<_> = std::iter::repeat_with(median_lateness).take(20).collect();
    let is_precise = |late: &Duration| *late < Duration::from_micros(300);
    assert!(lateness.iter().any(is_precise), "{lateness:?}");
}

/// Returns the median lateness of an alarm that rings a hundred times. Fails if it rings early.
fn median_lateness() -> Duration {
    let system = actix_rt::System::new();
    system.block_on(async {
        let pacer = Pacer::start().unwrap();
        let (alarm, mut bell) = pacer.alarm();
        let mut late = Vec::new();
        for _ in 0..100 {
            let due = pacer.now() + Duration::from_micros(700);
            alarm.set(Some(due));
            std::future::poll_fn(|cx| pin!(&mut bell).poll_next(cx))
                .await
                .unwrap();
            let now = pacer.now();
            assert!(now >= due, "rang {:?} early", due.since(now));
            late.push(now.since(due));
        }
        late.sort();
        late[50]
    })
}

#[test]
fn dropped_or_earlier_alarms_take_no_memory() {
    let pacer = Pacer::standing_at(START);
    let (kept, mut bell) = pacer.alarm();
    kept.set(Some(at(1_000_000)));
    for nth in 0..10_000 {
        let (dropped, _bell) = pacer.alarm();
        dropped.set(Some(at(2_000_000 + nth)));
        dropped.set(Some(at(1_000_000 + nth)));
        assert!(pacer.alarms.borrow().len() <= super::MIN_REMINDERS, "{nth}");
    }
    pacer.advance(at(1_000_000));
    assert_eq!(poll_bell(&mut bell), Poll::Ready(Some(())));
}
