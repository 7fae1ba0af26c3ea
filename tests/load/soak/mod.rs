//! A soak test: many clients, failing origins and a changing file at the same time.
//!
//! **Each request that was sent is accounted for**: its client received a complete and correct
//! response
//! whose status fits the faults at that time, or saw the response break off because an origin had
//! broken
//! it off, or disconnected itself, or had pipelined it after a response that ended the connection.
//! No
//! POST reaches the origins twice, and no client receives another's response. At the end no request
//! waits, nothing is in flight, no gate has kept a permit, the gateway's counters and its access
//! log
//! match the clients', memory and descriptors are back to where they were, and SIGTERM ends the
//! gateway
//! with exit code 0.
//!
//! It takes 16 seconds, by night a minute. To run longer, or to repeat faults and requests:
//!
//! ```text
//! DRIP_SOAK_SECONDS=3600 DRIP_SOAK_SEED=42 cargo test --test plain soak -- --nocapture
//! ```

mod board;
mod books;
mod client;
mod file;
mod origin;
mod permits;

use std::env;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::night::day_or_night;
use crate::support::process::Process;
use crate::support::rng::Rng;
use crate::support::{Gateway, now};
use board::{Board, MIN_RECORDED_HALT, Trouble};
use client::Client;
use origin::Origin;

const ORIGINS: usize = 4;
const CLIENTS: u64 = 24;
/// Duration of the calm at the end, without faults.
const CALM: Duration = Duration::from_secs(6);
/// Time until the gateway has noticed the last event, on a busy machine.
const SETTLED: Duration = Duration::from_secs(10);

/// Growth of memory after the first half, whatever the duration of the soak.
const MORE_MEMORY: u64 = 48 << 20;
/// Descriptors that may be open at the end beyond those at the start.
const MORE_DESCRIPTORS: usize = 8;

fn number(name: &str) -> Option<u64> {
    env::var(name)
        .ok()
        .map(|value| value.parse().expect("a whole number"))
}

/// Written past the test harness, which captures output.
fn print(text: &str) {
    let _nobody_listens = std::io::stderr().write_all(text.as_bytes());
}

/// Gives one origin after another a fault, chosen by `seed`, until it is stopped.
fn make_trouble(mut origin: Origin, origin_index: usize, seed: u64, stop: &AtomicBool) -> Origin {
    let mut rng = Rng::of(seed, u64::try_from(origin_index).expect("few"));
    while !stop.load(Ordering::SeqCst) {
        let trouble = rng.pick(&[
            Trouble::Down,
            Trouble::Reset,
            Trouble::CloseIdle,
            Trouble::Slow,
            Trouble::Stall,
            Trouble::Garbage,
            Trouble::Close,
            Trouble::Shed,
        ]);
        for state in [None, Some(trouble)] {
            origin.set(state);
            let until = now() + Duration::from_millis(rng.within(300, 3000));
            while now() < until && !stop.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_millis(10));
            }
        }
    }
    origin.set(None);
    origin
}

/// Records each halt of the machine, until it is stopped.
fn watch(board: &Board, stop: &AtomicBool) {
    const TICK: Duration = Duration::from_millis(10);
    while !stop.load(Ordering::SeqCst) {
        let before = now();
        thread::sleep(TICK);
        let halt = before.elapsed();
        if halt > MIN_RECORDED_HALT {
            board.halted_for(halt);
        }
    }
}

#[test]
#[ignore = "loads both cores: tests/run.sh long"]
fn every_request_is_accounted_for_whatever_happens() {
    let seconds = number("DRIP_SOAK_SECONDS").unwrap_or(day_or_night(16, 60));
    let seed = number("DRIP_SOAK_SEED").unwrap_or_else(|| RandomState::new().hash_one(0) >> 32);
    print(&format!("\nsoak: {seconds} s, DRIP_SOAK_SEED={seed}\n"));
    let board = Arc::<Board>::default();
    let origins: Vec<Origin> = (0..ORIGINS)
        .map(|origin_index| Origin::start(origin_index, seed, Arc::clone(&board)))
        .collect();
    let servers: Vec<SocketAddr> = origins.iter().map(|origin| origin.address).collect();
    let mut gateway = Gateway::start(&file::calm(&servers));
    let process = Process::of(gateway.id());
    let descriptors = process.descriptors();
    let (calm, end) = (AtomicBool::default(), AtomicBool::default());
    let began = now();
    let mut memory = [process.memory(), 0, 0];
    let mut changes = 0;

    let mut origins = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|nth| {
                let client = Client::new(nth, seed, gateway.address(), Arc::clone(&board));
                let end = &end;
                scope.spawn(move || client.run(began, end))
            })
            .collect();
        let troubled: Vec<_> = (0..)
            .zip(origins)
            .map(|(origin_index, origin)| {
                let calm = &calm;
                scope.spawn(move || make_trouble(origin, origin_index, seed, calm))
            })
            .collect();
        scope.spawn(|| watch(&board, &end));
        let rewriting = scope.spawn(|| file::rewrite(&gateway, &servers, seed, &calm));
        let whole = Duration::from_secs(seconds);
        thread::sleep(whole / 2);
        memory[1] = process.memory();
        thread::sleep((whole / 2).saturating_sub(CALM));
        calm.store(true, Ordering::SeqCst);
        thread::sleep(CALM);
        end.store(true, Ordering::SeqCst);
        for client in clients {
            if client.join().is_err() {
                board.fail("a client failed".to_owned());
            }
        }
        changes = rewriting.join().expect("the file is rewritten");
        let origins = troubled.into_iter().map(thread::ScopedJoinHandle::join);
        origins
            .collect::<Result<Vec<_>, _>>()
            .expect("the origins are there")
    });

    let rejections = books::check(&gateway, &board);
    assert!(!rejections.is_empty(), "no gate rejected anything");
    permits::check(&gateway, &board);
    for origin in &mut origins {
        origin.stop();
    }
    wait(&board, "descriptors are back to where they were", || {
        process.descriptors() <= descriptors + MORE_DESCRIPTORS
    });
    let load = process.load();
    if load > 0.2 {
        board.fail(format!("with nothing to do it uses {load:.2} of a core"));
    }
    memory[2] = process.memory();
    if memory[2] > memory[1] + MORE_MEMORY {
        board.fail(format!("memory grows: {memory:?}"));
    }
    gateway.signal(Signal::TERM);
    let status = gateway.wait(SETTLED);
    if status.code() != Some(0) {
        board.fail(format!("the gateway ended with {status}"));
    }
    print(&format!(
        "{:#?}\nrejected: {rejections:?}\n{changes} changes of the file; {} MiB at the end\n",
        board.fates(),
        memory[2] >> 20
    ));
    let failures = board.failures();
    if let Some(failures) = failures {
        panic!("DRIP_SOAK_SEED={seed}: {failures}");
    }
}

fn wait(board: &Board, what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = now() + SETTLED;
    while !is_so() {
        if now() > deadline {
            board.fail(format!("waited {SETTLED:?} in vain for this: {what}"));
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
}
