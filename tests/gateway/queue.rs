//! Which requests wait, in which order, which are rejected, and how a place is given back.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use crate::support::{Client, Gateway, Origin, check_pace, eventually, fetch, now, one_zone};

/// Sends one request after another, each once the previous one waits.
fn line_up(gateway: &Gateway, origin: &Origin, count: usize) -> Vec<Client> {
    let mut clients = vec![Client::ask(gateway.address(), "/0?key=a")];
    origin.wait_for(1);
    for nth in 1..count {
        clients.push(Client::ask(gateway.address(), &format!("/{nth}?key=a")));
        gateway.wait_for_depth(i64::try_from(nth).expect("few"));
    }
    clients
}

fn targets(origin: &Origin) -> Vec<String> {
    let path = |target: &str| target.split('?').next().unwrap_or_default().to_owned();
    origin
        .arrivals()
        .iter()
        .map(|arrival| path(&arrival.target))
        .collect()
}

#[test]
fn waiting_requests_leave_in_the_order_of_their_arrival() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "4r/s", "burst = 7"));
    let mut clients = line_up(&gateway, &origin, 8);
    assert!(
        clients
            .iter_mut()
            .all(|client| client.answer().status == 200)
    );
    assert_eq!(
        targets(&origin),
        ["/0", "/1", "/2", "/3", "/4", "/5", "/6", "/7"]
    );
}

#[test]
fn a_request_without_a_key_is_not_limited() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "1r/d", "burst = 0"));
    assert_eq!(fetch(gateway.address(), "/?key=a").status, 200);
    assert_eq!(fetch(gateway.address(), "/?key=a").status, 429);
    for _ in 0..5 {
        assert_eq!(fetch(gateway.address(), "/?other=a").status, 200);
    }
}

#[test]
fn an_excess_above_the_burst_is_told_when_a_retry_is_accepted_and_then_it_is() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "1r/s", "burst = 2, nodelay = true"));
    for remaining in [2, 1, 0] {
        let answer = fetch(gateway.address(), "/?key=a");
        assert_eq!(answer.status, 200);
        assert_eq!(answer.number("x-ratelimit-limit"), 3);
        assert_eq!(answer.number("x-ratelimit-remaining"), remaining);
        assert_eq!(
            answer.number("x-ratelimit-retry-after"),
            u64::from(remaining == 0)
        );
        assert_eq!(answer.field("retry-after"), None);
    }
    let rejected = fetch(gateway.address(), "/?key=a");
    assert_eq!(rejected.status, 429);
    assert_eq!(rejected.text(), "Too many requests\n");
    assert_eq!(rejected.number("x-ratelimit-limit"), 3);
    assert_eq!(rejected.number("x-ratelimit-remaining"), 0);
    assert_eq!(rejected.number("x-ratelimit-retry-after"), 1);
    assert_eq!(rejected.number("retry-after"), 1);
    thread::sleep(Duration::from_secs(rejected.number("retry-after")));
    assert_eq!(fetch(gateway.address(), "/?key=a").status, 200);
    assert_eq!(
        origin.arrivals().len(),
        4,
        "the origin never saw the rejected one"
    );
}

#[test]
fn a_route_says_with_which_status_and_body_it_rejects() {
    let origin = Origin::start();
    let mut file = one_zone(&origin, "1r/m", "burst = 0");
    file += "reject_status = 503\nreject_body = \"slow down, please\"\nheaders = []\n";
    let gateway = Gateway::start(&file);
    assert_eq!(fetch(gateway.address(), "/?key=a").status, 200);
    let rejected = fetch(gateway.address(), "/?key=a");
    assert_eq!(rejected.status, 503);
    assert_eq!(rejected.text(), "slow down, please");
    assert!((59..=60).contains(&rejected.number("retry-after")));
    assert_eq!(rejected.field("x-ratelimit-limit"), None);
}

#[test]
fn a_request_that_would_wait_longer_than_max_wait_is_rejected_on_arrival() {
    let origin = Origin::start();
    let gateway =
        Gateway::start(&(one_zone(&origin, "2r/s", "burst = 9") + "max_wait = \"700ms\"\n"));
    let mut clients = line_up(&gateway, &origin, 2);
    let began = now();
    let rejected = fetch(gateway.address(), "/?key=a");
    assert_eq!(rejected.status, 429);
    assert!(
        began.elapsed() < Duration::from_millis(300),
        "it did not have to wait for that"
    );
    let why = [("zone", "z"), ("reason", "max_wait")];
    assert_eq!(
        gateway.metrics().count("drip_zone_rejections_total", &why),
        1
    );
    assert!(
        clients
            .iter_mut()
            .all(|client| client.answer().status == 200)
    );
}

/// Five requests, of which four wait; the one in the middle leaves with `go`.
fn check_place_is_given_back(go: impl FnOnce(&mut Vec<Client>)) {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "1r/s", "burst = 4"));
    let mut clients = line_up(&gateway, &origin, 5);
    assert_eq!(fetch(gateway.address(), "/full?key=a").status, 429);
    go(&mut clients);
    gateway.wait_for_depth(3);
    clients.push(Client::ask(gateway.address(), "/late?key=a"));
    gateway.wait_for_depth(4);
    assert_eq!(fetch(gateway.address(), "/full?key=a").status, 429);
    origin.wait_for(5);
    assert_eq!(targets(&origin), ["/0", "/1", "/3", "/4", "/late"]);
    check_pace(&origin.moments("key=a"), Duration::from_secs(1)).expect("no hole where one went");
    let cancelled = [("zone", "z"), ("status", "cancelled")];
    eventually("the one who went is counted", || {
        gateway
            .metrics()
            .count("drip_zone_requests_total", &cancelled)
            == 1
    });
    gateway.wait_for_depth(0);
}

#[test]
fn a_waiting_client_that_hangs_up_gives_its_place_to_those_behind_it() {
    check_place_is_given_back(|clients| drop(clients.remove(2)));
}

#[test]
fn a_waiting_client_that_shuts_its_sending_side_is_gone_too() {
    check_place_is_given_back(|clients| clients[2].shut_sending());
}

#[test]
fn all_who_come_through_a_unix_socket_are_one_client() {
    let origin = Origin::start();
    let file = one_zone(&origin, "1r/h", "burst = 0").replace("$arg_key", "$remote_addr");
    let (_gateway, socket) = Gateway::start_with_unix_socket(&file);
    let statuses = [(); 2].map(|()| {
        let mut stream = UnixStream::connect(&socket).expect("a connection");
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            .expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer[9..12].to_owned()
    });
    assert_eq!(statuses, ["200", "429"]);
}
