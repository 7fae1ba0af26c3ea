//! The scenario of a seed: gateways, zones, origins with shared gates, traffic, and faults.
//!
//! A zone limits the rate of each key. A gate bounds the pace of all requests to an origin;
//! gateways share its slots through the store. Most numbers are drawn at random.

mod faults;
mod origins;
mod zones;

use std::path::Path;
use std::time::Duration;

use limit::Rate;

pub(super) use faults::Fault;
pub(super) use origins::OriginPlan;
pub(super) use zones::ZonePlan;

use super::clock::Skew;
use super::random::Random;

/// Traffic at shared gates.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Crowd {
    /// Whether all keys wait at the beginning, each with enough requests for a while.
    pub(super) is_full: bool,
    /// Number of requests that arrive at each gateway at once at the beginning.
    pub(super) first: u64,
    /// Percentage of arrivals that are bursts.
    pub(super) bursts: u64,
    /// Maximum size of a burst, in requests.
    pub(super) most: u64,
    /// Percentage of requests that cost more than one.
    pub(super) costly: u64,
    /// Maximum time of a request at the origin, in milliseconds.
    pub(super) takes: u64,
    /// Percentage of requests with a bounded wait.
    pub(super) hurried: u64,
    /// Gateway that gets 503 from all origins for a while, if any.
    pub(super) shed: Option<Shed>,
}

/// Period in which an origin answers 503 to requests of this gateway.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shed {
    pub(super) gateway: usize,
    pub(super) from: Duration,
    pub(super) until: Duration,
}

impl Crowd {
    /// Draws the traffic of a gateway. `rate`: its share of the rates, in requests per second.
    fn new(random: &mut Random, rate: f64, is_full: bool) -> Self {
        // Number of requests of the rate in this many tenths of a second.
        let in_tenths = |tenths: f64| ((rate * tenths / 10.0) as u64).clamp(4, 200);
        // A number up to `most` in `percent` of the scenarios, else 0.
        let sometimes = |random: &mut Random, percent: u64, most: u64| {
            let number = random.number(1..most);
            if random.chance(percent) { number } else { 0 }
        };
        Self {
            is_full,
            first: sometimes(random, 60, in_tenths(10.0)),
            bursts: sometimes(random, 50, 40),
            most: random.number(2..in_tenths(2.0).min(60)),
            costly: sometimes(random, if is_full { 10 } else { 30 }, 60),
            takes: random.number(1..60),
            hurried: sometimes(random, 30, 60),
            shed: None,
        }
    }
}

/// All random choices of a seed that are made at the beginning.
#[derive(Debug, Default)]
pub(super) struct Scenario {
    pub(super) clocks: Vec<Skew>,
    pub(super) zones: Vec<ZonePlan>,
    /// Origins with a shared gate.
    pub(super) origins: Vec<OriginPlan>,
    /// Traffic at the origins.
    pub(super) crowd: Crowd,
    /// Minimum and maximum delay of a message between a gateway and the store.
    pub(super) delay: (Duration, Duration),
    /// `redis.timeout` of all gateways.
    pub(super) timeout: Duration,
    /// Time in which requests arrive.
    pub(super) lasts: Duration,
    /// Mean interval between the requests at one gateway.
    pub(super) pause: Duration,
    /// Zone whose first key gets most of the requests, if any.
    pub(super) hot: Option<usize>,
    /// Percentages of requests with a certain fate.
    ///
    /// Of zones: the client leaves early; the slot is returned; it is refunded; its cost is
    /// settled. At gates: the client leaves early; the slot is returned; the origin fails; the cost
    /// is settled.
    pub(super) moods: [u64; 4],
    /// Faults with their times.
    pub(super) faults: Vec<(Duration, Fault)>,
}

impl Scenario {
    /// Generates a scenario with zones.
    pub(super) fn new(random: &mut Random) -> Self {
        let gateways = match random.number(0..10) {
            0 => 10,
            _ => random.number(1..6),
        };
        let clocks = clocks(gateways, random);
        let zones: Vec<_> = (0..random.number(1..4))
            .map(|index| ZonePlan::new(index, random))
            .collect();
        let (least, spread) = delays(random);
        let moods = moods(random, 50);
        let hot = zones.iter().position(|zone| !zone.lease.is_zero());
        let hot = hot.filter(|_| random.chance(75));
        // Number of requests, and their rate in tenths of the sum of rates.
        let (requests, load) = (random.number(60..220), random.number(5..40));
        let requests = hot.map_or(requests, |_| 2 * requests);
        let rates: f64 = hot.map_or_else(
            || zones.iter().map(ZonePlan::rates).sum(),
            |hot| zones[hot].rate_of(zones[hot].keys[0]).per_second(),
        );
        let lasts = requests as f64 / (rates * load as f64 / 10.0);
        let lasts = Duration::from_secs_f64(lasts.clamp(0.2, 10.0));
        let pause = lasts * u32::try_from(gateways).unwrap_or(1)
            / u32::try_from(requests).unwrap_or(u32::MAX);
        let faults = Fault::plan(random, clocks.len(), zones.len(), lasts);
        Self {
            clocks,
            zones,
            origins: Vec::new(),
            crowd: Crowd::default(),
            delay: (least, least + spread),
            timeout: Duration::from_millis(random.number(40..100)),
            lasts,
            pause,
            hot,
            moods,
            faults,
        }
    }

