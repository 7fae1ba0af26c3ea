//! Sizes of the futures and records that are kept while a request waits.

use std::rc::Rc;

use gateway::gate::Waiting;
use gateway::http::downstream::{self, Peer, StopSignal, Timeouts};
use gateway::http::exchange::Worker;
use gateway::zone::{Joining, ZoneAdmission};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::limits::{Figures, Group};
use crate::support::figures::float;

pub fn measure(figures: &mut Figures) {
    let sizes = [
        (
            "connection_http1",
            size_of_made(downstream::serve::<TcpStream, Worker>),
        ),
        (
            "connection_tls",
            size_of_made(downstream::serve::<TlsStream<TcpStream>, Worker>),
        ),
        ("joining", size_of::<Joining<'static>>()),
        ("turn", size_of::<ZoneAdmission<'static>>()),
        ("gate_waiting", size_of::<Waiting>()),
    ];
    for (name, size) in sizes {
        figures.insert((Group::Sizes, name.to_owned()), float(size as u64));
    }
}

/// Function that makes the future of a connection.
type Serve<S, F> = fn(S, Peer, Rc<Timeouts>, &Rc<StopSignal>, Rc<Worker>) -> F;

/// Returns the size of the future of a connection.
fn size_of_made<S, F>(_: Serve<S, F>) -> usize {
    size_of::<F>()
}
