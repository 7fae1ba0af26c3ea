//! A Redis on its own port.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use redis::{FromRedisValue, RedisResult};
use tempfile::TempDir;

use crate::support::{eventually, free_address};

/// A real Redis without persistence, on its own port.
pub struct Redis {
    folder: TempDir,
    pub address: SocketAddr,
    arguments: Vec<String>,
    process: Option<Child>,
}

impl Redis {
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// Starts it with further arguments, in its own folder.
    pub fn with(arguments: &[&str]) -> Self {
        let folder = TempDir::new().expect("a folder");
        Self::in_folder(folder, free_address(), arguments)
    }

    pub fn in_folder(folder: TempDir, address: SocketAddr, arguments: &[&str]) -> Self {
        let mut redis = Self {
            folder,
            address,
            arguments: arguments.iter().map(|it| (*it).to_owned()).collect(),
            process: None,
        };
        redis.restart();
        redis
    }

    pub fn url(&self) -> String {
        format!("redis://{}/0", self.address)
    }

    /// Starts it again at the same address, empty, after it was killed.
    pub fn restart(&mut self) {
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        if !self.arguments.iter().any(|it| it == "--tls-port") {
            command.arg("--port").arg(self.address.port().to_string());
        }
        command.arg("--dir").arg(self.folder.path());
        command.args(&self.arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let process = command.spawn();
        self.process = Some(process.unwrap_or_else(|error| {
            panic!("redis-server: {error}: tests/run.sh installs what the tests need")
        }));
        eventually("the Redis listens", || {
            TcpStream::connect(self.address).is_ok()
        });
    }

    /// Kills it, like a crash.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("it runs");
            process.wait().expect("it ends");
        }
    }

    /// Sends a command whose words have no blanks. Returns the first line of the reply.
    pub fn ask(&self, command: &str) -> String {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        let timeout = Some(Duration::from_secs(10));
        stream.set_read_timeout(timeout).expect("a timeout");
        stream
            .write_all(format!("{command}\r\n").as_bytes())
            .expect("it reads");
        let mut line = String::new();
        BufReader::new(stream)
            .read_line(&mut line)
            .expect("it answers");
        line.trim_end().to_owned()
    }

    /// Sends a command whose words have no blanks, and further words.
    ///
    /// A pair of quotes is the empty word.
    pub fn query<T: FromRedisValue>(&self, command: &str, more: &[&[u8]]) -> RedisResult<T> {
        let mut connection = redis::Client::open(self.url())?.get_connection()?;
        let mut asked = redis::Cmd::new();
        for word in command.split(' ') {
            asked.arg(word.trim_matches('"'));
        }
        asked.arg(more).query(&mut connection)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}
