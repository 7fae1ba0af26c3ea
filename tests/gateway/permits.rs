//! Tests of `max_in_flight` and `backup` of single servers.

use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

use crate::support::{
    Client, Counting, Gateway, MS, Origin, all_pass, eventually, free_address, side_by_side,
};

/// Time after which a request that does not wait has long been at its server.
const LONG_ENOUGH: Duration = Duration::from_millis(200);

/// Returns a file with servers, each given by an address and further fields.
fn file(servers: &[(SocketAddr, &str)], more: &str) -> String {
    let server =
        |(address, more): &(SocketAddr, &str)| format!("{{ url = \"http://{address}\"{more} }}");
    let servers: Vec<String> = servers.iter().map(server).collect();
    format!(
        "[origins.app]\nservers = [{}]\n{more}\n[[routes]]\npath = \"/\"\norigin = \"app\"\n",
        servers.join(", ")
    )
}

/// Starts an origin that takes 10 ms for each request.
fn counting() -> Counting {
    Counting::taking(|_| 10 * MS)
}

/// Starts an origin that holds requests. Each call of the function releases one.
fn held() -> (Origin, impl Fn()) {
    let (let_go, wait) = mpsc::channel();
    let wait = Mutex::new(wait);
    let origin = Origin::answering(move |exchange| {
        let wait = wait.lock().expect("no panic");
        wait.recv().map_err(io::Error::other)?;
        drop(wait);
        exchange.reply(b"ok")
    });
    (origin, move || {
        let_go.send(()).expect("the origin is there");
    })
}

/// Sends this many requests from each of `clients` connections at once. All must get 200.
fn flood(gateway: &Gateway, clients: usize, requests: usize) {
    side_by_side(0..clients, |_| {
        let mut client = gateway.connect();
        for _ in 0..requests {
            assert_eq!(client.fetch("/").status, 200);
        }
    });
}

#[test]
fn no_server_has_more_requests_than_it_may_and_the_rest_wait_at_the_gate() {
    let servers = [counting(), counting()];
    let fields = [", max_in_flight = 3", ", max_in_flight = 2"];
    let of = |nth: usize| (servers[nth].origin.address, fields[nth]);
    let gateway = Gateway::start(&file(&[of(0), of(1)], "queue_timeout = \"1m\""));
    flood(&gateway, 30, 10);
    let arrived: usize = servers.iter().map(|it| it.origin.arrivals().len()).sum();
    assert_eq!(arrived, 300);
    assert_eq!(servers.map(|it| it.most()), [3, 2]);
}

#[test]
fn a_request_waits_for_the_first_server_that_is_free() {
    let ((first, free_first), (second, free_second)) = (held(), held());
    let one = ", max_in_flight = 1";
    let gateway = Gateway::start(&file(&[(first.address, one), (second.address, one)], ""));
    let mut clients: Vec<Client> = (0..4).map(|_| gateway.ask("/")).collect();
    first.wait_for(1);
    second.wait_for(1);
    thread::sleep(LONG_ENOUGH);
    assert_eq!((first.arrivals().len(), second.arrivals().len()), (1, 1));
    free_second();
    second.wait_for(2);
    free_second();
    second.wait_for(3);
    assert_eq!(first.arrivals().len(), 1);
    free_first();
    free_second();
    all_pass(&mut clients);
}

#[test]
fn a_backup_gets_what_the_others_cannot_take() {
    let ((first, free_first), (backup, free_backup)) = (held(), held());
    let servers = [
        (first.address, ", max_in_flight = 1"),
        (backup.address, ", backup = true"),
    ];
    let gateway = Gateway::start(&file(&servers, ""));
    for nth in 1..=3 {
        free_first();
        assert_eq!(gateway.fetch("/").status, 200);
        assert_eq!(first.arrivals().len(), nth);
    }
    let ask = |server: &Origin, count| {
        let client = gateway.ask("/");
        server.wait_for(count);
        client
    };
    let mut clients = [ask(&first, 4), ask(&backup, 1), ask(&backup, 2)];
    free_first();
    free_backup();
    free_backup();
    all_pass(&mut clients);
    assert_eq!((first.arrivals().len(), backup.arrivals().len()), (4, 2));
}

/// If each server has a limit, the sum over those that are not backups bounds the gate.
#[test]
fn a_backup_with_a_limit_takes_nothing_while_the_others_are_in() {
    let ((first, free_first), (backup, _)) = (held(), held());
    let servers = [
        (first.address, ", max_in_flight = 1"),
        (backup.address, ", max_in_flight = 1, backup = true"),
    ];
    let gateway = Gateway::start(&file(&servers, ""));
    let mut clients = [(); 2].map(|()| gateway.ask("/"));
    first.wait_for(1);
    thread::sleep(LONG_ENOUGH);
    assert_eq!((first.arrivals().len(), backup.arrivals().len()), (1, 0));
    free_first();
    first.wait_for(2);
    free_first();
    all_pass(&mut clients);
    assert_eq!((first.arrivals().len(), backup.arrivals().len()), (2, 0));
}

#[test]
fn a_backup_stands_in_for_a_server_that_is_out() {
    let (address, backup) = (free_address(), Origin::start());
    let servers = [(address, ""), (backup.address, ", backup = true")];
    let more = "max_fails = 1\nfail_timeout = \"300ms\"";
    let gateway = Gateway::start(&file(&servers, more));
    gateway.check_each(10, "/", 200);
    assert_eq!(backup.arrivals().len(), 10);
    let back = Origin::at(&address.to_string(), |exchange| exchange.reply(b"ok"));
    eventually("the first server gets requests again", || {
        assert_eq!(gateway.fetch("/").status, 200);
        !back.arrivals().is_empty()
    });
    let before = backup.arrivals().len();
    gateway.check_each(10, "/", 200);
    assert_eq!(backup.arrivals().len(), before);
}

#[test]
fn while_a_server_is_out_the_permits_of_the_others_are_kept() {
    let (server, missing) = (counting(), free_address());
    let two = ", max_in_flight = 2";
    let more = "max_fails = 3\nfail_timeout = \"200ms\"\nqueue_timeout = \"1m\"";
    let gateway = Gateway::start(&file(&[(server.origin.address, two), (missing, two)], more));
    flood(&gateway, 20, 10);
    assert_eq!(server.most(), 2);
    assert_eq!(server.origin.arrivals().len(), 200);
}

#[test]
fn a_reload_that_changes_a_weight_keeps_what_is_at_the_server() {
    let ((first, free_first), (second, free_second)) = (held(), held());
    let with = |weight: &str| {
        let first = (first.address, weight);
        file(&[first, (second.address, ", weight = 2")], "")
    };
    let gateway = Gateway::start(&with(""));
    let arrived = || (first.arrivals().len(), second.arrivals().len());
    let ask = |nth| {
        let client = gateway.ask("/");
        eventually("it arrives", || arrived().0 + arrived().1 == nth);
        client
    };
    let mut clients: Vec<Client> = (1..=3).map(ask).collect();
    assert_eq!(arrived(), (1, 2));
    gateway.site.write(&with(", weight = 3"));
    gateway.wait_for_line("weight 1 -> 3");
    // One request of weight 3 and two of weight 2 are there: the next two go to the first server.
    clients.extend((4..=5).map(ask));
    assert_eq!(arrived(), (3, 2));
    for _ in 0..3 {
        free_first();
        free_second();
    }
    all_pass(&mut clients);
}
