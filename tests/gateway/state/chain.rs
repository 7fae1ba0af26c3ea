//! A chain of processes at one address, with or without `state`.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::support::launch::start_on;
use crate::support::{self, Gateway, Origin, Site, free_address, half_alone, one_origin};

/// Common parts of the processes of a chain.
pub struct Chain {
    /// Address for clients.
    pub address: SocketAddr,
    /// Socket held as by a service manager; `None`: each process opens its own.
    pub socket: Option<TcpListener>,
    pub folder: Arc<TempDir>,
    /// Whether the file has `state`.
    pub keeps: bool,
    pub rest: String,
}

impl Chain {
    pub fn new(is_held: bool, keeps: bool, rest: &str) -> Self {
        let address = free_address();
        Self {
            address,
            socket: is_held.then(|| TcpListener::bind(address).expect("a socket")),
            folder: Arc::new(TempDir::new().expect("a folder")),
            keeps,
            rest: rest.to_owned(),
        }
    }

    pub fn state(&self) -> PathBuf {
        self.folder.path().join("drip.state")
    }

    /// Returns a chain at another address with the same folder.
    pub fn beside(&self) -> Self {
        Self {
            address: free_address(),
            socket: None,
            folder: Arc::clone(&self.folder),
            keeps: true,
            rest: self.rest.clone(),
        }
    }

    /// Starts the next process, which may not be ready yet.
    pub fn begin(&self) -> Gateway {
        let site = Site::new();
        let path = self.state();
        let state = format!("state = \"{}\"", path.display());
        let state = if self.keeps { &state } else { "" };
        let text = format!(
            "[server]\nlisten = [\"{}\"]\nadmin = \"{}\"\n{state}\n{}",
            self.address, site.admin, self.rest
        );
        fs::write(site.file(), text).expect("a file");
        if let Some(socket) = &self.socket {
            start_on(site, socket.try_clone().expect("a second handle"))
        } else {
            Gateway::run(site)
        }
    }

    pub fn start(&self) -> Gateway {
        let gateway = self.begin();
        gateway.wait_until_ready();
        gateway
    }

    /// Stops a process and waits for its end.
    pub fn stop(gateway: &mut Gateway) {
        gateway.signal(Signal::TERM);
        assert_eq!(gateway.wait(Duration::from_secs(20)).code(), Some(0));
    }
}

pub fn gate(origin: &Origin, rate: &str) -> String {
    let gate = format!("rate = \"{rate}\"\nqueue = 100\n");
    one_origin(origin.address, "", &gate)
}

/// Runs `check` for all cases, each with and without `state`, in parallel: they mostly wait.
pub fn side_by_side<C: Sync>(cases: &[C], check: impl Fn(&C, bool) + Sync) {
    let _alone = half_alone();
    let both = |case| [(case, true), (case, false)];
    support::side_by_side(cases.iter().flat_map(both), |(case, keeps)| {
        check(case, keeps);
    });
}

/// Returns the maximum number of requests in a window beyond `rate` times its length.
#[allow(clippy::cast_precision_loss)]
pub fn excess(stamps: &[Instant], per_second: f64) -> f64 {
    // Minimum and maximum distance of the rate's line above the count so far.
    let (mut least, mut most) = (f64::MAX, 0.0_f64);
    for (nth, at) in stamps.iter().enumerate() {
        let line = nth as f64 - at.duration_since(stamps[0]).as_secs_f64() * per_second;
        least = least.min(line);
        most = most.max(line + 1.0 - least);
    }
    most
}
