//! Compares drip with nginx, haproxy and envoy: cost of a request, evenness, memory.
//!
//! `cargo bench --bench compare` runs everything. `-- --quick` gives rough figures in two minutes.
//! `-- cost`, `-- evenness` and `-- memory` select a part. `-- --only proxied,rejected --peers
//! drip,nginx` measures single rows of single proxies. A run of whole parts writes their tables
//! into benches/README.md and their plots into benches/plots.

mod arguments;
mod connections;
mod cost;
mod deep;
mod effort;
mod evenness;
mod floor;
mod gate;
mod million;
mod peers;
mod report;
mod secure;
mod slow;
mod startup;
mod summary;
mod table;
// Shared with the load test, which uses other parts of it.
#[allow(dead_code)]
#[path = "../support/mod.rs"]
mod support;

use std::io;
use std::process::ExitCode;

use arguments::{Arguments, Row};
use effort::Effort;
use peers::{Kind, Peer, Setup};
use report::Report;
use support::origin::Origin;
use support::{machine, placement, process};

/// The state that all measurements share.
struct Bench {
    origin: Origin,
    effort: Effort,
    present: Vec<Kind>,
    arguments: Arguments,
}

impl Bench {
    fn wants(&self, row: Row) -> bool {
        self.arguments.wants(row)
    }

    /// Starts the installed peers that are `requested`.
    ///
    /// A peer that does not start is reported and left out.
    fn start(
        &self,
        setup: &Setup,
        requested: impl Fn(Kind) -> bool,
        report: &mut Report,
    ) -> io::Result<Vec<Peer>> {
        let mut started = Vec::new();
        for kind in self.present.iter().filter(|kind| requested(**kind)) {
            match Peer::start(*kind, self.origin.address, setup) {
                Ok(peer) => started.push(peer),
                Err(error) if kind.is_drip() => return Err(error),
                Err(error) => report.note(&error.to_string()),
            }
        }
        Ok(started)
    }
}

fn main() -> ExitCode {
    match measure(Arguments::read()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: Arguments) -> io::Result<()> {
    process::stop_programs_on_signal();
    if arguments.is_empty() {
        return Err(io::Error::other("none of these rows is of these parts"));
    }
    if let Some(wrong) = Kind::ALL.into_iter().find_map(Kind::misnamed) {
        return Err(io::Error::other(wrong));
    }
    if let Some(kind) = arguments.peers.iter().find(|kind| kind.program().is_none()) {
        let remedy = kind.remedy();
        return Err(io::Error::other(format!("{kind} is not here: {remedy}")));
    }
    let requested = |kind: &Kind| arguments.wants_peer(*kind) && kind.program().is_some();
    let present: Vec<Kind> = Kind::ALL.into_iter().filter(requested).collect();
    let effort = if arguments.quick {
        Effort::quick()
    } else {
        Effort::whole()
    };
    let effort = effort.with_rounds(arguments.rounds);
    // The page compares drip with other proxies, not with itself.
    let is_for_page = arguments.is_whole() && !present.contains(&Kind::Before);
    let mut report = Report::begin(is_for_page, &arguments, &present);
    println!("about {}", arguments.estimate());
    let bench = Bench {
        effort: effort.limited_to(placement::raise_descriptor_limit()),
        origin: placement::Side::Load.run(Origin::start)?,
        present,
        arguments,
    };
    if placement::processors().len() < 2 {
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
    cost::one_worker(&bench, &mut report)?;
    cost::two_workers(&bench, &mut report)?;
    gate::cost(&bench, &mut report)?;
    million::keys(&bench, &mut report)?;
    secure::requests(&bench, &mut report)?;
    deep::queues(&bench, &mut report)?;
    evenness::streams(&bench, &mut report)?;
    gate::streams(&bench, &mut report)?;
    slow::keys(&bench, &mut report)?;
    startup::memory(&bench, &mut report)?;
    connections::memory(&bench, &mut report)?;
    report.end()
}
