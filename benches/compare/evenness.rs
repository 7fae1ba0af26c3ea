//! Evenness of the departures of a key with waiters, as its origin sees them.

use std::io;
use std::thread::sleep;
use std::time::Duration;

use crate::Bench;
use crate::arguments::Row;
use crate::floor::{self, Wait};
use crate::peers::{Kind, Peer, SHUT, STREAMS, Setup};
use crate::report::{Report, Stream, step};
use crate::support::crowd::{Crowd, Keys};
use crate::support::figures::{Evenness, Figure, cell, float};
use crate::support::origin::Arrival;

/// Enough clients that some wait at every rate.
const CLIENTS: usize = 32;
pub const KEY: u64 = 1;
const FLOODED: u64 = 2;
/// Highest variation of the floor on a calm machine: that of pure chance is 1.
const CALM: f64 = 1.0;
const DISTURBED: &str = "**The floor itself is uneven: the machine was busy with something else, and these rows tell of \
    that, not of the proxies. Measure again when it is calm.**\n";

/// The results of one stream over some rounds.
#[derive(Debug, Default)]
struct StreamRounds {
    variations: Vec<f64>,
    rates: Vec<f64>,
    /// The first moments of the last round, in milliseconds.
    glimpse: Vec<f64>,
}

impl StreamRounds {
    fn add(&mut self, arrivals: &[Arrival]) {
        let moments: Vec<u64> = arrivals
            .iter()
            .filter(|arrival| arrival.key == KEY)
            .map(|arrival| arrival.at)
            .collect();
        if let (Some(evenness), Some(first)) = (Evenness::of(&moments), moments.first()) {
            self.variations.push(evenness.variation);
            self.rates.push(evenness.rate);
            self.glimpse = moments
                .iter()
                .map(|at| float(at - first) / 1e6)
                .take_while(|at| *at < 20.0)
                .collect();
        }
    }
}

pub fn streams(bench: &Bench, report: &mut Report) -> io::Result<()> {
    let flooded = bench.wants(Row::Flooded);
    if !flooded && !bench.wants(Row::Streams) {
        return Ok(());
    }
    let peers = bench.start(&Setup::ONE_WORKER, Kind::lets_wait, report)?;
    let (mut rows, mut disturbed) = (Vec::new(), false);
    if bench.wants(Row::Streams) {
        step("how evenly a key's requests leave, at four rates");
        for (rate, path) in STREAMS {
            let mut peer_rounds = no_rounds(&peers);
            let mut floor_rounds = StreamRounds::default();
            for _ in 0..bench.effort.rounds {
                for (peer, rounds) in peers.iter().zip(&mut peer_rounds) {
                    rounds.add(&record(bench, peer, path, rate));
                }
                floor_rounds.add(&floor::arrivals(bench, rate, Wait::Asleep)?);
            }
            disturbed |=
                Figure::of(&floor_rounds.variations).is_some_and(|floor| floor.median > CALM);
            let name = format!("{rate}r/s");
            rows.push(row(&name, &peers, &peer_rounds, &floor_rounds, report));
        }
    }
    let mut refused = Vec::new();
    if flooded {
        step("how evenly a key's requests leave at 500r/s, while another key is flooded");
        let (rounds, floor_rounds, rates) = beside_a_flood(bench, &peers)?;
        let name = "500r/s, flooded";
        rows.push(row(name, &peers, &rounds, &floor_rounds, report));
        refused = rates;
    }
    let mut head = vec!["of one key, always waited at".to_owned()];
    for peer in &peers {
        head.push(format!("{}: variation", peer.kind));
        if peer.kind.is_drip() {
            head.push("beside nginx".to_owned());
        }
        head.push("a second".to_owned());
    }
    head.push("the machine's floor".to_owned());
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    report.table("evenness", &head, &rows);
    if disturbed {
        report.text("evenness", DISTURBED);
    }
    for (peer, refused) in peers.iter().zip(&refused) {
        if let Some(figure) = Figure::of(refused) {
            let (kind, median) = (peer.kind, figure.median);
            report.text(
                "evenness",
                &format!("The flood: {kind} refused {median:.0} requests a second meanwhile.\n"),
            );
        }
    }
    Ok(())
}

