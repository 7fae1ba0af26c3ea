//! Clients that each send one request after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::{Client, Gateway};

/// Clients that send requests all the time, so that requests always wait at the gate.
pub struct Crowd {
    is_over: Arc<AtomicBool>,
    clients: Vec<thread::JoinHandle<u64>>,
}

impl Crowd {
    pub fn start(gateway: &Gateway, clients: usize) -> Self {
        Self::asking(gateway, "/", clients)
    }

    /// Starts clients for this path.
    pub fn asking(gateway: &Gateway, path: &'static str, clients: usize) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let client = || {
            let (address, is_over) = (gateway.address(), Arc::clone(&is_over));
            thread::spawn(move || {
                let mut refused = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let mut client = Client::ask(address, path);
                    refused += u64::from(client.answer().status != 200);
                }
                refused
            })
        };
        let clients = (0..clients).map(|_| client()).collect();
        Self { is_over, clients }
    }

    /// Stops the clients. Returns the number of bad responses.
    pub fn end(self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        let ended = self.clients.into_iter();
        ended.map(|it| it.join().expect("no panic")).sum()
    }
}
