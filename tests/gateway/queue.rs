//! Tests of the queue: order, rejections, and slots that disconnected clients free.

use std::thread;
use std::time::Duration;

use crate::support::{
    Client, Gateway, Origin, all_pass, check_pace, eventually, now, one_zone, over_unix,
    start_limited,
};

/// Sends one request after another, each once the previous one waits or has left.
fn line_up(gateway: &Gateway, origin: &Origin, count: usize) -> Vec<Client> {
    let line_up = |nth| {
        let client = gateway.ask(&format!("/{nth}?key=a"));
        eventually("it has joined", || {
            let depth = gateway.zone("drip_zone_queue_depth");
            origin.arrivals().len() + usize::try_from(depth).expect("few") > nth
        });
        client
    };
    (0..count).map(line_up).collect()
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
    let (origin, gateway) = start_limited("4r/s", "burst = 7");
    let mut clients = line_up(&gateway, &origin, 8);
    all_pass(&mut clients);
    let expected = ["/0", "/1", "/2", "/3", "/4", "/5", "/6", "/7"];
    assert_eq!(targets(&origin), expected);
}

#[test]
fn a_request_without_a_key_is_not_limited() {
    let (_origin, gateway) = start_limited("1r/d", "burst = 0");
    assert_eq!(gateway.fetch("/?key=a").status, 200);
    assert_eq!(gateway.fetch("/?key=a").status, 429);
    gateway.check_each(5, "/?other=a", 200);
}

#[test]
fn a_rejection_has_a_retry_time_at_which_a_retry_is_accepted() {
    let (origin, gateway) = start_limited("1r/s", "burst = 2, nodelay = true");
    for (status, remaining, retry) in [(200, 2, 0), (200, 1, 0), (200, 0, 1), (429, 0, 1)] {
        let answer = gateway.fetch("/?key=a");
        assert_eq!(answer.status, status);
        let received = ["limit", "remaining", "retry-after"];
        let received = received.map(|name| answer.number(&format!("x-ratelimit-{name}")));
        assert_eq!(received, [3, remaining, retry]);
        let after = (status == 429).then_some("1");
        assert_eq!(answer.field("retry-after"), after);
        let text = if status == 200 {
            "ok"
        } else {
            "Too many requests\n"
        };
        assert_eq!(answer.text(), text);
    }
    thread::sleep(Duration::from_secs(1));
    assert_eq!(gateway.fetch("/?key=a").status, 200);
    // The origin never received the rejected one.
    assert_eq!(origin.arrivals().len(), 4);
}

#[test]
fn a_route_says_with_which_status_and_body_it_rejects() {
    let origin = Origin::start();
    let mut file = one_zone(&origin, "1r/m", "burst = 0");
    file += "reject_status = 503\nreject_body = \"slow down, please\"\nheaders = []\n";
    let gateway = Gateway::start(&file);
    assert_eq!(gateway.fetch("/?key=a").status, 200);
    let rejected = gateway.fetch("/?key=a");
    assert_eq!(rejected.status, 503);
    assert_eq!(rejected.text(), "slow down, please");
    assert!((59..=60).contains(&rejected.number("retry-after")));
    assert_eq!(rejected.field("x-ratelimit-limit"), None);
}

#[test]
fn a_request_that_would_wait_longer_than_max_wait_is_rejected_on_arrival() {
    let origin = Origin::start();
    let file = one_zone(&origin, "1r/s", "burst = 9") + "max_wait = \"1100ms\"\n";
    let gateway = Gateway::start(&file);
    let mut clients = line_up(&gateway, &origin, 2);
    let began = now();
    assert_eq!(gateway.fetch("/?key=a").status, 429);
    let took = began.elapsed();
    assert!(took < Duration::from_millis(300), "it waited {took:?}");
    assert_eq!(gateway.zone_rejections("z", "max_wait"), 1);
    all_pass(&mut clients);
}

/// A waiting client that disconnects frees its slot for those behind it.
///
/// A client that shuts its sending side counts as disconnected.
#[test]
fn a_disconnected_waiter_moves_up_those_behind_it() {
    let (origin, gateway) = start_limited("1r/s", "burst = 5");
    let mut clients = line_up(&gateway, &origin, 6);
    assert_eq!(gateway.fetch("/full?key=a").status, 429);
    clients[4].shut_sending();
    drop(clients.remove(2));
    gateway.wait_for_depth(3);
    for nth in [4, 5] {
        clients.push(gateway.ask("/late?key=a"));
        gateway.wait_for_depth(nth);
    }
    assert_eq!(gateway.fetch("/full?key=a").status, 429);
    origin.wait_for(6);
    assert_eq!(targets(&origin), ["/0", "/1", "/3", "/5", "/late", "/late"]);
    check_pace(&origin.moments("key=a"), Duration::from_secs(1))
        .expect("no gap where a waiter disconnected");
    eventually("the disconnected clients are counted", || {
        gateway.zone_requests("z", "cancelled") == 2
    });
    gateway.wait_for_depth(0);
}

#[test]
fn all_who_come_through_a_unix_socket_are_one_client() {
    let origin = Origin::start();
    let file = one_zone(&origin, "1r/h", "burst = 0").replace("$arg_key", "$remote_addr");
    let (_gateway, socket) = Gateway::start_with_unix_socket(&file);
    let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let statuses = [(); 2].map(|()| over_unix(&socket, request)[9..12].to_owned());
    assert_eq!(statuses, ["200", "429"]);
}
