//! The headline: the most important state now, its cause, its evidence, and the remedy.
//!
//! | file | content |
//! |---|---|
//! | `rules` | the rules, ranked: from the samples of the last seconds to findings |
//! | `finding` | the result of a rule, and the order of causes |
//! | `recent` | sums over these samples |
//! | `past` | warnings that began and ended: the history and the lines of the log |
//! | `change` | the change of the file after which a warning began |
//! | `words` | numbers as text |

mod change;
pub(crate) mod finding;
mod past;
pub(crate) mod recent;
mod rules;
pub(crate) mod sample;
#[cfg(test)]
mod tests;
pub(crate) mod words;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::past::{Past, WarningChange};
use self::recent::Recent;
use self::sample::Headline;
use super::sample::{ChangeSample, Sample};

/// Number of samples that the rules read, one for each second.
///
/// Sentences in the present tense are about these samples.
const RULE_SAMPLES: usize = 3;
/// Number of samples before these, which may give the cause of the events that these count.
const EARLIER_SAMPLES: usize = 1;

/// Headline of the last sample, and the earlier warnings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Headlines(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Headline of the last sample; `None` before the first sample.
    present: Option<Headline>,
    /// Warnings, also the present one.
    past: Past,
}

/// Finds the headline of each new sample.
pub(crate) struct Editor {
    /// Last samples, the oldest first.
    samples: VecDeque<Sample>,
    headlines: Headlines,
}

impl Editor {
    pub(crate) fn new(headlines: Headlines) -> Self {
        Self {
            samples: VecDeque::with_capacity(EARLIER_SAMPLES + RULE_SAMPLES + 1),
            headlines,
        }
    }

    /// Adds the headline to the sample.
    pub(crate) fn edit(&mut self, sample: &mut Sample) {
        self.samples.push_back(sample.clone());
        if self.samples.len() > EARLIER_SAMPLES + RULE_SAMPLES {
            self.samples.pop_front();
        }
        let samples = self.samples.make_contiguous();
        sample.headline = rules::headline(&Recent::last_of(samples, RULE_SAMPLES));
        self.headlines
            .note(sample.time, &mut sample.headline, sample.change.as_ref());
    }
}

impl Headlines {
    /// Records a headline, sets its times, and logs which warnings began or ended.
    fn note(&self, time: f64, headline: &mut Headline, change: Option<&ChangeSample>) {
        let changes = {
            let mut state = self.state();
            let changes = state.past.note(time, headline, change);
            headline.since = state.past.since(headline);
            headline.ended = state.past.ended(time, headline);
            state.present = Some(headline.clone());
            changes
        };
        changes.iter().for_each(WarningChange::log);
    }

    /// Returns the present headline and the earlier warnings, the newest first.
    pub(crate) fn view(&self) -> sample::Headlines {
        let state = self.state();
        sample::Headlines {
            headline: state.present.clone().unwrap_or_else(rules::before_samples),
            history: state.past.history().cloned().collect(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
