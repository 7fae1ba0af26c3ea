//! Property tests of the back-off.

use proptest::prelude::*;
use proptest::sample::Index;
use testing::config;

use std::time::Duration;

use super::*;
use crate::{OriginTime, Percent};

const START: Moment = Moment::from_nanos(1_000_000_000);

#[derive(Clone, Debug)]
enum Step {
    Send(usize),
    Answer(Index, usize, Answer),
    Abandon(Index),
    AwaitClient(Index, bool),
    Reload(File),
}

#[derive(Clone, Copy, Debug)]
struct File {
    limits: BackoffLimits,
    rate: Option<Rate>,
    max_in_flight: Option<usize>,
}

fn file() -> impl Strategy<Value = File> {
    let percent = || (1..=1_000_000_u32).prop_map(Percent::from_millionths);
    let millis = |range| prop::option::of(range).prop_map(|it| it.map(Duration::from_millis));
    let rate = prop_oneof![
        Just("none"),
        Just("3r/m"),
        Just("200r/s"),
        Just("0.7r/250ms")
    ];
    let in_flight = prop::option::of(0..100_usize);
    (
        millis(1..2000_u64),
        percent(),
        percent(),
        0..100_u64,
        rate,
        in_flight,
    )
        .prop_map(|(slow, trip, floor, max_pause, rate, max_in_flight)| File {
            limits: BackoffLimits {
                slow,
                trip,
                floor,
                max_pause: Duration::from_secs(max_pause),
            },
            rate: rate.parse().ok(),
            max_in_flight,
        })
}

fn step() -> impl Strategy<Value = Step> {
    let retry_after = prop::option::of((0..100_u64).prop_map(Duration::from_secs));
    let answer = (prop::bool::weighted(0.2), retry_after, 1..20_u32).prop_map(
        |(trouble, retry_after, cost)| Answer {
            trouble,
            retry_after,
            cost,
            time: OriginTime::NEW,
        },
    );
    prop_oneof![
        20 => (1..30_usize).prop_map(Step::Send),
        20 => (any::<Index>(), 1..30_usize, answer).prop_map(|(at, most, it)| Step::Answer(at, most, it)),
        2 => any::<Index>().prop_map(Step::Abandon),
        4 => any::<(Index, bool)>().prop_map(|(at, awaits)| Step::AwaitClient(at, awaits)),
        1 => file().prop_map(Step::Reload),
    ]
}

/// Limits in force, and the reasons.
type State = (Option<Rate>, Option<usize>, Option<Moment>, Lowered);

fn state(backoff: &Backoff) -> State {
    let (rate, limit) = (backoff.rate(), backoff.max_in_flight());
    (rate, limit, backoff.paused_until(), backoff.lowered())
}

fn in_bounds(backoff: &Backoff, file: File, now: Moment) -> Result<(), TestCaseError> {
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

/// Plays a trace, with an update every `every` milliseconds. Returns the last state.
fn play(mut file: File, steps: &[(Step, u64)], every: u64) -> Result<State, TestCaseError> {
    let mut backoff = Backoff::new(file.limits, file.rate, file.max_in_flight, START);
    let (mut now, mut next) = (START, START);
    let mut sent = Vec::new();
    let values = |(rate, limit, paused, _): State| (rate, limit, paused);
    let mut known = values(state(&backoff));
    for (step, millis) in steps {
        let until = now + Duration::from_millis(*millis);
        while next <= until {
            if backoff.update(next).is_none() {
                prop_assert_eq!(known, values(state(&backoff)), "a change is told");
            }
            in_bounds(&backoff, file, next)?;
            known = values(state(&backoff));
            next = next + Duration::from_millis(every);
        }
        now = until;
        match step {
            Step::Send(count) => {
                for _ in 0..*count {
                    sent.push(backoff.sent(sent.len() + 1, now));
                }
            }
            Step::Answer(at, most, answer) => {
                for _ in 0..*most {
                    if !sent.is_empty() {
                        let sent = sent.swap_remove(at.index(sent.len()));
                        backoff.answered(sent, *answer, now);
                    }
                }
            }
            Step::Abandon(at) => {
                if !sent.is_empty() {
                    backoff.abandoned(sent.swap_remove(at.index(sent.len())), now);
                }
            }
            Step::AwaitClient(at, awaits) => {
                if !sent.is_empty() {
                    let at = at.index(sent.len());
                    backoff.await_client(&mut sent[at], *awaits, now);
                }
            }
            Step::Reload(new) => {
                file = *new;
                backoff.set_limits(file.limits, file.rate, file.max_in_flight, now);
            }
        }
        in_bounds(&backoff, file, now)?;
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
        file in file(),
        steps in prop::collection::vec((step(), 0..900_u64), 1..100),
    ) {
        let last = play(file, &steps, 100)?;
        prop_assert_eq!(&last, &play(file, &steps, 100)?);
        prop_assert_eq!(&last, &play(file, &steps, 30)?);
        prop_assert_eq!(&last, &play(file, &steps, 100_000)?);
    }
}
