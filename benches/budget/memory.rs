//! Measures the resident memory of connections, waiters and keys.

use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use gateway::time::clock;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::Bench;
use crate::gateway::{FOLLOWS, Gateway, HELD, HELD_AT_GATE, KEYS, PASS, WITH_ACTOR};
use crate::limits::{Figures, Group};
use crate::support::client::{Connection, connect_plain};
use crate::support::crowd::{Crowd, Keys};
use crate::support::figures::{Figure, float};
use crate::support::{http2, wait_until};

/// Number of rounds of each measurement. The median counts.
const ROUNDS: usize = 3;
/// Number of items before the memory is read for the first time.
const FIRST: u64 = 1000;
/// Number of items added between the two readings.
const ADDED: u64 = 9000;
/// Number of parked keys added.
const PARKED: u64 = 250_000;
/// Number of active keys added. With more than 4000, idle actors are parked early.
const ACTIVE: u64 = 2500;
/// Number of connections that may wait to be accepted.
const AT_ONCE: u64 = 100;
/// Number of streams of a connection over HTTP/2.
const STREAMS: u64 = 100;
/// Timeout for slow events.
const PATIENCE: Duration = Duration::from_secs(60);
/// Number of rounds of short connections, after which freed memory has been returned.
const SETTLING: usize = 4;
const PAUSE: Duration = Duration::from_millis(100);
/// Time until an idle key is parked: two seconds, or up to a second more.
const UNTIL_PARKED: Duration = Duration::from_millis(3500);
/// Time for which an actor is not parked after its last use.
const ACTIVE_FOR: Duration = Duration::from_millis(1500);

type Measure = fn(&Bench) -> io::Result<f64>;

const MEASURES: [(&str, Measure); 7] = [
    ("idle_connection", idle_connections),
    ("waiting_http1", |bench| waiting(bench, HELD)),
    ("waiting_http2", waiting_http2),
    ("waiting_at_gate", |bench| waiting(bench, HELD_AT_GATE)),
    ("following", |bench| waiting(bench, FOLLOWS)),
    ("parked_key", parked_keys),
    ("active_key", active_keys),
];

/// Measures the memory of one item of each kind.
pub fn measure(bench: &Bench, figures: &mut Figures) -> io::Result<()> {
    for (name, each) in MEASURES {
        if !bench.arguments.wants(name) {
            continue;
        }
        println!("  {name}");
        let rounds: io::Result<Vec<f64>> = (0..ROUNDS).map(|_| each(bench)).collect();
        let rounds = rounds?;
        println!("    {rounds:.0?}");
        let figure = Figure::of(&rounds).ok_or(io::ErrorKind::InvalidData)?;
        figures.insert((Group::Bytes, name.to_owned()), figure.median);
    }
    Ok(())
}

fn start(bench: &Bench) -> io::Result<Gateway> {
    Gateway::start(Path::new(&bench.program), bench.origins, false)
}

/// Returns the memory of a gateway after it has returned freed memory.
///
/// The allocator returns memory while other pages are used, so some connections are opened.
fn settled_memory(bench: &Bench, gateway: &Gateway) -> io::Result<u64> {
    for _ in 0..SETTLING {
        sleep(PAUSE);
        bench.runtime.block_on(async {
            let mut open = Vec::new();
            for _ in 0..AT_ONCE {
                let mut connection = Connection::new(gateway.plain);
                connection.exchange(&request(PASS, 1)).await?;
                open.push(connection);
            }
            io::Result::Ok(())
        })?;
    }
    sleep(PAUSE);
    Ok(gateway.memory())
}

/// Returns the memory of one of `added` items.
fn each(now: u64, before: u64, added: u64) -> f64 {
    (float(now) - float(before)) / float(added)
}

/// Measures connections after one request each.
fn idle_connections(bench: &Bench) -> io::Result<f64> {
    let gateway = start(bench)?;
    let mut open = Vec::new();
    let mut add = |count| {
        bench.runtime.block_on(async {
            for _ in 0..count {
                let mut connection = Connection::new(gateway.plain);
                connection.exchange(&request(PASS, 1)).await?;
                open.push(connection);
            }
            io::Result::Ok(())
        })
    };
    add(FIRST)?;
    let before = settled_memory(bench, &gateway)?;
    add(ADDED)?;
    Ok(each(settled_memory(bench, &gateway)?, before, ADDED))
}

