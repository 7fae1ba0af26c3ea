//! A relay to a server, for tests of a slow or split network.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use crate::support::now;

/// A relay to a server that a test can slow down, redirect and split from its clients.
pub struct Relay {
    pub address: SocketAddr,
    state: Arc<State>,
}

struct State {
    to: Mutex<SocketAddr>,
    /// Latency of each byte to the server, in microseconds.
    latency: AtomicU64,
    open: Mutex<Vec<TcpStream>>,
    /// Clients that are split from the server.
    split: Mutex<BTreeSet<IpAddr>>,
}

/// Interval at which held bytes check whether the split is over.
const LOOK_EVERY: Duration = Duration::from_millis(5);

impl Relay {
    pub fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(State {
            to: Mutex::new(server),
            latency: AtomicU64::new(0),
            open: Mutex::default(),
            split: Mutex::default(),
        });
        let accepting = Arc::clone(&state);
        // The thread ends with the test.
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let to = *accepting.to.lock().expect("no panic");
                // If nothing listens, the connection ends, as a connection to the server would.
                let Ok(far) = TcpStream::connect(to) else {
                    continue;
                };
                accepting.join(&near, &far);
            }
        });
        Self { address, state }
    }

    pub fn slow_down(&self, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).expect("short");
        self.state.latency.store(micros, Ordering::SeqCst);
    }

    /// Sends new connections to another server. Open ones end.
    pub fn lead_to(&self, server: SocketAddr) {
        *self.state.to.lock().expect("no panic") = server;
        for stream in self.state.open.lock().expect("no panic").drain(..) {
            let _closed = stream.shutdown(Shutdown::Both);
        }
    }

    /// Holds all bytes between `client` and the server until [`Relay::heal`].
    pub fn split_from(&self, client: IpAddr) {
        let mut split = self.state.split.lock().expect("no panic");
        split.insert(client);
    }

    pub fn heal(&self) {
        self.state.split.lock().expect("no panic").clear();
    }
}

impl State {
    fn wait_out_a_split(&self, client: IpAddr) {
        while self.split.lock().expect("no panic").contains(&client) {
            thread::sleep(LOOK_EVERY);
        }
    }

    fn join(self: &Arc<Self>, near: &TcpStream, far: &TcpStream) {
        for stream in [near, far] {
            stream.set_nodelay(true).expect("no delay");
            let handle = stream.try_clone().expect("a second handle");
            self.open.lock().expect("no panic").push(handle);
        }
        // A client that has disconnected is not split from the server.
        let client = near
            .peer_addr()
            .map_or(IpAddr::from([0; 4]), |peer| peer.ip());
        self.carry(near, far, client, true);
        self.carry(far, near, client, false);
    }

    fn carry(self: &Arc<Self>, from: &TcpStream, to: &TcpStream, client: IpAddr, is_there: bool) {
        let mut from = from.try_clone().expect("a second handle");
        let mut to = to.try_clone().expect("a second handle");
        let (sender, receiver) = mpsc::channel::<(_, Vec<u8>)>();
        let state = Arc::clone(self);
        thread::spawn(move || {
            for (due, bytes) in receiver {
                thread::sleep(due - now());
                state.wait_out_a_split(client);
                if to.write_all(&bytes).is_err() {
                    break;
                }
            }
            state.wait_out_a_split(client);
            let _closed = to.shutdown(Shutdown::Both);
        });
        let state = Arc::clone(self);
        thread::spawn(move || {
            let mut bytes = vec![0; 1 << 16];
            while let Ok(read @ 1..) = from.read(&mut bytes) {
                let latency = if is_there {
                    state.latency.load(Ordering::SeqCst)
                } else {
                    0
                };
                let latency = Duration::from_micros(latency);
                if sender
                    .send((now() + latency, bytes[..read].to_vec()))
                    .is_err()
                {
                    break;
                }
            }
        });
    }
}
