//! The origins of a scenario, whose gates are shared.
//!
//! A gate bounds the pace of all requests to an origin. If it *backs off*, an origin that is slow
//! or fails gets fewer requests for a while.

use std::cell::Cell;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use limit::{Rate, Share};

use super::parse_file;
use crate::gate::KeyAtGate;
use crate::simulation::random::Random;
use crate::zone::Key;

/// Keys that share an origin, with their weights.
const KEYS: [(&str, u32); 4] = [("ada", 1), ("bob", 2), ("cyd", 1), ("dan", 4)];

/// An origin whose gate all gateways share, as in the first files.
#[derive(Clone, Debug)]
pub(in crate::simulation) struct OriginPlan {
    pub(in crate::simulation) name: String,
    pub(in crate::simulation) rate: Rate,
    /// Field `gateways` in the file.
    pub(in crate::simulation) gateways: Option<u32>,
    /// Whether keys share the gate fairly. Otherwise there is one queue of requests.
    pub(in crate::simulation) is_fair: bool,
    pub(in crate::simulation) keys: &'static [(&'static str, u32)],
    /// Classes, with their weights.
    pub(in crate::simulation) classes: &'static [(&'static str, u32)],
    /// Field `queue`: maximum number of waiters of a key.
    pub(in crate::simulation) queue: usize,
    /// Field `max_queue`: maximum number of waiters at the gate.
    pub(in crate::simulation) max_queue: usize,
    /// Field `max_in_flight`, which may change in all files.
    pub(in crate::simulation) max_in_flight: Cell<Option<usize>>,
    pub(in crate::simulation) queue_timeout: Duration,
    /// Whether the gate backs off.
    pub(in crate::simulation) backs_off: bool,
    /// Time for which permits of a vanished gateway are withheld, in whole seconds.
    pub(in crate::simulation) orphan: Duration,
    /// Whether the gate closes while the store is out.
    pub(in crate::simulation) is_closed: bool,
}

impl OriginPlan {
    /// Returns an origin with one key in one class, whose requests wait as long as needed.
    pub(in crate::simulation) fn of(rate: Rate) -> Self {
        Self {
            name: "origin0".to_owned(),
            rate,
            gateways: None,
            is_fair: true,
            keys: &KEYS[..1],
            classes: &[("", 1)],
            queue: 1000,
            max_queue: 2000,
            max_in_flight: Cell::new(None),
            queue_timeout: Duration::from_mins(1),
            backs_off: false,
            orphan: Duration::from_secs(5),
            is_closed: false,
        }
    }

    /// Draws an origin.
    pub(super) fn new(index: u64, gateways: u64, random: &mut Random) -> Self {
        let expected = match random.number(0..3) {
            0 => None,
            1 => u32::try_from(gateways).ok(),
            _ => Some(random.small(1..6)),
        };
        let keys = 1 + random.index(KEYS.len());
        let is_small = random.chance(25);
        Self {
            name: format!("origin{index}"),
            rate: rate(random),
            gateways: expected,
            is_fair: random.chance(75),
            keys: &KEYS[..keys],
            classes: random.pick(&[
                &[("", 1)][..],
                &[("", 1)],
                &[("fast", 4), ("slow", 1)],
                &[("a", 1), ("b", 1), ("c", 3)],
            ]),
            queue: if is_small { 5 } else { 1000 },
            max_queue: if is_small { 12 } else { 2000 },
            max_in_flight: Cell::new(random.chance(15).then(|| 2 + usize::from(is_small))),
            queue_timeout: if random.chance(30) {
                random.millis(20..600)
            } else {
                Duration::from_mins(1)
            },
            backs_off: random.chance(15),
            ..Self::of(Rate::UNLIMITED)
        }
    }

    /// Changes the origin so that only the pace delays requests, and all may wait.
    pub(super) fn let_all_wait(&mut self) {
        (self.queue, self.max_queue) = (1000, 10_000);
        (self.max_in_flight, self.backs_off) = (Cell::new(None), false);
        self.is_fair = true;
        self.queue_timeout = Duration::from_mins(1);
    }

    /// Returns an origin that backs off, and whose requests wait as long as needed.
    pub(super) fn that_backs_off(gateways: u64, random: &mut Random) -> Self {
        let rates = ["40r/s", "60r/s", "100r/s"];
        Self {
            rate: random.pick(&rates).parse().expect("a rate"),
            queue: 1000,
            max_queue: 2000,
            max_in_flight: Cell::new(None),
            queue_timeout: Duration::from_mins(1),
            backs_off: true,
            ..Self::new(0, gateways, random)
        }
    }

    /// Returns a number of requests with which a key waits for a second.
    ///
    /// All keys wait at `gateways` gateways. The number is 3 above what leaves in a second.
    pub(in crate::simulation) fn enough(&self, key: usize, class: usize, gateways: usize) -> u64 {
        let part = |weights: &[(&str, u32)], index: usize| {
            let sum: u32 = weights.iter().map(|(_, weight)| weight).sum();
            f64::from(weights[index].1) / f64::from(sum)
        };
        let part = part(self.keys, key) * part(self.classes, class);
        let a_second = self.rate.per_second().min(1000.0) * part / gateways as f64;
        a_second.ceil() as u64 + 3
    }

    /// Returns the origin as in a gateway's file, at this rate.
    pub(in crate::simulation) fn settings(&self, rate: Rate) -> config::Origin {
        let (queue, max_queue) = (self.queue, self.max_queue);
        let mut text = format!(
            "store = \"redis\"\nqueue = {queue}\nmax_queue = {max_queue}\nqueue_timeout = \"{}us\"\n",
            self.queue_timeout.as_micros()
        );
        let mut add = |line: String| text.write_str(&line).expect("memory");
        if rate != Rate::UNLIMITED {
            add(format!("rate = \"{rate}\"\n"));
        }
        if self.is_fair {
            add("share = \"z\"\n".to_owned());
        }
        if let Some(gateways) = self.gateways {
            add(format!("gateways = {gateways}\n"));
        }
        if let Some(most) = self.max_in_flight.get() {
            let orphan = self.orphan.as_secs();
            add(format!("max_in_flight = {most}\norphan = \"{orphan}s\"\n"));
        }
        if self.is_closed {
            add("on_store_failure = \"closed\"\n".to_owned());
        }
        if self.classes.len() > 1 {
            let classes = self.classes.iter();
            let classes = classes.map(|(name, weight)| format!("{name} = {weight}"));
            let classes = classes.collect::<Vec<_>>().join(", ");
            add(format!("classes = {{ {classes} }}\n"));
        }
        if self.backs_off {
            add("backoff = { on = [\"503\"] }\n".to_owned());
        }
        config::Origin {
            name: self.name.clone(),
            ..parse_file("", &text).1
        }
    }

    /// Returns the share of a key in a class.
    pub(in crate::simulation) fn share(&self, key: usize, class: usize) -> Share<KeyAtGate> {
        let (name, weight) = self.keys[key];
        let key = if self.is_fair { name } else { "" };
        Share {
            class: Arc::from(self.classes[class].0),
            weight,
            ..Share::of(KeyAtGate {
                zone: None,
                key: Key::from(key.as_bytes()),
            })
        }
    }
}

/// Draws the rate of an origin.
pub(super) fn rate(random: &mut Random) -> Rate {
    let rates = [
        "20r/s", "50r/s", "100r/s", "200r/s", "200r/s", "333r/s", "500r/s", "1000r/s", "8000r/s",
    ];
    random.pick(&rates).parse().expect("a rate")
}
