//! Clients that hang up after a second.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long a hasty client waits for its answer.
const HASTE: Duration = Duration::from_secs(1);

/// Clients that send until this is dropped, 20 a second, each for [`HASTE`] at most.
pub struct HastyClients {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl HastyClients {
    pub fn start(to: SocketAddr) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let to_stop = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            while !to_stop.load(Ordering::SeqCst) {
                send(to);
                thread::sleep(Duration::from_millis(50));
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for HastyClients {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}

/// A request from a client that hangs up if no byte of an answer comes in time.
fn send(to: SocketAddr) {
    thread::spawn(move || {
        let Ok(mut stream) = TcpStream::connect(to) else {
            return;
        };
        let _timeout = stream.set_read_timeout(Some(HASTE));
        let request = "GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
        let _sent = stream.write_all(request.as_bytes());
        let _answer = stream.read_to_end(&mut Vec::new());
    });
}
