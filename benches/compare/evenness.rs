//! How evenly the requests of a key that is always waited at leave, as its origin sees them.

use std::io;
use std::net::TcpStream;
use std::thread::sleep;
use std::time::Duration;

use crate::Bench;
use crate::peers::{Kind, Peer, SHUT, STREAMS};
use crate::report::{Report, Stream, step};
use crate::support::crowd::{Crowd, Keys};
use crate::support::figures::{Evenness, Figure, cell, float};
use crate::support::origin::Arrival;
use crate::support::place::Side;

/// Enough that some wait whatever the rate is.
const CLIENTS: usize = 32;
const KEY: u64 = 1;
const FLOODED: u64 = 2;
/// The floor of a machine that has little else to do is below: less uneven than chance.
const CALM: f64 = 1.0;
const DISTURBED: &str = "**The floor itself is uneven: the machine was busy with something else, and these rows tell of \
    that, not of the proxies. Measure again when it is calm.**\n";

/// What was seen of one stream in some rounds.
#[derive(Debug, Default)]
struct Seen {
    variations: Vec<f64>,
    rates: Vec<f64>,
    /// The first moments of the last round, in milliseconds.
    glimpse: Vec<f64>,
}

impl Seen {
    fn take(&mut self, arrivals: &[Arrival]) {
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
    step("how evenly a key's requests leave, at four rates");
    let peers = bench.start(1, Kind::lets_wait, report)?;
    let (mut rows, mut disturbed) = (Vec::new(), false);
    for (rate, path) in STREAMS {
        let mut of_peers: Vec<Seen> = peers.iter().map(|_| Seen::default()).collect();
        let mut floor = Seen::default();
        for _ in 0..bench.effort.rounds {
            for (peer, seen) in peers.iter().zip(&mut of_peers) {
                seen.take(&watch(bench, peer, path, rate));
            }
            floor.take(&floor_of(bench, rate)?);
        }
        disturbed |= Figure::of(&floor.variations).is_some_and(|floor| floor.median > CALM);
        rows.push(row(
            &format!("{rate}r/s"),
            &peers,
            &of_peers,
            &floor,
            report,
        ));
    }
    step("how evenly a key's requests leave at 500r/s, while another key is flooded");
    let (rate, path) = STREAMS[1];
    let mut of_peers: Vec<Seen> = peers.iter().map(|_| Seen::default()).collect();
    let mut refused: Vec<Vec<f64>> = peers.iter().map(|_| Vec::new()).collect();
    for _ in 0..bench.effort.rounds {
        for ((peer, seen), refused) in peers.iter().zip(&mut of_peers).zip(&mut refused) {
            let flood = Crowd {
                meek: true,
                ..Crowd::new(peer.address, SHUT, Keys::One(FLOODED), CLIENTS)
            };
            let flood = flood.come();
            let (before, began) = (flood.answers(), drip::clock::now());
            seen.take(&watch(bench, peer, path, rate));
            let took = drip::clock::now().since(began).as_secs_f64();
            refused.push(float(flood.answers().since(&before).refused) / took);
        }
    }
    let none = Seen::default();
    rows.push(row("500r/s, flooded", &peers, &of_peers, &none, report));
    let mut head = vec!["of one key, always waited at".to_owned()];
    for peer in &peers {
        head.push(format!("{}: variation", peer.kind));
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

/// Keeps some waiting at the path, and looks at what arrives.
fn watch(bench: &Bench, peer: &Peer, path: &'static str, rate: u64) -> Vec<Arrival> {
    let _crowd = Crowd::new(peer.address, path, Keys::One(KEY), CLIENTS).come();
    sleep(bench.effort.warm + Duration::from_millis(100));
    look(bench, rate)
}

fn look(bench: &Bench, rate: u64) -> Vec<Arrival> {
    // Two hundred gaps at least.
    let least = Duration::from_secs_f64(200.0 / float(rate));
    bench.origin.watch();
    sleep(bench.effort.window.max(least));
    bench.origin.seen()
}

/// The same stream by a thread of this program that sleeps until each request is due, without a proxy: what processor,
/// kernel and origin make of a perfect schedule.
fn floor_of(bench: &Bench, rate: u64) -> io::Result<Vec<Arrival>> {
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let mut to_origin = TcpStream::connect(bench.origin.address)?;
    to_origin.set_nodelay(true)?;
    let sender = std::thread::spawn(move || {
        Side::Proxy.take();
        pace(&mut to_origin, rate, || {
            matches!(
                stopped.try_recv(),
                Err(std::sync::mpsc::TryRecvError::Empty)
            )
        })
    });
    sleep(bench.effort.warm);
    let arrivals = look(bench, rate);
    drop(stop);
    let sent = sender.join();
    sent.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    Ok(arrivals)
}

fn pace(origin: &mut TcpStream, rate: u64, go_on: impl Fn() -> bool) -> io::Result<()> {
    use std::io::{Read, Write};
    let request = format!("GET / HTTP/1.1\r\nHost: bench\r\nX-Key: {KEY}\r\n\r\n");
    let mut answer = [0; 4096];
    let began = drip::clock::now();
    for nth in 0_u64.. {
        let due = began + Duration::from_nanos(nth * 1_000_000_000 / rate);
        let until = drip::clock::monotonic(due);
        rustix::thread::clock_nanosleep_absolute(rustix::thread::ClockId::Monotonic, &until)?;
        if !go_on() {
            break;
        }
        origin.write_all(request.as_bytes())?;
        // Whole: it is far smaller than a segment.
        let _read = origin.read(&mut answer)?;
    }
    Ok(())
}

fn row(
    name: &str,
    peers: &[Peer],
    seen: &[Seen],
    floor: &Seen,
    report: &mut Report,
) -> Vec<String> {
    let mut row = vec![name.to_owned()];
    for (peer, seen) in peers.iter().zip(seen) {
        let variation = Figure::of(&seen.variations);
        row.push(cell(variation, 3));
        row.push(cell(Figure::of(&seen.rates), 0));
        report.stream(Stream {
            of: peer.kind.to_string(),
            name: name.to_owned(),
            variation: variation.map_or(0.0, |figure| figure.median),
            glimpse: seen.glimpse.clone(),
        });
    }
    let variation = Figure::of(&floor.variations);
    row.push(cell(variation, 3));
    report.stream(Stream {
        of: "the machine's floor".to_owned(),
        name: name.to_owned(),
        variation: variation.map_or(0.0, |figure| figure.median),
        glimpse: floor.glimpse.clone(),
    });
    row
}
