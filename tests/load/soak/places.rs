//! Proves that the gates have kept no place and no waiter.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::load::soak::board::Board;
use crate::load::soak::terms::ROUTES;
use crate::load::soak::wait;
use crate::support::{Client, Gateway, Origin};

/// Requests for each origin.
const REQUESTS: usize = 100;

/// How many requests are at an origin, and the most so far.
#[derive(Default)]
struct Busy {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// Gives each origin a single place, and sends requests all at once.
///
/// If a place were still taken none would pass; if one were given back twice, two would pass at once.
pub fn check(gateway: &Gateway, board: &Board) {
    let busy = Arc::new(ROUTES.map(|_| Busy::default()));
    let counting = Arc::clone(&busy);
    let server = Origin::answering(move |exchange| {
        let of_path = |path: &str| exchange.target().split('?').next() == Some(path);
        let route = ROUTES.iter().position(|route| of_path(route.path));
        let busy = &counting[route.expect("a known path")];
        let others = busy.now.fetch_add(1, Ordering::SeqCst);
        busy.most.fetch_max(others + 1, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(5));
        busy.now.fetch_sub(1, Ordering::SeqCst);
        exchange.reply(b"ok")
    });
    gateway.site.write(&one_place_each(&server));
    wait(board, "each origin has one place", || {
        let metrics = gateway.metrics();
        let most = metrics.count("drip_origin_in_flight_limit", &[("of", "now")]);
        usize::try_from(most) == Ok(ROUTES.len())
    });
    let mut clients = Vec::new();
    for nth in 0..REQUESTS {
        for route in &ROUTES {
            let target = format!("{}?key=k{}", route.path, nth % 5);
            clients.push(Client::ask(gateway.address(), &target));
        }
    }
    for mut client in clients {
        match client.try_answer() {
            Ok(answer) if answer.status == 200 => {}
            other => board.fail(format!("with one place, and nobody else: {other:?}")),
        }
    }
    for (route, busy) in ROUTES.iter().zip(busy.iter()) {
        let most = busy.most.load(Ordering::SeqCst);
        if most != 1 {
            board.fail(format!("{most} at once at {} with one place", route.origin));
        }
    }
    wait(board, "nothing waits, and nothing is in flight", || {
        let metrics = gateway.metrics();
        let waiting = metrics.count("drip_origin_queue_depth", &[]);
        let at_origins = metrics.count("drip_origin_in_flight", &[]);
        (waiting, at_origins) == (0, 0)
    });
}

fn one_place_each(server: &Origin) -> String {
    let mut text = "workers = 2\nshutdown_timeout = \"5s\"\n".to_owned();
    for route in &ROUTES {
        writeln!(
            text,
            "[origins.{}]\nservers = [\"http://{}\"]\nmax_in_flight = 1\nqueue_timeout = \"10s\"\nkeep_alive = 0",
            route.origin, server.address
        )
        .expect("memory");
    }
    for route in &ROUTES {
        writeln!(
            text,
            "[[routes]]\npath = \"{}\"\norigin = \"{}\"",
            route.path, route.origin
        )
        .expect("memory");
    }
    text + "[log]\nlevel = \"debug\"\naccess = \"access.log\"\n"
}
