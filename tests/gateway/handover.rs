//! Tests of listening sockets held by a service manager, so a restart refuses no connection.

use std::fs;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::launch::{handed, start_on};
use crate::support::{
    Gateway, Origin, SOON, Site, assert_contains, drip, fetch, free_address, now, one_zone,
    over_unix,
};

#[test]
fn a_restart_on_a_socket_that_is_held_refuses_nobody_and_loses_nothing() {
    let origin = Origin::start();
    let address = free_address();
    let socket = TcpListener::bind(address).expect("a socket");
    let file = one_zone(&origin, "1000r/s", "burst = 200");
    let start = || {
        let mut site = Site::new();
        site.address = address;
        site.write(&file);
        let gateway = start_on(site, socket.try_clone().expect("a second handle"));
        gateway.wait_until_ready();
        gateway
    };
    let mut gateway = start();
    let over = AtomicBool::new(false);
    let answered: usize = thread::scope(|scope| {
        let one = || {
            let mut answered = 0;
            while !over.load(Ordering::SeqCst) {
                // Without a key the request never waits, so the stop is as quick as possible.
                assert_eq!(fetch(address, "/").status, 200);
                answered += 1;
            }
            answered
        };
        let crowd = [(); 4].map(|()| scope.spawn(one));
        for _restart in 0..6 {
            origin.wait_for(origin.arrivals().len() + 40);
            gateway.signal(Signal::TERM);
            assert_eq!(gateway.wait(Duration::from_secs(10)).code(), Some(0));
            // For a moment no process serves, and new connections wait.
            gateway = start();
        }
        origin.wait_for(origin.arrivals().len() + 20);
        over.store(true, Ordering::SeqCst);
        let ends = crowd.map(|one| one.join().expect("all are answered"));
        ends.iter().sum()
    });
    assert_eq!(origin.arrivals().len(), answered);
}

#[test]
fn a_unix_socket_can_be_handed_down_and_its_file_stays() {
    let origin = Origin::start();
    let site = Site::new();
    let path = site.folder().join("drip.sock");
    let socket = UnixListener::bind(&path).expect("a socket");
    let text = site.text(&one_zone(&origin, "50r/s", "burst = 9"));
    let text = text.replace(&site.address.to_string(), "unix:drip.sock");
    fs::write(site.file(), text).expect("a file");
    let mut gateway = start_on(site, socket.try_clone().expect("a second handle"));
    gateway.wait_until_ready();
    let answer = over_unix(&path, "GET / HTTP/1.0\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.0 200 "), "{answer}");
    gateway.signal(Signal::TERM);
    assert_eq!(gateway.wait(Duration::from_secs(5)).code(), Some(0));
    assert!(path.exists());
}

#[test]
fn a_socket_that_the_file_does_not_name_is_an_error_that_says_so() {
    let origin = Origin::start();
    let site = Site::new();
    site.write(&one_zone(&origin, "1r/s", "burst = 1"));
    let other = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let address = other.local_addr().expect("an address");
    let ended = handed(&site, other).output().expect("the program runs");
    assert_eq!(ended.status.code(), Some(1));
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    let expected = format!("LISTEN_FDS passes a socket at {address}; add it to server.listen");
    assert_contains!(said, &expected);
}

#[test]
fn a_number_of_sockets_beyond_the_open_ones_is_refused_at_once() {
    let origin = Origin::start();
    let site = Site::new();
    site.write(&one_zone(&origin, "1r/s", "burst = 1"));
    let since = now();
    let mut run = drip();
    run.env("LISTEN_FDS", "1000000000")
        .arg("-c")
        .arg(site.file());
    let ended = run.output().expect("the program runs");
    assert!(since.elapsed() < SOON, "{:?}", since.elapsed());
    assert_eq!(ended.status.code(), Some(1));
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    let expected = "LISTEN_FDS is 1000000000, and fewer descriptors are open";
    assert_contains!(said, expected);

    // The sockets are for another process.
    run.env("LISTEN_PID", "1");
    Gateway::run_as(site, run).wait_until_ready();
}
