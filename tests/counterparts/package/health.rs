//! `drip health`, for health checks.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use rustix::process::Signal;

use super::output;
use crate::support::{Client, Gateway, Origin, drip, one_zone};

#[test]
fn it_finds_the_admin_port_and_tells_whether_the_gateway_is_ready() {
    let origin = Origin::start();
    let rest = one_zone(&origin, "1r/m", "burst = 9");
    let gateway = Gateway::start(&rest);
    let file = gateway.site.file();
    let admin = gateway.site.admin.to_string();
    let by_file = || output(drip().args(["health", "-c"]).arg(&file));
    let by_address = || output(drip().args(["health", &admin]));
    for asked in [by_file(), by_address()] {
        assert!(asked.status.success(), "{asked:?}");
        assert_eq!(asked.stdout, b"ready\n");
    }

    // A running gateway goes on with the settings before.
    let text = fs::read_to_string(&file).expect("a file");
    fs::write(&file, text.replace("1r/m", "1")).expect("a file");
    for asked in [by_file(), by_address()] {
        assert!(asked.status.success(), "{asked:?}");
        assert_eq!(asked.stdout, b"ready\n");
    }

    fs::write(&file, text.replace(&format!("\"{admin}\""), "\"off\"")).expect("a file");
    let asked = by_file();
    assert_eq!(asked.status.code(), Some(1));
    let said = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert!(said.contains("server.admin is \"off\""), "{said}");

    // Two requests wait for a minute each, and meanwhile the admin port answers.
    let address = gateway.address();
    let _waiting: Vec<_> = (0..3).map(|_| Client::ask(address, "/?key=a")).collect();
    gateway.wait_for_depth(2);
    gateway.signal(Signal::TERM);
    gateway.wait_for_line("stopping");
    let asked = by_address();
    assert_eq!(asked.status.code(), Some(1));
    let said = String::from_utf8_lossy(&asked.stdout).into_owned();
    assert!(said.starts_with("not ready\n"), "{said}");

    let away = output(drip().args(["health", "127.0.0.1:1"]));
    assert_eq!(away.status.code(), Some(1));
    let said = String::from_utf8_lossy(&away.stderr).into_owned();
    assert!(said.starts_with("drip: 127.0.0.1:1: "), "{said}");
}

#[test]
fn a_server_that_is_no_gateway_is_not_healthy_and_a_silent_one_is_told_as_that() {
    // It answers 200 to everything.
    let other = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = other.local_addr().expect("an address").to_string();
    let answering = thread::spawn(move || {
        let (mut client, _) = other.accept().expect("a connection");
        let _asked = client.read(&mut [0; 1024]).expect("a request");
        client.write_all(b"HTTP/1.0 200 OK\r\n\r\nok\n")
    });
    let asked = output(drip().args(["health", &address]));
    answering.join().expect("no panic").expect("an answer");
    assert_eq!(asked.status.code(), Some(1));
    let said = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert!(
        said.ends_with(": this is not the admin port of a gateway\n"),
        "{said}"
    );

    // The kernel connects, and nobody accepts.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("an address");
    let asked = output(drip().args(["health", &address.to_string()]));
    assert_eq!(asked.status.code(), Some(1));
    let said = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert!(said.ends_with(": no answer within 5 s\n"), "{said}");
}
