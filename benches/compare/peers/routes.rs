//! The routes that every peer has: a path with a bucket of its own, by the field X-Key.

/// Passes everything, by a bucket that is looked at.
pub const PASS: &str = "/pass";
/// Refuses everything but a key's first request.
pub const SHUT: &str = "/shut";
/// Passes more than a run asks of one key, and remembers each key for long.
pub const KEYS: &str = "/keys";
/// Lets everybody wait, longer than anything here takes.
pub const WAIT: &str = "/wait";
/// Lets each key go on once in two seconds.
pub const SLOW: &str = "/slow";
/// Lets 4000 a second go on, and all others wait.
pub const DEEP: &str = "/deep";

/// Streams that should be even: so many requests a second, and their path.
pub const STREAMS: [(u64, &str); 4] = [
    (100, "/stream/100"),
    (500, "/stream/500"),
    (2000, "/stream/2000"),
    (5000, "/stream/5000"),
];

/// A route with a zone of its own, keyed by the field X-Key.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    pub path: &'static str,
    /// In the words of nginx and drip alike.
    pub rate: &'static str,
    pub burst: u32,
    pub nodelay: bool,
    /// How many keys it is to remember.
    pub keys: u32,
}

impl Route {
    /// Its zone's.
    pub fn name(&self) -> String {
        self.path.replace('/', "")
    }
}

const fn route(path: &'static str, rate: &'static str, burst: u32, nodelay: bool) -> Route {
    Route {
        path,
        rate,
        burst,
        nodelay,
        keys: 10_000,
    }
}

pub const ROUTES: [Route; 10] = [
    route(PASS, "1000000r/s", 100_000, true),
    route(SHUT, "1r/m", 0, false),
    Route {
        keys: 1_200_000,
        ..route(KEYS, "1r/m", 4_000_000, true)
    },
    route(WAIT, "1r/m", 20_000, false),
    route(SLOW, "30r/m", 10, false),
    route(DEEP, "4000r/s", 20_000, false),
    route(STREAMS[0].1, "100r/s", 1000, false),
    route(STREAMS[1].1, "500r/s", 1000, false),
    route(STREAMS[2].1, "2000r/s", 1000, false),
    route(STREAMS[3].1, "5000r/s", 1000, false),
];
