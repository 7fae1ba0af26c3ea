//! Starts a Redis server for a measurement, and reads its counters.

use std::io;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use redis::{Client, Connection};
use tempfile::TempDir;

use crate::support::placement::{Side, free_address};
use crate::support::process::{Running, find};
use crate::support::usage;
use crate::support::wait_until;

/// A Redis server that stores nothing on disk. It runs until this is dropped.
pub struct RedisServer {
    pub address: SocketAddr,
    _folder: TempDir,
    running: Running,
    is_cluster: bool,
}

impl RedisServer {
    pub fn start() -> io::Result<Self> {
        Self::with(&[])
    }

    /// Starts a cluster of one node, where each key is a separate call, as in a larger cluster.
    pub fn start_cluster() -> io::Result<Self> {
        let bus = free_address().port().to_string();
        let arguments = ["--cluster-enabled", "yes", "--cluster-port", &bus];
        let server = Self {
            is_cluster: true,
            ..Self::with(&arguments)?
        };
        let mut slots = redis::cmd("CLUSTER");
        let slots = slots.arg("ADDSLOTSRANGE").arg(0).arg(16_383);
        slots
            .exec(&mut server.connection()?)
            .map_err(io::Error::other)?;
        let is_up = || {
            let mut info = redis::cmd("CLUSTER");
            let info_text: Option<String> =
                info.arg("INFO").query(&mut server.connection().ok()?).ok();
            info_text.filter(|info_text| info_text.contains("cluster_state:ok"))
        };
        if wait_until(Duration::from_secs(10), || is_up().is_some()) {
            Ok(server)
        } else {
            Err(io::Error::other("the cluster does not come up"))
        }
    }

    /// Starts a replica that follows this server.
    pub fn start_replica(&self) -> io::Result<Self> {
        let port = self.address.port().to_string();
        let replica = Self::with(&["--replicaof", "127.0.0.1", &port])?;
        let follows = || self.info("replication", "connected_slaves").unwrap_or(0) == 1;
        if wait_until(Duration::from_secs(20), follows) {
            Ok(replica)
        } else {
            Err(io::Error::other("the replica does not follow"))
        }
    }

    fn with(arguments: &[&str]) -> io::Result<Self> {
        let program = find("redis-server")
            .ok_or_else(|| io::Error::other("there is no redis-server; install it"))?;
        let (folder, address) = (TempDir::new()?, free_address());
        let mut command = Command::new(program);
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        command.arg("--port").arg(address.port().to_string());
        command.arg("--dir").arg(folder.path());
        command.args(arguments);
        let log = folder.path().join("log");
        let running = Running::start(command, Side::Anywhere, address, &log)?;
        Ok(Self {
            address,
            _folder: folder,
            running,
            is_cluster: false,
        })
    }

    pub fn url(&self) -> String {
        if self.is_cluster {
            format!("redis+cluster://{}", self.address)
        } else {
            format!("redis://{}/0", self.address)
        }
    }

    pub fn client(&self) -> io::Result<Client> {
        Client::open(self.url()).map_err(io::Error::other)
    }

    /// Loads a script into the server. Returns the script's hash.
    pub fn load(&self, script: &str) -> io::Result<String> {
        let mut connection = self.connection()?;
        let mut load = redis::cmd("SCRIPT");
        let load = load.arg("LOAD").arg(script);
        load.query(&mut connection).map_err(io::Error::other)
    }

    /// Deletes all keys, so that keys of one measurement do not expire during the next.
    pub fn forget_all(&self) -> io::Result<()> {
        let mut connection = self.connection()?;
        let forget = redis::cmd("FLUSHALL").exec(&mut connection);
        forget.map_err(io::Error::other)
    }

    /// Returns the processor time used so far.
    pub fn processor_time(&self) -> Duration {
        usage::processor_time(&self.running.processes())
    }

    /// Returns the number of reads from connections. A batch that arrives alone is one read.
    pub fn reads(&self) -> io::Result<u64> {
        self.info("stats", "total_reads_processed")
    }

    /// Returns the number of scripts run so far.
    pub fn calls(&self) -> io::Result<u64> {
        let stats = self.info_text("commandstats")?;
        let calls = stats
            .lines()
            .find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
        let calls = calls.and_then(|line| line.split(',').next());
        Ok(calls.and_then(|count| count.parse().ok()).unwrap_or(0))
    }

    /// Returns a number that the server reports in `INFO`.
    pub fn info(&self, section: &str, field: &str) -> io::Result<u64> {
        let info_text = self.info_text(section)?;
        let named = |line: &str| {
            line.strip_prefix(field)?
                .strip_prefix(':')
                .map(str::to_owned)
        };
        let number = info_text.lines().find_map(named);
        let number = number.and_then(|number| number.trim().parse().ok());
        number.ok_or_else(|| io::Error::other(format!("this Redis does not tell its {field}")))
    }

    fn info_text(&self, section: &str) -> io::Result<String> {
        let mut info = redis::cmd("INFO");
        let info = info.arg(section).query(&mut self.connection()?);
        info.map_err(io::Error::other)
    }

    /// Returns the memory of a key in bytes, with its name and its share of the tables.
    pub fn memory_of(&self, key: &str) -> io::Result<u64> {
        let mut usage = redis::cmd("MEMORY");
        let usage = usage.arg("USAGE").arg(key).arg("SAMPLES").arg(0);
        usage
            .query(&mut self.connection()?)
            .map_err(io::Error::other)
    }

    /// Returns the memory of the process, in bytes.
    pub fn memory(&self) -> u64 {
        usage::memory(&self.running.processes())
    }

    fn connection(&self) -> io::Result<Connection> {
        let client = Client::open(format!("redis://{}/0", self.address));
        let client = client.map_err(io::Error::other)?;
        client.get_connection().map_err(io::Error::other)
    }
}
