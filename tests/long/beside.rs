//! Tests of a client's latency while other clients attack the same worker.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use crate::support::frames::without_window;
use crate::support::frames::{self, DATA, Frames, frame, head, window_update};
use crate::support::stream_origin::{STREAM_WINDOW, StreamOrigin, content};
use crate::support::{Done, Gateway, MS, Origin, Raw, alone, best_of_three, now};

/// Number of requests of the client at each gateway. The p99 is the third longest.
const REQUESTS: usize = 300;
/// The client reads 64 KB: more than fits if other clients used up a shared window.
const PATH: &str = "/16384/4";

/// Starts one worker with an origin over HTTP/2, one over HTTP/1, and a limit at `/slow`.
///
/// Nearly all requests for `/slow` wait.
fn drip(origin: &StreamOrigin, reader: &Origin) -> Gateway {
    Gateway::start(&format!(
        "workers = 1\n[origins.app]\nservers = [\"h2c://{}\"]\n\
         [origins.reader]\nservers = [\"http://{}\"]\n\
         [zones.z]\nkey = \"all\"\nrate = \"1r/m\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n\
         [[routes]]\npath = \"/read\"\norigin = \"reader\"\n\
         [[routes]]\npath = \"/slow\"\norigin = \"reader\"\n\
         limits = [{{ zone = \"z\", burst = 1000 }}]\n",
        origin.address, reader.address
    ))
}

fn p99(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() * 99 / 100 - 1]
}

/// Fails unless the client's p99 is at most twice that at a gateway without an attack.
///
/// `least`: bytes that the origin sends to the attackers, until they have no window left. Both p99
/// are
/// measured alternately, so that other load of the machine slows both down.
fn check(least: usize, attack: impl Fn(&Gateway, &AtomicBool) + Sync) {
    let _alone = alone();
    best_of_three(|_| {
        let origins = [StreamOrigin::start(), StreamOrigin::start()];
        let reader = Origin::answering(|exchange| {
            let length = exchange.body()?.len();
            exchange.reply(length.to_string().as_bytes())
        });
        let gateways = origins.each_ref().map(|origin| drip(origin, &reader));
        let is_over = AtomicBool::new(false);
        let times = thread::scope(|scope| {
            let _done = Done(&is_over);
            scope.spawn(|| attack(&gateways[0], &is_over));
            if least > 0 {
                origins[0].wait_until_stuck(least);
            }
            thread::sleep(200 * MS);
            let mut clients = gateways.each_ref().map(Gateway::connect);
            let mut times = [const { Vec::new() }; 2];
            for _ in 0..REQUESTS {
                for (client, times) in clients.iter_mut().zip(&mut times) {
                    let began = now();
                    let answer = client.fetch(PATH);
                    times.push(began.elapsed());
                    assert!(answer.body == content(1 << 16), "{}", answer.status);
                }
                thread::sleep(MS);
            }
            times
        });
        let [attacked, quiet] = times.map(p99);
        println!("p99 beside the attack {attacked:?}, without it {quiet:?}");
        if attacked <= 2 * quiet {
            Ok(())
        } else {
            Err(format!("{attacked:?}, without the attack {quiet:?}"))
        }
    });
}

/// Calls `what` every few milliseconds until `is_over` is set.
fn until(is_over: &AtomicBool, mut what: impl FnMut()) {
    while !is_over.load(SeqCst) {
        what();
        thread::sleep(5 * MS);
    }
}

#[test]
fn readers_that_take_a_byte_at_a_time() {
    check(20 * STREAM_WINDOW, |gateway, is_over| {
        let mut client = without_window(gateway, "/16384/2000", 20);
        until(is_over, || {
            let bytes = (0..20).flat_map(|nth| window_update(2 * nth + 1, 1));
            client.send(bytes.collect::<Vec<_>>()).expect("it reads");
        });
    });
}

#[test]
fn readers_over_http_1_that_take_nothing() {
    check(10 * STREAM_WINDOW, |gateway, is_over| {
        let large = "GET /16384/2000 HTTP/1.1\r\nHost: test\r\n\r\n";
        let _readers: Vec<_> = (0..10)
            .map(|_| {
                let mut client = Raw::connect(gateway.address());
                client.send(large);
                client
            })
            .collect();
        until(is_over, || {});
    });
}

#[test]
fn small_events_that_nobody_reads() {
    check(20 * (STREAM_WINDOW - 50), |gateway, is_over| {
        let _client = without_window(gateway, "/50/100000", 20);
        until(is_over, || {});
    });
}

fn post(stream: u32, path: &str) -> Vec<u8> {
    let fields = frames::request("POST", path);
    head(stream, 0, &fields)
}

/// Opens a connection with `count` waiting uploads, each with as much body as it may send.
fn waiting(gateway: &Gateway, count: u32) -> Frames {
    let mut client = Frames::connect(gateway.address());
    for nth in 0..count {
        let stream = 2 * nth + 1;
        client.send(post(stream, "/slow")).expect("it reads");
        let piece = frame(DATA, 0, stream, [b'x'; 16_000]);
        client.send(piece.repeat(4)).expect("it reads");
    }
    client
}

#[test]
fn uploads_that_wait() {
    check(0, |gateway, is_over| {
        let _clients: Vec<_> = (0..5).map(|_| waiting(gateway, 100)).collect();
        until(is_over, || {});
    });
}

#[test]
fn an_upload_in_small_pieces_that_waits() {
    check(0, |gateway, is_over| {
        let mut client = waiting(gateway, 1);
        let mut stream = 3;
        client.send(post(stream, "/slow")).expect("it reads");
        let mut sent = 0;
        until(is_over, || {
            if sent == 3000 {
                (stream, sent) = (stream + 2, 0);
                client.send(post(stream, "/slow")).expect("it reads");
            }
            let piece = frame(DATA, 0, stream, [b'x'; 20]);
            client.send(piece.repeat(20)).expect("it reads");
            sent += 20;
        });
    });
}

#[test]
fn uploads_that_come_by_the_byte() {
    check(0, |gateway, is_over| {
        let mut clients: Vec<_> = (0..20)
            .map(|_| {
                let mut client = Raw::connect(gateway.address());
                client.send("POST /read HTTP/1.1\r\nHost: test\r\nContent-Length: 100000\r\n\r\n");
                client
            })
            .collect();
        until(is_over, || {
            for client in &mut clients {
                client.send("x");
            }
        });
    });
}
