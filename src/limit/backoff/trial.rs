//! Measures whether fewer requests in flight make the answers of an origin faster.

use std::time::Duration;

use super::Moment;

/// Lower bound of the measured answers.
const ENOUGH: u64 = 10;

/// Age from which a measurement is not used: the origin may have changed since.
const MAX_AGE: Duration = Duration::from_secs(60);

/// Compares the duration of answers with many requests in flight, and with fewer.
///
/// Requests that are in flight at a cut are measured, because the origin was under the load before
/// the cut. Each cut ends a generation. So a measured request has an ended generation when it is
/// answered.
#[derive(Debug, Default)]
pub(super) struct Trial {
    /// Answers to requests that were in flight at the first cut.
    many: Option<Times>,
    /// Answers to requests that were in flight at later cuts, with at most half as many in flight.
    few: Option<Times>,
}

/// The cut that ends a generation of requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub generation: u64,
    /// Number of requests of the generation without an answer.
    pub in_flight: u64,
    /// Limit before the cut, in millionths of a permit.
    pub limit: u64,
    /// Whether the limit cannot be lowered further.
    pub is_lowest: bool,
    pub at: Moment,
}

/// Durations of the answers to the requests of consecutive generations.
#[derive(Debug)]
struct Times {
    /// First cut, with the largest number in flight of any of the cuts.
    cut: Ended,
    /// Last generation.
    last: u64,
    answers: u64,
    nanos: u128,
}

impl Times {
    fn of(cut: &Ended) -> Self {
        Self {
            cut: *cut,
            last: cut.generation,
            answers: 0,
            nanos: 0,
        }
    }

    /// Returns the mean duration of an answer, in nanoseconds.
    fn mean(&self) -> u128 {
        self.nanos / u128::from(self.answers.max(1))
    }
}

impl Trial {
    /// Records a cut.
    pub fn ended(&mut self, ended: &Ended) {
        let known = self.many.as_mut();
        let has_few = self.few.is_some();
        let Some(many) = known.filter(|many| {
            let is_recent = ended.at.since(many.cut.at) <= MAX_AGE;
            ended.in_flight <= many.cut.in_flight && (is_recent || has_few)
        }) else {
            self.many = Some(Times::of(ended));
            self.few = None;
            return;
        };
        let is_fewer = ended.in_flight < many.cut.in_flight;
        if ended.in_flight * 2 <= many.cut.in_flight || (is_fewer && ended.is_lowest) {
            let few = self.few.get_or_insert_with(|| Times::of(ended));
            few.cut.in_flight = few.cut.in_flight.max(ended.in_flight);
            few.last = ended.generation;
            few.cut.is_lowest |= ended.is_lowest;
        } else if self.few.is_none() {
            many.last = ended.generation;
        }
    }

    /// Counts an answer without trouble, if its generation has ended.
    pub fn answered(&mut self, generation: u64, took: Duration) {
        let has = |times: &&mut Times| (times.cut.generation..=times.last).contains(&generation);
        let times = self.few.iter_mut().chain(&mut self.many);
        if let Some(times) = times.into_iter().find(has) {
            times.answers += 1;
            times.nanos += took.as_nanos();
        }
    }

    /// Returns a result if fewer requests in flight did not help.
    ///
    /// If they did help, later calls compare with the smaller number.
    ///
    /// If the number has no effect, answers take as long as before. If only the number matters,
    /// their duration falls in proportion to it. In the quarter of that range next to "no effect",
    /// fewer did not help. In the third next to "proportional", they did. Between the two, more
    /// answers are needed.
    ///
    /// The result has the limit before the first cut, and the mean duration of answers with fewer
    /// requests.
    pub fn no_faster(&mut self) -> Option<(u64, Duration)> {
        let (many, few) = (self.many.as_ref()?, self.few.as_ref()?);
        let enough = many.answers >= ENOUGH.min(many.cut.in_flight.div_ceil(2));
        if !enough || few.answers < ENOUGH {
            return None;
        }
        let (all, part) = (
            u128::from(many.cut.in_flight),
            u128::from(few.cut.in_flight),
        );
        // Unit: 1/(12 * all) of the duration that answers take if the number has no effect.
        let took = few.mean().saturating_mul(12 * all) / many.mean().max(1);
        if took > 9 * all + 3 * part {
            let mean = u64::try_from(few.mean()).unwrap_or(u64::MAX);
            return Some((many.cut.limit, Duration::from_nanos(mean)));
        }
        // At the lowest limit a further comparison with fewer is impossible.
        if took < 4 * all + 8 * part && !few.cut.is_lowest {
            self.many = self.few.take();
        }
        None
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

    /// Plays cuts, each with a number in flight and the milliseconds that their answers take.
    fn after(cuts: &[(u64, u64)]) -> Option<(u64, Duration)> {
        let mut trial = Trial::default();
        let mut verdict = None;
        for (generation, (in_flight, millis)) in (1..).zip(cuts) {
            verdict = trial.no_faster();
            trial.ended(&ended(generation, *in_flight));
            for _ in 0..*in_flight {
                trial.answered(generation, Duration::from_millis(*millis));
            }
        }
        trial.no_faster().or(verdict)
    }

    fn found(limit: u64, millis: u64) -> (u64, Duration) {
        (limit, Duration::from_millis(millis))
    }

    #[test]
    fn a_trial_finds_whether_fewer_requests_in_flight_help() {
        for (cuts, verdict) in [
            (&[(40, 3000), (20, 3000)][..], Some(found(40, 3000))),
            // Without effect 3 s, in full proportion 1.5 s.
            (&[(40, 3000), (20, 2640)], Some(found(40, 2640))),
            (&[(40, 3000), (20, 2620)], None),
            (&[(40, 3000), (20, 2010), (10, 1500)], None),
            (&[(40, 3000), (20, 1990), (10, 1800)], Some(found(20, 1800))),
            // 27 is more than half of 40.
            (&[(40, 3000), (27, 3000)], None),
            (&[(40, 3000), (27, 3000), (18, 3000)], Some(found(40, 3000))),
            // Ten are served at once: more requests wait, and fewer are no faster than ten.
            (&[(40, 12_000), (20, 6000), (10, 3000)], None),
            (
                &[(40, 12_000), (20, 6000), (10, 3000), (5, 3000), (5, 3000)],
                Some(found(10, 3000)),
            ),
            // Nine answers are too few.
            (&[(20, 3000), (9, 3000)], None),
        ] {
            assert_eq!(after(cuts), verdict, "{cuts:?}");
        }
    }

    #[test]
    fn old_measurements_and_other_generations_are_ignored() {
        let mut trial = Trial::default();
        trial.ended(&ended(1, 40));
        trial.ended(&ended(62, 20));
        for generation in [1, 2, 62, 63] {
            for _ in 0..20 {
                trial.answered(generation, Duration::from_secs(3));
            }
        }
        assert_eq!(trial.no_faster(), None, "62 s are too long ago");
        trial.ended(&ended(70, 10));
        for _ in 0..20 {
            trial.answered(69, Duration::from_secs(3));
        }
        assert_eq!(trial.no_faster(), None);
        for _ in 0..10 {
            trial.answered(70, Duration::from_secs(3));
        }
        assert_eq!(trial.no_faster(), Some(found(20, 3000)));
    }

    #[test]
    fn at_the_lowest_limit_a_smaller_cut_is_compared() {
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
        assert_eq!(trial.no_faster(), Some(found(3, 3000)));
    }
}
