//! An origin that answers at once or after a delay, and records the time of each request.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use gateway::time::clock;
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::task::LocalSet;
use tokio::time::sleep;

use super::placement::Side;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 64\r\n\r\n\
    here are the sixty-four bytes of text that this origin answers.\n";

/// A request that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Time at which it was read, in nanoseconds.
    pub at: u64,
    /// The value of its field X-Key.
    pub key: u64,
}

/// An origin on its own thread. It runs as long as the program.
#[derive(Clone, Debug)]
pub struct Origin {
    pub address: SocketAddr,
    /// The recorded requests; `None` while nothing is recorded.
    recorded: Arc<Mutex<Option<Vec<Arrival>>>>,
}

impl Origin {
    /// Starts an origin that answers at once.
    pub fn start() -> io::Result<Self> {
        Self::answering_after(Duration::ZERO)
    }

    /// Starts an origin that answers after a delay.
    pub fn answering_after(delay: Duration) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let origin = Self {
            address: listener.local_addr()?,
            recorded: Arc::default(),
        };
        let recorded = Arc::clone(&origin.recorded);
        thread::spawn(move || {
            Side::Load.pin_thread();
            let runtime = runtime::Builder::new_current_thread().enable_all().build();
            runtime
                .expect("a runtime")
                .block_on(LocalSet::new().run_until(async move {
                    let listener = TcpListener::from_std(listener).expect("a listener");
                    while let Ok((stream, _)) = listener.accept().await {
                        tokio::task::spawn_local(serve(stream, delay, Arc::clone(&recorded)));
                    }
                }));
        });
        Ok(origin)
    }

    /// Starts to record requests.
    pub fn start_recording(&self) {
        *self.recorded.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Vec::with_capacity(1 << 16));
    }

    /// Stops recording. Returns the recorded requests, in order.
    pub fn take_recorded(&self) -> Vec<Arrival> {
        let taken = self
            .recorded
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        taken.unwrap_or_default()
    }
}

/// Answers the requests of a connection, and records them.
async fn serve(
    mut stream: TcpStream,
    delay: Duration,
    recorded: Arc<Mutex<Option<Vec<Arrival>>>>,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut read = Vec::with_capacity(4096);
    loop {
        if stream.read_buf(&mut read).await? == 0 {
            return Ok(());
        }
        let at = clock::now().as_nanos();
        while let Some(end) = memmem::find(&read, b"\r\n\r\n") {
            if let Some(recorded) = &mut *recorded.lock().unwrap_or_else(PoisonError::into_inner) {
                let key = read_key(&read[..end]);
                recorded.push(Arrival { at, key });
            }
            read.drain(..end + 4);
            if !delay.is_zero() {
                sleep(delay).await;
            }
            stream.write_all(ANSWER).await?;
        }
    }
}

/// Returns the value of the field X-Key; the largest number if there is none.
fn read_key(head: &[u8]) -> u64 {
    let lines = head.split(|byte| *byte == b'\n');
    let mut values = lines.filter_map(|line| {
        let (name, value) = line.split_at_checked(6)?;
        let value = value.trim_ascii();
        name.eq_ignore_ascii_case(b"x-key:").then_some(value)
    });
    let text = values
        .next_back()
        .and_then(|value| std::str::from_utf8(value).ok());
    text.and_then(|text| text.parse().ok()).unwrap_or(u64::MAX)
}
