//! Figures of the origin's own, while a level is tried.

use std::time::Duration;

use super::figure_bound::{FigureBound, MAX_FIGURES};
use super::report::FigureReading;
use crate::limit::Moment;

/// So many readings on end beyond the bound are a breach.
const MAX_BROKEN: u32 = 3;

/// A reading tells of so much time after it.
///
/// The gateway reads each second, and a reading may take up to two.
const FRESH: Duration = Duration::from_secs(3);

/// The figures of an experiment.
#[derive(Debug)]
pub(super) struct Figures {
    all: Vec<Watched>,
}

#[derive(Debug)]
struct Watched {
    bound: FigureBound,
    /// Readings on end that were beyond the bound.
    broken: u32,
    worst: Option<f64>,
    /// When it was read last at this level.
    read: Option<Moment>,
}

impl Figures {
    pub fn new(bounds: &[FigureBound]) -> Self {
        let all = bounds.iter().take(MAX_FIGURES).map(|bound| Watched {
            bound: bound.clone(),
            broken: 0,
            worst: None,
            read: None,
        });
        Self { all: all.collect() }
    }

    /// Takes in what was read since it was told last.
    pub fn note(&mut self, read: &[Option<f64>; MAX_FIGURES], now: Moment) {
        for (it, figure) in self.all.iter_mut().zip(read) {
            let Some(figure) = *figure else { continue };
            let holds = it.bound.holds(figure);
            it.broken = if holds { 0 } else { it.broken + 1 };
            let worst = it
                .worst
                .map_or(figure, |worst| it.bound.worse(worst, figure));
            it.worst = Some(worst);
            it.read = Some(now);
        }
    }

    /// Whether each was read at this level a short time ago.
    pub fn are_fresh(&self, now: Moment) -> bool {
        let is_fresh = |it: &Watched| it.read.is_some_and(|read| now.since(read) <= FRESH);
        self.all.iter().all(is_fresh)
    }

    pub fn are_broken(&self) -> bool {
        self.all.iter().any(|it| it.broken >= MAX_BROKEN)
    }

    /// One that is beyond its bound; rather one that broke the step.
    pub fn broken(&self) -> Option<&FigureBound> {
        let worst = self.all.iter().max_by_key(|it| it.broken);
        worst.filter(|it| it.broken > 0).map(|it| &it.bound)
    }

    /// Whether each was within its bound when it was read last, a short time ago.
    pub fn hold(&self, now: Moment) -> bool {
        self.are_fresh(now) && self.all.iter().all(|it| it.broken == 0)
    }

    /// The worst of each at this level.
    pub fn readings(&self) -> Vec<FigureReading> {
        let of = |it: &Watched| FigureReading {
            bound: it.bound.clone(),
            worst: it.worst,
        };
        self.all.iter().map(of).collect()
    }
}
