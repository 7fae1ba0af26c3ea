//! What the tests share: the program, an origin that stamps what arrives, clients that see the bytes.

mod client;
pub mod client_certificates;
pub mod collapse;
mod crowd;
mod file;
mod frame_origin;
pub mod frames;
mod gateway;
pub mod hold;
mod holding;
pub mod http2;
pub mod launch;
pub mod live;
mod machine;
mod metrics;
pub mod night;
pub mod operator;
mod origin;
pub mod others;
pub mod page;
pub mod process;
pub mod proxy_protocol;
mod raw;
pub mod rng;
pub mod scripted;
pub mod secure;
pub mod starved;
pub mod stream_origin;
pub mod visitor;
mod watch;
pub mod wire;
pub mod workers;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, bind, connect, socket_with};

pub use client::{Client, all_pass, exchange, fetch, fetch_with, over_unix, statuses};
pub use crowd::Crowd;
pub use file::{file, one_h2c_origin, one_origin, one_zone, servers, start_drip, urls, zone};
pub use frame_origin::FrameOrigin;
pub use gateway::{Gateway, Site, drip, free_address};
pub use holding::HoldingOrigin;
pub use machine::{Part, alone, half_alone, quarter_alone};
pub use metrics::Metrics;
pub use origin::{Arrival, Exchange, Origin};
pub use raw::{DeafOrigin, End, Message, Raw, RawOrigin};
pub use watch::{BUSY, Done, all_pauses, best_of_three, longest_pause, note_pauses, watching};
pub use wire::Answer;

pub const MS: Duration = Duration::from_millis(1);

/// How long to wait for what should happen at once. Only a failing test waits this long.
pub const SOON: Duration = Duration::from_secs(5);

/// How late something may be seen on a machine that is busy with the other tests.
pub const MARGIN: Duration = Duration::from_millis(60);

/// The tests measure the program from outside, on a clock of their own.
#[allow(clippy::disallowed_methods)]
pub fn now() -> Instant {
    Instant::now()
}

/// Listens at an address, with room for a crowd that comes at once: one that the kernel turns away comes back a second
/// later.
pub fn listen(address: &str) -> TcpListener {
    let listener = TcpListener::bind(address).expect("a port");
    rustix::net::listen(&listener, 4096).expect("a longer backlog");
    listener
}

/// A connection from this local address, with a receive buffer of this many bytes.
pub fn connect_from(
    from: Ipv4Addr,
    to: SocketAddr,
    buffer: Option<usize>,
) -> io::Result<TcpStream> {
    let (family, flags) = (AddressFamily::INET, SocketFlags::CLOEXEC);
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    if let Some(size) = buffer {
        set_socket_recv_buffer_size(&socket, size)?;
    }
    bind(&socket, &SocketAddr::from((from, 0)))?;
    connect(&socket, &to)?;
    Ok(TcpStream::from(socket))
}

/// How long to wait for an answer or an event. Only a failing test waits this long: a busy machine may stand still for
/// seconds.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `is_so`; `what` names it in the failure.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = now() + PATIENCE;
    while !is_so() {
        assert!(
            now() < deadline,
            "waited {PATIENCE:?} in vain for this: {what}"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The lines of a log that have been written to their end: who reads while another writes may see a
/// part of the last one. A log that does not exist yet has none.
pub fn whole_lines(log: impl AsRef<Path>) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    let ended = bytes.iter().rposition(|byte| *byte == b'\n');
    let whole = bytes.get(..ended.map_or(0, |at| at + 1));
    String::from_utf8(whole.unwrap_or_default().to_vec()).expect("lines are text")
}

/// All files in a folder and in those below it.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.push(path);
        }
    }
    files
}

/// Makes a named pipe.
pub fn make_fifo(path: impl AsRef<Path>) {
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, path.as_ref(), FileType::Fifo, mode, 0).expect("a named pipe");
}

/// Ends a connection, or stops listening, before this returns. Dropping the socket is not enough: a process that another
/// thread starts meanwhile has it too until it runs its program, so that a client still connects there.
pub fn close(socket: impl AsFd) {
    rustix::net::shutdown(socket, Shutdown::Both).expect("an open socket");
}

/// The gaps between moments that follow each other.
pub fn gaps(moments: &[Instant]) -> Vec<Duration> {
    moments.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Fails unless each gap is as `wanted`, within the precision of the machine.
pub fn check_pace(moments: &[Instant], wanted: Duration) -> Result<(), String> {
    let ends = moments.first().zip(moments.last());
    // Several may fall into one gap.
    let pauses = ends.map_or(Duration::ZERO, |(first, last)| all_pauses(*first, *last));
    check_gaps(moments, wanted, MARGIN + pauses)
}

/// Fails unless each gap is as `wanted`, give or take `slack`.
pub fn check_gaps(moments: &[Instant], wanted: Duration, slack: Duration) -> Result<(), String> {
    let gaps = gaps(moments);
    match gaps.iter().find(|gap| gap.abs_diff(wanted) > slack) {
        Some(odd) => Err(format!(
            "a gap of {odd:?}, not {wanted:?} within {slack:?}, among {gaps:?}"
        )),
        None => Ok(()),
    }
}

/// Bytes in which every swap, loss or repetition is visible.
pub fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_u32;
    let next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[0]
    };
    std::iter::repeat_with(next).take(length).collect()
}
