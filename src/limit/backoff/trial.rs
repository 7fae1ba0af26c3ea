//! Trial: measures whether fewer requests in flight make the answers of an origin faster.
//!
//! A *cut* lowers the limit of requests in flight. A *generation* is the group of requests sent
//! between two cuts. [`in_flight_limit`](super::in_flight_limit) makes the cuts, and undoes them if
//! they do not help.

use std::time::Duration;

use super::Moment;

/// Lower bound of the measured answers.
const MIN_ANSWERS: u64 = 10;

/// Age of the first cut from which its measurement is not used: the origin may have changed since.
const MAX_AGE: Duration = Duration::from_secs(60);

/// Compares the duration of answers with many requests in flight, and with fewer.
///
/// Requests that are in flight at a cut are measured, because the origin was under the load before
/// the cut. Each cut ends a generation. So a measured request has an ended generation when it is
/// answered.
#[derive(Debug, Default)]
pub(super) struct Trial {
    /// Answers to requests that were in flight at the first cut.
    many: Option<Answers>,
    /// Answers to requests that were in flight at later cuts, with at most half as many in flight.
    few: Option<Answers>,
}

/// A generation of requests, and the cut that ends it.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndedGeneration {
    pub generation: u64,
    /// Number of requests of the generation without an answer at the cut.
    pub unanswered: u64,
    /// Limit before the cut, in millionths of a permit.
    pub limit: u64,
    /// Whether the limit cannot be lowered further.
    pub is_lowest: bool,
    /// Instant of the cut.
    pub at: Moment,
}

/// Cuts that did not make answers faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unhelpful {
    /// Limit before the first of the cuts, in millionths of a permit.
    pub limit: u64,
    /// Mean duration of answers after the cuts.
    pub mean: Duration,
}

/// Answers to the requests of consecutive generations.
#[derive(Debug)]
struct Answers {
    /// First generation. `unanswered` is the largest number of any of the generations.
    first: EndedGeneration,
    /// Number of the last generation.
    last_generation: u64,
    /// Number of answers.
    count: u64,
    /// Sum of their durations.
    total_nanos: u128,
}

impl Answers {
    fn new(first: &EndedGeneration) -> Self {
        Self {
            first: *first,
            last_generation: first.generation,
            count: 0,
            total_nanos: 0,
        }
    }

    /// Returns the mean duration of an answer, in nanoseconds.
    fn mean(&self) -> u128 {
        self.total_nanos / u128::from(self.count.max(1))
    }
}

impl Trial {
    /// Records a cut and the generation that it ends.
    pub fn end_generation(&mut self, ended: &EndedGeneration) {
        let has_few = self.few.is_some();
        let many = self.many.as_mut().filter(|many| {
            let is_recent = ended.at.since(many.first.at) <= MAX_AGE;
            ended.unanswered <= many.first.unanswered && (is_recent || has_few)
        });
        let Some(many) = many else {
            (self.many, self.few) = (Some(Answers::new(ended)), None);
            return;
        };
        let is_fewer = ended.unanswered < many.first.unanswered;
        let is_half = ended.unanswered * 2 <= many.first.unanswered;
        if is_half || (is_fewer && ended.is_lowest) {
            let few = self.few.get_or_insert_with(|| Answers::new(ended));
            few.first.unanswered = few.first.unanswered.max(ended.unanswered);
            few.first.is_lowest |= ended.is_lowest;
            few.last_generation = ended.generation;
        } else if !has_few {
            many.last_generation = ended.generation;
        }
    }

    /// Counts an answer without trouble, if its generation has ended.
    pub fn answered(&mut self, generation: u64, took: Duration) {
        let measured = self.few.iter_mut().chain(&mut self.many);
        for answers in measured {
            if (answers.first.generation..=answers.last_generation).contains(&generation) {
                answers.count += 1;
                answers.total_nanos += took.as_nanos();
                return;
            }
        }
    }

