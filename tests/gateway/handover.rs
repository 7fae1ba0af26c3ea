//! Listening sockets held by a service manager, so that a restart refuses no connection.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::launch::{handed, start_on};
use crate::support::{
    Client, Gateway, Origin, SOON, Site, drip, eventually, fetch, free_address, now, one_zone,
};

/// A place for a gateway that listens at `address`.
fn site_at(address: SocketAddr, rest: &str) -> Site {
    let site = Site::new();
    let text = format!(
        "[server]\nlisten = [\"{address}\"]\nadmin = \"{}\"\n{rest}",
        site.admin
    );
    fs::write(site.file(), text).expect("a file");
    site
}

fn wait_until_ready(gateway: &Gateway) {
    eventually("the gateway is ready", || {
        gateway
            .admin("/readyz")
            .is_some_and(|answer| answer.status == 200)
    });
}

#[test]
fn a_restart_on_a_socket_that_is_held_refuses_nobody_and_loses_nothing() {
    let origin = Origin::start();
    let address = free_address();
    let socket = TcpListener::bind(address).expect("a socket");
    let file = one_zone(&origin, "1000r/s", "burst = 200");
    let start = || {
        let held = socket.try_clone().expect("a second handle");
        start_on(site_at(address, &file), held)
    };
    let mut gateway = start();
    wait_until_ready(&gateway);

    let over = Arc::new(AtomicBool::new(false));
    let crowd: Vec<_> = (0..4)
        .map(|_| {
            let over = Arc::clone(&over);
            thread::spawn(move || {
                let mut answered = 0;
                while !over.load(Ordering::SeqCst) {
                    // Without a key it never waits: the stop is as quick as possible.
                    assert_eq!(fetch(address, "/").status, 200);
                    answered += 1;
                }
                answered
            })
        })
        .collect();
    for _restart in 0..6 {
        origin.wait_for(origin.arrivals().len() + 40);
        gateway.signal(Signal::TERM);
        assert_eq!(gateway.wait(Duration::from_secs(10)).code(), Some(0));
        // For a moment no process serves, and new connections wait.
        gateway = start();
        wait_until_ready(&gateway);
    }
    origin.wait_for(origin.arrivals().len() + 20);
    over.store(true, Ordering::SeqCst);
    let answered: usize = crowd
        .into_iter()
        .map(|one| one.join().expect("all are answered"))
        .sum();
    assert_eq!(origin.arrivals().len(), answered);
}

#[test]
fn a_unix_socket_can_be_handed_down_and_its_file_stays() {
    let origin = Origin::start();
    let site = Site::new();
    let path = site.folder().join("drip.sock");
    let socket = UnixListener::bind(&path).expect("a socket");
    let text = format!(
        "[server]\nlisten = [\"unix:drip.sock\"]\nadmin = \"{}\"\n{}",
        site.admin,
        one_zone(&origin, "50r/s", "burst = 9")
    );
    fs::write(site.file(), text).expect("a file");
    let mut gateway = start_on(site, socket.try_clone().expect("a second handle"));
    wait_until_ready(&gateway);
    let mut client = std::os::unix::net::UnixStream::connect(&path).expect("a connection");
    std::io::Write::write_all(&mut client, b"GET / HTTP/1.0\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut client, &mut answer).expect("an answer");
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
    let expected = format!("LISTEN_FDS hands down a socket at {address}; add it to server.listen");
    assert!(said.contains(&expected), "{said}");
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
    assert!(said.contains(expected), "{said}");

    // It is not for this process.
    let mut run = drip();
    run.env("LISTEN_FDS", "1000000000").env("LISTEN_PID", "1");
    run.arg("-c").arg(site.file());
    wait_until_ready(&Gateway::run_as(site, run));
}

#[test]
fn those_who_wait_are_answered_by_the_old_process_while_the_new_one_serves() {
    let origin = Origin::start();
    let address = free_address();
    let socket = TcpListener::bind(address).expect("a socket");
    let site = || site_at(address, &one_zone(&origin, "2r/s", "burst = 9"));
    let mut old = start_on(site(), socket.try_clone().expect("a second handle"));
    wait_until_ready(&old);
    let mut waiting: Vec<_> = (0..5).map(|_| Client::ask(address, "/?key=a")).collect();
    old.wait_for_depth(4);
    old.signal(Signal::TERM);
    old.wait_for_line("stopping");

    let new = start_on(site(), socket);
    wait_until_ready(&new);
    let since = now();
    assert_eq!(fetch(address, "/?key=b").status, 200);
    assert!(
        since.elapsed() < Duration::from_secs(1),
        "{:?}",
        since.elapsed()
    );
    for client in &mut waiting {
        assert_eq!(client.answer().status, 200);
    }
    assert_eq!(old.wait(Duration::from_secs(5)).code(), Some(0));
}
