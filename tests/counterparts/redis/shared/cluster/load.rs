//! Load of two gateways on a Redis cluster, and checks of the result.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::nodes::Cluster;
use crate::redis::shared::most_above;
use crate::support::night::day_or_night;
use crate::support::{Done, Gateway, Origin, alone, best_of_three, now};

/// Requests per second of each key.
pub const RATE: f64 = 10.0;
/// Number of keys of each route.
const KEYS: usize = 8;
/// Burst of the keys that do not wait.
pub const BURST: f64 = 10.0;
/// Delay of a departure that a busy machine may cause, in intervals.
const JITTER: f64 = 1.0;

/// Time after the end of an outage within which the shared pace is back.
pub const BACK_WITHIN: Duration = Duration::from_secs(2);

/// The name in Redis of the grid of the origin's gate.
pub const GRID: &str = "drip:gate:app.2";

/// Routes: requests wait for their slots, use bursts, or get 503 while the store is out.
pub const WAIT: &str = "/wait";
pub const BURSTS: &str = "/bursts";
pub const CLOSED: &str = "/closed";

/// Fields of a gate that admits more requests than arrive.
pub const GATE: &str = "rate = \"2000r/s\"\nstore = \"redis\"";

/// A cluster, two gateways that share two zones in it, and an origin.
pub struct Scene {
    pub cluster: Cluster,
    pub gateways: [Gateway; 2],
    origin: Origin,
    text: String,
}

/// Results of a load.
pub struct Seen {
    /// Number of responses by route and status.
    pub statuses: BTreeMap<&'static str, BTreeMap<u16, usize>>,
    pub longest: Duration,
    /// Arrivals at the origin by route and key.
    arrivals: BTreeMap<(&'static str, String), Vec<Instant>>,
}

impl Scene {
    /// Starts the scene. `gate`: further fields of the origin.
    pub fn new(gate: &str) -> Self {
        let (cluster, origin) = (Cluster::start(), Origin::start());
        let text = Self::text(&cluster, &origin, gate);
        let gateways = [Gateway::start(&text), Gateway::start(&text)];
        Self {
            cluster,
            gateways,
            origin,
            text,
        }
    }

    fn text(cluster: &Cluster, origin: &Origin, gate: &str) -> String {
        format!(
            r#"
workers = 1

[origins.app]
servers = ["http://{}"]
{gate}

[redis]
url = "{}"
timeout = "150ms"

[zones.local]
key = "$arg_key"
rate = "{RATE}r/s"
store = "redis"

[zones.closed]
key = "$arg_key"
rate = "{RATE}r/s"
store = "redis"
on_store_failure = "closed"

[[routes]]
path = "{WAIT}"
origin = "app"
limits = [{{ zone = "local", burst = 4 }}]

[[routes]]
path = "{BURSTS}"
origin = "app"
limits = [{{ zone = "local", burst = {BURST}, nodelay = true }}]

[[routes]]
path = "{CLOSED}"
origin = "app"
limits = [{{ zone = "closed", burst = 4 }}]
"#,
            origin.address,
            cluster.url()
        )
    }

    /// Starts another gateway on the same file.
    pub fn another_gateway(&self) -> Gateway {
        Gateway::start(&self.text)
    }

    /// Returns all keys, each with its route and its name in Redis.
    pub fn keys() -> impl Iterator<Item = (&'static str, String, String)> {
        let of_route = |route: &'static str, zone: &'static str| {
            (0..KEYS).map(move |nth| {
                let key = format!("{}{nth}", &route[1..]);
                let name = format!("drip:{zone}:leaky_bucket.2:{key}");
                (route, key, name)
            })
        };
        of_route(WAIT, "local")
            .chain(of_route(BURSTS, "local"))
            .chain(of_route(CLOSED, "closed"))
    }

