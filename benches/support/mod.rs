//! What the measuring programs share: an origin that stamps what arrives, clients, processes on
//! their own processor, and the pages that the results go into.

pub mod answers;
pub mod arguments;
pub mod asking;
pub mod client;
pub mod crowd;
pub mod figures;
pub mod http2;
pub mod machine;
pub mod origin;
pub mod page;
pub mod place;
pub mod process;
pub mod tls;
pub mod usage;

use std::time::Duration;

/// Waits until `is_so`, at most `limit`; says whether it is.
pub fn within(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = drip::clock::now() + limit;
    loop {
        if is_so() {
            return true;
        }
        if drip::clock::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
