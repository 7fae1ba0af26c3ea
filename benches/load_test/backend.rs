//! The backend: a fixed number of workers, each busy for a while with each request.
//!
//! The queue before the workers is unbounded.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use gateway::time::clock;
use limit::Moment;
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::sync::Semaphore;
use tokio::task::LocalSet;
use tokio::time::sleep;

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nok\n";

/// A request that has reached the backend.
#[derive(Clone, Copy, Debug)]
pub struct Visit {
    /// The value of its field X-Call.
    pub call: usize,
    pub arrived: Moment,
    /// Time of the response; `None` without a response.
    pub done: Option<Moment>,
}

/// The parameters of the backend.
#[derive(Clone, Copy, Debug)]
pub struct BackendSettings {
    pub workers: usize,
    /// Time for which a request keeps a worker busy.
    pub work: Duration,
}

/// A backend on its own thread. It runs as long as the program.
#[derive(Clone, Debug)]
pub struct Backend {
    pub address: SocketAddr,
    visits: Arc<Mutex<Vec<Visit>>>,
}

impl Backend {
    pub fn start(settings: BackendSettings) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let backend = Self {
            address: listener.local_addr()?,
            visits: Arc::default(),
        };
        let visits = Arc::clone(&backend.visits);
        thread::spawn(move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build();
            let serving = async move {
                let listener = TcpListener::from_std(listener).expect("a listener");
                let workers = Arc::new(Semaphore::new(settings.workers));
                while let Ok((stream, _)) = listener.accept().await {
                    let (visits, workers) = (Arc::clone(&visits), Arc::clone(&workers));
                    tokio::task::spawn_local(serve(stream, settings.work, workers, visits));
                }
            };
            runtime
                .expect("a runtime")
                .block_on(LocalSet::new().run_until(serving));
        });
        Ok(backend)
    }

    /// All requests so far, in order of arrival.
    pub fn visits(&self) -> Vec<Visit> {
        self.visits
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Answers a connection's requests, each after a worker has processed it.
///
/// Like most backends, it does not check meanwhile whether the client has left. It also works for
/// clients that gave up.
async fn serve(
    mut stream: TcpStream,
    work: Duration,
    workers: Arc<Semaphore>,
    visits: Arc<Mutex<Vec<Visit>>>,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut read = Vec::new();
    loop {
        if stream.read_buf(&mut read).await? == 0 {
            return Ok(());
        }
        while let Some(end) = memmem::find(&read, b"\r\n\r\n") {
            let visit = Visit {
                call: read_call(&read[..end]),
                arrived: clock::now(),
                done: None,
            };
            read.drain(..end + 4);
            let index = change(&visits, |visits| {
                visits.push(visit);
                visits.len() - 1
            });
            // The semaphore is fair: requests get a worker in the order of their arrival.
            let worker = workers.acquire().await;
            sleep(work).await;
            drop(worker);
            change(&visits, |visits| visits[index].done = Some(clock::now()));
            stream.write_all(ANSWER).await?;
        }
    }
}

/// Changes the list of requests.
fn change<T>(visits: &Mutex<Vec<Visit>>, change: impl FnOnce(&mut Vec<Visit>) -> T) -> T {
    change(&mut visits.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Returns the value of the field X-Call; the largest number if there is none.
fn read_call(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head);
    let mut values = head.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("x-call").then(|| value.trim())
    });
    let value = values.next_back();
    value
        .and_then(|value| value.parse().ok())
        .unwrap_or(usize::MAX)
}
