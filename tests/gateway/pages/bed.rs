//! An origin that fails in every way.

use std::thread;

use crate::support::{Exchange, Origin, SOON};

/// Starts an origin that answers with the status in the target, as the rest of the target says.
pub fn failing() -> Origin {
    Origin::answering(|exchange: &mut Exchange| {
        let target = exchange.target().to_owned();
        let mut parts = target.trim_start_matches('/').split('/');
        let status = parts.next().unwrap_or_default();
        let begin = format!("HTTP/1.1 {status} Own\r\nX-Own: yes\r\nRetry-After: 7\r\n");
        match parts.next() {
            _ if exchange.head.first_line.starts_with("HEAD") => {
                exchange.send(format!("{begin}Content-Length: 3\r\n\r\n"))
            }
            Some("chunked") => exchange.send(format!(
                "{begin}Transfer-Encoding: chunked\r\n\r\n3\r\nown\r\n0\r\n\r\n"
            )),
            Some("slow") => {
                exchange.send(format!("{begin}Content-Length: 6\r\n\r\nown"))?;
                thread::sleep(2 * SOON);
                exchange.send(b"own")
            }
            Some("long") => {
                exchange.send(format!("{begin}Content-Length: 1000000\r\n\r\n"))?;
                exchange.send(vec![b'x'; 1_000_000])
            }
            _ => exchange.send(format!("{begin}Content-Length: 3\r\n\r\nown")),
        }
    })
}
