//! Returns unused memory to the system.

use std::convert::Infallible;
use std::hint::black_box;
use std::thread;
use std::time::Duration;

use tokio::time::sleep;

/// Interval of returning unused memory.
const INTERVAL: Duration = Duration::from_secs(5);

/// Returns unused memory at a regular interval. Never ends.
///
/// The allocator, mimalloc, returns memory that was free for a second. But it only checks for such
/// memory when a page becomes free, and version 3.1 may no longer check at all after the first time
/// (`mi_arenas_try_purge`). It always checks when a thread ends that has allocated. So this starts
/// a thread that only allocates.
pub(super) async fn give_back() -> Infallible {
    loop {
        sleep(INTERVAL).await;
        let thread = thread::Builder::new().name("memory".to_owned());
        // If no thread can be started now, the next attempt may succeed.
        let _ended_by_itself = thread.spawn(|| drop(black_box(Box::new(0_u8))));
    }
}
