use std::io;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use redis::{Client, Connection};
use tempfile::TempDir;

use crate::support::place::{Side, free_address};
use crate::support::process::{Running, find};
use crate::support::usage;

/// A Redis server that stores nothing on disk. It runs until this is dropped.
pub struct RedisServer {
    pub address: SocketAddr,
    _folder: TempDir,
    running: Running,
}

impl RedisServer {
    pub fn start() -> io::Result<Self> {
        let program = find("redis-server")
            .ok_or_else(|| io::Error::other("there is no redis-server; install it"))?;
        let (folder, address) = (TempDir::new()?, free_address());
        let mut command = Command::new(program);
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        command.arg("--port").arg(address.port().to_string());
        command.arg("--dir").arg(folder.path());
        let log = folder.path().join("log");
        let running = Running::start(command, Side::Anywhere, address, &log)?;
        Ok(Self {
            address,
            _folder: folder,
            running,
        })
    }

    pub fn url(&self) -> String {
        format!("redis://{}/0", self.address)
    }

    pub fn client(&self) -> io::Result<Client> {
        Client::open(self.url()).map_err(io::Error::other)
    }

    /// Makes a script known to it, and returns its hash.
    pub fn load(&self, script: &str) -> io::Result<String> {
        let mut connection = self.client()?.get_connection().map_err(io::Error::other)?;
        let mut load = redis::cmd("SCRIPT");
        let load = load.arg("LOAD").arg(script);
        load.query(&mut connection).map_err(io::Error::other)
    }

    /// Forgets all keys, so that those of one measurement do not expire during the next.
    pub fn forget_all(&self) -> io::Result<()> {
        let mut connection = self.client()?.get_connection().map_err(io::Error::other)?;
        let forget = redis::cmd("FLUSHALL").exec(&mut connection);
        forget.map_err(io::Error::other)
    }

    /// The processor time that it has used so far.
    pub fn processor_time(&self) -> Duration {
        usage::processor_time(&self.running.processes())
    }

    /// How many scripts it was asked to run.
    pub fn calls(&self) -> io::Result<u64> {
        let stats = self.info("commandstats")?;
        let calls = stats
            .lines()
            .find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
        let calls = calls.and_then(|line| line.split(',').next());
        Ok(calls.and_then(|count| count.parse().ok()).unwrap_or(0))
    }

    fn info(&self, section: &str) -> io::Result<String> {
        let mut connection: Connection =
            self.client()?.get_connection().map_err(io::Error::other)?;
        let mut info = redis::cmd("INFO");
        let info = info.arg(section).query(&mut connection);
        info.map_err(io::Error::other)
    }

    /// How often it has read from connections. Each batch that came alone is one read.
    pub fn reads(&self) -> io::Result<u64> {
        let stats = self.info("stats")?;
        let line = stats
            .lines()
            .find_map(|line| line.strip_prefix("total_reads_processed:"));
        let count = line.and_then(|count| count.trim().parse().ok());
        count.ok_or_else(|| io::Error::other("this Redis does not tell how often it reads"))
    }
}
