//! The state of the gateway as far as it is known, and the values derived from it.
//!
//! No clock, no I/O.

mod origins;

use std::collections::VecDeque;

pub(super) use self::origins::{GateNow, OriginLine, SharedNow};
use super::feed::News;
use crate::limit::Moment;
use crate::remote::client::Lost;
use crate::status::views::{Config, HeavyKey, KeySample, Origin, Plain, Sample, Zone, ZoneSample};

/// Seconds of history that are kept, the same number as the gateway keeps.
const SECONDS: usize = 600;
/// Samples over which what is shared is averaged, as many as on the page.
const RECENT: usize = 10;

#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) link: Link,
    pub(super) config: Option<Config>,
    pub(super) zones: Option<Vec<Zone>>,
    pub(super) origins: Option<Vec<Origin>>,
    samples: VecDeque<Sample>,
}

/// The connection to the gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Link {
    #[default]
    Opening,
    Open {
        since: Moment,
    },
    Lost {
        since: Moment,
        why: Lost,
    },
}

/// A zone now, and its depth over time.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    pub(super) name: Plain,
    pub(super) rate: Plain,
    /// The last second; all zero without a sample.
    pub(super) now: ZoneSample,
    /// Requests that came in the last second.
    pub(super) came: u64,
    /// One value a second; the most recent is last.
    pub(super) depths: Vec<u64>,
}

/// A zone over time, as pairs of a time in seconds before now (zero or negative) and a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ZoneSeries {
    pub(super) depth: Vec<(f64, f64)>,
    pub(super) out: Vec<(f64, f64)>,
    pub(super) rate: Vec<(f64, f64)>,
    /// Times at which the file was reloaded.
    pub(super) retunes: Vec<f64>,
}

/// The order in which keys are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sort {
    #[default]
    Depth,
    Oldest,
    Name,
    /// The keys with the most rejections in the last minute, instead of the deepest ones.
    Rejections,
}

impl Model {
    pub(super) fn hear(&mut self, news: News, now: Moment) {
        match news {
            News::Zones(zones) => self.zones = Some(zones.zones),
            News::Origins(origins) => self.origins = Some(origins.origins),
            News::Config(config) => self.config = Some(config),
            News::History(samples) => {
                self.link = Link::Open { since: now };
                for sample in samples {
                    self.keep(sample);
                }
            }
            News::Sample(sample) => self.keep(*sample),
            News::Lost(why) => {
                // `since` is the time of the first failed try.
                let since = match self.link {
                    Link::Lost { since, .. } => since,
                    Link::Opening | Link::Open { .. } => now,
                };
                self.link = Link::Lost { since, why };
            }
        }
    }

    /// The last seconds, the newest first.
    fn recent(&self) -> impl Iterator<Item = &Sample> {
        self.samples.iter().rev().take(RECENT)
    }

    fn keep(&mut self, sample: Sample) {
        if self.now().is_some_and(|last| sample.seq <= last.seq) {
            // A new gateway process starts counting again.
            self.samples.clear();
        }
        self.samples.push_back(sample);
        if self.samples.len() > SECONDS {
            self.samples.pop_front();
        }
    }

    /// Whether every part has been received at least once.
    pub(super) fn is_whole(&self) -> bool {
        let details = self.config.is_some() && self.zones.is_some() && self.origins.is_some();
        details && self.now().is_some()
    }

    /// The sample of the last second.
    pub(super) fn now(&self) -> Option<&Sample> {
        self.samples.back()
    }

    /// Whether the gateway is stopping: its queues drain, then it ends.
    pub(super) fn is_stopping(&self) -> bool {
        self.now().is_some_and(|sample| sample.stopping)
    }

    pub(super) fn zones(&self) -> &[Zone] {
        self.zones.as_deref().unwrap_or_default()
    }

    pub(super) fn origins(&self) -> &[Origin] {
        self.origins.as_deref().unwrap_or_default()
    }

    pub(super) fn rows(&self) -> Vec<Row> {
        self.zones().iter().map(|zone| self.row(zone)).collect()
    }

    fn row(&self, zone: &Zone) -> Row {
        let seconds = self.samples.iter();
        let seen = seconds.filter_map(|sample| sample.zone(&zone.name));
        let depths: Vec<u64> = seen.map(|zone| zone.depth).collect();
        let now = self.now().and_then(|sample| sample.zone(&zone.name));
        let now = now.cloned().unwrap_or_default();
        // In the first known second, the waiting requests may have come before it. So its depth
        // counts as the depth before.
        let before = depths.iter().rev().nth(1).copied();
        Row {
            name: zone.name.clone(),
            rate: zone.rate.clone(),
            came: now.came(before.unwrap_or(now.depth)),
            now,
            depths,
        }
    }

    #[allow(clippy::cast_precision_loss)]
    pub(super) fn course(&self, zone: &Plain) -> ZoneSeries {
        let mut course = ZoneSeries::default();
        let end = self.now().map_or(0.0, |sample| sample.time);
        let mut last = None;
        for sample in &self.samples {
            let Some(second) = sample.zone(zone) else {
                continue;
            };
            let at = sample.time - end;
            course.depth.push((at, second.depth as f64));
            course.out.push((at, second.out() as f64));
            course.rate.extend(second.rate.map(|rate| (at, rate)));
            if last.is_some_and(|reload| reload != sample.reload) {
                course.retunes.push(at);
            }
            last = Some(sample.reload);
        }
        course
    }

    pub(super) fn deepest(&self, sort: Sort) -> Vec<&KeySample> {
        let mut keys: Vec<&KeySample> = self.now().map_or_else(Vec::new, |sample| {
            sample.deepest.iter().filter(|key| key.depth > 0).collect()
        });
        match sort {
            Sort::Depth => keys.sort_by_key(|key| std::cmp::Reverse(key.depth)),
            Sort::Oldest => keys.sort_by(|a, b| b.oldest_wait.total_cmp(&a.oldest_wait)),
            Sort::Name => keys.sort_by(|a, b| (&a.zone, &a.key).cmp(&(&b.zone, &b.key))),
            Sort::Rejections => keys.clear(),
        }
        keys
    }

    /// The keys with the most rejections in the last minute, each with its zone.
    pub(super) fn rejected(&self) -> Vec<(&Plain, &HeavyKey)> {
        let zones = self.now().map_or(&[][..], |sample| &sample.zones);
        let mut keys = Vec::new();
        for zone in zones {
            keys.extend(zone.rejected_keys.iter().map(|key| (&zone.name, key)));
        }
        keys.sort_by_key(|(_, key)| std::cmp::Reverse(key.rejections));
        keys
    }

    /// The keys that are listed in this order, each with its zone.
    pub(super) fn keys(&self, sort: Sort) -> Vec<(&Plain, &Plain)> {
        match sort {
            Sort::Rejections => {
                let keys = self.rejected().into_iter();
                keys.map(|(zone, key)| (zone, &key.key)).collect()
            }
            Sort::Depth | Sort::Oldest | Sort::Name => {
                let keys = self.deepest(sort).into_iter();
                keys.map(|key| (&key.zone, &key.key)).collect()
            }
        }
    }
}

impl Sort {
    pub(super) fn next(self) -> Self {
        match self {
            Self::Depth => Self::Oldest,
            Self::Oldest => Self::Name,
            Self::Name => Self::Rejections,
            Self::Rejections => Self::Depth,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Depth => "depth",
            Self::Oldest => "oldest wait",
            Self::Name => "name",
            Self::Rejections => "rejections",
        }
    }
}

#[cfg(test)]
mod tests;
