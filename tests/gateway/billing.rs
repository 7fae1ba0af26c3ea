//! Tests of an origin that bills each request in its response, like services of language models.

use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use crate::support::{Exchange, MS, Origin, best_of_three, now, side_by_side, start_drip, zone};

const RATE: f64 = 40.0;
const BURST: u32 = 30;
const IN_FLIGHT: u32 = 4;
const ESTIMATE: u32 = 1;
const MAX: u32 = 20;

/// Arrival of each request at the origin, and the cost in its response.
type Bills = Mutex<Vec<(Instant, u32)>>;

/// Starts an origin whose responses take 20 to 80 ms and cost 1 to 20.
fn origin(bills: &'static Bills) -> Origin {
    Origin::answering(move |exchange: &mut Exchange| {
        let nth = {
            let mut bills = bills.lock().expect("no panic");
            let nth = u32::try_from(bills.len()).expect("few");
            bills.push((now(), 1 + nth * 7 % MAX));
            nth
        };
        thread::sleep((20 + nth * 13 % 60) * MS);
        let cost = 1 + nth * 7 % MAX;
        let head = format!("HTTP/1.1 200 OK\r\nx-drip-cost: {cost}\r\nContent-Length: 2\r\n\r\nok");
        exchange.send(&head)
    })
}

/// Returns the maximum by which the bills of a window exceed `RATE` times its length.
fn overspend(bills: &[(Instant, u32)]) -> f64 {
    let mut worst: f64 = 0.0;
    for (nth, (from, _)) in bills.iter().enumerate() {
        let mut spent = 0.0;
        for (to, cost) in &bills[nth..] {
            spent += f64::from(*cost);
            worst = worst.max(spent - RATE * (*to - *from).as_secs_f64());
        }
    }
    worst
}

#[test]
fn the_overspend_is_at_most_what_runs_times_what_an_estimate_may_be_off() {
    let bills: &'static Bills = Box::leak(Box::default());
    let origin = origin(bills);
    let route = format!(
        "cost = {{ response_header = \"x-drip-cost\", estimate = {ESTIMATE}, max = {MAX} }}\n\
         limits = [{{ zone = \"tokens\", burst = {BURST}, in_flight = {IN_FLIGHT} }}]"
    );
    let tokens = zone("tokens", "$arg_key", &format!("{RATE}r/s"));
    let gateway = start_drip(&origin, &tokens, &[("/", &route)]);
    best_of_three(|attempt| {
        bills.lock().expect("no panic").clear();
        let began = now();
        // Two and a half times as many clients as may run. They send again as soon as they can.
        side_by_side(0..10, |_| {
            let mut client = gateway.connect();
            while began.elapsed() < 4000 * MS {
                client.get(&format!("/?key={attempt}"));
                if client.answer().status != 200 {
                    thread::sleep(5 * MS);
                }
            }
        });
        let span = began.elapsed().as_secs_f64();
        let bills = bills.lock().expect("no panic").clone();
        let spent: u32 = bills.iter().map(|(_, cost)| cost).sum();
        let allowed = f64::from(BURST + 1 + IN_FLIGHT * (MAX - ESTIMATE));
        // An arrival may be recorded late: 50 ms are two requests' worth.
        let overspend = overspend(&bills);
        if overspend > allowed + RATE * 0.05 {
            return Err(format!("{overspend} above the rate, of {allowed}"));
        }
        // No client waits in vain: the key has used its rate.
        if f64::from(spent) < RATE * span * 0.8 {
            return Err(format!("only {spent} were spent in {span} s"));
        }
        Ok(())
    });
}