    /// Returns the cuts if they did not help, that is if answers are no faster with fewer requests.
    ///
    /// If they did help, later calls compare with the smaller number of requests.
    ///
    /// If the number in flight has no effect, answers take as long as before. If it alone matters,
    /// their duration falls in proportion to the number. Cuts did not help if the duration is in
    /// the quarter of this range next to "no effect". They helped if it is in the third next to "in
    /// proportion". Between the two, more answers are needed.
    pub fn take_unhelpful(&mut self) -> Option<Unhelpful> {
        let (many, few) = (self.many.as_ref()?, self.few.as_ref()?);
        let (many_in_flight, few_in_flight) = (many.first.unanswered, few.first.unanswered);
        let enough = MIN_ANSWERS.min(many_in_flight.div_ceil(2));
        if many_in_flight == 0 || many.count < enough || few.count < MIN_ANSWERS {
            return None;
        }
        let no_effect = many.mean();
        let in_proportion = no_effect * u128::from(few_in_flight) / u128::from(many_in_flight);
        let range = no_effect - in_proportion;
        let found = few.mean();
        if found > no_effect - range / 4 {
            let mean = u64::try_from(found).unwrap_or(u64::MAX);
            return Some(Unhelpful {
                limit: many.first.limit,
                mean: Duration::from_nanos(mean),
            });
        }
        // At the lowest limit a further comparison with fewer is impossible.
        if found < in_proportion + range / 3 && !few.first.is_lowest {
            self.many = self.few.take();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(generation: u64, in_flight: u64) -> EndedGeneration {
        EndedGeneration {
            generation,
            unanswered: in_flight,
            limit: in_flight,
            is_lowest: false,
            at: Moment::from_nanos(generation * 1_000_000_000),
        }
    }

    /// Plays cuts, each with a number in flight and the milliseconds that their answers take.
    fn after(cuts: &[(u64, u64)]) -> Option<Unhelpful> {
        let mut trial = Trial::default();
        let mut verdict = None;
        for (generation, (in_flight, millis)) in (1..).zip(cuts) {
            verdict = trial.take_unhelpful();
            trial.end_generation(&ended(generation, *in_flight));
            for _ in 0..*in_flight {
                trial.answered(generation, Duration::from_millis(*millis));
            }
        }
        trial.take_unhelpful().or(verdict)
    }

    fn found(limit: u64, millis: u64) -> Unhelpful {
        let mean = Duration::from_millis(millis);
        Unhelpful { limit, mean }
    }

    #[test]
    fn a_trial_finds_whether_fewer_requests_in_flight_help() {
        // Cuts: number in flight, and the milliseconds of the answers.
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
        trial.end_generation(&ended(1, 40));
        trial.end_generation(&ended(62, 20));
        for generation in [1, 2, 62, 63] {
            for _ in 0..20 {
                trial.answered(generation, Duration::from_secs(3));
            }
        }
        assert_eq!(trial.take_unhelpful(), None, "62 s are too long ago");
        trial.end_generation(&ended(70, 10));
        for _ in 0..20 {
            trial.answered(69, Duration::from_secs(3));
        }
        assert_eq!(trial.take_unhelpful(), None);
        for _ in 0..10 {
            trial.answered(70, Duration::from_secs(3));
        }
        assert_eq!(trial.take_unhelpful(), Some(found(20, 3000)));
    }

    #[test]
    fn at_the_lowest_limit_a_smaller_cut_is_compared() {
        let mut trial = Trial::default();
        trial.end_generation(&ended(1, 3));
        for _ in 0..3 {
            trial.answered(1, Duration::from_secs(3));
        }
        for generation in 2..7 {
            trial.end_generation(&EndedGeneration {
                is_lowest: true,
                ..ended(generation, 2)
            });
            for _ in 0..2 {
                trial.answered(generation, Duration::from_secs(3));
            }
        }
        assert_eq!(trial.take_unhelpful(), Some(found(3, 3000)));
    }
}
