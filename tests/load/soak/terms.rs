//! The settings of the file that change, and when each of them may have been in force.

use std::fmt::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::support::now;
use crate::support::rng::Rng;

/// How long after it was written a file is surely in force, on a busy machine too.
const IN_FORCE: Duration = Duration::from_secs(5);

/// A route of the file, and its origin.
#[derive(Debug)]
pub struct Route {
    pub path: &'static str,
    pub origin: &'static str,
    pub reject_status: u16,
}

/// Only a gate rejects requests of the second route: it has no limits.
pub const ROUTES: [Route; 2] = [
    Route {
        path: "/",
        origin: "app",
        reject_status: 429,
    },
    Route {
        path: "/open",
        origin: "side",
        reject_status: 420,
    },
];

/// More requests than all clients together may have waiting.
const MANY: u64 = 100;
/// How much later than at its time a wait may end on a busy machine.
const LATE: Duration = Duration::from_secs(1);
/// The precision of the waits in the access log.
const PRECISION: Duration = Duration::from_millis(5);

/// The gate of an origin.
#[derive(Clone, Debug)]
pub struct GateTerms {
    /// Requests a second.
    pub rate: Option<u64>,
    /// 0: no limit.
    pub max_in_flight: u64,
    /// The zone whose keys share the gate.
    pub share: Option<&'static str>,
    pub queue: u64,
    pub max_queue: u64,
    pub queue_timeout: Duration,
    /// The table `backoff`, without its title.
    pub backoff: Option<String>,
    /// The `max_wait` of the origin's route.
    pub max_wait: Option<Duration>,
}

impl GateTerms {
    /// A gate that lets everything through at once.
    const CALM: Self = Self {
        rate: None,
        max_in_flight: 1000,
        share: None,
        queue: MANY,
        max_queue: 10_000,
        queue_timeout: Duration::from_millis(400),
        backoff: None,
        max_wait: None,
    };

    fn random(rng: &mut Rng) -> Self {
        const QUEUES: [u64; 5] = [1, 2, 5, 10, MANY];
        let has_gate = rng.percent(85);
        Self {
            rate: (has_gate && rng.percent(60)).then(|| rng.pick(&[50, 70, 150, 500, 2000])),
            max_in_flight: if has_gate && rng.percent(50) {
                rng.within(1, 12)
            } else {
                0
            },
            share: rng.percent(60).then(|| rng.pick(&["z", "keys"])),
            queue: rng.pick(&QUEUES),
            max_queue: rng.pick(&[1, 4, 12, 10_000]),
            queue_timeout: Duration::from_millis(rng.pick(&[0, 30, 200, 400, 1000])),
            backoff: (has_gate && rng.percent(40)).then(|| backoff(rng)),
            max_wait: rng
                .percent(25)
                .then(|| Duration::from_millis(rng.pick(&[10, 100, 500]))),
        }
    }

    /// Whether the origin has a gate at all.
    pub fn exists(&self) -> bool {
        self.rate.is_some() || self.max_in_flight > 0 || self.backoff.is_some()
    }

    /// Whether the gate may reject a request with its route's `reject_status`.
    pub fn may_refuse(&self) -> bool {
        self.may_reject("queue", Duration::ZERO) || self.may_reject("max_wait", Duration::ZERO)
    }

    /// Whether the gate may reject a request that has waited so long, for this reason.
    pub fn may_reject(&self, reason: &str, waited: Duration) -> bool {
        let is_small = self.queue < MANY || self.max_queue < MANY;
        let fits = match reason {
            // For these a request is rejected when it comes.
            _ if !waited.is_zero() && reason != "timeout" => false,
            "queue" => self.share.is_some() && is_small,
            "max_queue" => self.max_queue < MANY,
            "max_wait" => self.max_wait.is_some(),
            "timeout" => waited + PRECISION >= self.queue_timeout && self.may_last(waited),
            _ => false,
        };
        self.exists() && fits
    }

    /// Whether a request may have waited so long.
    pub fn may_last(&self, waited: Duration) -> bool {
        waited <= self.queue_timeout + LATE
    }

    fn text(&self, route: &Route, servers: &str) -> String {
        let Self {
            max_in_flight,
            queue,
            max_queue,
            queue_timeout,
            ..
        } = self;
        let name = route.origin;
        let mut text = format!(
            r#"
[origins.{name}]
servers = [{servers}]
max_in_flight = {max_in_flight}
queue = {queue}
max_queue = {max_queue}
queue_timeout = "{}ms"
response_timeout = "1500ms"
max_fails = 3
fail_timeout = "1s"
"#,
            queue_timeout.as_millis()
        );
        let rate = self
            .rate
            .map_or("none".to_owned(), |rate| format!("{rate}r/s"));
        writeln!(text, "rate = \"{rate}\"").expect("memory");
        if let Some(zone) = self.share {
            writeln!(text, "share = \"{zone}\"").expect("memory");
        }
        if let Some(backoff) = &self.backoff {
            writeln!(text, "[origins.{name}.backoff]\n{backoff}").expect("memory");
        }
        text
    }
}

