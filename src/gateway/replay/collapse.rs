//! Which requests collapsing would answer by the departure of another, by their times alone.

use std::time::Duration;

use foldhash::fast::RandomState;
use limit::Moment;
use lru::LruCache;

/// Maximum number of targets known at once. Beyond it, the least recently requested is forgotten.
const MAX_TARGETS: usize = 1 << 20;

/// How a request takes part where requests for the same thing share an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sharing {
    /// It goes to the origin or follows another one, and its answer serves others.
    Leads,
    /// It follows another one, but its own answer serves nobody: `HEAD`, ranges, conditional ones.
    Follows,
    /// It always goes to the origin, and its answer serves nobody.
    Alone,
}

/// Decides for one request after the other whether it goes to the origin, for several `keep`.
///
/// An answer serves others from the departure of its request until it is complete, and for `keep`
/// after that. A request that would have to wait for it for too long goes to the origin by itself,
/// and its answer serves nobody. Memory is bounded by the number of targets.
pub struct Collapse<const N: usize> {
    keeps: [Duration; N],
    max_targets: usize,
    /// Until when the last answer for a target serves others under each `keep`.
    served: LruCache<u64, [Moment; N], RandomState>,
    forgotten: u64,
    gave_up: u64,
}

impl<const N: usize> Collapse<N> {
    /// Starts without any answer.
    #[must_use]
    pub fn new(keeps: [Duration; N]) -> Self {
        Self::with_targets(keeps, MAX_TARGETS)
    }

    fn with_targets(keeps: [Duration; N], max_targets: usize) -> Self {
        Self {
            keeps,
            max_targets,
            served: LruCache::unbounded_with_hasher(RandomState::default()),
            forgotten: 0,
            gave_up: 0,
        }
    }

    /// Whether a request goes to the origin under each `keep`.
    ///
    /// Requests come in order of their times. `target` is a hash of what is requested; `took` is
    /// the time from the departure until the answer is complete. `follow_limit`: how long it waits
    /// for the answer of another request.
    pub fn departs(
        &mut self,
        now: Moment,
        target: u64,
        sharing: Sharing,
        took: Duration,
        follow_limit: Duration,
    ) -> [bool; N] {
        if sharing == Sharing::Alone {
            return [true; N];
        }
        let ends = self.keeps.map(|keep| now + took + keep);
        let Some(served) = self.served.get_mut(&target) else {
            if sharing == Sharing::Leads {
                self.make_room(now);
                self.served.put(target, ends);
            }
            return [true; N];
        };
        let mut departs = served.map(|until| until <= now);
        if sharing == Sharing::Leads {
            for ((until, end), departs) in served.iter_mut().zip(ends).zip(departs) {
                if departs {
                    *until = end;
                }
            }
        }
        let mut gives_up = false;
        for ((departs, until), keep) in departs.iter_mut().zip(*served).zip(self.keeps) {
            let is_late = !*departs && until.since(now).saturating_sub(keep) > follow_limit;
            *departs |= is_late;
            gives_up |= is_late;
        }
        self.gave_up += u64::from(gives_up);
        departs
    }

    /// How many requests would have waited for the answer of another one for too long.
    #[must_use]
    pub fn gave_up(&self) -> u64 {
        self.gave_up
    }

