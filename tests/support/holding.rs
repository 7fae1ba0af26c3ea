//! An origin that answers each request only when the test releases it.

use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex};

use super::{Exchange, Origin, PATIENCE};

/// An origin that answers each request only when the test releases it.
pub struct HoldingOrigin {
    pub origin: Origin,
    released: Arc<Released>,
}

#[derive(Default)]
struct Released {
    targets: Mutex<HashSet<String>>,
    more: Condvar,
}

impl HoldingOrigin {
    pub fn start() -> Self {
        Self::of("")
    }

    /// Starts an origin that holds only requests whose target contains `part`.
    pub fn of(part: &'static str) -> Self {
        let released = Arc::<Released>::default();
        let of_origin = Arc::clone(&released);
        let origin = Origin::answering(move |exchange: &mut Exchange| {
            if exchange.target().contains(part) {
                of_origin.wait_for(exchange.target());
            }
            exchange.reply(b"ok")
        });
        Self { origin, released }
    }

    /// Releases the request of this target, which may not have arrived yet.
    pub fn release(&self, target: &str) {
        let mut targets = self.released.targets.lock().expect("no panic");
        targets.insert(target.to_owned());
        self.released.more.notify_all();
    }

    /// Returns the targets of the requests that have arrived, in order.
    pub fn targets(&self) -> Vec<String> {
        let arrivals = self.origin.arrivals().into_iter();
        arrivals.map(|arrival| arrival.target).collect()
    }
}

impl Released {
    fn wait_for(&self, target: &str) {
        let targets = self.targets.lock().expect("no panic");
        let is_held = |targets: &mut HashSet<String>| !targets.contains(target);
        let waited = self.more.wait_timeout_while(targets, PATIENCE, is_held);
        drop(waited.expect("no panic"));
    }
}
