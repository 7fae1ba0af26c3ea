//! Checks that the gates have kept no permit and no waiter.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::load::soak::board::Board;
use crate::load::soak::file::{ROUTES, one_permit_each};
use crate::load::soak::wait;
use crate::support::{Gateway, Origin};

/// Number of requests for each origin.
const REQUESTS: usize = 100;

/// Gives each origin a single permit, and sends requests all at once.
///
/// If a permit were still taken, none would pass. If one were returned twice, two would pass at
/// once.
pub fn check(gateway: &Gateway, board: &Board) {
    // Number of requests at each origin, and the maximum so far.
    let busy = Arc::new(ROUTES.map(|_| [(); 2].map(|()| AtomicUsize::default())));
    let counting = Arc::clone(&busy);
    let server = Origin::answering(move |exchange| {
        let of_path = |path: &str| exchange.target().split('?').next() == Some(path);
        let route = ROUTES.iter().position(|route| of_path(route.path));
        let [now, most] = &counting[route.expect("a known path")];
        let others = now.fetch_add(1, Ordering::SeqCst);
        most.fetch_max(others + 1, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(5));
        now.fetch_sub(1, Ordering::SeqCst);
        exchange.reply(b"ok")
    });
    gateway.site.write(&one_permit_each(server.address));
    wait(board, "each origin has one permit", || {
        let metrics = gateway.metrics();
        let most = metrics.count("drip_origin_in_flight_limit", &[("of", "now")]);
        usize::try_from(most) == Ok(ROUTES.len())
    });
    let mut clients = Vec::new();
    for nth in 0..REQUESTS {
        for route in &ROUTES {
            let target = format!("{}?key=k{}", route.path, nth % 5);
            clients.push(gateway.ask(&target));
        }
    }
    for mut client in clients {
        match client.try_answer() {
            Ok(answer) if answer.status == 200 => {}
            other => board.fail(format!("with one permit, and nobody else: {other:?}")),
        }
    }
    for (route, [_, most]) in ROUTES.iter().zip(busy.iter()) {
        let most = most.load(Ordering::SeqCst);
        if most != 1 {
            board.fail(format!(
                "{most} at once at {} with one permit",
                route.origin
            ));
        }
    }
    wait(board, "nothing waits, and nothing is in flight", || {
        let metrics = gateway.metrics();
        let names = ["drip_origin_queue_depth", "drip_origin_in_flight"];
        names.iter().all(|name| metrics.count(name, &[]) == 0)
    });
}
