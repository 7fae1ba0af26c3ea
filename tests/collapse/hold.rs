//! Tests of an origin with `hold` that cannot be reached, on a route with `stale`.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use super::{file_with, how};
use crate::support::{Answer, Exchange, Gateway, MS, Origin, eventually, fetch, now, side_by_side};

const HOLD: &str = "hold = \"6s\"";
const STALE: &str = "keep = \"1s\"\nstale = \"1h\"";

fn origin(address: &str, says: &'static str) -> Origin {
    Origin::at(address, move |exchange: &mut Exchange| {
        let length = says.len();
        let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n");
        exchange.send(format!("{head}\r\n{says}").as_bytes())?;
        Exchange::close()
    })
}

/// Sends a request, and fails unless the response comes at once.
fn at_once(at: SocketAddr, path: &str) -> Answer {
    let began = now();
    let answer = fetch(at, path);
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    let took = began.elapsed();
    assert!(took < Duration::from_secs(2), "{path}: {took:?}");
    answer
}

#[test]
fn the_last_good_answer_is_served_before_anybody_is_held() {
    side_by_side(&["", "rate = \"100r/s\"\nqueue = 100"], |more| {
        let old = origin("127.0.0.1:0", "old");
        let address = old.address;
        let fields = format!("{HOLD}\n{more}");
        let gateway = Gateway::start(&file_with(address, &fields, "", STALE));
        let at = gateway.address();
        let paths: Vec<String> = (0..4).map(|nth| format!("/{nth}")).collect();
        for path in &paths {
            assert_eq!(fetch(at, path).text(), "old");
        }
        thread::sleep(1200 * MS);
        drop(old);
        // The first request finds the outage. The gate keeps later ones from trying.
        for round in 0..4 {
            for path in &paths {
                let answer = at_once(at, path);
                let found = (how(&answer), answer.text());
                assert_eq!(found, ("stale", "old".to_owned()), "{round} {path}");
            }
            thread::sleep(500 * MS);
        }
        // A request without a stale response waits until the origin is back.
        let held = thread::spawn(move || fetch(at, "/new"));
        thread::sleep(300 * MS);
        let _new = origin(&address.to_string(), "new");
        assert_eq!(held.join().expect("no panic").text(), "new");
        for path in &paths {
            eventually("the origin's new answer is there", || {
                at_once(at, path).text() == "new"
            });
        }
    });
}
