//! Tests of a server that starts after an outage, and of the requests that waited for it.

use std::io::Write;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Instant;

use tempfile::TempDir;

use super::{MS, ask_all, echo_at, held, origin_at};
use crate::support::{
    Exchange, Gateway, Origin, best_of_three, check_gaps, free_address, noise, statuses,
};

#[test]
fn keys_take_turns_after_an_outage_and_who_had_left_goes_first() {
    best_of_three(|_| {
        let address = free_address();
        let fields = "rate = \"20r/s\"\nshare = \"key\"\nqueue_timeout = \"60s\"\nhold = \"30s\"";
        let gateway = Gateway::start(&held(&[address], fields, ""));
        // The first request passes, is refused, and waits again.
        let keys = ["x", "a", "a", "a", "b", "b", "x"];
        let targets: Vec<String> = keys.iter().map(|key| format!("/?key={key}")).collect();
        let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
        let mut clients = ask_all(&gateway, &targets);
        let origin = origin_at(address);
        assert_eq!(statuses(&mut clients), [200; 7]);
        let arrivals = origin.arrivals();
        let order: String = arrivals
            .iter()
            .filter_map(|it| it.target.chars().last())
            .collect();
        if order != "xabxaba" {
            return Err(format!("they left as {order}"));
        }
        let moments: Vec<Instant> = arrivals.iter().map(|it| it.at).collect();
        check_gaps(&moments, 50 * MS, 10 * MS)
    });
}

#[test]
fn a_unix_socket_that_is_not_there_yet_is_an_outage_too() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("app.sock");
    let text = held(&[free_address()], "hold = \"30s\"", "");
    let before = text.lines().find(|line| line.starts_with("servers"));
    let server = format!("servers = [\"unix:{}\"]", path.display());
    let text = text.replace(before.expect("servers"), &server);
    let gateway = Gateway::start(&text);
    let mut clients = ask_all(&gateway, &["/1", "/2"]);
    let _origin = Origin::at_unix(&path, |exchange: &mut Exchange| exchange.reply(b"ok"));
    assert_eq!(statuses(&mut clients), [200; 2]);
}

#[test]
fn a_body_is_whole_after_an_outage_and_is_not_read_before() {
    let address = free_address();
    let gateway = Gateway::start(&held(&[address], "hold = \"30s\"", ""));
    // Far more than the buffers of the kernel hold.
    let body: Vec<u8> = noise(20_000_000);
    let sent = [AtomicUsize::new(0), AtomicUsize::new(0)];
    thread::scope(|scope| {
        let answers = sent.each_ref().map(|sent| {
            let mut client = gateway.connect();
            let (mut sender, body) = (client.sender(), &body);
            let length = body.len();
            client.send(format!(
                "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n"
            ));
            scope.spawn(move || {
                for piece in body.chunks(10_000) {
                    sender.write_all(piece).expect("it is all taken");
                    sent.fetch_add(piece.len(), SeqCst);
                }
            });
            scope.spawn(move || client.answer())
        });
        gateway.wait_at_gate(2);
        thread::sleep(300 * MS);
        for sent in &sent {
            let sent = sent.load(SeqCst);
            assert!(sent < body.len(), "{sent} bytes were taken");
        }
        let _origin = echo_at(address);
        for answer in answers {
            let answer = answer.join().expect("no panic");
            assert_eq!(answer.status, 200);
            assert!(answer.body == body, "{} bytes came back", answer.body.len());
        }
    });
}

#[test]
fn a_post_on_a_kept_connection_that_was_closed_waits_too() {
    let address = free_address();
    let gateway = Gateway::start(&held(&[address], "hold = \"30s\"", ""));
    let origin = Origin::at(&address.to_string(), |exchange: &mut Exchange| {
        exchange.reply(b"ok")?;
        Exchange::close()
    });
    assert_eq!(gateway.fetch("/last").status, 200);
    drop(origin);
    let mut client = gateway.connect();
    client.send(b"POST /post HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nhello");
    gateway.wait_at_gate(1);
    let origin = echo_at(address);
    let answer = client.answer();
    assert_eq!((answer.status, answer.text()), (200, "hello".to_owned()));
    assert_eq!(origin.arrivals().len(), 1);
}