/// The results of each peer and of the floor while clients flood another key.
///
/// Also returns how often the peers rejected that key. The floor keeps its processor busy as the
/// peers do; its flood goes to the origin itself.
fn beside_a_flood(
    bench: &Bench,
    peers: &[Peer],
) -> io::Result<(Vec<StreamRounds>, StreamRounds, Vec<Vec<f64>>)> {
    let (rate, path) = STREAMS[1];
    let flood = |to| Crowd {
        has_low_priority: true,
        ..Crowd::new(to, SHUT, Keys::One(FLOODED), CLIENTS)
    };
    let mut floor_rounds = StreamRounds::default();
    let mut peer_rounds = no_rounds(peers);
    let mut refused: Vec<Vec<f64>> = peers.iter().map(|_| Vec::new()).collect();
    for _ in 0..bench.effort.rounds {
        for ((peer, rounds), refused) in peers.iter().zip(&mut peer_rounds).zip(&mut refused) {
            let flood = flood(peer.address).start();
            let (before, began) = (flood.answers(), gateway::time::clock::now());
            rounds.add(&record(bench, peer, path, rate));
            let took = gateway::time::clock::now().since(began).as_secs_f64();
            refused.push(float(flood.answers().since(&before).refused) / took);
        }
        let _flood = flood(bench.origin.address).start();
        floor_rounds.add(&floor::arrivals(bench, rate, Wait::Busy)?);
    }
    Ok((peer_rounds, floor_rounds, refused))
}

fn no_rounds(peers: &[Peer]) -> Vec<StreamRounds> {
    peers.iter().map(|_| StreamRounds::default()).collect()
}

/// Keeps some requests waiting at the path, and records what arrives.
fn record(bench: &Bench, peer: &Peer, path: &'static str, rate: u64) -> Vec<Arrival> {
    let _crowd = Crowd::new(peer.address, path, Keys::One(KEY), CLIENTS).start();
    sleep(bench.effort.warm + Duration::from_millis(100));
    record_arrivals(bench, rate)
}

/// Records what arrives at the origin for a while.
pub fn record_arrivals(bench: &Bench, rate: u64) -> Vec<Arrival> {
    // At least two hundred gaps.
    let least = Duration::from_secs_f64(200.0 / float(rate));
    bench.origin.start_recording();
    sleep(bench.effort.window.max(least));
    bench.origin.take_recorded()
}

fn row(
    name: &str,
    peers: &[Peer],
    rounds: &[StreamRounds],
    floor: &StreamRounds,
    report: &mut Report,
) -> Vec<String> {
    let nginx_variations = peers.iter().position(|peer| peer.kind == Kind::Nginx);
    let nginx_variations = nginx_variations.map(|index| &rounds[index].variations);
    let mut row = vec![name.to_owned()];
    for (peer, rounds) in peers.iter().zip(rounds) {
        let variation = Figure::of(&rounds.variations);
        row.push(cell(variation, 3));
        if peer.kind.is_drip() {
            let beside =
                nginx_variations.and_then(|nginx| Figure::ratio(&rounds.variations, nginx));
            row.push(cell(beside, 2));
        }
        row.push(cell(Figure::of(&rounds.rates), 0));
        report.stream(Stream {
            peer: peer.kind.to_string(),
            name: name.to_owned(),
            variation: variation.map_or(0.0, |figure| figure.median),
            glimpse: rounds.glimpse.clone(),
        });
    }
    let variations = peers.iter().zip(rounds);
    let variations = variations.map(|(peer, rounds)| (peer.kind, rounds.variations.clone()));
    report.summary(&format!("variation at {name}"), "", variations.collect());
    let variation = Figure::of(&floor.variations);
    row.push(cell(variation, 3));
    report.stream(Stream {
        peer: "the machine's floor".to_owned(),
        name: name.to_owned(),
        variation: variation.map_or(0.0, |figure| figure.median),
        glimpse: floor.glimpse.clone(),
    });
    row
}
