//! Measures the cost of a request over TLS 1.3, with HTTP/1.1 and with HTTP/2.

use std::io;

use crate::Bench;
use crate::arguments::Row;
use crate::cost::{CLIENTS, rounds};
use crate::peers::{Kind, PASS, Setup};
use crate::report::{Report, step};
use crate::support::client::Transport;
use crate::support::crowd::{Crowd, Keys, Protocol};
use crate::table::{self, Measured};

/// The picture's panel for TLS.
const OVER_TLS: &str = "over TLS: µs a request";
const CONNECTIONS: usize = 16;
const STREAMS: usize = 8;

/// Connections are kept, so the handshakes end before the measurement.
pub fn requests(bench: &Bench, report: &mut Report) -> io::Result<()> {
    let http2 = format!("HTTP/2, {CONNECTIONS} connections of {STREAMS} streams");
    let rows = [
        (
            Row::Tls,
            format!("HTTP/1.1, {CLIENTS} connections"),
            "CPU proxied over TLS, HTTP/1.1".to_owned(),
            Protocol::Http1(Transport::Tls),
            CLIENTS,
        ),
        (
            Row::Http2,
            http2.clone(),
            format!("CPU proxied over TLS, {http2}"),
            Protocol::Http2 { streams: STREAMS },
            CONNECTIONS * STREAMS,
        ),
    ];
    let rows = rows.into_iter().filter(|(row, ..)| bench.wants(*row));
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return Ok(());
    }
    step("what a request costs over TLS");
    let peers = bench.start(&Setup::TLS, Kind::speaks_tls, report)?;
    let measured = rows.into_iter().map(|(_, name, title, protocol, clients)| {
        let rounds = rounds(&peers, bench.effort, report, |peer| Crowd {
            protocol,
            ..Crowd::new(peer.address, PASS, Keys::One(1), clients)
        });
        Measured::new(&name, &title, rounds)
    });
    let measured: Vec<_> = measured.collect();
    table::write(report, "one worker, one key, TLS 1.3", OVER_TLS, &measured);
    Ok(())
}
