//! Tests of `drip health`, for health checks.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use rustix::process::Signal;

use super::output;
use crate::support::{Client, drip, start_limited};

/// Returns the output of `drip health`, and whether the gateway is healthy.
fn asked(arguments: &[&str]) -> (bool, String) {
    let asked = output(drip().arg("health").args(arguments));
    let healthy = asked.status.success();
    assert!(healthy || asked.status.code() == Some(1), "{asked:?}");
    let said = [asked.stdout, asked.stderr].concat();
    (healthy, String::from_utf8(said).expect("text"))
}

fn ready() -> (bool, String) {
    (true, "ready\n".to_owned())
}

#[test]
fn health_finds_the_admin_port_and_reports_readiness() {
    let (_origin, gateway) = start_limited("1r/m", "burst = 9");
    let file = gateway.site.file();
    let admin = gateway.site.admin.to_string();
    let by_file = || asked(&["-c", file.to_str().expect("text")]);
    let by_address = || asked(&[&admin]);
    assert_eq!([by_file(), by_address()], [ready(), ready()]);

    // A running gateway keeps the previous settings.
    let text = fs::read_to_string(&file).expect("a file");
    fs::write(&file, text.replace("1r/m", "1")).expect("a file");
    assert_eq!([by_file(), by_address()], [ready(), ready()]);

    fs::write(&file, text.replace(&format!("\"{admin}\""), "\"off\"")).expect("a file");
    let (healthy, said) = by_file();
    let is_off = !healthy && said.contains("server.admin is \"off\"");
    assert!(is_off, "{said}");

    // Two requests wait for a minute each, and meanwhile the admin port answers.
    let address = gateway.address();
    let _waiting: Vec<_> = (0..3).map(|_| Client::ask(address, "/?key=a")).collect();
    gateway.wait_for_depth(2);
    gateway.signal(Signal::TERM);
    gateway.wait_for_line("stopping");
    let (healthy, said) = by_address();
    assert!(!healthy && said.starts_with("not ready\n"), "{said}");

    let (healthy, said) = asked(&["127.0.0.1:1"]);
    let is_refused = !healthy && said.starts_with("drip: 127.0.0.1:1: ");
    assert!(is_refused, "{said}");
}

#[test]
fn a_foreign_server_is_not_healthy_and_a_silent_one_is_reported_as_silent() {
    // It answers 200 to everything.
    let other = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = other.local_addr().expect("an address").to_string();
    let answering = thread::spawn(move || {
        let (mut client, _) = other.accept().expect("a connection");
        let _asked = client.read(&mut [0; 1024]).expect("a request");
        client.write_all(b"HTTP/1.0 200 OK\r\n\r\nok\n")
    });
    let (healthy, said) = asked(&[&address]);
    answering.join().expect("no panic").expect("an answer");
    let end = ": this is not the admin port of a gateway\n";
    assert!(!healthy && said.ends_with(end), "{said}");

    // The kernel accepts the connection, and no program does.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("an address").to_string();
    let (healthy, said) = asked(&[&address]);
    let is_silent = !healthy && said.ends_with(": no answer within 5 s\n");
    assert!(is_silent, "{said}");
}
