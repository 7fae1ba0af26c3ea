//! Property test of the back-off: any trace keeps the configured bounds.
//!
//! The back-off lowers the rate after *trouble* (answers that count as failures) and the requests
//! in flight after slow answers. Its *floor* bounds both. Retry-After *pauses* all departures.

use proptest::prelude::*;
use proptest::sample::Index;
use testing::config;

use super::tests::GOOD;
use super::*;
use crate::Percent;
use crate::fixtures::{START, ms, secs};

/// A step of a trace. An [`Index`] chooses one of the requests in flight.
#[derive(Clone, Debug)]
enum Step {
    /// Sends this number of requests.
    Send(usize),
    /// Answers at most this number of requests, the first of them the chosen one.
    Answer(Index, usize, Answer),
    Abandon(Index),
    /// Whether the response waits for its client from now on.
    AwaitClient(Index, bool),
    Reload(File),
}

/// The configured limits.
#[derive(Clone, Copy, Debug)]
struct File {
    limits: BackoffLimits,
    rate: Option<Rate>,
    max_in_flight: Option<usize>,
}

fn any_file() -> impl Strategy<Value = File> {
    let percent = || (1..=1_000_000_u32).prop_map(Percent::from_millionths);
    let slow = prop::option::of((1..2000_u64).prop_map(ms));
    let limits = (slow, percent(), percent(), (0..100_u64).prop_map(secs));
    let limits = limits.prop_map(|(slow, trip, floor, max_pause)| BackoffLimits {
        slow,
        trip,
        floor,
        max_pause,
    });
    let rate = prop::sample::select(vec!["none", "3r/m", "200r/s", "0.7r/250ms"]);
    let in_flight = prop::option::of(0..100_usize);
    (limits, rate, in_flight).prop_map(|(limits, rate, max_in_flight)| File {
        limits,
        rate: rate.parse().ok(),
        max_in_flight,
    })
}

fn any_step() -> impl Strategy<Value = Step> {
    let retry_after = prop::option::of((0..100_u64).prop_map(secs));
    let answer = (prop::bool::weighted(0.2), retry_after, 1..20_u32).prop_map(
        |(trouble, retry_after, cost)| Answer {
            trouble,
            retry_after,
            cost,
            ..GOOD
        },
    );
    prop_oneof![
        20 => (1..30_usize).prop_map(Step::Send),
        20 => (any::<Index>(), 1..30_usize, answer).prop_map(|(at, most, it)| Step::Answer(at, most, it)),
        2 => any::<Index>().prop_map(Step::Abandon),
        4 => any::<(Index, bool)>().prop_map(|(at, awaits)| Step::AwaitClient(at, awaits)),
        1 => any_file().prop_map(Step::Reload),
    ]
}

/// Limits in force: rate, requests in flight, end of the pause; and the reasons.
type State = (Option<Rate>, Option<usize>, Option<Moment>, Lowered);

fn state(backoff: &Backoff) -> State {
    let (rate, limit) = (backoff.rate(), backoff.max_in_flight());
    (rate, limit, backoff.paused_until(), backoff.lowered())
}

/// Checks that the limits in force are within the configured bounds.
fn check(backoff: &Backoff, file: File, now: Moment) -> Result<(), TestCaseError> {
    let (rate, limit, paused_until, lowered) = state(backoff);
    prop_assert_eq!(rate.is_some(), file.rate.is_some());
    if let (Some(rate), Some(most)) = (rate, file.rate) {
        let interval = rate.interval();
        prop_assert!(interval >= most.interval(), "never above the file's");
        let is_above_the_floor = interval <= most.scaled(file.limits.floor).interval();
        prop_assert!(is_above_the_floor, "nor below the floor");
        prop_assert_eq!(rate == most, lowered.rate.is_none());
    }
    if let Some(most) = file.max_in_flight {
        prop_assert!(limit.is_some_and(|limit| limit <= most && limit >= most.min(2)));
    }
    prop_assert!(limit.is_none_or(|limit| limit >= file.max_in_flight.unwrap_or(2).min(2)));
    prop_assert!(file.limits.slow.is_some() || limit == file.max_in_flight);
    let longest = now + file.limits.max_pause;
    prop_assert!(paused_until.is_none_or(|until| until <= longest));
    Ok(())
}

/// Plays a trace of milliseconds and steps, with an update every `every` milliseconds.
///
/// Returns the last state.
fn play(mut file: File, steps: &[(Step, u64)], every: u64) -> Result<State, TestCaseError> {
    let mut backoff = Backoff::new(file.limits, file.rate, file.max_in_flight, START);
    let (mut now, mut next) = (START, START);
    let mut sent = Vec::new();
    let values = |(rate, limit, paused, _): State| (rate, limit, paused);
    let mut known = values(state(&backoff));
    for (step, millis) in steps {
        let until = now + ms(*millis);
        while next <= until {
            if backoff.update(next).is_none() {
                prop_assert_eq!(known, values(state(&backoff)), "a change is told");
            }
            check(&backoff, file, next)?;
            known = values(state(&backoff));
            next = next + ms(every);
        }
        now = until;
        match step {
            Step::Send(count) => {
                for _ in 0..*count {
                    sent.push(backoff.sent(sent.len() + 1, now));
                }
            }
            Step::Reload(new) => {
                file = *new;
                backoff.set_limits(file.limits, file.rate, file.max_in_flight, now);
            }
            _ if sent.is_empty() => {}
            Step::Answer(at, most, answer) => {
                for _ in 0..sent.len().min(*most) {
                    let sent = sent.swap_remove(at.index(sent.len()));
                    backoff.answered(sent, *answer, now);
                }
            }
            Step::Abandon(at) => {
                backoff.abandoned(sent.swap_remove(at.index(sent.len())), now);
            }
            Step::AwaitClient(at, awaits) => {
                let at = at.index(sent.len());
                backoff.await_client(&mut sent[at], *awaits, now);
            }
        }
        check(&backoff, file, now)?;
    }
    backoff.update(now);
    Ok(state(&backoff))
}

proptest! {
    #![proptest_config(config())]

    /// Checks any trace: the limits stay within the configured bounds, and each change is reported.
    ///
    /// The result does not depend on how often `update` is called.
    #[test]
    fn any_trace_keeps_the_bounds(
        file in any_file(),
        steps in prop::collection::vec((any_step(), 0..900_u64), 1..100),
    ) {
        let last = play(file, &steps, 100)?;
        prop_assert_eq!(&last, &play(file, &steps, 100)?);
        prop_assert_eq!(&last, &play(file, &steps, 30)?);
        prop_assert_eq!(&last, &play(file, &steps, 100_000)?);
    }
}
