//! Time in which runnable threads waited for a core, as the kernel reports it.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// Time for which a gateway's threads and the calling thread have waited for a core so far.
///
/// Zero if the kernel does not report it.
#[derive(Clone, Copy, Debug)]
pub struct Starved {
    gateway: u32,
}

impl Starved {
    pub fn of(gateway: u32) -> Self {
        Self { gateway }
    }

    pub fn so_far(self) -> Duration {
        let threads = fs::read_dir(format!("/proc/{}/task", self.gateway));
        let threads = threads.into_iter().flatten().flatten();
        let waits = threads.map(|thread| waited(&thread.path()));
        waits.sum::<Duration>() + waited(Path::new("/proc/thread-self"))
    }
}

fn waited(thread: &Path) -> Duration {
    // The thread may have ended.
    let stat = fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
    let nanos = stat.split_whitespace().nth(1);
    Duration::from_nanos(nanos.and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}
