//! Computes the rates and bursts that fit a log, with and without its busiest key.

use std::io;

use super::fit::{Fit, Fitter, WIDTHS, widths_in};
use super::keys::HeavyKey;
use super::survey::Survey;

/// Number of keys shown.
const SHOWN: usize = 5;

/// Numbers of the advised zone.
pub(super) struct Choice {
    /// Recommended rate and burst.
    pub(super) recommended: Fit,
    /// Alternative with or without the busiest key, if there is one.
    pub(super) alternative: Option<Fit>,
}

/// The recommended rates and bursts.
pub struct Advice {
    pub(super) survey: Survey,
    /// Number of window widths that the log is long enough for.
    pub(super) widths: usize,
    /// Rate and burst that fit all keys.
    pub(super) all: Fit,
    /// Rate and burst that fit all keys except the busiest; `None` if there are no other keys.
    pub(super) others: Option<Fit>,
    /// The keys with the most requests, each with the rate and burst that fit it.
    pub(super) heaviest: Vec<(HeavyKey, Fit)>,
    /// Whether the busiest key made more requests than all other keys together.
    is_dominated: bool,
}

impl Advice {
    /// Finds the rates and bursts; `None` if no request has a key.
    ///
    /// # Errors
    ///
    /// Returns an error if the temporary file cannot be read.
    pub fn new(mut survey: Survey) -> io::Result<Option<Self>> {
        survey.end()?;
        let (first, last) = survey.spool.span();
        let widths = widths_in(last.since(first));
        let fitter = Fitter::new(&survey, widths)?;
        let Some(all) = fitter.fit(|_| true)? else {
            return Ok(None);
        };
        let mut heaviest = Vec::new();
        for key in survey.keys.heaviest(SHOWN) {
            let fit = fitter.fit(|slot| slot == key.slot)?;
            heaviest.extend(fit.map(|fit| (key, fit)));
        }
        let busiest = heaviest.first().map(|(key, _)| key);
        let others = busiest.map(|busiest| fitter.fit(|slot| slot != busiest.slot));
        let of_busiest = busiest.map_or(0, |busiest| busiest.requests);
        Ok(Some(Self {
            all,
            others: others.transpose()?.flatten(),
            is_dominated: of_busiest > survey.spool.count - of_busiest,
            heaviest,
            widths,
            survey,
        }))
    }

    /// Returns the recommended numbers, and the alternative numbers if there are any.
    pub(super) fn chosen(&self) -> Choice {
        let (recommended, alternative) = match self.others {
            Some(others) if self.ignores_busiest() => (others, Some(self.all)),
            others => (self.all, others),
        };
        Choice {
            recommended,
            alternative,
        }
    }

    /// Returns the name of the widest window that the log is long enough for.
    pub(super) fn widest_window(&self) -> &'static str {
        WIDTHS[self.widths - 1].1
    }

    /// Returns whether the recommendation ignores the busiest key.
    pub(super) fn ignores_busiest(&self) -> bool {
        self.is_dominated && self.others.is_some()
    }

    /// Returns the busiest key.
    pub(super) fn busiest(&self) -> Option<&HeavyKey> {
        self.heaviest.first().map(|(key, _)| key)
    }
}
