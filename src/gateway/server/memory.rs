//! Gives memory that nothing uses back to the system.

use std::convert::Infallible;
use std::hint::black_box;
use std::thread;
use std::time::Duration;

use tokio::time::sleep;

/// How often unused memory is given back.
const INTERVAL: Duration = Duration::from_secs(5);

/// Gives unused memory back, again and again.
///
/// mimalloc gives back what was free for a second, but looks for it only while a page becomes free;
/// after it has done so once, in version 3.1 it may never look again (`mi_arenas_try_purge`: the
/// time of the arena stays set, that of the process does not). It always looks when a thread ends
/// that has allocated. So a thread is started that does nothing else.
pub(super) async fn give_back() -> Infallible {
    loop {
        sleep(INTERVAL).await;
        let thread = thread::Builder::new().name("memory".to_owned());
        // Where no thread can be started, the next one may be.
        let _ended_by_itself = thread.spawn(|| drop(black_box(Box::new(0_u8))));
    }
}
