//! Clients at any address of 127.0.0.0/8: steady ones, crowds, and slow ones.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::{Gateway, MS, connect_from, now};

/// Longer than any incident by day: no client disconnects before its response.
const PATIENT: Duration = Duration::from_secs(120);

/// Interval of 25 requests per second.
pub const STEADY: Duration = Duration::from_millis(40);

/// A request of a client.
#[derive(Clone, Debug)]
pub struct Request {
    from: Ipv4Addr,
    target: String,
    fields: String,
    /// Time without a response after which the client disconnects.
    patience: Duration,
}

/// Returns a request of 127.0.0.1 for this target.
pub fn get(target: impl Into<String>) -> Request {
    Request {
        from: Ipv4Addr::LOCALHOST,
        target: target.into(),
        fields: String::new(),
        patience: PATIENT,
    }
}

impl Request {
    /// Changes the client's address.
    pub fn from(self, address: [u8; 4]) -> Self {
        let from = Ipv4Addr::from(address);
        Self { from, ..self }
    }

    /// Adds a header field.
    pub fn with(self, field: &str) -> Self {
        let fields = format!("{field}\r\n");
        Self { fields, ..self }
    }

    /// Makes the client disconnect after a second.
    pub fn in_haste(self) -> Self {
        let patience = Duration::from_secs(1);
        Self { patience, ..self }
    }
}

/// Sends a request on a new connection. Returns an error if the client disconnects first.
pub fn fetch(to: SocketAddr, request: &Request) -> io::Result<String> {
    let mut stream = connect_from(request.from, to, None)?;
    stream.set_read_timeout(Some(request.patience))?;
    let Request { target, fields, .. } = request;
    let head = format!("GET {target} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{fields}\r\n");
    stream.write_all(head.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Sends a request in a thread. The result does not matter: incidents break some requests.
fn send(to: SocketAddr, request: Request) {
    thread::spawn(move || fetch(to, &request));
}

/// Sends this many requests at once. Threads wait for the responses.
pub fn crowd(gateway: &Gateway, count: usize, request: impl Fn(usize) -> Request) {
    for nth in 0..count {
        send(gateway.address(), request(nth));
    }
}

/// Work in a thread that stops soon after this is dropped.
pub struct Background(Arc<AtomicBool>);

impl Background {
    /// Starts the work, which must check the flag and stop when it is set.
    pub fn start(work: impl FnOnce(&AtomicBool) + Send + 'static) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let to_stop = Arc::clone(&stop);
        thread::spawn(move || work(&to_stop));
        Self(stop)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Sends a request at each interval, however long the responses take.
pub fn steady(
    gateway: &Gateway,
    every: Duration,
    request: impl Fn(usize) -> Request + Send + 'static,
) -> Background {
    let to = gateway.address();
    Background::start(move |stop| {
        let mut next = now();
        for nth in 0.. {
            if stop.load(Ordering::SeqCst) {
                return;
            }
            send(to, request(nth));
            // After a pause of the machine, requests are not sent all at once.
            next = (next + every).max(now());
            thread::sleep(next.duration_since(now()));
        }
    })
}

/// Starts clients that send a request, wait for the response, and send the next one.
pub fn one_after_another(
    gateway: &Gateway,
    count: usize,
    request: impl Fn(usize) -> Request,
) -> Vec<Background> {
    let to = gateway.address();
    let client = |nth| {
        let request = request(nth);
        Background::start(move |stop| {
            while !stop.load(Ordering::SeqCst) {
                let answer = fetch(to, &request);
                thread::sleep(if answer.is_ok() { 10 * MS } else { 500 * MS });
            }
        })
    };
    (0..count).map(client).collect()
}

/// Starts a client at `from` that sends a body of 100,000 bytes at 1 KB/s.
pub fn slow_upload(gateway: &Gateway, from: [u8; 4], target: &'static str) -> Background {
    let to = gateway.address();
    Background::start(move |stop| {
        let Ok(mut stream) = connect_from(from.into(), to, None) else {
            return;
        };
        let head =
            format!("POST {target} HTTP/1.1\r\nHost: test\r\nContent-Length: 100000\r\n\r\n");
        let mut sent = stream.write_all(head.as_bytes());
        while sent.is_ok() && !stop.load(Ordering::SeqCst) {
            sent = stream.write_all(&[b'x'; 100]);
            thread::sleep(100 * MS);
        }
    })
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Starts a client at `from` that reads its response at 1 KB/s.
pub fn slow_reader(gateway: &Gateway, from: [u8; 4], target: &'static str) -> Background {
    let to = gateway.address();
    Background::start(move |stop| {
        let Ok(mut stream) = connect_from(from.into(), to, Some(4096)) else {
            return;
        };
        let head = format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n");
        let _timeout = stream.set_read_timeout(Some(500 * MS));
        let mut is_open = stream.write_all(head.as_bytes()).is_ok();
        while is_open && !stop.load(Ordering::SeqCst) {
            // Nothing may arrive for a while.
            let read = stream.read(&mut [0; 100]);
            is_open = !matches!(read, Ok(0)) && !read.is_err_and(|it| !is_timeout(&it));
            thread::sleep(100 * MS);
        }
    })
}
