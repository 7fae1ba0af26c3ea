//! The faults and changes of a scenario.
//!
//! A fault is for example a lost connection, a killed gateway, or a store that loses its data. A
//! change saves another file, for example with another rate.

use std::time::Duration;

use limit::Rate;

use super::{origins, zones::rate};
use crate::simulation::clock::Skew;
use crate::simulation::random::Random;

/// A fault, or a change of settings.
#[derive(Clone, Copy, Debug)]
pub(in crate::simulation) enum Fault {
    /// Saves a gateway's file with another rate for a zone.
    Retune {
        gateway: usize,
        zone: usize,
        rate: Rate,
    },
    /// Saves a gateway's file with another rate for an origin.
    RetuneOrigin {
        gateway: usize,
        origin: usize,
        rate: Rate,
    },
    /// An operator makes a zone forget a key.
    Forget { gateway: usize, zone: usize },
    /// Messages of a gateway are delayed, and some are lost at the first attempt.
    Slow {
        gateway: usize,
        more: Duration,
        loss: u64,
        lasts: Duration,
    },
    /// No message passes between a gateway and the store.
    Partition { gateway: usize, lasts: Duration },
    /// No message passes between all gateways and the store.
    Island { lasts: Duration },
    /// The connection of a gateway breaks.
    Reset { gateway: usize },
    /// The store takes this long for each command.
    Busy { takes: Duration, lasts: Duration },
    /// The store dies, starts empty, and loads for a while.
    Death { lasts: Duration, loads: Duration },
    /// A replica takes over without the writes of the last time. At first it refuses writes.
    Failover {
        loses: Duration,
        read_only: Duration,
    },
    /// All data and scripts of the store are deleted.
    Flush,
    /// The clock of the store jumps.
    Jump { micros: i64 },
    /// A gateway loses its power. It starts again after a while, with another clock.
    Crash {
        gateway: usize,
        lasts: Duration,
        clock: Skew,
    },
    /// The process of a gateway is stopped for a while.
    Stop { gateway: usize, lasts: Duration },
    /// Saves all files, one after another, with another `max_in_flight` for the first origin.
    RetuneAll { most: usize },
}

impl Fault {
    /// Plans the faults while requests arrive.
    pub(super) fn plan(
        random: &mut Random,
        gateways: usize,
        zones: usize,
        lasts: Duration,
    ) -> Vec<(Duration, Self)> {
        // Number of changes of a rate, and of faults of any other kind.
        let (harmless, others) = match random.number(0..10) {
            0..2 => (0, 0),
            2..4 => (random.number(1..4), 0),
            4..7 => (0, random.number(1..3)),
            _ => (random.number(0..3), random.number(1..6)),
        };
        // Numbers of the kinds, as in `new`.
        let kinds = (0..harmless).map(|_| 0);
        let kinds = kinds.chain((0..others).map(|_| random.number(1..12)));
        let kinds: Vec<u64> = kinds.collect();
        let lasts = u64::try_from(lasts.as_millis()).unwrap_or(1).max(1);
        let plan = kinds.into_iter().map(|kind| {
            let begin = random.millis(0..lasts);
            (begin, Self::new(kind, random, gateways, zones))
        });
        plan.collect()
    }

    /// Plans the faults while requests arrive at gates: changes of zones are changes of origins.
    pub(super) fn plan_for_gates(
        random: &mut Random,
        gateways: usize,
        origins: usize,
        lasts: Duration,
    ) -> Vec<(Duration, Self)> {
        let mut plan = Self::plan(random, gateways, origins, lasts);
        for (_, fault) in &mut plan {
            match *fault {
                Self::Retune { gateway, zone, .. } | Self::Forget { gateway, zone } => {
                    *fault = Self::RetuneOrigin {
                        gateway,
                        origin: zone,
                        rate: origins::rate(random),
                    };
                }
                _ => {}
            }
        }
        plan
    }

    /// Draws a fault of the kind with this number.
    fn new(kind: u64, random: &mut Random, gateways: usize, zones: usize) -> Self {
        let (gateway, zone) = (random.index(gateways), random.index(zones));
        let lasts = random.millis(1..1500);
        match kind {
            0 => Self::Retune {
                gateway,
                zone,
                rate: rate(random),
            },
            1 => Self::Slow {
                gateway,
                more: random.millis(1..60),
                loss: random.number(0..20),
                lasts,
            },
            2 => Self::Partition { gateway, lasts },
            3 => Self::Island { lasts },
            4 => Self::Reset { gateway },
            5 => Self::Busy {
                takes: random.micros(10..20_000),
                lasts,
            },
            6 => Self::Death {
                lasts,
                loads: random.millis(0..300),
            },
            7 => Self::Failover {
                loses: random.millis(0..400),
                read_only: random.millis(0..400),
            },
            8 => Self::Flush,
            9 => Self::Jump {
                micros: i64::try_from(random.number(0..4_000_000)).unwrap_or(0) - 2_000_000,
            },
            10 => Self::Forget { gateway, zone },
            _ => Self::Crash {
                gateway,
                lasts,
                clock: Skew::new(random, true),
            },
        }
    }

    /// Returns whether one store that loses no data decides all requests.
    pub(super) fn is_harmless(&self) -> bool {
        matches!(self, Self::Retune { .. } | Self::RetuneOrigin { .. })
    }

    /// Returns the rate that a zone has in a file from then on, if it changes.
    pub(super) fn rate_of_zone(&self, index: usize) -> Option<Rate> {
        match *self {
            Self::Retune { zone, rate, .. } if zone == index => Some(rate),
            _ => None,
        }
    }

    /// Returns the rate that an origin has in a file from then on, if it changes.
    pub(super) fn rate_of_origin(&self, index: usize) -> Option<Rate> {
        match *self {
            Self::RetuneOrigin { origin, rate, .. } if origin == index => Some(rate),
            _ => None,
        }
    }

    /// Returns the duration of the fault.
    pub(in crate::simulation) fn lasts(&self) -> Duration {
        match *self {
            Self::Slow { lasts, .. }
            | Self::Partition { lasts, .. }
            | Self::Island { lasts }
            | Self::Busy { lasts, .. }
            | Self::Crash { lasts, .. }
            | Self::Stop { lasts, .. } => lasts,
            Self::Death { lasts, loads } => lasts + loads,
            Self::Failover { loses, read_only } => loses + read_only,
            _ => Duration::ZERO,
        }
    }
}
