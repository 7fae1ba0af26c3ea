//! Shared parts of the tests: the program, origins that record requests, and raw clients.

mod client;
pub mod client_certificates;
pub mod collapse;
mod counting;
mod counts;
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
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, bind, connect, socket_with};

pub use client::{Client, all_pass, exchange, fetch, fetch_with, over_unix, statuses};
pub use counting::Counting;
pub use crowd::Crowd;
pub use file::{
    file, one_h2c_origin, one_origin, one_zone, servers, start_drip, start_limited, urls, zone,
};
pub use frame_origin::FrameOrigin;
pub use gateway::{Gateway, Site, drip, free_address};
pub use holding::HoldingOrigin;
pub use machine::{Part, alone, half_alone, quarter_alone};
pub use metrics::Metrics;
pub use origin::{Arrival, Exchange, Origin};
pub use raw::{DeafOrigin, End, Message, Raw, RawOrigin};
pub use watch::{BUSY, Done, all_pauses, best_of_three, longest_pause, note_pauses, watching};
pub use wire::Answer;

/// Fails unless a text contains each of these parts.
macro_rules! assert_contains {
    ($text:expr, $($part:expr),+ $(,)?) => {{
        let text: &str = &*$text;
        $(
            let part: &str = &*$part;
            assert!(text.contains(part), "no {part:?} in: {text}");
        )+
    }};
}
pub(crate) use assert_contains;

pub const MS: Duration = Duration::from_millis(1);

/// Maximum wait for an event that should happen at once. Only a failing test waits this long.
pub const SOON: Duration = Duration::from_secs(5);

/// Delay of an observation that a machine busy with other tests may cause.
pub const MARGIN: Duration = Duration::from_millis(60);

/// Returns the current instant of the tests' clock, which is independent of the program's.
#[allow(clippy::disallowed_methods)]
pub fn now() -> Instant {
    Instant::now()
}

/// Listens at an address, with a backlog for a crowd of simultaneous connections.
///
/// A connection that the kernel turns away is retried a second later.
pub fn listen(address: &str) -> TcpListener {
    let listener = TcpListener::bind(address).expect("a port");
    rustix::net::listen(&listener, 4096).expect("a longer backlog");
    listener
}

/// Connects from this local address, with a receive buffer of this many bytes.
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

/// Maximum wait for a response or an event. Only a failing test waits this long.
///
/// A busy machine may stall for seconds.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `is_so`. `what` names the condition in the failure.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = now() + PATIENCE;
    while !is_so() {
        let is_late = now() >= deadline;
        assert!(!is_late, "waited {PATIENCE:?} in vain for this: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the complete lines of a log. A log that does not exist yet has none.
///
/// While another process writes, the last line may be partly written.
pub fn whole_lines(log: impl AsRef<Path>) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    let ended = bytes.iter().rposition(|byte| *byte == b'\n');
    let whole = bytes.get(..ended.map_or(0, |at| at + 1));
    String::from_utf8(whole.unwrap_or_default().to_vec()).expect("lines are text")
}

/// Returns all files in a folder and its subfolders.
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

/// Creates a named pipe.
pub fn make_fifo(path: impl AsRef<Path>) {
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, path.as_ref(), FileType::Fifo, mode, 0).expect("a named pipe");
}

/// Closes a connection or a listener before this returns.
///
/// Dropping the socket is not enough. A process that another thread starts meanwhile inherits the
/// socket until it runs its program, so a client can still connect.
pub fn close(socket: impl AsFd) {
    rustix::net::shutdown(socket, Shutdown::Both).expect("an open socket");
}

/// Runs cases on their own threads, so that they wait at the same time. Returns their results.
pub fn side_by_side<T: Send, R: Send>(
    cases: impl IntoIterator<Item = T>,
    run: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let run = &run;
    std::thread::scope(|scope| {
        let cases = cases.into_iter();
        let threads: Vec<_> = cases.map(|case| scope.spawn(move || run(case))).collect();
        let threads = threads.into_iter();
        let results = threads.map(|it| it.join().unwrap_or_else(|panic| resume_unwind(panic)));
        results.collect()
    })
}

/// Returns the gaps between successive instants.
pub fn gaps(moments: &[Instant]) -> Vec<Duration> {
    moments.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Fails unless each gap is as `expected`, within the precision of the machine.
pub fn check_pace(moments: &[Instant], expected: Duration) -> Result<(), String> {
    let ends = moments.first().zip(moments.last());
    // One gap may contain several pauses.
    let pauses = ends.map_or(Duration::ZERO, |(first, last)| all_pauses(*first, *last));
    check_gaps(moments, expected, MARGIN + pauses)
}

/// Fails unless each gap is as `expected`, plus or minus `slack`.
pub fn check_gaps(moments: &[Instant], expected: Duration, slack: Duration) -> Result<(), String> {
    let gaps = gaps(moments);
    match gaps.iter().find(|gap| gap.abs_diff(expected) > slack) {
        Some(odd) => Err(format!(
            "a gap of {odd:?}, not {expected:?} within {slack:?}, among {gaps:?}"
        )),
        None => Ok(()),
    }
}

/// Returns bytes in which every swap, loss or repetition is visible.
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
