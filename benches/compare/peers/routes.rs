//! The routes that every peer has. Each is a path with its own bucket for each value of X-Key.

/// Passes every request, after checking a bucket.
pub const PASS: &str = "/pass";
/// Rejects all requests of a key but the first.
pub const SHUT: &str = "/shut";
/// Passes more requests of a key than a run sends, and remembers each key for a long time.
pub const KEYS: &str = "/keys";
/// Makes all requests wait longer than any measurement takes.
pub const WAIT: &str = "/wait";
/// Lets each key pass one request in two seconds.
pub const SLOW: &str = "/slow";
/// Lets 4000 requests per second pass. All others wait.
pub const DEEP: &str = "/deep";

/// Streams whose evenness is measured: requests per second, and the path.
pub const STREAMS: [(u64, &str); 4] = [
    (100, "/stream/100"),
    (500, "/stream/500"),
    (2000, "/stream/2000"),
    (5000, "/stream/5000"),
];

/// Passes every request through a gate that never closes; drip only.
pub const OPEN_GATE: &str = "/gate/open";

/// Streams through a gate: requests per second, and the path; drip only.
pub const GATED: [(u64, &str); 2] = [(500, "/gate/500"), (2000, "/gate/2000")];

/// A route with its own zone, keyed by the field X-Key.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    pub path: &'static str,
    /// Rate, in the syntax that nginx and drip share.
    pub rate: &'static str,
    pub burst: u32,
    pub nodelay: bool,
    /// Number of keys that the zone must be able to hold.
    pub keys: u32,
}

impl Route {
    /// The name of its zone.
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
