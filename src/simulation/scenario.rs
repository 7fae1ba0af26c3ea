//! What a seed makes happen: gateways, zones, traffic, and faults.

mod faults;
mod zones;

use std::time::Duration;

pub(super) use faults::Fault;
pub(super) use zones::ZonePlan;

use super::clock::Skew;
use super::random::Random;
use crate::limit::Rate;

/// All that a seed decides at the beginning.
#[derive(Debug)]
pub(super) struct Scenario {
    pub(super) clocks: Vec<Skew>,
    pub(super) zones: Vec<ZonePlan>,
    /// How long a message takes between a gateway and the store, at least and at most.
    pub(super) delay: (Duration, Duration),
    /// `redis.timeout` of all gateways.
    pub(super) timeout: Duration,
    /// How long requests come.
    pub(super) lasts: Duration,
    /// Mean time between the requests at one gateway.
    pub(super) pause: Duration,
    /// How many of a hundred requests leave early, are given back, refunded, and settled.
    pub(super) moods: [u64; 4],
    /// What fails, and when.
    pub(super) faults: Vec<(Duration, Fault)>,
}

impl Scenario {
    pub(super) fn new(random: &mut Random) -> Self {
        let gateways = match random.number(0..10) {
            0 => 10,
            _ => random.number(1..6),
        };
        let has_drift = random.chance(50);
        let clock = |random: &mut Random| Skew {
            ahead: i64::try_from(random.number(0..20_000_000_000)).unwrap_or(0) - 10_000_000_000,
            ppm: if has_drift {
                i32::try_from(random.number(0..101)).unwrap_or(0) - 50
            } else {
                0
            },
        };
        let clocks: Vec<_> = (0..gateways).map(|_| clock(random)).collect();
        let zones: Vec<_> = (0..random.number(1..4))
            .map(|index| ZonePlan::new(index, random))
            .collect();
        let least = random.micros(20..1500);
        let spread = if random.chance(30) {
            Duration::ZERO
        } else {
            random.micros(1..3000)
        };
        let percent = |random: &mut Random| {
            let some = random.number(1..30);
            if random.chance(50) { some } else { 0 }
        };
        let moods = [(); 4].map(|()| percent(random));
        // So many requests, at so many times the rates together.
        let (requests, load) = (random.number(100..400), random.number(5..40));
        let rates: f64 = zones.iter().map(ZonePlan::rates).sum();
        #[allow(clippy::cast_precision_loss)]
        let lasts = requests as f64 / (rates * load as f64 / 10.0);
        let lasts = Duration::from_secs_f64(lasts.clamp(0.5, 20.0));
        let pause = lasts * u32::try_from(gateways).unwrap_or(1)
            / u32::try_from(requests).unwrap_or(u32::MAX);
        let faults = Fault::plan(random, clocks.len(), zones.len(), lasts);
        Self {
            clocks,
            zones,
            delay: (least, least + spread),
            timeout: Duration::from_millis(random.number(20..80)),
            lasts,
            pause,
            moods,
            faults,
        }
    }

    /// The lowest rate that a key has at any time.
    pub(super) fn slowest(&self, zone: usize, key: &str) -> Rate {
        let rates = self.rates(zone, key);
        rates
            .min_by(|one, other| one.per_second().total_cmp(&other.per_second()))
            .expect("one")
    }

    /// The highest rate that a key has at any time.
    pub(super) fn fastest(&self, zone: usize, key: &str) -> Rate {
        let rates = self.rates(zone, key);
        rates
            .max_by(|one, other| one.per_second().total_cmp(&other.per_second()))
            .expect("one")
    }

    fn rates(&self, zone: usize, key: &str) -> impl Iterator<Item = Rate> {
        let retuned = self
            .faults
            .iter()
            .filter_map(move |(_, fault)| match fault {
                Fault::Retune {
                    zone: other, rate, ..
                } if *other == zone => Some(*rate),
                _ => None,
            });
        std::iter::once(self.zones[zone].rate_of(key)).chain(retuned)
    }

    /// Whether nothing fails: then all departures are on the shared schedule.
    pub(super) fn is_calm(&self) -> bool {
        self.faults.iter().all(|(_, fault)| fault.is_harmless())
    }
}
