//! The cost of a request: the proxy's processor time divided by the number of requests.
//!
//! The duration of a request and the number of requests per second depend as much on the clients,
//! the origin and other users of the machine. Processor time depends on the proxy alone.

use std::io;
use std::thread::sleep;
use std::time::Duration;

use crate::arguments::Row;
use crate::peers::{Kind, PASS, Peer, SHUT, Setup};
use crate::report::{Report, step};
use crate::support::answers::Answers;
use crate::support::crowd::{Crowd, Keys, RunningCrowd};
use crate::support::figures::{Figure, float};
use crate::support::wait_until;
use crate::table::{self, Measured};
use crate::{Bench, Effort};

pub const CLIENTS: usize = 64;
/// Panel of the picture for requests that do not wait.
pub const AT_ONCE: &str = "who need not wait: µs a request";
/// Number of requests that is enough to measure the cost of one.
const ENOUGH: u64 = 2000;
/// Timeout for slow events.
const PATIENCE: Duration = Duration::from_secs(5);

/// The rounds of one peer in one measurement.
#[derive(Clone, Debug)]
pub struct Rounds {
    pub kind: Kind,
    /// Microseconds of processor time per request.
    pub micros: Vec<f64>,
    /// Requests per second.
    pub rate: Vec<f64>,
}

impl Rounds {
    pub fn figure(&self) -> Option<Figure> {
        Figure::of(&self.micros)
    }
}

/// One worker, one key: forwarded and rejected requests.
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

/// Two workers, a thousand keys: the cost when a key lives on one worker, or is shared by both.
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

/// Measures the peers in turn, round by round.
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
            // Each peer is the first after a pause in one of the rounds.
            let index = (turn + round) % peers.len();
            let crowd = crowd(&peers[index]);
            let running = crowd.start();
            if !running.wait_for_all(crowd.ramp_up + PATIENCE) {
                report.note(&format!("{}: not all clients came", peers[index].kind));
            }
            sleep(effort.warm);
            let answers = window(&peers[index], &running, effort, &mut all[index]);
            check(&peers[index], crowd.path, answers, report);
        }
    }
    all
}

/// Measures one window of a peer while a crowd sends requests.
fn window(peer: &Peer, running: &RunningCrowd, effort: Effort, rounds: &mut Rounds) -> Answers {
    let began = gateway::time::clock::now();
    let (before, time_before) = (running.answers(), peer.processor_time());
    sleep(effort.window);
    // On a busy machine it takes longer to get enough requests.
    wait_until(PATIENCE, || {
        running.answers().since(&before).answered() >= ENOUGH
    });
    let (answers, time) = (
        running.answers().since(&before),
        peer.processor_time().saturating_sub(time_before),
    );
    let took = gateway::time::clock::now().since(began);
    let answered = float(answers.answered().max(1));
    rounds.micros.push(time.as_secs_f64() * 1e6 / answered);
    rounds.rate.push(answered / took.as_secs_f64());
    answers
}

/// Reports unexpected responses: the figures would then measure something else.
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
    // A shut path passes one request a minute.
    let others = answers.answered() - expected;
    if others > 1 {
        let (all, last) = (answers.answered(), answers.last_refusal);
        report.note(&format!(
            "{kind}: {others} of {all} answers at {path} were of the wrong kind \
             (last status of a refusal: {last})"
        ));
    }
}
