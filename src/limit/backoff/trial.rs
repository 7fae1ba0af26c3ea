use std::time::Duration;

use super::Moment;

/// Fewer times than this tell nothing.
const ENOUGH: u64 = 10;

/// What was measured longer ago may be of another state of the origin.
const MAX_AGE: Duration = Duration::from_secs(60);

/// Compares how long answers take with many requests at the origin, and with fewer.
///
/// Measured are the requests that are at the origin at a cut: while it is loaded as before the cut.
/// Each cut ends a generation of requests, so they are those whose generation has ended when their
/// answer comes.
#[derive(Debug, Default)]
pub(super) struct Trial {
    many: Option<Times>,
    few: Option<Times>,
}

/// What the comparison says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Too few answers yet.
    Open,
    /// Fewer at once made no answer faster than this. The limit was so high before they were cut.
    NoFaster { limit: u64, mean: Duration },
}

/// The cut that ends a generation of requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub generation: u64,
    /// Its requests without an answer.
    pub in_flight: u64,
    /// The limit before the cut, in millionths of a place.
    pub limit: u64,
    /// Whether the cut cannot lower it.
    pub is_lowest: bool,
    pub at: Moment,
}

/// How long the answers took to the requests of some generations.
#[derive(Debug)]
struct Times {
    first: u64,
    last: u64,
    in_flight: u64,
    limit: u64,
    is_lowest: bool,
    since: Moment,
    answers: u64,
    nanos: u128,
}

impl Times {
    fn of(ended: &Ended) -> Self {
        Self {
            first: ended.generation,
            last: ended.generation,
            in_flight: ended.in_flight,
            limit: ended.limit,
            is_lowest: ended.is_lowest,
            since: ended.at,
            answers: 0,
            nanos: 0,
        }
    }

    fn add(&mut self, took: Duration) {
        self.answers += 1;
        self.nanos += took.as_nanos();
    }

    fn mean(&self) -> u128 {
        self.nanos / u128::from(self.answers.max(1))
    }
}

impl Trial {
    /// Notes a cut.
    pub fn ended(&mut self, ended: &Ended) {
        let known = self.many.as_mut();
        let has_few = self.few.is_some();
        let Some(many) = known.filter(|many| {
            let is_recent = ended.at.since(many.since) <= MAX_AGE;
            ended.in_flight <= many.in_flight && (is_recent || has_few)
        }) else {
            self.many = Some(Times::of(ended));
            self.few = None;
            return;
        };
        let is_fewer = ended.in_flight < many.in_flight;
        if ended.in_flight * 2 <= many.in_flight || (is_fewer && ended.is_lowest) {
            let few = self.few.get_or_insert_with(|| Times::of(ended));
            few.in_flight = few.in_flight.max(ended.in_flight);
            few.last = ended.generation;
            few.is_lowest |= ended.is_lowest;
        } else if self.few.is_none() {
            many.last = ended.generation;
        }
    }

    /// Counts an answer without trouble, if its generation has ended.
    pub fn answered(&mut self, generation: u64, took: Duration) {
        let has = |times: &&mut Times| (times.first..=times.last).contains(&generation);
        let times = self.few.iter_mut().chain(&mut self.many);
        if let Some(times) = times.into_iter().find(has) {
            times.add(took);
        }
    }

