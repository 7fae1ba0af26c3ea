//! An origin that counts the requests it has at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::{MS, Origin, now};

/// An origin that counts the requests it has at once.
pub struct Counting {
    pub origin: Origin,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    here: AtomicUsize,
    most: AtomicUsize,
    all: AtomicUsize,
}

impl Counting {
    /// Starts an origin that takes 60 ms for a request of `/60`.
    pub fn start() -> Self {
        Self::taking(|target| {
            let millis = target.trim_matches(|c: char| !c.is_ascii_digit());
            let millis = millis.parse().expect("how many milliseconds it takes");
            Duration::from_millis(millis)
        })
    }

    /// Starts an origin that takes as long for a request as `span` says for its target.
    pub fn taking(span: impl Fn(&str) -> Duration + Send + Sync + 'static) -> Self {
        let counts = Arc::<Counts>::default();
        let its = Arc::clone(&counts);
        let origin = Origin::answering(move |exchange| {
            let here = its.here.fetch_add(1, Ordering::SeqCst) + 1;
            its.most.fetch_max(here, Ordering::SeqCst);
            its.all.fetch_add(1, Ordering::SeqCst);
            let body = exchange.body();
            thread::sleep(span(exchange.target()));
            // The count falls before the response is sent, because the permit may be reused at
            // once.
            its.here.fetch_sub(1, Ordering::SeqCst);
            body?;
            exchange.reply(b"ok")
        });
        Self { origin, counts }
    }

    /// Returns the maximum of simultaneous requests so far.
    pub fn most(&self) -> usize {
        self.counts.most.load(Ordering::SeqCst)
    }

    /// Begins a new measurement of the maximum.
    pub fn forget_most(&self) {
        self.counts.most.store(0, Ordering::SeqCst);
    }

    pub fn here(&self) -> usize {
        self.counts.here.load(Ordering::SeqCst)
    }

    /// Returns the number of requests so far.
    pub fn all(&self) -> usize {
        self.counts.all.load(Ordering::SeqCst)
    }

    /// Returns the mean number of simultaneous requests over a span, sampled every millisecond.
    #[allow(clippy::cast_precision_loss)]
    pub fn mean(&self, span: Duration) -> f64 {
        let (began, mut sum, mut looks) = (now(), 0, 0_u32);
        while began.elapsed() < span {
            sum += self.here();
            looks += 1;
            thread::sleep(MS);
        }
        sum as f64 / f64::from(looks)
    }
}
