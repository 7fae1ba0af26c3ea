//! Clients at any address of 127.0.0.0/8: steady, in crowds, and slow ones.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::{Gateway, MS, connect_from, now};

/// Longer than any incident by day: no client leaves before its answer.
const PATIENT: Duration = Duration::from_secs(120);

/// 25 requests a second.
pub const STEADY: Duration = Duration::from_millis(40);

/// A request of a client.
#[derive(Clone, Debug)]
pub struct Request {
    from: Ipv4Addr,
    target: String,
    fields: String,
    /// The client leaves if nothing comes for so long.
    patience: Duration,
}

/// A request of 127.0.0.1 for this target.
pub fn get(target: impl Into<String>) -> Request {
    Request {
        from: Ipv4Addr::LOCALHOST,
        target: target.into(),
        fields: String::new(),
        patience: PATIENT,
    }
}

impl Request {
    /// The same of a client at `address`.
    pub fn from(self, address: [u8; 4]) -> Self {
        let from = Ipv4Addr::from(address);
        Self { from, ..self }
    }

    /// The same with a header field.
    pub fn with(self, field: &str) -> Self {
        let fields = format!("{field}\r\n");
        Self { fields, ..self }
    }

    /// The same of a client that leaves after a second.
    pub fn in_haste(self) -> Self {
        let patience = Duration::from_secs(1);
        Self { patience, ..self }
    }
}

/// Sends a request on a connection of its own and returns the answer; an error if its client leaves before.
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

/// The same in a thread. What becomes of it does not matter: incidents break some.
fn send(to: SocketAddr, request: Request) {
    thread::spawn(move || fetch(to, &request));
}

/// As many requests at once. They wait for their answers in threads.
pub fn crowd(gateway: &Gateway, count: usize, request: impl Fn(usize) -> Request) {
    for nth in 0..count {
        send(gateway.address(), request(nth));
    }
}

/// Work in a thread that stops soon after this is dropped.
pub struct Background(Arc<AtomicBool>);

impl Background {
    /// `work` is given whether it has to stop.
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

/// A request at each interval, however long the answers take.
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
            // After a pause of the machine, requests do not come in a clump.
            next = (next + every).max(now());
            thread::sleep(next.duration_since(now()));
        }
    })
}

/// Clients that send a request, wait for the answer, and send the next one.
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

/// A client at `from` that sends a body of 100,000 bytes, 1 KB a second.
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

/// A client at `from` that reads its answer at 1 KB a second.
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
            // Nothing may come for a while.
            let read = stream.read(&mut [0; 100]);
            is_open = !matches!(read, Ok(0)) && !read.is_err_and(|it| !is_timeout(&it));
            thread::sleep(100 * MS);
        }
    })
}
