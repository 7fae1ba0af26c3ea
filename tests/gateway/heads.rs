//! Tests of response heads of origins that may be too large.

use crate::support::{Exchange, Gateway, Origin, one_origin};

/// Returns a response head of `size` bytes in lines of about `line` bytes, with an empty body.
fn head(size: usize, line: usize) -> Vec<u8> {
    let mut head = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n".to_vec();
    let end = b"\r\n";
    while head.len() + end.len() < size {
        let left = size - head.len() - end.len();
        // The rest must not be too short for a line.
        let next = if left < line + 8 { left } else { line };
        let value = next - b"x: \r\n".len();
        head.extend_from_slice(format!("x: {}\r\n", "v".repeat(value)).as_bytes());
    }
    head.extend_from_slice(end);
    assert_eq!(head.len(), size);
    head
}

/// Returns the client's status if the origin's response has this head.
fn status(limit: &str, head: Vec<u8>) -> u16 {
    let origin = Origin::answering(move |exchange| exchange.send(&head));
    let gateway = Gateway::start(&one_origin(origin.address, "", limit));
    let answer = gateway.fetch("/");
    if answer.status == 502 {
        gateway.wait_for_line("too large");
    } else {
        assert!(!answer.fields("x").is_empty());
    }
    answer.status
}

#[test]
fn a_head_of_max_header_size_is_served_and_one_above_it_is_a_502() {
    for (limit, size, line) in [
        ("", 64 << 10, 60 << 10),
        ("max_header_size = \"4KB\"", 4 << 10, 20),
        ("max_header_size = \"1MB\"", 1 << 20, 5000),
    ] {
        assert_eq!(status(limit, head(size, line)), 200, "{limit}");
        assert_eq!(status(limit, head(size + 1, line)), 502, "{limit}");
    }
}

#[test]
fn a_head_that_never_ends_is_a_502_before_it_takes_much_memory() {
    let origin = Origin::answering(|exchange| {
        exchange.send(b"HTTP/1.1 200 OK\r\n")?;
        loop {
            exchange.send(b"x: vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv\r\n")?;
        }
    });
    let gateway = Gateway::start(&one_origin(origin.address, "", ""));
    let before = gateway.peak_memory();
    assert_eq!(gateway.fetch("/").status, 502);
    assert!(gateway.peak_memory() - before < 4 << 20);
}

#[test]
fn early_hints_count_for_themselves() {
    let origin = Origin::answering(|exchange: &mut Exchange| {
        let hint = format!(
            "HTTP/1.1 103 Early Hints\r\nlink: {}\r\n\r\n",
            "l".repeat(900)
        );
        exchange.send(hint.repeat(3))?;
        exchange.reply(b"ok")
    });
    let gateway = Gateway::start(&one_origin(origin.address, "", "max_header_size = \"1KB\""));
    assert_eq!(gateway.fetch("/").text(), "ok");
}