    /// Sends requests for each key to both gateways, one after another, while `meanwhile` runs.
    ///
    /// Fails unless every request is answered.
    pub fn under_load(&self, meanwhile: impl FnOnce()) -> Seen {
        let stop = AtomicBool::default();
        let seen = Mutex::new((BTreeMap::<_, BTreeMap<u16, usize>>::new(), Duration::ZERO));
        let ask = |gateway: &Gateway, route: &'static str, key: &str| {
            let mut client = gateway.connect();
            while !stop.load(Ordering::SeqCst) {
                let began = now();
                let status = client.fetch(&format!("{route}?key={key}")).status;
                let took = began.elapsed();
                let mut seen = seen.lock().expect("no panic");
                *seen.0.entry(route).or_default().entry(status).or_default() += 1;
                seen.1 = seen.1.max(took);
                drop(seen);
                if status != 200 {
                    thread::sleep(Duration::from_millis(day_or_night(100, 25)));
                }
            }
        };
        thread::scope(|scope| {
            for gateway in &self.gateways {
                for (route, key, _) in Self::keys() {
                    let ask = &ask;
                    scope.spawn(move || ask(gateway, route, &key));
                }
            }
            // Clients must also stop if `meanwhile` fails.
            let _done = Done(&stop);
            meanwhile();
        });
        let (statuses, longest) = seen.into_inner().expect("no panic");
        let mut arrivals = BTreeMap::<_, Vec<Instant>>::new();
        let all = self.origin.arrivals();
        for (route, key, _) in Self::keys() {
            let target = format!("{route}?key={key}");
            let of_key = all.iter().filter(|arrival| arrival.target == target);
            arrivals.insert((route, key), of_key.map(|arrival| arrival.at).collect());
        }
        Seen {
            statuses,
            longest,
            arrivals,
        }
    }

    /// Checks limit and pace before an outage, during it, and more than [`BACK_WITHIN`] after it.
    pub fn check_outage(
        &self,
        seen: &Seen,
        [before, during, after]: [(Instant, Instant); 3],
    ) -> Result<(), String> {
        for (nth, master) in ["0", "1", "2"].iter().enumerate() {
            let share = |span| {
                seen.share_of_rate(span, |route, key| {
                    let name = Self::keys().find(|it| (it.0, it.1.as_str()) == (route, key));
                    let name = name.expect("a key").2;
                    route != CLOSED && self.cluster.slot_of(&name).1 == nth
                })
            };
            let shares = [before, during, after].map(share);
            let _nobody_listens = writeln!(
                std::io::stderr(),
                "  keys of master {master}: {shares:.2?} of their rate before, during, after"
            );
        }
        seen.check_limit(before, 1.0, 1.0)?;
        seen.check_pace(before, 0.05)?;
        // Each gateway alone may use the full rate, and keys that the store lost get their burst
        // again.
        seen.check_limit(during, 2.0, 2.0)?;
        seen.check_limit(after, 1.0, 1.0)?;
        seen.check_pace(after, 0.05)?;
        if !self.are_up() {
            return Err("a gateway is still without the store".to_owned());
        }
        // The store must not alternate between up and out while one node is out, because requests
        // would wait for it each time. Another node may learn of the new master later, so one more
        // outage is allowed.
        for gateway in &self.gateways {
            let outages = gateway.log_lines().into_iter();
            let outages =
                outages.filter(|(at, line)| *at > before.1 && line.contains("the store is out"));
            let outages = outages.count();
            if !(1..=2).contains(&outages) {
                return Err(format!("{outages} outages: {}", gateway.log()));
            }
        }
        Ok(())
    }

    /// Returns the number of store operations of the gateways with a result other than `ok`.
    pub fn failed_operations(&self) -> i64 {
        let mut failed = 0;
        for gateway in &self.gateways {
            let metrics = gateway.metrics();
            for zone in ["local", "closed"] {
                for result in ["late", "unreachable", "refused", "skipped"] {
                    let labels = [("zone", zone), ("result", result)];
                    failed += metrics.count("drip_store_operations_total", &labels);
                }
            }
        }
        failed
    }

    pub fn are_up(&self) -> bool {
        let up = |gateway: &Gateway| gateway.count("drip_store_up", &[]) == 1;
        self.gateways.iter().all(up)
    }

    /// Returns whether both gateways have shared the gate all the time.
    pub fn gates_share(&self) -> bool {
        let shares = |gateway: &Gateway| {
            let shared = gateway.count("drip_origin_shared", &[("origin", "app")]);
            shared == 1 && !gateway.log().contains("goes on alone")
        };
        self.gateways.iter().all(shares)
    }
}

impl Seen {
    pub fn print(&self, what: &str) {
        // Written past the test harness, which captures output.
        let _nobody_listens = writeln!(
            std::io::stderr(),
            "cluster {what}: {:?}, longest {:?}",
            self.statuses,
            self.longest
        );
    }