fn backoff(rng: &mut Rng) -> String {
    let mode = rng.pick(&["on", "on", "shadow"]);
    let slow = rng.pick(&["none", "100ms", "300ms"]);
    let on = rng.pick(&["[\"503\", \"timeout\", \"connect\"]", "[\"5xx\"]"]);
    let floor = rng.pick(&["10%", "50%"]);
    format!(
        "mode = \"{mode}\"\nslow = \"{slow}\"\non = {on}\nfloor = \"{floor}\"\nmax_pause = \"700ms\""
    )
}

/// The settings that change.
#[derive(Clone, Debug)]
pub struct Terms {
    pub rate: u64,
    pub burst: u64,
    pub delay: Option<u64>,
    /// One for each of [`ROUTES`].
    pub gates: [GateTerms; ROUTES.len()],
    pub servers: Vec<SocketAddr>,
}

impl Terms {
    /// Calm: all servers, and limits that are seldom reached.
    pub fn calm(servers: &[SocketAddr]) -> Self {
        Self {
            rate: 60,
            burst: 20,
            delay: None,
            gates: [GateTerms::CALM; ROUTES.len()],
            servers: servers.to_vec(),
        }
    }

    pub fn random(rng: &mut Rng, all: &[SocketAddr]) -> Self {
        let burst = rng.within(0, 30);
        let first = rng.pick(&[0, 1, 2]);
        let count = usize::try_from(rng.within(2, 5)).expect("few");
        Self {
            rate: rng.within(15, 150),
            burst,
            delay: rng
                .percent(30)
                .then(|| rng.within(0, burst.saturating_add(1))),
            gates: [(); ROUTES.len()].map(|()| GateTerms::random(rng)),
            servers: all
                .iter()
                .cycle()
                .skip(first)
                .take(count.min(all.len()))
                .copied()
                .collect(),
        }
    }

    pub fn text(&self) -> String {
        let Self { rate, burst, .. } = self;
        let servers: Vec<_> = self
            .servers
            .iter()
            .map(|at| format!("\"http://{at}\""))
            .collect();
        let servers = servers.join(", ");
        let delay = self
            .delay
            .map_or(String::new(), |delay| format!(", delay = {delay}"));
        let (mut origins, mut routes) = (String::new(), String::new());
        for (route, gate) in ROUTES.iter().zip(&self.gates) {
            origins += &gate.text(route, &servers);
            let Route {
                path,
                origin,
                reject_status,
            } = route;
            writeln!(routes, "\n[[routes]]\npath = \"{path}\"\norigin = \"{origin}\"\nreject_status = {reject_status}").expect("memory");
            if let Some(most) = gate.max_wait {
                writeln!(routes, "max_wait = \"{}ms\"", most.as_millis()).expect("memory");
            }
            if route.path == "/" {
                writeln!(
                    routes,
                    "limits = [{{ zone = \"z\", burst = {burst}{delay} }}]"
                )
                .expect("memory");
            }
        }
        format!(
            r#"
workers = 2
shutdown_timeout = "5s"
{origins}
[zones.z]
key = "$arg_key"
rate = "{rate}r/s"

[zones.keys]
key = "$arg_key"
rate = "1r/s"
{routes}
[log]
level = "debug"
access = "access.log"
"#
        )
    }
}

/// All files so far.
#[derive(Debug, Default)]
pub struct History {
    files: Vec<Saved>,
    reloads: Vec<Reload>,
}

#[derive(Debug)]
struct Saved {
    at: Instant,
    gates: [GateTerms; ROUTES.len()],
}

/// A line of the gateway's log: it has read a file.
#[derive(Clone, Copy, Debug)]
pub struct Reload {
    pub at: Instant,
    /// Whether the file was a good one.
    pub is_good: bool,
}

impl History {
    pub fn saved(&mut self, terms: &Terms) {
        self.files.push(Saved {
            at: now(),
            gates: terms.gates.clone(),
        });
    }

    /// What the log says, in its order. With it the times are closer than without.
    pub fn reloads(&mut self, reloads: Vec<Reload>) {
        self.reloads = reloads;
    }

    /// The gates of the origin of `ROUTES[route]` that may have been in force between two moments.
    pub fn gates(
        &self,
        route: usize,
        from: Instant,
        to: Instant,
    ) -> impl Iterator<Item = &GateTerms> {
        let is_in_force = |saved: &Saved| self.in_force_since(saved.at) < from;
        let first = self.files.iter().rposition(is_in_force).unwrap_or_default();
        let since = self.files[first..].iter();
        since
            .take_while(move |saved| saved.at <= to)
            .map(move |saved| &saved.gates[route])
    }

    /// When a file that was saved at this moment, or a later one, was surely in force.
    ///
    /// The gateway reads one file after the other, so the second one after that moment is not an older one.
    fn in_force_since(&self, saved: Instant) -> Instant {
        let first = self.reloads.partition_point(|reload| reload.at < saved);
        let mut later = self.reloads[first..].iter().skip(1);
        let good = later.find(|reload| reload.is_good).map(|reload| reload.at);
        good.map_or(saved + IN_FORCE, |good| good.min(saved + IN_FORCE))
    }
}
