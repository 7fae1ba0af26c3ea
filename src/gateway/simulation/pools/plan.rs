//! The scenarios of gateways that share the permits of an origin.
//!
//! A permit is the right to run one request at the origin. Gateways share the permits through the
//! store.

use std::cell::Cell;
use std::time::Duration;

use limit::Rate;

use crate::simulation::clock::Skew;
use crate::simulation::random::Random;
use crate::simulation::scenario::{Fault, OriginPlan, Scenario, clocks, delays};

/// Use of the permits by clients, in a scenario with one origin.
#[derive(Clone, Debug, Default)]
pub(super) struct PoolPlan {
    /// Number of clients of each gateway. A client sends again after a pause.
    pub(super) clients: Vec<u64>,
    /// Minimum and maximum time of requests at the origin, in ms.
    pub(super) takes: (u64, u64),
    /// Percentage of requests that take up to `orphan`.
    pub(super) long: u64,
    /// Maximum pause of a client before its next request in ms; 0: no pause.
    pub(super) rests: u64,
    /// Percentage of clients that leave while they wait.
    pub(super) leave: u64,
    /// Maximum wait of a request; `None`: not checked.
    pub(super) longest: Option<Duration>,
}

/// Returns an origin whose permits all gateways share, without a rate.
pub(super) fn origin(most: usize, orphan: Duration, is_closed: bool) -> OriginPlan {
    OriginPlan {
        is_fair: false,
        max_in_flight: Cell::new(Some(most)),
        max_queue: 10_000,
        queue_timeout: Duration::from_mins(60),
        orphan,
        is_closed,
        ..OriginPlan::of(Rate::UNLIMITED)
    }
}

impl PoolPlan {
    /// Generates a scenario, and the use of the permits in it.
    pub(super) fn new(random: &mut Random) -> (Scenario, Self) {
        let gateways = match random.number(0..10) {
            0 => 8,
            _ => random.number(1..6),
        };
        let (least, spread) = delays(random);
        let orphan = Duration::from_secs(random.number(2..8));
        let lasts = Duration::from_secs(random.number(6..30));
        let calm = random.chance(25);
        let clients = (0..gateways).map(|_| match random.number(0..4) {
            0 => random.number(0..2),
            _ => random.number(1..12),
        });
        let clients = clients.collect();
        // The time of a file is by the clock of its gateway.
        let clocks: Vec<_> = clocks(gateways, random).into_iter().map(in_step).collect();
        let timeout = Duration::from_millis(random.number(40..100));
        let most = if random.chance(40) {
            1 + random.index(4)
        } else {
            4 + random.index(20)
        };
        let origin = OriginPlan {
            gateways: u32::try_from(gateways).ok(),
            ..origin(most, orphan, random.chance(75))
        };
        // A percentage up to 20 in `percent` of the scenarios, else 0.
        let sometimes = |random: &mut Random, percent: u64| {
            let is_some = random.chance(percent);
            if is_some { random.number(1..20) } else { 0 }
        };
        let plan = Self {
            clients,
            takes: random.pick(&[(1, 20), (20, 100), (50, 400), (200, 2000)]),
            long: if calm { 0 } else { sometimes(random, 40) },
            rests: random.pick(&[0, 0, 50, 1000]),
            leave: sometimes(random, 30),
            longest: None,
        };
        let faults = if calm { 0 } else { random.number(1..6) };
        let millis = u64::try_from(lasts.as_millis()).unwrap_or(1);
        let faults = (0..faults).map(|_| {
            let begin = random.millis(500..millis);
            (begin, draw_fault(random, clocks.len()))
        });
        let scenario = Scenario {
            faults: faults.collect(),
            clocks,
            origins: vec![origin],
            delay: (least, least + spread),
            timeout,
            lasts,
            ..Scenario::default()
        };
        (scenario, plan)
    }
}

/// Draws a fault.
fn draw_fault(random: &mut Random, gateways: usize) -> Fault {
    let gateway = random.index(gateways);
    let lasts = random.millis(1..4000);
    let most = 1 + random.index(20);
    match random.number(0..14) {
        0 | 1 => Fault::Crash {
            gateway,
            lasts,
            clock: in_step(Skew::new(random, true)),
        },
        2 => Fault::Stop { gateway, lasts },
        3 => Fault::Stop {
            gateway,
            lasts: random.millis(4000..20_000),
        },
        4 => Fault::Partition { gateway, lasts },
        5 => Fault::Partition {
            gateway,
            lasts: random.millis(4000..12_000),
        },
        6 => Fault::Island { lasts },
        7 => Fault::Slow {
            gateway,
            more: random.millis(1..150),
            loss: random.number(0..30),
            lasts,
        },
        8 => Fault::Reset { gateway },
        9 => Fault::Death {
            lasts,
            loads: Duration::ZERO,
        },
        10 => Fault::Failover {
            loses: random.millis(0..800),
            read_only: Duration::ZERO,
        },
        11 => Fault::Flush,
        12 => Fault::Jump {
            micros: -i64::try_from(random.number(0..3_000_000)).unwrap_or(0),
        },
        _ => Fault::RetuneAll { most },
    }
}

/// Returns the same clock, correct at the beginning.
fn in_step(skew: Skew) -> Skew {
    Skew { ahead: 0, ..skew }
}
