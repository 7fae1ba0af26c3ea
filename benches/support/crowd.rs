//! Clients that ask again as soon as they are answered.

use std::cell::Cell;
use std::io::Write;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime;
use tokio::sync::oneshot;
use tokio::task::{LocalSet, yield_now};
use tokio::time::{sleep, timeout};

use super::client::Connection;
use super::place::Side;
use super::within;

/// The keys that a crowd shows.
#[derive(Clone, Copy, Debug)]
pub enum Keys {
    /// All the same.
    One(u64),
    /// So many, each request the next of them, and from the first again.
    InTurn(u64),
    /// So many, each once; then the crowd stays at home.
    Once(u64),
    /// So many, in no order.
    Scattered(u64),
    /// Each client its own.
    Own,
}

/// Who comes, and what they ask for.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    pub to: SocketAddr,
    pub path: &'static str,
    pub keys: Keys,
    pub clients: usize,
    /// Over which time they come, evenly.
    pub coming: Duration,
    /// After how long a client gives up, and asks anew on another connection.
    pub patience: Option<Duration>,
    /// Lets all else on its processor go first.
    pub meek: bool,
}

impl Crowd {
    /// `clients` who come at once and do not give up.
    pub fn new(to: SocketAddr, path: &'static str, keys: Keys, clients: usize) -> Self {
        Self {
            to,
            path,
            keys,
            clients,
            coming: Duration::ZERO,
            patience: None,
            meek: false,
        }
    }

    /// Sends them, on a thread of their own.
    pub fn come(self) -> Coming {
        let counts = Arc::<Counts>::default();
        let counted = Arc::clone(&counts);
        let (leave, left) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            Side::Load.take();
            if self.meek {
                let _nicer = rustix::process::nice(19);
            }
            let runtime = runtime::Builder::new_current_thread().enable_all().build();
            runtime
                .expect("a runtime")
                .block_on(LocalSet::new().run_until(async move {
                    let mind = Rc::new(Mind {
                        crowd: self,
                        next: Cell::new(0),
                        counts: counted,
                    });
                    for client in 0..self.clients {
                        let began = self.coming.mul_f64(part(client, self.clients));
                        tokio::task::spawn_local(client_of(Rc::clone(&mind), client, began));
                        // The others' connections are served meanwhile.
                        yield_now().await;
                    }
                    let _told = left.await;
                }));
        });
        Coming {
            clients: self.clients,
            counts,
            leave: Some(leave),
            thread: Some(thread),
        }
    }
}

/// What has become of a crowd's requests so far.
#[derive(Debug, Default)]
struct Counts {
    /// Clients who have sent something.
    here: AtomicU64,
    passed: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    given_up: AtomicU64,
    /// The status of the last one that was refused.
    last: AtomicU64,
}

/// The same, at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answers {
    /// Answered 2xx.
    pub passed: u64,
    /// Answered otherwise.
    pub refused: u64,
    /// Not answered.
    pub failed: u64,
    /// Not waited for.
    pub given_up: u64,
    /// The status of the last one that was refused; 0 where none was.
    pub last_refusal: u64,
}

impl Answers {
    pub fn answered(&self) -> u64 {
        self.passed + self.refused
    }

    pub fn since(&self, before: &Self) -> Self {
        Self {
            passed: self.passed - before.passed,
            refused: self.refused - before.refused,
            failed: self.failed - before.failed,
            given_up: self.given_up - before.given_up,
            last_refusal: self.last_refusal,
        }
    }
}

/// A crowd that is there until this is dropped.
#[derive(Debug)]
pub struct Coming {
    clients: usize,
    counts: Arc<Counts>,
    leave: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Coming {
    /// Waits until each client has come, at most `limit`; says whether they have.
    pub fn wait_for_all(&self, limit: Duration) -> bool {
        let all = self.clients as u64;
        within(limit, || self.counts.here.load(Ordering::Relaxed) >= all)
    }

    pub fn answers(&self) -> Answers {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Answers {
            passed: read(&self.counts.passed),
            refused: read(&self.counts.refused),
            failed: read(&self.counts.failed),
            given_up: read(&self.counts.given_up),
            last_refusal: read(&self.counts.last),
        }
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        drop(self.leave.take());
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}

/// What all clients of a crowd share.
struct Mind {
    crowd: Crowd,
    next: Cell<u64>,
    counts: Arc<Counts>,
}

impl Mind {
    fn next_key(&self, client: usize) -> Option<u64> {
        let next = self.next.replace(self.next.get() + 1);
        match self.crowd.keys {
            Keys::One(key) => Some(key),
            Keys::InTurn(count) => Some(next % count),
            Keys::Once(count) => Some(next).filter(|key| *key < count),
            Keys::Scattered(count) => Some(scatter(next) % count),
            Keys::Own => Some(client as u64),
        }
    }
}

async fn client_of(mind: Rc<Mind>, client: usize, began: Duration) {
    sleep(began).await;
    let crowd = &mind.crowd;
    let mut connection = Connection::new(crowd.to);
    let mut first = true;
    let mut request = Vec::new();
    while let Some(key) = mind.next_key(client) {
        request.clear();
        let path = crowd.path;
        // Written to memory, which takes it.
        let _taken = write!(
            request,
            "GET {path} HTTP/1.1\r\nHost: bench\r\nX-Key: {key}\r\n\r\n"
        );
        if std::mem::take(&mut first) {
            mind.counts.here.fetch_add(1, Ordering::Relaxed);
        }
        let asked = connection.ask(&request);
        let answer = match crowd.patience {
            Some(patience) => timeout(patience, asked).await.ok(),
            None => Some(asked.await),
        };
        let count = match answer {
            Some(Ok(200..300)) => &mind.counts.passed,
            Some(Ok(status)) => {
                mind.counts.last.store(status.into(), Ordering::Relaxed);
                &mind.counts.refused
            }
            Some(Err(_)) => &mind.counts.failed,
            None => &mind.counts.given_up,
        };
        count.fetch_add(1, Ordering::Relaxed);
        if let Some(Err(_)) = answer {
            // Whoever cannot connect does not try in a circle.
            sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Numbers in an order that nobody foresees, each time the same.
fn scatter(nth: u64) -> u64 {
    let mixed = nth.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 20
}

fn part(of: usize, all: usize) -> f64 {
    super::figures::float(of as u64) / super::figures::float(all as u64)
}
