//! A perfect schedule without a proxy: shows the effect of processor, kernel and origin alone.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{TryRecvError, channel};
use std::thread::sleep;
use std::time::Duration;

use crate::Bench;
use crate::evenness::{KEY, record_arrivals};
use crate::support::origin::Arrival;
use crate::support::placement::Side;

/// Method of waiting until a request is due.
#[derive(Clone, Copy, Debug)]
pub enum Wait {
    /// Sleeps, like a proxy that has nothing else to do.
    Asleep,
    /// Keeps its processor busy, like a proxy under a flood, which delays everything else on it.
    Busy,
}

/// Sends a stream from a thread that waits until each request is due. Returns the arrivals.
pub fn arrivals(bench: &Bench, rate: u64, wait: Wait) -> io::Result<Vec<Arrival>> {
    let (stop, stopped) = channel::<()>();
    let mut to_origin = TcpStream::connect(bench.origin.address)?;
    to_origin.set_nodelay(true)?;
    let sender = std::thread::spawn(move || {
        Side::Proxy.pin_thread();
        pace(&mut to_origin, rate, wait, || {
            matches!(stopped.try_recv(), Err(TryRecvError::Empty))
        })
    });
    sleep(bench.effort.warm);
    let arrivals = record_arrivals(bench, rate);
    drop(stop);
    let sent = sender.join();
    sent.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    Ok(arrivals)
}

/// Sends requests at the rate while `go_on` returns true.
fn pace(origin: &mut TcpStream, rate: u64, wait: Wait, go_on: impl Fn() -> bool) -> io::Result<()> {
    let request = format!("GET / HTTP/1.1\r\nHost: bench\r\nX-Key: {KEY}\r\n\r\n");
    let mut answer = [0; 4096];
    let began = gateway::time::clock::now();
    for nth in 0_u64.. {
        let due = began + Duration::from_nanos(nth * 1_000_000_000 / rate);
        match wait {
            Wait::Asleep => {
                let until = gateway::time::clock::monotonic(due);
                rustix::thread::clock_nanosleep_absolute(
                    rustix::thread::ClockId::Monotonic,
                    &until,
                )?;
            }
            Wait::Busy => while gateway::time::clock::now() < due {},
        }
        if !go_on() {
            break;
        }
        origin.write_all(request.as_bytes())?;
        // One read gets all of it: the answer is far smaller than a segment.
        let _read = origin.read(&mut answer)?;
    }
    Ok(())
}