    /// Generates a scenario with shared gates.
    pub(super) fn of_gates(random: &mut Random) -> Self {
        let gateways = match random.number(0..15) {
            0 => 10,
            _ => random.number(1..6),
        };
        let clocks = clocks(gateways, random);
        let count = if random.chance(75) { 1 } else { 2 };
        let origins = (0..count).map(|index| OriginPlan::new(index, gateways, random));
        let mut origins: Vec<_> = origins.collect();
        let is_full = random.chance(35);
        if is_full {
            origins.iter_mut().for_each(OriginPlan::let_all_wait);
        }
        let (least, spread) = delays(random);
        let mut moods = moods(random, 40);
        if is_full && random.chance(80) {
            moods = [0; 4];
        }
        let rates: f64 = origins.iter().map(|origin| origin.rate.per_second()).sum();
        let crowd = Crowd::new(random, rates / gateways as f64, is_full);
        // Number of requests, and their rate in tenths of the sum of rates.
        let (requests, load) = (random.number(100..400), random.number(5..40));
        let lasts = requests as f64 / (rates * load as f64 / 10.0);
        let lasts = Duration::from_secs_f64(lasts.clamp(0.3, 1.5));
        let pause = gateways as f64 / (rates * load as f64 / 10.0);
        let pause = Duration::from_secs_f64(pause.max(0.001));
        let mut faults = Fault::plan_for_gates(random, clocks.len(), origins.len(), lasts);
        if is_full && random.chance(60) {
            faults = Vec::new();
        }
        Self {
            clocks,
            zones: Vec::new(),
            origins,
            crowd,
            delay: (least, least + spread),
            timeout: Duration::from_millis(random.number(40..100)),
            lasts,
            pause,
            hot: None,
            moods,
            faults,
        }
    }

    /// Generates a scenario with gates that back off.
    ///
    /// The origin sheds the requests of one gateway.
    pub(super) fn of_backoff(random: &mut Random) -> Self {
        let gateways = random.number(2..5);
        let gates = Self::of_gates(random);
        let plan = OriginPlan::that_backs_off(gateways, random);
        let lasts = random.millis(8000..14_000);
        let from = random.millis(500..4000);
        let clocks = clocks(gateways, random);
        let shed = Shed {
            gateway: random.index(clocks.len()),
            from,
            until: from + random.millis(1500..5000),
        };
        let mut faults = Fault::plan_for_gates(random, clocks.len(), 1, lasts);
        // Another rate would change the meaning of a share of it.
        faults.retain(|(_, fault)| !matches!(fault, Fault::RetuneOrigin { .. }));
        if random.chance(30) {
            faults.clear();
        }
        let pause = gateways as f64 / (plan.rate.per_second() * 0.9);
        Self {
            clocks,
            origins: vec![plan],
            crowd: Crowd {
                takes: 20,
                shed: Some(shed),
                ..Crowd::default()
            },
            timeout: Duration::from_millis(100),
            lasts,
            pause: Duration::from_secs_f64(pause),
            moods: [0; 4],
            faults,
            ..gates
        }
    }

    /// Generates a scenario with shared gates, and with zones that use the same links.
    pub(super) fn of_both(random: &mut Random) -> Self {
        let gates = Self::of_gates(random);
        let zones = (0..random.number(1..3)).map(|index| ZonePlan::new(index, random));
        Self {
            zones: zones.collect(),
            ..gates
        }
    }

    /// Returns all rates that an origin has in any file at any time.
    pub(super) fn origin_rates(&self, origin: usize) -> impl Iterator<Item = Rate> {
        let retuned = self.faults.iter();
        let retuned = retuned.filter_map(move |(_, fault)| fault.rate_of_origin(origin));
        std::iter::once(self.origins[origin].rate).chain(retuned)
    }