    /// Compares. Where fewer at once made answers faster, it goes on from there.
    ///
    /// Without any effect, answers take as long as before; where all that matters is the number at
    /// once, they take that part of it. In the quarter that is nearest to the first, fewer did not
    /// help; in the third that is nearest to the second, they did. Between, more answers will tell.
    pub fn verdict(&mut self) -> Verdict {
        let (Some(many), Some(few)) = (&self.many, &self.few) else {
            return Verdict::Open;
        };
        let enough = many.answers >= ENOUGH.min(many.in_flight.div_ceil(2));
        if !enough || few.answers < ENOUGH {
            return Verdict::Open;
        }
        let (all, part) = (u128::from(many.in_flight), u128::from(few.in_flight));
        // In parts of what answers would take if fewer at once made no difference.
        let took = few.mean().saturating_mul(12 * all) / many.mean().max(1);
        if took > 9 * all + 3 * part {
            let mean = u64::try_from(few.mean()).unwrap_or(u64::MAX);
            return Verdict::NoFaster {
                limit: many.limit,
                mean: Duration::from_nanos(mean),
            };
        }
        // At the lowest limit there is nothing fewer to compare with.
        if took < 4 * all + 8 * part && !few.is_lowest {
            self.many = self.few.take();
        }
        Verdict::Open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(generation: u64, in_flight: u64) -> Ended {
        Ended {
            generation,
            in_flight,
            limit: in_flight,
            is_lowest: false,
            at: Moment::from_nanos(generation * 1_000_000_000),
        }
    }

    /// Cuts with so many requests at the origin, whose answers take so many milliseconds.
    fn after(cuts: &[(u64, u64)]) -> Verdict {
        let mut trial = Trial::default();
        let mut verdict = Verdict::Open;
        for (generation, (in_flight, millis)) in (1..).zip(cuts) {
            verdict = trial.verdict();
            trial.ended(&ended(generation, *in_flight));
            for _ in 0..*in_flight {
                trial.answered(generation, Duration::from_millis(*millis));
            }
        }
        match trial.verdict() {
            Verdict::Open => verdict,
            no_faster @ Verdict::NoFaster { .. } => no_faster,
        }
    }

    fn no_faster(limit: u64, millis: u64) -> Verdict {
        let mean = Duration::from_millis(millis);
        Verdict::NoFaster { limit, mean }
    }

    #[test]
    fn fewer_at_once_help_or_do_not() {
        for (cuts, verdict) in [
            (&[(40, 3000), (20, 3000)][..], no_faster(40, 3000)),
            // Without effect 3 s, with all effect 1.5 s.
            (&[(40, 3000), (20, 2640)], no_faster(40, 2640)),
            (&[(40, 3000), (20, 2620)], Verdict::Open),
            (&[(40, 3000), (20, 2010), (10, 1500)], Verdict::Open),
            (&[(40, 3000), (20, 1990), (10, 1800)], no_faster(20, 1800)),
            // Not yet half of it.
            (&[(40, 3000), (27, 3000)], Verdict::Open),
            (&[(40, 3000), (27, 3000), (18, 3000)], no_faster(40, 3000)),
            // Ten serve at once: more wait, and fewer are no faster than ten.
            (&[(40, 12_000), (20, 6000), (10, 3000)], Verdict::Open),
            (
                &[(40, 12_000), (20, 6000), (10, 3000), (5, 3000), (5, 3000)],
                no_faster(10, 3000),
            ),
            // Nine answers are too few.
            (&[(20, 3000), (9, 3000)], Verdict::Open),
        ] {
            assert_eq!(after(cuts), verdict, "{cuts:?}");
        }
    }

    #[test]
    fn what_is_old_or_of_another_generation_does_not_count() {
        let mut trial = Trial::default();
        trial.ended(&ended(1, 40));
        trial.ended(&ended(62, 20));
        for generation in [1, 2, 62, 63] {
            for _ in 0..20 {
                trial.answered(generation, Duration::from_secs(3));
            }
        }
        assert_eq!(trial.verdict(), Verdict::Open, "62 s are too long ago");
        trial.ended(&ended(70, 10));
        for _ in 0..20 {
            trial.answered(69, Duration::from_secs(3));
        }
        assert_eq!(trial.verdict(), Verdict::Open);
        for _ in 0..10 {
            trial.answered(70, Duration::from_secs(3));
        }
        assert_eq!(trial.verdict(), no_faster(20, 3000));
    }

    #[test]
    fn at_the_lowest_limit_what_is_left_need_not_be_half() {
        let mut trial = Trial::default();
        trial.ended(&ended(1, 3));
        for _ in 0..3 {
            trial.answered(1, Duration::from_secs(3));
        }
        for generation in 2..7 {
            trial.ended(&Ended {
                is_lowest: true,
                ..ended(generation, 2)
            });
            for _ in 0..2 {
                trial.answered(generation, Duration::from_secs(3));
            }
        }
        assert_eq!(trial.verdict(), no_faster(3, 3000));
    }
}
