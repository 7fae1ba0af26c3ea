//! The proxies that are measured beside each other, each before the same origin and with the same routes.

mod drip;
mod envoy;
mod haproxy;
mod nginx;

use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::support::place::{Side, free_address};
use crate::support::process::{Running, find};
use crate::support::usage;

/// Passes everything, by a bucket that is looked at.
pub const PASS: &str = "/pass";
/// Refuses everything but a key's first request.
pub const SHUT: &str = "/shut";
/// Passes everything, and remembers each key for long.
pub const KEYS: &str = "/keys";
/// Lets everybody wait, longer than anything here takes.
pub const WAIT: &str = "/wait";
/// Lets each key go on once in two seconds.
pub const SLOW: &str = "/slow";
/// Lets 4000 a second go on, and all others wait.
pub const DEEP: &str = "/deep";

/// Streams that should be even: so many requests a second, and their path.
pub const STREAMS: [(u64, &str); 4] = [
    (100, "/stream/100"),
    (500, "/stream/500"),
    (2000, "/stream/2000"),
    (5000, "/stream/5000"),
];

/// A program that may be here or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Drip,
    Nginx,
    Haproxy,
    Envoy,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Drip, Self::Nginx, Self::Haproxy, Self::Envoy];

    pub fn program(self) -> Option<PathBuf> {
        match self {
            Self::Drip => Some(env!("CARGO_BIN_EXE_drip").into()),
            Self::Nginx => find("nginx"),
            Self::Haproxy => find("haproxy"),
            Self::Envoy => match std::env::var_os("ENVOY") {
                Some(named) => Some(PathBuf::from(named)).filter(|file| file.is_file()),
                None => find("envoy"),
            },
        }
    }

    /// What to do where it is not here.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Drip => "cargo builds it",
            Self::Nginx => "install nginx",
            Self::Haproxy => "install haproxy",
            Self::Envoy => "set ENVOY to its binary",
        }
    }

    /// Whether it has a bucket for each key; envoy's `local_ratelimit` has one for all.
    pub fn counts_by_key(self) -> bool {
        self != Self::Envoy
    }

    /// Whether requests wait in it for their turn.
    pub fn lets_wait(self) -> bool {
        matches!(self, Self::Drip | Self::Nginx)
    }

    /// Its version, as it tells it itself.
    pub fn version(self) -> Option<String> {
        let asked = match self {
            Self::Drip | Self::Envoy => "--version",
            Self::Nginx | Self::Haproxy => "-v",
        };
        let told = Command::new(self.program()?).arg(asked).output().ok()?;
        let text = [told.stdout, told.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        let numbers = text.split(|letter: char| !(letter.is_ascii_digit() || letter == '.'));
        let version = numbers
            .into_iter()
            .find(|word| word.matches('.').count() >= 2)?;
        Some(format!("{self} {version}"))
    }

    /// Starts it with so many workers.
    pub fn start(self, origin: SocketAddr, workers: usize) -> io::Result<Peer> {
        self.start_with(origin, workers, &ROUTES)
    }

    /// Starts it with one worker and one route, as its users would who have no more.
    pub fn start_small(self, origin: SocketAddr) -> io::Result<Peer> {
        self.start_with(origin, 1, &ROUTES[..1])
    }

    fn start_with(self, origin: SocketAddr, workers: usize, routes: &[Route]) -> io::Result<Peer> {
        let program = self
            .program()
            .ok_or_else(|| io::Error::other(format!("{self} is not here")))?;
        let folder = TempDir::new()?;
        let address = free_address();
        let plan = Plan {
            address,
            origin,
            workers,
            routes,
        };
        let (file, text, arguments) = match self {
            Self::Drip => drip::plan(&plan),
            Self::Nginx => nginx::plan(&plan),
            Self::Haproxy => haproxy::plan(&plan),
            Self::Envoy => envoy::plan(&plan),
        };
        fs::write(folder.path().join(file), text)?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(folder.path())
            .env_remove("DRIP_ADMIN_TOKEN");
        let side = if workers == 1 {
            Side::Proxy
        } else {
            Side::TwoWorkers
        };
        let running = Running::start(command, side, address, &folder.path().join("log"))
            .map_err(|error| io::Error::other(format!("{self}: {error}")))?;
        Ok(Peer {
            kind: self,
            address,
            running,
            folder,
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Drip => "drip",
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Envoy => "envoy",
        })
    }
}

/// What a peer's file says.
struct Plan<'a> {
    address: SocketAddr,
    origin: SocketAddr,
    workers: usize,
    routes: &'a [Route],
}

/// A route with a zone of its own, keyed by the field X-Key.
#[derive(Clone, Copy, Debug)]
struct Route {
    path: &'static str,
    /// In the words of nginx and drip alike.
    rate: &'static str,
    burst: u32,
    nodelay: bool,
    /// How many keys it is to remember.
    keys: u32,
}

impl Route {
    /// Its zone's.
    fn name(&self) -> String {
        self.path.replace('/', "")
    }
}

const fn route(path: &'static str, rate: &'static str, burst: u32, nodelay: bool) -> Route {
    Route {
        path,
        rate,
        burst,
        nodelay,
        keys: 10_000,
    }
}

const ROUTES: [Route; 10] = [
    route(PASS, "1000000r/s", 100_000, true),
    route(SHUT, "1r/m", 0, false),
    Route {
        keys: 1_200_000,
        ..route(KEYS, "1r/m", 100_000, true)
    },
    route(WAIT, "1r/m", 20_000, false),
    route(SLOW, "30r/m", 10, false),
    route(DEEP, "4000r/s", 20_000, false),
    route(STREAMS[0].1, "100r/s", 1000, false),
    route(STREAMS[1].1, "500r/s", 1000, false),
    route(STREAMS[2].1, "2000r/s", 1000, false),
    route(STREAMS[3].1, "5000r/s", 1000, false),
];

/// The name of a peer's file, its text, and the arguments to be started with.
type Written = (&'static str, String, Vec<String>);

/// A proxy that runs.
#[derive(Debug)]
pub struct Peer {
    pub kind: Kind,
    pub address: SocketAddr,
    running: Running,
    folder: TempDir,
}

impl Peer {
    pub fn ready_after(&self) -> Duration {
        self.running.ready_after
    }

    /// The processor time that it has used so far.
    pub fn processor_time(&self) -> Duration {
        usage::processor_time(&self.running.processes())
    }

    /// The memory that it holds, in bytes.
    pub fn memory(&self) -> u64 {
        usage::memory(&self.running.processes())
    }

    /// What it has said.
    pub fn log(&self) -> String {
        let file: &Path = &self.folder.path().join("log");
        fs::read_to_string(file).unwrap_or_default()
    }
}
