use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::support::Client;

/// Traffic beside the steady one.
#[derive(Clone, Copy)]
pub enum Load {
    /// None.
    Steady,
    /// One key asks for far more than its rate.
    Greedy,
    /// Each request has a new key.
    Flood,
    /// One key asks for four times its rate, and each client hangs up after a second.
    Hasty,
}

/// Clients that send until this is dropped: twenty users, all below their rates.
pub struct Traffic {
    to: SocketAddr,
    load: Arc<AtomicU8>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    waiting: Vec<Client>,
}

const TICK: Duration = Duration::from_millis(25);
/// How long a hasty client waits for its answer.
const HASTE: Duration = Duration::from_secs(1);

impl Traffic {
    pub fn start(to: SocketAddr) -> Self {
        let (load, stop) = (Arc::<AtomicU8>::default(), Arc::<AtomicBool>::default());
        let (now, to_stop) = (Arc::clone(&load), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            let mut invented = 0;
            for tick in 0_u64.. {
                if to_stop.load(Ordering::SeqCst) {
                    return;
                }
                if tick % 2 == 0 {
                    send(to, format!("/?key=user{}", tick / 2 % 20));
                }
                match now.load(Ordering::SeqCst) {
                    load if load == Load::Greedy as u8 => send(to, "/?key=greedy".to_owned()),
                    load if load == Load::Flood as u8 => {
                        for _ in 0..5 {
                            invented += 1;
                            send(to, format!("/?key=invented{invented}"));
                        }
                    }
                    load if load == Load::Hasty as u8 => {
                        send_for(HASTE, to, "/hasty?key=all".to_owned());
                    }
                    _ => {}
                }
                thread::sleep(TICK);
            }
        });
        Self {
            to,
            load,
            stop,
            thread: Some(thread),
            waiting: Vec::new(),
        }
    }

    pub fn add(&self, load: Load) {
        self.load.store(load as u8, Ordering::SeqCst);
    }

    /// Sends requests that wait.
    pub fn crowd(&mut self, target: &str, count: usize) {
        self.waiting = (0..count).map(|_| Client::ask(self.to, target)).collect();
    }

    /// The waiting clients hang up.
    pub fn leave(&mut self) {
        self.waiting.clear();
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}

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
                send_for(HASTE, to, "/".to_owned());
                thread::sleep(2 * TICK);
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

/// Sends a request whose answer does not matter: the incidents break some.
fn send(to: SocketAddr, target: String) {
    send_for(Duration::from_secs(5), to, target);
}

/// The same, from a client that hangs up if no byte of an answer comes in time.
fn send_for(time: Duration, to: SocketAddr, target: String) {
    thread::spawn(move || {
        let Ok(mut stream) = TcpStream::connect(to) else {
            return;
        };
        let _timeout = stream.set_read_timeout(Some(time));
        let request = format!("GET {target} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        let _sent = stream.write_all(request.as_bytes());
        let _answer = stream.read_to_end(&mut Vec::new());
    });
}