    /// How often a target was forgotten whose answer would have served others on.
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    fn make_room(&mut self, now: Moment) {
        if self.served.len() < self.max_targets {
            return;
        }
        if let Some((_, served)) = self.served.pop_lru() {
            self.forgotten += u64::from(served.into_iter().any(|until| until > now));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use testing::config;

    const KEEPS: [Duration; 3] = [
        Duration::ZERO,
        Duration::from_millis(5),
        Duration::from_millis(40),
    ];

    /// A request: the time in milliseconds, the target, how it takes part, and milliseconds.
    type Request = (u64, u64, Sharing, u64);

    const FOLLOW_LIMIT: Duration = Duration::from_millis(20);

    fn moment(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    fn judged(collapse: &mut Collapse<3>, requests: &[Request]) -> Vec<[bool; 3]> {
        let judge = |(time, target, sharing, took): &Request| {
            let took = Duration::from_millis(*took);
            collapse.departs(moment(*time), *target, *sharing, took, FOLLOW_LIMIT)
        };
        requests.iter().map(judge).collect()
    }

    /// The same, by looking at all requests before each one.
    fn naive(requests: &[Request], keep: Duration) -> Vec<bool> {
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap();
        let (keep, limit) = (millis(keep), millis(FOLLOW_LIMIT));
        // Whether each departs, and whether it leads.
        let mut departed: Vec<(bool, bool)> = Vec::new();
        for (nth, (time, target, sharing, _)) in requests.iter().enumerate() {
            let serves = |(before, (_, led)): &(&Request, &(bool, bool))| {
                let (begin, of, _, took) = **before;
                *led && of == *target && *time < begin + took + keep
            };
            let mut before = requests[..nth].iter().zip(&departed);
            departed.push(match before.find(serves) {
                _ if *sharing == Sharing::Alone => (true, false),
                None => (true, *sharing == Sharing::Leads),
                Some(((begin, _, _, took), _)) => {
                    ((begin + took).saturating_sub(*time) > limit, false)
                }
            });
        }
        departed.into_iter().map(|(departs, _)| departs).collect()
    }

    #[test]
    fn those_who_come_until_the_answer_is_complete_follow_and_for_keep_after_that() {
        use Sharing::{Alone, Follows, Leads};
        let requests = [
            (0, 1, Leads, 10),
            (0, 1, Leads, 10),
            (9, 1, Follows, 1),
            (9, 2, Leads, 10),
            (9, 1, Alone, 100),
            // Complete, and so gone without keep.
            (10, 1, Leads, 10),
            (15, 1, Leads, 10),
            (50, 1, Follows, 10),
            (50, 1, Leads, 10),
        ];
        let mut collapse = Collapse::new(KEEPS);
        let expected = [
            [true, true, true],
            [false, false, false],
            [false, false, false],
            [true, true, true],
            [true, true, true],
            [true, false, false],
            [false, true, false],
            [true, true, true],
            [true, true, true],
        ];
        assert_eq!(judged(&mut collapse, &requests), expected);
        assert_eq!(collapse.forgotten(), 0);
    }

    #[test]
    fn who_would_wait_for_longer_than_the_limit_departs_and_leads_nobody() {
        use Sharing::{Follows, Leads};
        let requests = [
            (0, 1, Leads, 50),
            // 21 ms and 20 ms before the answer is complete.
            (29, 1, Leads, 10),
            (29, 1, Follows, 10),
            (30, 1, Leads, 10),
            // A kept answer is waited for by nobody.
            (50, 1, Leads, 10),
        ];
        let mut collapse = Collapse::new(KEEPS);
        let expected = [
            [true, true, true],
            [true, true, true],
            [true, true, true],
            [false, false, false],
            [true, false, false],
        ];
        assert_eq!(judged(&mut collapse, &requests), expected);
        assert_eq!(collapse.gave_up(), 2);
    }

    #[test]
    fn the_least_recent_target_is_forgotten_and_counted_if_its_answer_still_serves() {
        let lead = |time, target| (time, target, Sharing::Leads, 10);
        let mut collapse = Collapse::with_targets(KEEPS, 2);
        let requests = [lead(0, 1), lead(1, 2), lead(2, 1), lead(3, 3), lead(4, 2)];
        let departs: Vec<bool> = judged(&mut collapse, &requests)
            .iter()
            .map(|departs| departs[0])
            .collect();
        // 3 takes the place of 2, and 2 that of 1.
        assert_eq!(departs, [true, true, false, true, true]);
        assert_eq!((collapse.forgotten(), collapse.served.len()), (2, 2));
        judged(&mut collapse, &[lead(1000, 4), lead(1000, 5)]);
        assert_eq!((collapse.forgotten(), collapse.served.len()), (2, 2));
    }

    #[test]
    fn the_end_of_time_is_no_matter() {
        let mut collapse = Collapse::new([Duration::MAX]);
        let last = Moment::from_nanos(u64::MAX);
        for now in [Moment::default(), last] {
            collapse.departs(now, 1, Sharing::Leads, Duration::MAX, FOLLOW_LIMIT);
        }
    }

    fn request() -> impl Strategy<Value = Request> {
        let sharing = prop_oneof![
            4 => Just(Sharing::Leads),
            1 => Just(Sharing::Follows),
            1 => Just(Sharing::Alone),
        ];
        (0..200u64, 0..4u64, sharing, 0..60u64)
    }

    proptest! {
        #![proptest_config(config())]

        #[test]
        fn one_pass_decides_as_the_comparison_of_all_with_all(
            mut requests in prop::collection::vec(request(), 0..60),
        ) {
            requests.sort_by_key(|request| request.0);
            let mut collapse = Collapse::new(KEEPS);
            let judged = judged(&mut collapse, &requests);
            for (nth, keep) in KEEPS.into_iter().enumerate() {
                let departs: Vec<bool> = judged.iter().map(|departs| departs[nth]).collect();
                prop_assert_eq!(departs, naive(&requests, keep), "{:?}", keep);
            }
            prop_assert_eq!(collapse.forgotten(), 0);
        }
    }
}
