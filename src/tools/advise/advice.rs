use std::io;

use super::group::Counted;
use super::hours::Class;
use super::keys::Peaks;
use super::outliers::Outliers;
use super::pace::{FASTEST, Pace, per, recommend, slowest};
use super::plans::PlanAdvice;
use super::survey::{Survey, Surveyed};
use super::trial::{Candidate, Trial, rejections};
use crate::limit::Rate;

/// The recommended rates and bursts, and their effect.
pub struct Advice {
    pub(super) survey: Surveyed,
    /// For the keys without a plan; `None` if none of their requests is in the good hours.
    pub(super) zone: Option<ZoneAdvice>,
    /// For the keys of each plan.
    pub(super) plans: Vec<PlanAdvice>,
    pub(super) outliers: Option<Outliers>,
}

/// The recommendation for a zone.
pub(super) struct ZoneAdvice {
    /// The recommended rate and burst.
    pub(super) chosen: Trial,
    /// How many requests of the heaviest keys the recommendation rejects, in the order of these
    /// keys; `None` if that is not known.
    pub(super) rejected_of_heaviest: Vec<Option<u64>>,
    /// The recommendation and its neighbours, ordered by rate and then by burst.
    pub(super) trials: Vec<Trial>,
    pub(super) reach: Reach,
    /// The same rate computed for the bad hours.
    ///
    /// Set if the recommended rate is in requests a minute, and no key comes twice within a second
    /// in the bad hours either.
    pub(super) bad_pace: Option<Rate>,
}

/// Whether the rate keeps out the traffic of the bad hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// No hours are named bad, or they have no requests.
    NoneBad,
    /// A key of the bad hours comes faster than the rate.
    Below,
    /// No key of the bad hours does, so the pace of single keys is not what is bad about them.
    Above,
}

impl Advice {
    /// Chooses rates and bursts and tries them; `None` if the log has no requests to judge by.
    ///
    /// # Errors
    ///
    /// Returns an error if the temporary file cannot be read.
    pub fn new(survey: Survey) -> io::Result<Option<Self>> {
        let mut survey = survey.end()?;
        let outliers = Outliers::set_aside(&mut survey)?;
        let zone = ZoneAdvice::new(&survey.rest)?;
        let plans = PlanAdvice::all(&survey)?;
        let has_any = zone.is_some() || plans.iter().any(PlanAdvice::has_any);
        Ok(has_any.then_some(Self {
            survey,
            zone,
            plans,
            outliers,
        }))
    }

    /// The rate and burst for keys without a plan, and their effect on the log's requests.
    #[must_use]
    pub fn chosen(&self) -> Option<&Trial> {
        self.zone.as_ref().map(|zone| &zone.chosen)
    }

    /// Who stands out, if anybody does; lines of text.
    pub(super) fn outliers_told(&self) -> String {
        let told = self.outliers.as_ref().zip(self.chosen());
        told.map_or(String::new(), |(outliers, chosen)| {
            outliers.told(chosen.candidate)
        })
    }
}

impl ZoneAdvice {
    fn new(group: &Counted) -> io::Result<Option<Self>> {
        let Some(Pace {
            chosen,
            count,
            unit,
        }) = recommend(group)?
        else {
            return Ok(None);
        };
        let (good, bad) = (group.peak(Class::Good), group.peak(Class::Bad));
        let bad_count = match unit {
            'm' if bad == 1 => slowest(group, Class::Bad)?,
            _ => None,
        };
        let candidates = neighbours(chosen.candidate, count, unit);
        let trials = Trial::run_all(&group.spool, &candidates)?;
        let reach = match bad {
            0 => Reach::NoneBad,
            _ if bad > good || bad_count.is_some_and(|bad| bad > count) => Reach::Below,
            _ => Reach::Above,
        };
        let rejections = rejections(&group.spool, chosen.candidate)?;
        let rejected = |key: &Peaks| rejections.get(key.slot? as usize).copied();
        Ok(Some(Self {
            rejected_of_heaviest: group.keys.most.iter().map(rejected).collect(),
            chosen,
            trials,
            reach,
            bad_pace: bad_count.map(|count| per(count, 1, 'm')),
        }))
    }
}

/// Rates and bursts around the chosen ones, ordered by rate and then by burst.
fn neighbours(chosen: Candidate, count: u64, unit: char) -> Vec<Candidate> {
    let b = u64::from(chosen.burst);
    let mut rates: Vec<Rate> = vec![
        per(count, 2, unit),
        per(count * 3, 4, unit),
        chosen.rate,
        per((count * 3).min(2 * FASTEST), 2, unit),
        per((count * 2).min(FASTEST), 1, unit),
    ];
    rates.dedup();
    let bursts = [
        0,
        b / 4,
        b / 2,
        b * 3 / 4,
        b,
        b + b.div_ceil(2).max(1),
        (b * 2).max(2),
    ];
    let bursts = bursts.map(|burst| u32::try_from(burst).unwrap_or(u32::MAX));
    let mut bursts = Vec::from(bursts);
    bursts.dedup();
    let of_rate = |rate| {
        let bursts = bursts.iter().copied();
        bursts.map(move |burst| Candidate { rate, burst })
    };
    rates.into_iter().flat_map(of_rate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_lie_around_and_are_told_once() {
        for (rate, burst) in [(50u64, 4u32), (1, 0), (FASTEST, u32::MAX), (2, 1)] {
            let chosen = Candidate {
                rate: per(rate, 1, 's'),
                burst,
            };
            let all = neighbours(chosen, rate, 's');
            assert!(all.contains(&chosen), "{all:?}");
            let mut once = all.clone();
            once.dedup();
            assert_eq!(once.len(), all.len());
            let paces = all.iter().map(|it| (it.rate.per_second(), it.burst));
            assert!(
                paces.clone().is_sorted_by(|one, other| one < other),
                "{all:?}"
            );
        }
    }
}
