//! The headline: what matters most now, its cause, what shows it, and what helps.
//!
//! | file | what it is |
//! |---|---|
//! | `rules` | the rules, ranked: from the samples of the last seconds to findings |
//! | `finding` | what a rule finds, and the order of causes |
//! | `recent` | sums over these samples |
//! | `words` | numbers as text |

mod finding;
mod recent;
mod rules;
#[cfg(test)]
mod tests;
mod words;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::recent::Recent;
use super::views::{self, Headline, PastHeadline, Sample};

/// How many samples the rules look at: one for each second.
const RECENT: usize = 10;
/// How many past headlines are kept.
const KEPT: usize = 200;

/// The headline of the last sample, and those before it.
#[derive(Clone, Debug, Default)]
pub(super) struct Headlines(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// `None` before the first sample.
    present: Option<Headline>,
    /// The newest first, each as it was at its worst.
    history: VecDeque<PastHeadline>,
}

/// Finds the headline of each new sample.
#[derive(Debug)]
pub(super) struct Editor {
    samples: VecDeque<Sample>,
    headlines: Headlines,
}

impl Editor {
    pub(super) fn new(headlines: Headlines) -> Self {
        Self {
            samples: VecDeque::with_capacity(RECENT + 1),
            headlines,
        }
    }

    /// Gives the sample its headline.
    pub(super) fn edit(&mut self, sample: &mut Sample) {
        self.samples.push_back(sample.clone());
        if self.samples.len() > RECENT {
            self.samples.pop_front();
        }
        sample.headline = rules::headline(&Recent::new(self.samples.make_contiguous()));
        self.headlines.note(sample.time, &sample.headline);
    }
}

impl Headlines {
    /// Keeps a headline. Of those that follow each other with the same cause, the worst stays in
    /// the history.
    fn note(&self, time: f64, headline: &Headline) {
        let mut state = self.state();
        state.present = Some(headline.clone());
        let history = &mut state.history;
        let topic = |it: &Headline| (it.cause.clone(), it.about.clone());
        match history.front_mut() {
            Some(last) if topic(&last.headline) == topic(headline) => {
                if headline.weight >= last.headline.weight {
                    last.headline = headline.clone();
                }
            }
            _ => history.push_front(PastHeadline {
                since: time,
                headline: headline.clone(),
            }),
        }
        history.truncate(KEPT);
    }

    /// The present headline and those before it, the newest first.
    pub(super) fn view(&self) -> views::Headlines {
        let state = self.state();
        views::Headlines {
            headline: state.present.clone().unwrap_or_else(rules::looking),
            history: state.history.iter().cloned().collect(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
