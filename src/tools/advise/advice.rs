//! Computes the rates and bursts that fit a log, with and without its busiest key.
//!
//! `keys` gives each key a slot: a number by which `spool` refers to it. `fit` counts the requests
//! of a key in windows of several widths.

use std::io;

use super::fit::{Fit, Fitter, WIDTHS, widths_in};
use super::keys::HeavyKey;
use super::survey::Survey;

/// Number of keys that are reported one by one.
const MAX_HEAVIEST: usize = 5;

/// The two answers of an advice.
pub(super) struct Choice {
    /// Rate and burst that are recommended.
    pub(super) recommended: Fit,
    /// Rate and burst without the busiest key, or with it if the recommended ones are without it.
    ///
    /// `None` if there is only one key.
    pub(super) alternative: Option<Fit>,
}

/// The recommended rates and bursts.
pub struct Advice {
    pub(super) survey: Survey,
    /// Number of [`WIDTHS`] that the log is long enough for; at least 1.
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
    /// Computes the rates and bursts from all requests of a survey; `None` if no request has a key.
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
        for key in survey.keys.heaviest(MAX_HEAVIEST) {
            let fit = fitter.fit(|slot| slot == key.slot)?;
            heaviest.extend(fit.map(|fit| (key, fit)));
        }
        let busiest = heaviest.first().map(|(key, _)| key);
        let others = busiest.map(|busiest| fitter.fit(|slot| slot != busiest.slot));
        let busiest_requests = busiest.map_or(0, |busiest| busiest.requests);
        Ok(Some(Self {
            all,
            others: others.transpose()?.flatten(),
            // The busiest key against all others together.
            is_dominated: busiest_requests > survey.spool.count - busiest_requests,
            heaviest,
            widths,
            survey,
        }))
    }

    /// Returns the recommended rate and burst, and the alternative.
    pub(super) fn choice(&self) -> Choice {
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
