use limit::find::{Criterion, Objective};

use super::origins::Kind;
use crate::simulation::random::Random;

/// Seconds that do not count.
const WARM_UP: f64 = 600.0;

/// The largest share of bad answers against the allowed one, in a long run at a fixed rate.
///
/// At most 1 if the rate keeps the objective. The first ten minutes do not count: a cache fills, and what it has held up drains.
pub(super) fn closeness(kind: &Kind, rate: f64, seconds: f64, seed: u64) -> f64 {
    let objective: Objective = kind.objective.parse().expect("an objective");
    let mut random = Random::new(seed);
    let mut origin = (kind.make)(&mut random);
    let mut bad = vec![0.0; objective.conditions().len()];
    let (mut counted, mut at) = (0.0, 0.0);
    while at < seconds + WARM_UP {
        let answer = origin.answer(at, &mut random);
        if at > WARM_UP {
            counted += 1.0;
            for (bad, condition) in bad.iter_mut().zip(objective.conditions()) {
                let is_bad = match condition {
                    Criterion::Percentile { below, .. } => {
                        answer.took >= below.as_secs_f64() || answer.status >= 500
                    }
                    Criterion::Errors { .. } => answer.status >= 500,
                };
                *bad += f64::from(u8::from(is_bad));
            }
        }
        at += 1.0 / rate;
    }
    let shares = bad.iter().zip(objective.conditions());
    shares
        .map(|(bad, condition)| bad / counted / condition.allowed())
        .fold(0.0, f64::max)
}

/// The highest rate that keeps the objective, by bisection over long runs.
pub(super) fn measure(kind: &Kind, seconds: f64, seed: u64) -> f64 {
    let (mut low, mut high) = (50.0_f64, 400.0_f64);
    while high / low > 1.002 {
        let middle = (low * high).sqrt();
        if closeness(kind, middle, seconds, seed) <= 1.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
