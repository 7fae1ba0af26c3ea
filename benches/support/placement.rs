//! Assigns processors and ports to the measured programs.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;

use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A side of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The measured program: the first processor.
    Proxy,
    /// The measured program with two workers: the first two processors.
    TwoWorkers,
    /// The origin and the clients: the last processor.
    Load,
    /// A program that needs no processor of its own.
    Anywhere,
}

impl Side {
    /// Moves the calling thread to this side, and all threads that it starts later.
    pub fn pin_thread(self) {
        let all = processors();
        let Some((first, last)) = all.first().zip(all.last()) else {
            return;
        };
        let chosen: &[usize] = match self {
            Self::Proxy => &[*first],
            Self::TwoWorkers => &all[..all.len().min(2)],
            Self::Load => &[*last],
            Self::Anywhere => &all,
        };
        let mut set = CpuSet::new();
        for processor in chosen {
            set.set(*processor);
        }
        // If this is forbidden, the figures are only noisier.
        let _moved = sched_setaffinity(None, &set);
    }

    /// Runs `work` on this side, on a new thread.
    pub fn run<T: Send>(self, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let thread = scope.spawn(move || {
                self.pin_thread();
                work()
            });
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// The processors that this process may use.
pub fn processors() -> Vec<usize> {
    static ALLOWED: std::sync::OnceLock<Vec<usize>> = std::sync::OnceLock::new();
    let read = || {
        let set = sched_getaffinity(None).unwrap_or_default();
        (0..CpuSet::MAX_CPU)
            .filter(|processor| set.is_set(*processor))
            .collect()
    };
    ALLOWED.get_or_init(read).clone()
}

/// An address with a free port.
pub fn free_address() -> SocketAddr {
    // These ports are below those that the kernel gives to outgoing connections. So no client takes
    // the port before the server listens on it.
    const FIRST_PORT: u16 = 10_000;
    const PORTS: u16 = 20_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = u16::try_from(std::process::id() * 97 % u32::from(PORTS)).unwrap_or_default();
    loop {
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let address = SocketAddr::from(([127, 0, 0, 1], FIRST_PORT + (start + nth) % PORTS));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}

/// Raises the limit of file descriptors for this process and its children to the maximum.
///
/// Returns the new limit.
pub fn raise_descriptor_limit() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // On an error the old limit stays.
    let _raised = setrlimit(Resource::Nofile, limit);
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(allowed).unwrap_or(usize::MAX)
}