    /// Checks that all responses have a documented status and none took too long.
    ///
    /// The longest allowed duration is that of the queue plus the store's timeout.
    pub fn check_answers(&self, may_close: bool) -> Result<(), String> {
        for (route, statuses) in &self.statuses {
            let allowed: BTreeSet<u16> = if may_close && *route == CLOSED {
                [200, 429, 503].into()
            } else {
                [200, 429].into()
            };
            if statuses.keys().any(|status| !allowed.contains(status)) {
                return Err(format!("{route} answered with {statuses:?}"));
            }
        }
        // Two clients use a key: 200 ms in the queue, 150 ms for the store, and slack for a busy
        // machine.
        if self.longest > Duration::from_millis(1200) {
            return Err(format!("one waited {:?}", self.longest));
        }
        Ok(())
    }

    /// Checks that no key gets more than `gateways` times the rate and `bursts` times the burst.
    pub fn check_limit(
        &self,
        (from, until): (Instant, Instant),
        gateways: f64,
        bursts: f64,
    ) -> Result<(), String> {
        for ((route, key), moments) in &self.arrivals {
            let within = moments.iter().filter(|at| (from..until).contains(*at));
            let within: Vec<Instant> = within.copied().collect();
            let above = most_above(&within, RATE * gateways);
            let burst = if *route == BURSTS { BURST } else { 0.0 };
            let most = (1.0 + burst) * bursts + JITTER * gateways;
            if above > most {
                return Err(format!(
                    "{route} {key}: {above:.1} above the rate, not {most}"
                ));
            }
        }
        Ok(())
    }

    /// Returns the mean rate of the selected keys as a share of the rate: 1 is the full rate.
    pub fn share_of_rate(
        &self,
        (from, until): (Instant, Instant),
        is_one: impl Fn(&str, &str) -> bool,
    ) -> f64 {
        let (mut count, mut keys) = (0, 0);
        for ((route, key), moments) in &self.arrivals {
            if is_one(route, key) {
                count += moments
                    .iter()
                    .filter(|at| (from..until).contains(*at))
                    .count();
                keys += 1;
            }
        }
        let seconds = (until - from).as_secs_f64();
        f64::from(u32::try_from(count).expect("few")) / (seconds * RATE * f64::from(keys))
    }

    /// Checks that the keys of each route together have their rate in a span, within `slack`.
    pub fn check_pace(&self, span: (Instant, Instant), slack: f64) -> Result<(), String> {
        for expected in [WAIT, BURSTS, CLOSED] {
            let share = self.share_of_rate(span, |route, _| route == expected);
            if (share - 1.0).abs() > slack {
                return Err(format!("{expected} had {share:.3} of its rate"));
            }
        }
        Ok(())
    }
}

/// Waits, and returns the begin and the end of the wait.
pub fn span(length: Duration) -> (Instant, Instant) {
    let began = now();
    thread::sleep(length);
    (began, now())
}

/// Breaks the first master under load, and repairs it when its replica has taken over.
///
/// The repaired node must return as a replica.
pub fn check_takeover(broken: &str, break_it: impl Fn(&Cluster), mend: impl Fn(&Cluster)) {
    best_of_three(|_| {
        let scene = Scene::new("");
        let _machine = alone();
        let cluster = &scene.cluster;
        let mut spans = Vec::new();
        let mut took = Duration::ZERO;
        let seen = scene.under_load(|| {
            span(Duration::from_millis(500));
            spans.push(span(Duration::from_millis(1200)));
            let began = now();
            break_it(cluster);
            cluster.wait_for_takeover(0);
            took = began.elapsed();
            span(BACK_WITHIN);
            spans.push((began, now()));
            spans.push(span(Duration::from_millis(day_or_night(1200, 2000))));
            if day_or_night(true, false) {
                return;
            }
            mend(cluster);
            cluster.wait_until("the old master is a replica", |cluster| {
                !cluster.nodes[0].is_master() && cluster.is_whole()
            });
            spans.push(span(Duration::from_millis(1500)));
        });
        seen.print(&format!(
            "with a master {broken}, taken over after {took:?}"
        ));
        seen.check_answers(true)?;
        scene.check_outage(&seen, spans[..3].try_into().expect("three spans"))?;
        // By day the load ends before the old master returns.
        let Some(mended) = spans.get(3) else {
            return Ok(());
        };
        seen.check_limit(*mended, 1.0, 1.0)?;
        seen.check_pace(*mended, 0.05)
    });
}
