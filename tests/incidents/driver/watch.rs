//! Records all headlines of a gateway while a test runs.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::operator::parse;
use crate::support::{Answer, Client, Metrics, now};

const EVERY: Duration = Duration::from_millis(200);

/// A headline at one instant.
#[derive(Clone, Debug)]
pub struct Seen {
    pub at: Instant,
    pub headline: Value,
    /// Time for which origins had requests and completed none.
    pub stuck: Duration,
}

/// A thread that reads the headline until this is dropped.
///
/// It keeps its connection: in some incidents it would get no new one.
pub struct Watch {
    seen: Arc<Mutex<Vec<Seen>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub fn start(admin: SocketAddr) -> Self {
        let (seen, stop) = (
            Arc::<Mutex<Vec<Seen>>>::default(),
            Arc::<AtomicBool>::default(),
        );
        let (to_see, to_stop) = (Arc::clone(&seen), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            let (mut eye, mut progress) = (None, Progress::default());
            while !to_stop.load(Ordering::SeqCst) {
                if let Ok(headline) = look(&mut eye, admin, &mut progress) {
                    to_see.lock().expect("no panic").push(headline);
                } else {
                    eye = None;
                }
                thread::sleep(EVERY);
            }
        });
        Self {
            seen,
            stop,
            thread: Some(thread),
        }
    }

    /// Returns all headlines so far, in order.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no panic").clone()
    }

    /// Returns the last headline since `since`.
    pub fn last(&self, since: Instant) -> Option<Value> {
        let seen = self.seen.lock().expect("no panic");
        let last = seen.last().filter(|it| it.at >= since);
        last.map(|it| it.headline.clone())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}

fn look(eye: &mut Option<Client>, admin: SocketAddr, progress: &mut Progress) -> io::Result<Seen> {
    let client = match eye {
        Some(client) => client,
        None => eye.insert(Client::try_connect(admin)?),
    };
    let at = now();
    let headline = get(client, admin, "/api/headline")?;
    let metrics = get(client, admin, "/metrics")?;
    Ok(Seen {
        at,
        headline: parse(&headline)["headline"].clone(),
        stuck: progress.stuck(&Metrics(metrics.text()), at),
    })
}

fn get(client: &mut Client, admin: SocketAddr, path: &str) -> io::Result<Answer> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {admin}\r\n\r\n");
    client.sender().write_all(request.as_bytes())?;
    client.try_answer()
}

/// Instant of the last completed request at an origin, from the metrics.
#[derive(Debug, Default)]
struct Progress {
    ended: f64,
    stuck_since: Option<Instant>,
}

impl Progress {
    fn stuck(&mut self, metrics: &Metrics, at: Instant) -> Duration {
        let sum = |name| metrics.value(name, &[]).unwrap_or(0.0);
        let ended = sum("drip_origin_requests_total") + sum("drip_origin_responses_total");
        let is_stuck = sum("drip_origin_in_flight") > 0.0 && ended <= self.ended;
        self.ended = ended;
        if !is_stuck {
            self.stuck_since = None;
            return Duration::ZERO;
        }
        at.duration_since(*self.stuck_since.get_or_insert(at))
    }
}
