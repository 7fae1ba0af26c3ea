//! What a request costs: the proxy's own processor time, over the requests that it answered
//! meanwhile.
//!
//! How long a request takes, and how many there are in a second, is as much the doing of clients,
//! origin and whoever else uses the machine. Processor time is the proxy's alone.

use std::io;
use std::thread::sleep;
use std::time::Duration;

use crate::arguments::Row;
use crate::peers::{Kind, PASS, Peer, SHUT, Setup};
use crate::report::{Report, step};
use crate::support::answers::Answers;
use crate::support::crowd::{Coming, Crowd, Keys};
use crate::support::figures::{Figure, float};
use crate::support::within;
use crate::table::{self, Measured};
use crate::{Bench, Effort};

pub const CLIENTS: usize = 64;
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
    let rows = [
        (Row::Proxied, "proxied", "CPU proxied, one worker", PASS),
        (Row::Rejected, "rejected", "CPU rejected, one worker", SHUT),
    ];
    let rows = rows.into_iter().filter(|(row, ..)| bench.wants(*row));
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return Ok(());
    }
    step("what a request costs, one worker");
    let peers = bench.start(&Setup::ONE_WORKER, |_| true, report)?;
    let measured = rows.into_iter().map(|(_, name, title, path)| {
        let rounds = rounds(&peers, bench.effort, report, |peer| {
            Crowd::new(peer.address, path, Keys::One(1), CLIENTS)
        });
        Measured::new(name, title, rounds)
    });
    let measured: Vec<_> = measured.collect();
    table::write(report, "one worker, one key", AT_ONCE, &measured);
    Ok(())
}

/// Two workers, a thousand keys: what it costs that a key lives on one of them, or is shared by
/// both.
pub fn two_workers(bench: &Bench, report: &mut Report) -> io::Result<()> {
    if !bench.wants(Row::Workers) {
        return Ok(());
    }
    step("what a request costs, two workers and 1000 keys");
    let peers = bench.start(&Setup::TWO_WORKERS, |_| true, report)?;
    let rounds = rounds(&peers, bench.effort, report, |peer| {
        Crowd::new(peer.address, PASS, Keys::InTurn(1000), CLIENTS)
    });
    let measured = Measured {
        rate: false,
        ..Measured::new("two workers", "CPU proxied, two workers, 1000 keys", rounds)
    };
    table::write(report, "proxied, 1000 keys", AT_ONCE, &[measured]);
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
            let answers = window(&peers[index], &coming, effort, &mut all[index]);
            check(&peers[index], crowd.path, answers, report);
        }
    }
    all
}

/// One look at a peer that a crowd is asking.
fn window(peer: &Peer, coming: &Coming, effort: Effort, rounds: &mut Rounds) -> Answers {
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
    let answered = float(answers.answered().max(1));
    rounds.micros.push(time.as_secs_f64() * 1e6 / answered);
    rounds.rate.push(answered / took.as_secs_f64());
    answers
}

/// Notes answers that are not those of the path: then the figures are of something else.
fn check(peer: &Peer, path: &str, answers: Answers, report: &mut Report) {
    let kind = peer.kind;
    if answers.failed > 0 {
        let log = peer.log();
        report.note(&format!(
            "{kind}: {} requests failed; {log}",
            answers.failed
        ));
    }
    let expected = if path == SHUT {
        answers.refused
    } else {
        answers.passed
    };
    // One passes a path that is shut once in a minute.
    let others = answers.answered() - expected;
    if others > 1 {
        let (all, last) = (answers.answered(), answers.last_refusal);
        report.note(&format!(
            "{kind}: {others} of {all} answers at {path} were of the wrong kind \
             (last status of a refusal: {last})"
        ));
    }
}
