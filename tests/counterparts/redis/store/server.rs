//! A real Redis server for tests of the store.

use std::cell::Cell;
use std::io;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gateway::store::Store;
use redis::FromRedisValue;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::mpsc;

/// A real Redis without persistence, on its own socket.
pub struct Server {
    folder: TempDir,
    process: Child,
    names: Cell<u64>,
}

fn missing(error: &io::Error) -> ! {
    panic!("redis-server: {error}: tests/run.sh installs what the tests need")
}

impl Server {
    pub fn start() -> Self {
        let folder = TempDir::new().expect("a folder");
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--save", "", "--appendonly", "no"]);
        command.arg("--unixsocket").arg(folder.path().join("redis"));
        command.arg("--dir").arg(folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let process = command.spawn().unwrap_or_else(|error| missing(&error));
        let server = Self {
            folder,
            process,
            names: Cell::new(0),
        };
        for _ in 0..500 {
            if std::os::unix::net::UnixStream::connect(server.socket()).is_ok() {
                return server;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("redis-server does not listen");
    }

    fn socket(&self) -> std::path::PathBuf {
        self.folder.path().join("redis")
    }

    pub fn url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    pub fn store(&self) -> Store {
        Store::new(
            self.url().parse().expect("a URL"),
            "drip:",
            Duration::from_secs(5),
        )
    }

    /// Returns a key that no test has used.
    pub fn key(&self) -> Vec<u8> {
        self.names.set(self.names.get() + 1);
        format!("zone:{}", self.names.get()).into_bytes()
    }

    /// Sends a command directly to Redis.
    pub fn ask<T: FromRedisValue>(&self, command: &str, args: &[&[u8]]) -> T {
        let client = redis::Client::open(self.url()).expect("a client");
        let mut connection = client.get_connection().expect("a connection");
        let mut asked = redis::Cmd::new();
        for word in command
            .split(' ')
            .map(str::as_bytes)
            .chain(args.iter().copied())
        {
            asked.arg(word);
        }
        asked.query(&mut connection).expect("an answer")
    }

    /// Starts a relay to the server that delays each byte by `latency` in each direction.
    pub async fn far_away(&self, latency: Duration) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let socket = self.socket();
        tokio::task::spawn_local(async move {
            while let Ok((near, _)) = listener.accept().await {
                let far = UnixStream::connect(&socket).await.expect("a Redis");
                let (near_in, near_out) = near.into_split();
                let (far_in, far_out) = far.into_split();
                tokio::task::spawn_local(carry(near_in, far_out, latency));
                tokio::task::spawn_local(carry(far_in, near_out, latency));
            }
        });
        format!("redis://{address}")
    }
}

async fn carry(
    mut from: impl AsyncReadExt + Unpin + 'static,
    mut to: impl AsyncWriteExt + Unpin + 'static,
    latency: Duration,
) {
    let (sender, mut receiver) = mpsc::unbounded_channel::<(tokio::time::Instant, Vec<u8>)>();
    tokio::task::spawn_local(async move {
        while let Some((at, bytes)) = receiver.recv().await {
            tokio::time::sleep_until(at).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    });
    let mut buffer = vec![0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let due = tokio::time::Instant::now() + latency;
        if sender.send((due, buffer[..read].to_vec())).is_err() {
            return;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the result of `work`, and its duration.
#[allow(clippy::disallowed_methods)]
pub async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let began = Instant::now();
    (work.await, began.elapsed())
}

/// Runs `test` on a runtime of one thread.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, test)
}