/// Measures requests on their own connections that all wait at one key.
fn waiting(bench: &Bench, path: &'static str) -> io::Result<f64> {
    let gateway = start(bench)?;
    let _kept = first_of_key(bench, &gateway, path)?;
    let descriptors = gateway.descriptors();
    let mut open: Vec<TcpStream> = Vec::new();
    let mut add = |count: u64| {
        for _ in 0..count / AT_ONCE {
            bench.runtime.block_on(async {
                for _ in 0..AT_ONCE {
                    let mut socket = connect_plain(gateway.plain).await?;
                    socket.write_all(&request(path, 1)).await?;
                    open.push(socket);
                }
                io::Result::Ok(())
            })?;
            let expected = descriptors + open.len();
            if !wait_until(PATIENCE, || gateway.descriptors() >= expected) {
                return Err(io::Error::other("not all connections were accepted"));
            }
        }
        Ok(())
    };
    add(FIRST)?;
    let before = settled_memory(bench, &gateway)?;
    add(ADDED)?;
    Ok(each(settled_memory(bench, &gateway)?, before, ADDED))
}

/// Measures streams that all wait at one key.
fn waiting_http2(bench: &Bench) -> io::Result<f64> {
    let gateway = start(bench)?;
    let _kept = first_of_key(bench, &gateway, HELD)?;
    let mut open = Vec::new();
    let mut add = |count: u64| {
        bench.runtime.block_on(async {
            for _ in 0..count / STREAMS {
                let socket = connect_plain(gateway.plain).await?;
                let mut connection = http2::Connection::with_socket(socket, HELD);
                (0..STREAMS).for_each(|_| connection.open_stream(1));
                // Sends the requests, and reads the settings.
                if !connection.outcomes().await?.is_empty() {
                    return Err(io::Error::other("a stream was answered"));
                }
                open.push(connection);
            }
            io::Result::Ok(())
        })
    };
    add(FIRST)?;
    let before = settled_memory(bench, &gateway)?;
    add(ADDED)?;
    Ok(each(settled_memory(bench, &gateway)?, before, ADDED))
}

/// Measures keys whose only request was some seconds ago.
fn parked_keys(bench: &Bench) -> io::Result<f64> {
    const CLIENTS: usize = 64;
    let gateway = start(bench)?;
    let before = settled_memory(bench, &gateway)?;
    let running = Crowd::new(gateway.plain, KEYS, Keys::Once(PARKED), CLIENTS).start();
    wait_until(PATIENCE, || running.answers().answered() >= PARKED);
    let answers = running.answers();
    drop(running);
    if answers.passed != PARKED {
        return Err(io::Error::other(format!("not all keys came: {answers:?}")));
    }
    sleep(UNTIL_PARKED);
    Ok(each(settled_memory(bench, &gateway)?, before, PARKED))
}

/// Measures keys whose actors are running.
fn active_keys(bench: &Bench) -> io::Result<f64> {
    let gateway = start(bench)?;
    let mut connection = Connection::new(gateway.plain);
    let mut send = |keys: u64| {
        let began = clock::now();
        bench.runtime.block_on(async {
            for key in 0..keys {
                connection.exchange(&request(WITH_ACTOR, key)).await?;
            }
            io::Result::Ok(())
        })?;
        Ok(clock::now().since(began))
    };
    send(FIRST)?;
    let before = settled_memory(bench, &gateway)?;
    // On a busy machine, keys are parked meanwhile. Repeat until almost all actors are running.
    let mut held = 0.0;
    let is_soon = |took: io::Result<Duration>| took.map(|took| took < ACTIVE_FOR);
    for _ in 0..10 {
        let is_active = is_soon(send(FIRST + ACTIVE))?;
        held = each(gateway.memory(), before, ACTIVE);
        if is_active {
            return Ok(held);
        }
    }
    Err(io::Error::other(format!(
        "too slow for active keys ({held})"
    )))
}

/// Sends the first request of a key, which does not wait. Returns its connection.
fn first_of_key(bench: &Bench, gateway: &Gateway, path: &str) -> io::Result<Connection> {
    let mut connection = Connection::new(gateway.plain);
    let status = bench
        .runtime
        .block_on(connection.exchange(&request(path, 1)))?;
    if status == 200 {
        Ok(connection)
    } else {
        Err(io::Error::other(format!("{path}: answered with {status}")))
    }
}

fn request(path: &str, key: u64) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: bench\r\nX-Key: {key}\r\n\r\n").into_bytes()
}
