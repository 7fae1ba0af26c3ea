//! The proxies to compare. All have the same origin and the same routes.

mod drip;
mod envoy;
mod haproxy;
mod kind;
mod lean;
mod nginx;
mod routes;

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::support::placement::{Side, free_address};
use crate::support::process::Running;
use crate::support::{tls, usage};

pub use kind::Kind;
pub use routes::{DEEP, GATED, KEYS, OPEN_GATE, PASS, SHUT, SLOW, STREAMS, WAIT};
use routes::{ROUTES, Route};

/// File names of the certificate and key of a peer with TLS, in its folder.
const CERTIFICATE: &str = "server.pem";
const KEY: &str = "server.key";

/// The configuration of a peer.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    workers: usize,
    routes: &'static [Route],
    /// Whether clients use TLS 1.3 and may choose HTTP/2.
    tls: bool,
    /// Whether all requests wait. Only lean needs this, because it has no routes.
    all_wait: bool,
    /// Whether drip has gates, too.
    has_gates: bool,
}

impl Setup {
    pub const ONE_WORKER: Self = Self {
        workers: 1,
        routes: &ROUTES,
        tls: false,
        all_wait: false,
        has_gates: false,
    };
    /// One worker, and drip has gates.
    pub const GATES: Self = Self {
        has_gates: true,
        ..Self::ONE_WORKER
    };
    pub const TWO_WORKERS: Self = Self {
        workers: 2,
        ..Self::ONE_WORKER
    };
    pub const FOUR_WORKERS: Self = Self {
        workers: 4,
        ..Self::GATES
    };
    pub const TLS: Self = Self {
        tls: true,
        ..Self::ONE_WORKER
    };
    /// One worker and one route: a small setup.
    pub const SMALL: Self = Self {
        routes: ROUTES.split_at(1).0,
        ..Self::ONE_WORKER
    };
    /// One worker. All requests to [`WAIT`] wait.
    pub const WAITING: Self = Self {
        all_wait: true,
        ..Self::ONE_WORKER
    };
}

/// The data from which a peer's configuration is written.
struct Plan<'a> {
    address: SocketAddr,
    origin: SocketAddr,
    setup: &'a Setup,
}

/// Start of a peer: its configuration file, if it has one, and its arguments.
struct Written {
    file: Option<(&'static str, String)>,
    arguments: Vec<String>,
}

impl Written {
    fn new<const N: usize>(file: Option<(&'static str, String)>, arguments: [&str; N]) -> Self {
        Self {
            file,
            arguments: arguments.map(str::to_owned).into(),
        }
    }
}

/// A running proxy.
#[derive(Debug)]
pub struct Peer {
    pub kind: Kind,
    pub address: SocketAddr,
    running: Running,
    folder: TempDir,
}

impl Peer {
    pub fn start(kind: Kind, origin: SocketAddr, setup: &Setup) -> io::Result<Self> {
        let program = kind
            .program()
            .ok_or_else(|| io::Error::other(format!("{kind} is not here")))?;
        let folder = TempDir::new()?;
        let address = free_address();
        let plan = Plan {
            address,
            origin,
            setup,
        };
        let written = match kind {
            Kind::Drip | Kind::Before => drip::plan(&plan),
            Kind::Nginx => nginx::plan(&plan),
            Kind::Haproxy => haproxy::plan(&plan),
            Kind::Envoy => envoy::plan(&plan),
            Kind::Lean => lean::plan(&plan),
        };
        if let Some((name, text)) = written.file {
            fs::write(folder.path().join(name), text)?;
        }
        if setup.tls {
            let identity = tls::identity();
            fs::write(folder.path().join(CERTIFICATE), &identity.certificate)?;
            fs::write(folder.path().join(KEY), &identity.key)?;
        }
        let mut command = Command::new(program);
        command
            .args(written.arguments)
            .current_dir(folder.path())
            .env_remove("DRIP_ADMIN_TOKEN")
            .env_remove("DRIP_ADMIN_READ_TOKEN");
        let side = if setup.workers == 1 {
            Side::Proxy
        } else {
            Side::TwoWorkers
        };
        let running = Running::start(command, side, address, &folder.path().join("log"))
            .map_err(|error| io::Error::other(format!("{kind}: {error}")))?;
        Ok(Self {
            kind,
            address,
            running,
            folder,
        })
    }

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

    /// The number of its open files and connections.
    pub fn descriptors(&self) -> usize {
        usage::descriptors(&self.running.processes())
    }

    /// Returns its log output.
    pub fn log(&self) -> String {
        let file: &Path = &self.folder.path().join("log");
        fs::read_to_string(file).unwrap_or_default()
    }
}
