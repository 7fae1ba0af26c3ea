//! An origin over HTTP/2 that sends the frames given by the test.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use super::frames::{Frames, HEADERS, ok, settings};
use super::listen;

/// Response of an origin to one request, whose stream is given.
pub type Script = Box<dyn FnOnce(&mut Frames, u32) -> io::Result<()> + Send>;

/// An origin over HTTP/2 that runs the test's scripts, and answers `ok` without a script.
pub struct FrameOrigin {
    pub address: SocketAddr,
    scripts: Arc<Mutex<VecDeque<Script>>>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    connections: AtomicUsize,
    open: AtomicUsize,
    requests: AtomicUsize,
}

impl FrameOrigin {
    /// Starts an origin that begins each connection without settings of its own.
    pub fn start() -> Self {
        Self::beginning_with(settings(&[]))
    }

    /// Starts an origin that begins each connection with these bytes.
    pub fn beginning_with(first: Vec<u8>) -> Self {
        let listener = listen("127.0.0.1:0");
        let address = listener.local_addr().expect("an address");
        let scripts = Arc::<Mutex<VecDeque<Script>>>::default();
        let counts = Arc::<Counts>::default();
        let of_origin = (Arc::clone(&scripts), Arc::clone(&counts));
        thread::spawn(move || {
            for tcp in listener.incoming().map_while(Result::ok) {
                let (scripts, counts) = (Arc::clone(&of_origin.0), Arc::clone(&of_origin.1));
                let first = first.clone();
                counts.connections.fetch_add(1, Ordering::SeqCst);
                counts.open.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || {
                    // The gateway may close the connection at any time.
                    let _ended = serve(tcp, &first, &scripts, &counts);
                    counts.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self {
            address,
            scripts,
            counts,
        }
    }

    /// Queues a script for the next request that has none.
    pub fn next(&self, script: impl FnOnce(&mut Frames, u32) -> io::Result<()> + Send + 'static) {
        let mut scripts = self.scripts.lock().expect("no panic");
        scripts.push_back(Box::new(script));
    }

    /// Removes all queued scripts.
    pub fn forget(&self) {
        self.scripts.lock().expect("no panic").clear();
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> usize {
        self.counts.connections.load(Ordering::SeqCst)
    }

    /// Returns the number of open connections.
    pub fn open(&self) -> usize {
        self.counts.open.load(Ordering::SeqCst)
    }

    pub fn requests(&self) -> usize {
        self.counts.requests.load(Ordering::SeqCst)
    }
}

fn serve(
    tcp: TcpStream,
    first: &[u8],
    scripts: &Mutex<VecDeque<Script>>,
    counts: &Counts,
) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    let mut frames = Frames::over(tcp);
    frames.expect_client()?;
    frames.send(first)?;
    loop {
        let next = frames.next()?;
        if next.kind == HEADERS {
            counts.requests.fetch_add(1, Ordering::SeqCst);
            let script = scripts.lock().expect("no panic").pop_front();
            match script {
                Some(script) => script(&mut frames, next.stream)?,
                None => frames.send(ok(next.stream))?,
            }
        }
    }
}
