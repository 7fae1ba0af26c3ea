use std::path::Path;
use std::time::Duration;

use crate::simulation::clock::Skew;
use crate::simulation::random::Random;
use crate::simulation::scenario::{clocks, delays};

/// All that a seed decides at the beginning.
#[derive(Clone, Debug)]
pub(super) struct PoolPlan {
    pub(super) clocks: Vec<Skew>,
    /// How long a message takes, at least and at most.
    pub(super) delay: (Duration, Duration),
    pub(super) timeout: Duration,
    pub(super) lasts: Duration,
    /// The maximum in the files at first.
    pub(super) most: usize,
    pub(super) orphan: Duration,
    pub(super) is_closed: bool,
    pub(super) queue_timeout: Duration,
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
    pub(super) faults: Vec<(Duration, PoolFault)>,
}

/// Something that fails or changes.
#[derive(Clone, Copy, Debug)]
pub(super) enum PoolFault {
    /// A gateway loses its power, and starts again after a while.
    Crash {
        gateway: usize,
        lasts: Duration,
        clock: Skew,
    },
    /// The process of a gateway stands still.
    Stop { gateway: usize, lasts: Duration },
    /// Nothing gets through between a gateway and the store.
    Partition { gateway: usize, lasts: Duration },
    /// Nothing gets through between all gateways and the store.
    Island { lasts: Duration },
    /// Messages of a gateway take longer, and some are lost at first.
    Slow {
        gateway: usize,
        more: Duration,
        loss: u64,
        lasts: Duration,
    },
    /// The connection of a gateway breaks.
    Reset { gateway: usize },
    /// The store dies, and starts empty.
    Death { lasts: Duration },
    /// A replica takes over that lacks what was written for a while before.
    Failover { loses: Duration },
    /// All data and scripts are deleted.
    Flush,
    /// The clock of the store is set back.
    SetBack { micros: i64 },
    /// All gateways' files are, one after another.
    RetuneAll { most: usize },
}

impl PoolPlan {
    pub(super) fn new(random: &mut Random) -> Self {
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
        let mut plan = Self {
            clients: clients.collect(),
            // A file counts by the clock of its gateway.
            clocks: clocks(gateways, random).into_iter().map(in_step).collect(),
            delay: (least, least + spread),
            timeout: Duration::from_millis(random.number(40..100)),
            lasts,
            most: if random.chance(40) {
                1 + random.index(4)
            } else {
                4 + random.index(20)
            },
            orphan,
            is_closed: random.chance(75),
            queue_timeout: Duration::from_mins(60),
            takes: random.pick(&[(1, 20), (20, 100), (50, 400), (200, 2000)]),
            long: if !calm && random.chance(40) {
                random.number(1..20)
            } else {
                0
            },
            rests: random.pick(&[0, 0, 50, 1000]),
            leave: if random.chance(30) {
                random.number(1..20)
            } else {
                0
            },
            longest: None,
            faults: Vec::new(),
        };
        if !calm {
            plan.plan_faults(random);
        }
        plan
    }

    /// One in which nothing fails, for some seconds, and clients ask at once again.
    pub(super) fn calm() -> Self {
        Self {
            clocks: Vec::new(),
            delay: (Duration::from_micros(200), Duration::from_micros(300)),
            timeout: Duration::from_millis(100),
            lasts: Duration::from_secs(12),
            most: 1,
            orphan: Duration::from_secs(5),
            is_closed: true,
            queue_timeout: Duration::from_mins(60),
            clients: Vec::new(),
            takes: (50, 51),
            long: 0,
            rests: 0,
            leave: 0,
            longest: None,
            faults: Vec::new(),
        }
    }

    fn plan_faults(&mut self, random: &mut Random) {
        let millis = u64::try_from(self.lasts.as_millis()).unwrap_or(1);
        for _ in 0..random.number(1..6) {
            let at = random.millis(500..millis);
            let fault = self.fault(random);
            self.faults.push((at, fault));
        }
    }

    fn fault(&self, random: &mut Random) -> PoolFault {
        let gateway = random.index(self.clocks.len());
        let lasts = random.millis(1..4000);
        let most = 1 + random.index(20);
        match random.number(0..14) {
            0 | 1 => PoolFault::Crash {
                gateway,
                lasts,
                clock: in_step(Skew::new(random, true)),
            },
            2 => PoolFault::Stop { gateway, lasts },
            3 => PoolFault::Stop {
                gateway,
                lasts: random.millis(4000..20_000),
            },
            4 => PoolFault::Partition { gateway, lasts },
            5 => PoolFault::Partition {
                gateway,
                lasts: random.millis(4000..12_000),
            },
            6 => PoolFault::Island { lasts },
            7 => PoolFault::Slow {
                gateway,
                more: random.millis(1..150),
                loss: random.number(0..30),
                lasts,
            },
            8 => PoolFault::Reset { gateway },
            9 => PoolFault::Death { lasts },
            10 => PoolFault::Failover {
                loses: random.millis(0..800),
            },
            11 => PoolFault::Flush,
            12 => PoolFault::SetBack {
                micros: -i64::try_from(random.number(0..3_000_000)).unwrap_or(0),
            },
            _ => PoolFault::RetuneAll { most },
        }
    }

    /// Returns whether it is run in about a second, and has requests.
    pub(super) fn is_short(&self) -> bool {
        let clients: u64 = self.clients.iter().sum();
        self.lasts <= Duration::from_secs(10) && self.clocks.len() <= 3 && clients > 0
    }

    /// Whether nothing fails.
    pub(super) fn is_calm(&self) -> bool {
        self.faults.is_empty()
    }

    /// As a gateway's file has it, with this maximum.
    pub(super) fn settings(&self, most: usize) -> config::Origin {
        let (orphan, on_failure) = (
            self.orphan.as_secs(),
            if self.is_closed { "closed" } else { "local" },
        );
        let text = format!(
            "[redis]\nurl = \"redis://127.0.0.1\"\n[zones.z]\nkey = \"$remote_addr\"\n\
             rate = \"1r/s\"\n[[routes]]\npath = \"/\"\norigin = \"a\"\n[origins.a]\n\
             servers = [\"http://127.0.0.1:1\"]\nstore = \"redis\"\nmax_in_flight = {most}\n\
             orphan = \"{orphan}s\"\non_store_failure = \"{on_failure}\"\ngateways = {}\n\
             queue_timeout = \"{}s\"\n",
            self.clocks.len(),
            self.queue_timeout.as_secs()
        );
        let settings = config::parse(&text, Path::new("gateway.toml"), false).expect("a file");
        config::Origin {
            name: "pool".to_owned(),
            ..settings.origins[0].clone()
        }
    }
}

/// The same clock, which is right at the beginning.
fn in_step(skew: Skew) -> Skew {
    Skew { ahead: 0, ..skew }
}

impl PoolFault {
    /// How long it lasts.
    pub(super) fn lasts(&self) -> Duration {
        match *self {
            Self::Crash { lasts, .. }
            | Self::Stop { lasts, .. }
            | Self::Partition { lasts, .. }
            | Self::Island { lasts }
            | Self::Slow { lasts, .. }
            | Self::Death { lasts } => lasts,
            Self::Failover { loses } => loses,
            _ => Duration::ZERO,
        }
    }
}