    /// Returns the lowest rate that a key has at any time.
    pub(super) fn slowest(&self, zone: usize, key: &str) -> Rate {
        self.rates(zone, key)
            .max_by_key(|rate| rate.interval())
            .expect("one")
    }

    /// Returns the highest rate that a key has at any time.
    pub(super) fn fastest(&self, zone: usize, key: &str) -> Rate {
        self.rates(zone, key)
            .min_by_key(|rate| rate.interval())
            .expect("one")
    }

    /// Returns whether only the pace of an origin delays requests, and each takes one slot.
    pub(super) fn is_plain(&self, origin: usize) -> bool {
        let plan = &self.origins[origin];
        let is_alone_paced = plan.max_in_flight.get().is_none() && !plan.backs_off;
        self.is_calm() && is_alone_paced && self.crowd.costly == 0
    }

    /// Returns how many times the rate of a zone is changed in a file.
    pub(super) fn retunes(&self, zone: usize) -> usize {
        let retunes = self.faults.iter();
        retunes
            .filter_map(|(_, fault)| fault.rate_of_zone(zone))
            .count()
    }

    /// Returns the pause at a gateway after `count` requests have arrived at once.
    pub(super) fn pause_after(&self, count: u64, random: &mut Random) -> Duration {
        let nanos = u64::try_from(self.pause.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(random.number(1..2 * nanos.max(1) * count + 1))
    }

    /// Returns the end of the last fault.
    pub(super) fn healed(&self) -> Duration {
        let ends = self.faults.iter();
        let ends = ends.map(|(begin, fault)| *begin + fault.lasts());
        ends.max().unwrap_or_default()
    }

    /// Returns the maximum wait of an admitted request of a key.
    ///
    /// `billed`: sum of the costs that were settled above the expected ones.
    pub(super) fn longest_wait(&self, zone: usize, key: &str, billed: u32) -> Duration {
        let slots = u64::from(self.zones[zone].max_burst() + 1);
        // A higher final cost may move a request to the end of the schedule.
        let mut schedules = 1 + u64::from(billed);
        if self.moods.iter().any(|percent| *percent > 0) {
            // A refunded slot does not shorten the wait of later requests.
            schedules += 1;
        }
        if !self.is_calm() {
            // Requests admitted by gateways that were alone get slots one after the other.
            schedules *= (self.clocks.len() as u64 + 1) * (self.faults.len() as u64 + 1);
        }
        self.slowest(zone, key).time_for(slots * schedules)
    }

    /// Returns all rates that a key has at any time.
    pub(super) fn rates(&self, zone: usize, key: &str) -> impl Iterator<Item = Rate> {
        let retuned = self.faults.iter();
        let retuned = retuned.filter_map(move |(_, fault)| fault.rate_of_zone(zone));
        std::iter::once(self.zones[zone].rate_of(key)).chain(retuned)
    }

    /// Returns whether nothing fails: then all departures are on the shared schedule.
    pub(super) fn is_calm(&self) -> bool {
        self.faults.iter().all(|(_, fault)| fault.is_harmless())
    }
}

/// Returns a zone and an origin with these fields, as a gateway reads them from its file.
fn parse_file(zone: &str, origin: &str) -> (config::Zone, config::Origin) {
    let text = format!(
        "[redis]\nurl = \"redis://127.0.0.1\"\n[zones.z]\nkey = \"$remote_addr\"\nrate = \"1r/s\"\n{zone}\
         [[routes]]\npath = \"/\"\norigin = \"a\"\n\
         [origins.a]\nservers = [\"http://127.0.0.1:1\"]\n{origin}"
    );
    let settings = config::parse(&text, Path::new("gateway.toml"), false).expect("a file");
    (settings.zones[0].clone(), settings.origins[0].clone())
}

/// Returns the clock of each gateway. In half of the scenarios the clocks drift.
pub(super) fn clocks(gateways: u64, random: &mut Random) -> Vec<Skew> {
    let has_drift = random.chance(50);
    let clocks = (0..gateways).map(|_| Skew::new(random, has_drift));
    clocks.collect()
}

/// Returns the minimum delay of a message, and the maximum additional delay.
pub(super) fn delays(random: &mut Random) -> (Duration, Duration) {
    let least = random.micros(20..1500);
    let spread = if random.chance(30) {
        Duration::ZERO
    } else {
        random.micros(1..3000)
    };
    (least, spread)
}

/// Draws [`Scenario::moods`]. Each is above zero in `likely` percent of the scenarios.
fn moods(random: &mut Random, likely: u64) -> [u64; 4] {
    [(); 4].map(|()| {
        let some = random.number(1..30);
        if random.chance(likely) { some } else { 0 }
    })
}
