//! A well-behaved client beside an abuse of the gateway.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::support::starved::Starved;
use crate::support::{Client, Gateway, now};

/// Maximum response time for other clients during any abuse.
///
/// An undisturbed response takes milliseconds. The bound allows for two busy cores, on which the
/// abusers run too. A gateway that makes other clients wait until the abuse ends takes longer. Time
/// in which the gateway waits for a core that other programs use does not count.
pub const BOUND: Duration = Duration::from_secs(2);

const EVERY: Duration = Duration::from_millis(70);

/// A well-behaved client that sends a request now and then until it is stopped.
pub struct Others {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Duration>>,
}

impl Others {
    /// Requests `/?key=other`, alternately on one kept connection and on new ones.
    pub fn start(gateway: &Gateway) -> Self {
        Self::run(gateway, true)
    }

    /// Requests `/?key=other` on one kept connection only.
    pub fn on_one_connection(gateway: &Gateway) -> Self {
        Self::run(gateway, false)
    }

    fn run(gateway: &Gateway, also_new: bool) -> Self {
        let (to, starved) = (gateway.address(), Starved::of(gateway.id()));
        let stop = Arc::<AtomicBool>::default();
        let to_stop = Arc::clone(&stop);
        let mut kept = Client::connect(to);
        let took = timed(starved, || ask(&mut kept));
        let thread = thread::spawn(move || {
            let mut all = vec![took];
            while !to_stop.load(Ordering::SeqCst) {
                all.push(timed(starved, || ask(&mut kept)));
                thread::sleep(EVERY);
                if also_new {
                    all.push(timed(starved, || ask(&mut Client::connect(to))));
                    thread::sleep(EVERY);
                }
            }
            all
        });
        Self { stop, thread }
    }

    /// Fails unless all requests so far, and the next ones, were answered in time.
    pub fn check(self) {
        thread::sleep(6 * EVERY);
        self.stop.store(true, Ordering::SeqCst);
        let all = self
            .thread
            .join()
            .unwrap_or_else(|panic| resume_unwind(panic));
        let longest = all.iter().max().copied().unwrap_or_default();
        assert!(all.len() > 3, "only {} requests of others", all.len());
        let count = all.len();
        assert!(longest < BOUND, "one of {count} requests took {longest:?}");
        println!("{} requests of others, the longest {longest:?}", all.len());
    }
}

fn ask(client: &mut Client) {
    let answer = client.fetch("/?key=other");
    assert_eq!(answer.status, 200, "another's request: {:?}", answer.head);
}

/// Returns the duration of `this`, without the time in which the gateway had no core.
fn timed(starved: Starved, this: impl FnOnce()) -> Duration {
    let (began, before) = (now(), starved.so_far());
    this();
    let took = began.elapsed();
    took.saturating_sub(starved.so_far().saturating_sub(before))
}
