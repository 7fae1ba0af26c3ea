//! Where connections are accepted.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use crate::support::{Client, Gateway, Origin, one_zone};

#[test]
fn one_connection_slot_serves_all_listeners() {
    let origin = Origin::start();
    let file = one_zone(&origin, "1000r/s", "burst = 9");
    let (gateway, socket) =
        Gateway::start_with_unix_socket(&format!("max_connections = 1\nworkers = 2\n{file}"));
    for _ in 0..3 {
        let mut unix = UnixStream::connect(&socket).expect("a connection");
        unix.write_all(b"GET / HTTP/1.0\r\n\r\n").expect("it reads");
        let mut answer = String::new();
        unix.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.0 200 "), "{answer}");
        assert_eq!(Client::ask(gateway.address(), "/").answer().status, 200);
    }
}
