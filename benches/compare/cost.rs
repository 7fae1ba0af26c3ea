//! What a request costs: the proxy's own processor time, over the requests that it answered meanwhile.
//!
//! How long a request takes, and how many there are in a second, is as much the doing of clients, origin and whoever
//! else uses the machine. Processor time is the proxy's alone.

use std::io;
use std::thread::sleep;
use std::time::Duration;

use crate::peers::{Kind, PASS, Peer, SHUT};
use crate::report::{Report, step};
use crate::support::crowd::{Coming, Crowd, Keys};
use crate::support::figures::{Figure, cell, float};
use crate::support::within;
use crate::{Bench, Effort};

const CLIENTS: usize = 64;
/// The panel of the picture for those whose turn comes at once.
pub const AT_ONCE: &str = "who need not wait: µs a request";
/// Requests, to tell what one costs.
const ENOUGH: u64 = 2000;
/// For how long to wait for what is late.
const PATIENCE: Duration = Duration::from_secs(5);

/// The rounds of one peer in one measurement.
#[derive(Clone, Debug)]
pub struct Rounds {
    pub kind: Kind,
    /// Microseconds of processor time a request.
    pub micros: Vec<f64>,
    /// Requests a second.
    pub rate: Vec<f64>,
}

impl Rounds {
    pub fn figure(&self) -> Option<Figure> {
        Figure::of(&self.micros)
    }
}

/// One worker, one key: forwarded, and refused.
pub fn one_worker(bench: &Bench, report: &mut Report) -> io::Result<()> {
    step("what a request costs, one worker");
    let peers = bench.start(1, |_| true, report)?;
    let proxied = rounds(&peers, bench.effort, report, |peer| {
        Crowd::new(peer.address, PASS, Keys::One(1), CLIENTS)
    });
    let rejected = rounds(&peers, bench.effort, report, |peer| {
        Crowd::new(peer.address, SHUT, Keys::One(1), CLIENTS)
    });
    let (nginx_passes, nginx_rejects) = (of_nginx(&proxied), of_nginx(&rejected));
    let rows = proxied.iter().zip(&rejected).map(|(proxied, rejected)| {
        vec![
            proxied.kind.to_string(),
            cell(proxied.figure(), 1),
            beside(&proxied.micros, nginx_passes),
            cell(rejected.figure(), 1),
            beside(&rejected.micros, nginx_rejects),
            cell(Figure::of(&proxied.rate), 0),
        ]
    });
    let head = [
        "one worker, one key",
        "proxied, µs",
        "beside nginx",
        "rejected, µs",
        "beside nginx",
        "proxied a second",
    ];
    report.table("cost", &head, &rows.collect::<Vec<_>>());
    report.bars(AT_ONCE, "proxied", &proxied);
    report.bars(AT_ONCE, "rejected", &rejected);
    Ok(())
}

/// Two workers, a thousand keys: what it costs that a key lives on one of them, or is shared by both.
pub fn two_workers(bench: &Bench, report: &mut Report) -> io::Result<()> {
    step("what a request costs, two workers and 1000 keys");
    let peers = bench.start(2, |_| true, report)?;
    let measured = rounds(&peers, bench.effort, report, |peer| {
        Crowd::new(peer.address, PASS, Keys::InTurn(1000), CLIENTS)
    });
    let nginx = of_nginx(&measured);
    let rows = measured.iter().map(|peer| {
        vec![
            peer.kind.to_string(),
            cell(peer.figure(), 1),
            beside(&peer.micros, nginx),
        ]
    });
    let head = ["two workers, 1000 keys", "proxied, µs", "beside nginx"];
    report.table("cost", &head, &rows.collect::<Vec<_>>());
    report.bars(AT_ONCE, "two workers, 1000 keys", &measured);
    Ok(())
}

/// Measures each of the peers in turn, round by round.
pub fn rounds(
    peers: &[Peer],
    effort: Effort,
    report: &mut Report,
    crowd: impl Fn(&Peer) -> Crowd,
) -> Vec<Rounds> {
    let mut all: Vec<Rounds> = peers
        .iter()
        .map(|peer| Rounds {
            kind: peer.kind,
            micros: Vec::new(),
            rate: Vec::new(),
        })
        .collect();
    for round in 0..effort.rounds {
        for turn in 0..peers.len() {
            // Each is once the first after a pause.
            let index = (turn + round) % peers.len();
            let crowd = crowd(&peers[index]);
            let coming = crowd.come();
            if !coming.wait_for_all(crowd.coming + PATIENCE) {
                report.note(&format!("{}: not all clients came", peers[index].kind));
            }
            sleep(effort.warm);
            window(&peers[index], &coming, effort, &mut all[index], report);
        }
    }
    all
}

/// One look at a peer that a crowd is asking.
pub fn window(
    peer: &Peer,
    coming: &Coming,
    effort: Effort,
    rounds: &mut Rounds,
    report: &mut Report,
) {
    let began = drip::clock::now();
    let (before, time_before) = (coming.answers(), peer.processor_time());
    sleep(effort.window);
    // On a machine that is busy with something else it takes longer to see anything.
    within(PATIENCE, || {
        coming.answers().since(&before).answered() >= ENOUGH
    });
    let (answers, time) = (
        coming.answers().since(&before),
        peer.processor_time().saturating_sub(time_before),
    );
    let took = drip::clock::now().since(began);
    if answers.failed > 0 {
        report.note(&format!(
            "{}: {} requests failed; {}",
            peer.kind,
            answers.failed,
            peer.log()
        ));
    }
    let answered = float(answers.answered().max(1));
    rounds.micros.push(time.as_secs_f64() * 1e6 / answered);
    rounds.rate.push(answered / took.as_secs_f64());
}

pub fn of_nginx(all: &[Rounds]) -> Option<&[f64]> {
    let nginx = all.iter().find(|rounds| rounds.kind == Kind::Nginx);
    nginx.map(|rounds| rounds.micros.as_slice())
}

/// What part of nginx's it is.
pub fn beside(ours: &[f64], nginx: Option<&[f64]>) -> String {
    cell(nginx.and_then(|nginx| Figure::ratio(ours, nginx)), 2)
}
