//! drip beside nginx, haproxy and envoy: what a request costs, how evenly requests leave, what is held in memory.
//!
//! `cargo bench --bench compare`, with `-- --quick` for rough figures in a minute and `-- cost`, `-- evenness`,
//! `-- memory` for a part. A whole run writes its tables into benches/README.md and its plots into benches/plots.

mod cost;
mod deep;
mod evenness;
mod memory;
mod million;
mod peers;
mod report;
mod slow;
// Shared with the load test, which uses other parts of it.
#[allow(dead_code)]
#[path = "../support/mod.rs"]
mod support;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use peers::{Kind, Peer};
use report::Report;
use support::origin::Origin;
use support::{machine, place, process};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Effort {
    rounds: usize,
    /// For how long a round of a measurement looks.
    window: Duration,
    /// Before it looks.
    warm: Duration,
    /// Of `a million keys`.
    keys: u64,
    /// Of `10,000 in the queue`.
    deep: usize,
    /// Of `9000 waiting requests`.
    waiting: usize,
    /// Of `6000 keys`.
    slow: usize,
}

impl Effort {
    fn whole() -> Self {
        Self {
            rounds: 5,
            window: Duration::from_millis(800),
            warm: Duration::from_millis(200),
            keys: 1_000_000,
            deep: 10_000,
            waiting: 9000,
            slow: 6000,
        }
    }

    fn quick() -> Self {
        Self {
            rounds: 1,
            window: Duration::from_millis(400),
            keys: 100_000,
            deep: 2000,
            waiting: 2000,
            slow: 2000,
            ..Self::whole()
        }
    }

    /// No more connections than this process and each proxy may have.
    fn within(self, descriptors: usize) -> Self {
        // For listeners, files, and the connections to the origin, whose other ends are in this process.
        const OTHERS: usize = 2000;
        let most = descriptors.saturating_sub(OTHERS).max(100);
        Self {
            deep: self.deep.min(most),
            waiting: self.waiting.min(most),
            slow: self.slow.min(most),
            ..self
        }
    }
}

/// What all measurements share.
struct Bench {
    origin: Origin,
    effort: Effort,
    present: Vec<Kind>,
}

impl Bench {
    /// Starts those of the peers here that are `wanted`; one that does not start is told of, and left out.
    fn start(
        &self,
        workers: usize,
        wanted: impl Fn(Kind) -> bool,
        report: &mut Report,
    ) -> io::Result<Vec<Peer>> {
        let mut started = Vec::new();
        for kind in self.present.iter().filter(|kind| wanted(**kind)) {
            match kind.start(self.origin.address, workers) {
                Ok(peer) => started.push(peer),
                Err(error) if *kind == Kind::Drip => return Err(error),
                Err(error) => report.note(&error.to_string()),
            }
        }
        Ok(started)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Cost,
    Evenness,
    Memory,
}

impl Part {
    const ALL: [Self; 3] = [Self::Cost, Self::Evenness, Self::Memory];

    /// As an argument, and in the page.
    fn name(self) -> &'static str {
        match self {
            Self::Cost => "cost",
            Self::Evenness => "evenness",
            Self::Memory => "memory",
        }
    }
}

fn main() -> ExitCode {
    let (mut quick, mut parts) = (false, Vec::new());
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            // What cargo adds.
            "--bench" => {}
            "--quick" => quick = true,
            other => {
                let Some(part) = Part::ALL.into_iter().find(|part| part.name() == other) else {
                    eprintln!("{other}: not known; there are --quick, cost, evenness and memory");
                    return ExitCode::FAILURE;
                };
                parts.push(part);
            }
        }
    }
    if parts.is_empty() {
        parts = Part::ALL.into();
    }
    match measure(quick, &parts) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(quick: bool, parts: &[Part]) -> io::Result<()> {
    process::end_with_us();
    let effort = if quick {
        Effort::quick()
    } else {
        Effort::whole()
    };
    let present: Vec<Kind> = Kind::ALL
        .into_iter()
        .filter(|kind| kind.program().is_some())
        .collect();
    let bench = Bench {
        effort: effort.within(place::take_descriptors()),
        origin: place::Side::Load.run(Origin::start)?,
        present,
    };
    let mut report = Report::begin(
        !quick,
        parts.iter().map(|part| part.name()).collect(),
        &bench.present,
    );
    println!("about {}", estimate(quick, parts));
    if place::processors().len() < 2 {
        println!(
            "one processor: proxy, origin and clients share it, and every figure is worse for it"
        );
    }
    let load = machine::load();
    if load > 1.0 {
        report.note(&format!(
            "other programs wanted the processors too (load {load:.0} at the start)"
        ));
    }
    let asked = |part| parts.contains(&part);
    if asked(Part::Cost) {
        cost::one_worker(&bench, &mut report)?;
        cost::two_workers(&bench, &mut report)?;
    }
    if asked(Part::Cost) || asked(Part::Memory) {
        million::keys(&bench, &mut report)?;
    }
    if asked(Part::Cost) {
        deep::queues(&bench, &mut report)?;
    }
    if asked(Part::Evenness) {
        evenness::streams(&bench, &mut report)?;
        slow::keys(&bench, &mut report)?;
    }
    if asked(Part::Memory) {
        memory::idle(&bench, &mut report)?;
        memory::waiting(&bench, &mut report)?;
    }
    report.end()
}

/// How long it takes, roughly: most of it is windows of fixed length.
fn estimate(quick: bool, parts: &[Part]) -> String {
    let seconds: u32 = parts
        .iter()
        .map(|part| {
            let (whole, rough) = match part {
                Part::Cost => (190, 30),
                Part::Evenness => (90, 25),
                Part::Memory => (25, 15),
            };
            if quick { rough } else { whole }
        })
        .sum();
    format!("{} min {} s", seconds / 60, seconds % 60)
}
