use std::cell::Cell;
use std::time::Duration;

use limit::Rate;

use crate::simulation::clock::Skew;
use crate::simulation::random::Random;
use crate::simulation::scenario::{Fault, OriginPlan, Scenario, clocks, delays};

/// How clients use the places of the one origin of a scenario.
#[derive(Clone, Debug, Default)]
pub(super) struct PoolPlan {
    /// How many clients each gateway has, which ask again after a pause.
    pub(super) clients: Vec<u64>,
    /// How long requests are at the origin, in milliseconds, and how many of a hundred take up to
    /// `orphan`.
    pub(super) takes: (u64, u64),
    pub(super) long: u64,
    /// How long a client waits before its next request, in milliseconds, at most; 0: not at all.
    pub(super) rests: u64,
    /// How many of a hundred leave while they wait.
    pub(super) leave: u64,
    /// No request may wait longer; `None`: that is not judged.
    pub(super) longest: Option<Duration>,
}

/// An origin whose places all gateways share, and no rate.
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
        // A file counts by the clock of its gateway.
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
        let some = |random: &mut Random, percent: u64| {
            let is_some = random.chance(percent);
            if is_some { random.number(1..20) } else { 0 }
        };
        let plan = Self {
            clients,
            takes: random.pick(&[(1, 20), (20, 100), (50, 400), (200, 2000)]),
            long: if calm { 0 } else { some(random, 40) },
            rests: random.pick(&[0, 0, 50, 1000]),
            leave: some(random, 30),
            longest: None,
        };
        let faults = if calm { 0 } else { random.number(1..6) };
        let millis = u64::try_from(lasts.as_millis()).unwrap_or(1);
        let faults = (0..faults).map(|_| {
            let at = random.millis(500..millis);
            (at, fault(random, clocks.len()))
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

fn fault(random: &mut Random, gateways: usize) -> Fault {
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

/// The same clock, which is right at the beginning.
fn in_step(skew: Skew) -> Skew {
    Skew { ahead: 0, ..skew }
}
