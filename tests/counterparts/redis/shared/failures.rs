//! Tests of requests while the store fails: the table in docs/operate/several-gateways-redis.md.

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::RangeInclusive;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::programs::redis::Redis;
use crate::redis::shared::file;
use crate::redis::shared::relay::Relay;
use crate::support::night::day_or_night;
use crate::support::{Done, Gateway, Origin, best_of_three, eventually, half_alone, now};

const RATE: usize = 100;
const UP: &str = "drip_store_up";
/// Values of `on_store_failure`, which are also names of zones. A route is `/local-zone`.
const POLICIES: [&str; 3] = ["local", "open", "closed"];

/// A Redis behind a relay, its replica, two gateways, and an origin.
///
/// The gateways share a zone of [`RATE`] for each policy.
struct Scene {
    origin: Origin,
    redis: Redis,
    follower: Redis,
    relay: Relay,
    gateways: [Gateway; 2],
}

/// Results for one zone.
struct Seen {
    /// Number of responses by status.
    statuses: BTreeMap<u16, usize>,
    longest: Duration,
    /// Requests per second at the origin before, during and after the failure.
    rates: [f64; 3],
}

impl Scene {
    fn new() -> Self {
        let (origin, redis) = (Origin::start(), Redis::start());
        let port = redis.address.port().to_string();
        let follower = Redis::with(&["--replicaof", "127.0.0.1", &port]);
        let relay = Relay::to(redis.address);
        let url = format!("redis://{}", relay.address);
        let mut text = file(&origin, &url, "1r/s", "", "");
        text = text.replace("timeout = \"2s\"", "timeout = \"150ms\"");
        for policy in POLICIES {
            text += &format!(
                "[zones.{policy}]\nkey = \"$arg_key\"\nrate = \"{RATE}r/s\"\nstore = \"redis\"\n\
                 on_store_failure = \"{policy}\"\n\
                 [[routes]]\npath = \"/{policy}-zone\"\norigin = \"app\"\n\
                 limits = [{{ zone = \"{policy}\", burst = 20 }}]\n"
            );
        }
        let gateways = [Gateway::start(&text), Gateway::start(&text)];
        Self {
            origin,
            redis,
            follower,
            relay,
            gateways,
        }
    }

    /// Loads both gateways with requests for these zones. A failure begins and ends in the middle.
    fn watch<const N: usize>(
        &mut self,
        what: &str,
        policies: [&str; N],
        happen: impl FnOnce(&mut Redis, &Redis, &Relay),
        end: impl FnOnce(&mut Redis, &Redis),
    ) -> [Seen; N] {
        let length = Duration::from_millis(day_or_night(1000, 1500));
        let Self {
            origin,
            redis,
            follower,
            relay,
            gateways: [one, other],
        } = self;
        let mut spans = Vec::new();
        let mut span = |last: Duration| {
            let began = now();
            thread::sleep(last);
            spans.push((began, now()));
        };
        let fates = under_load([one, other], &policies, || {
            thread::sleep(Duration::from_millis(day_or_night(300, 700)));
            span(length);
            happen(redis, follower, relay);
            span(length);
            end(redis, follower);
            // The shared pace must be back within 2 s. By day it is measured once both gateways
            // have the store.
            let within = now() + Duration::from_secs(2);
            if day_or_night(true, false) {
                let has_store = |it: &&Gateway| it.count(UP, &[]) == 1;
                while now() < within && ![&*one, &*other].iter().all(has_store) {
                    thread::sleep(Duration::from_millis(20));
                }
            }
            let left = within.saturating_duration_since(now());
            thread::sleep(left.min(Duration::from_millis(day_or_night(600, 2000))));
            span(length);
        });
        policies.map(|policy| {
            let moments = origin.moments(&format!("/{policy}-zone"));
            let rates = spans.iter().map(|(from, until)| {
                #[allow(clippy::cast_precision_loss)]
                let count = moments
                    .iter()
                    .filter(|at| (*from..*until).contains(*at))
                    .count() as f64;
                count / (*until - *from).as_secs_f64()
            });
            let rates: Vec<f64> = rates.collect();
            let (statuses, longest) = fates[policy].clone();
            let seen = Seen {
                statuses,
                longest,
                rates: rates.try_into().expect("three spans"),
            };
            seen.print(what, policy);
            seen
        })
    }
}

/// Number of responses by status, and the longest duration.
type Fate = (BTreeMap<u16, usize>, Duration);

/// Keeps fifteen clients busy at each gateway for each of these zones, while `meanwhile` runs.
///
/// Fails unless every request is answered.
fn under_load<'p>(
    gateways: [&Gateway; 2],
    policies: &[&'p str],
    meanwhile: impl FnOnce(),
) -> BTreeMap<&'p str, Fate> {
    let (fates, stop) = (Mutex::new(BTreeMap::new()), AtomicBool::default());
    let ask = |gateway: &Gateway, policy: &'p str| {
        let mut client = gateway.connect();
        while !stop.load(Ordering::SeqCst) {
            let began = now();
            let status = client.fetch(&format!("/{policy}-zone?key=a")).status;
            let took = began.elapsed();
            let mut fates = fates.lock().expect("no panic");
            let fate: &mut Fate = fates.entry(policy).or_default();
            *fate.0.entry(status).or_default() += 1;
            fate.1 = fate.1.max(took);
            drop(fates);
            thread::sleep(Duration::from_millis(50));
        }
    };
    thread::scope(|scope| {
        for gateway in gateways {
            for policy in policies.iter().flat_map(|policy| [*policy; 15]) {
                let ask = &ask;
                scope.spawn(move || ask(gateway, policy));
            }
        }
        let _done = Done(&stop);
        meanwhile();
    });
    fates.into_inner().expect("no panic")
}

impl Seen {
    fn print(&self, what: &str, policy: &str) {
        // Written past the test harness, which captures output.
        let _nobody_listens = writeln!(
            std::io::stderr(),
            "store {what:<22} {policy:<7} {:?}, longest {:?}; at the origin {:.0?} a second",
            self.statuses,
            self.longest,
            self.rates
        );
    }

    /// Checks statuses, durations and rates.
    ///
    /// All responses have one of these statuses. None takes longer than its queue and the store's
    /// timeout on a busy machine. The rate is the shared one before and after the failure, and
    /// `during` during it, within 5 %.
    fn check(&self, allowed: &[u16], during: RangeInclusive<usize>) -> Result<(), String> {
        let Self {
            statuses, longest, ..
        } = self;
        if statuses.keys().any(|status| !allowed.contains(status)) {
            return Err(format!("answered with {statuses:?}"));
        }
        if *longest > Duration::from_millis(1200) {
            return Err(format!("one waited {longest:?}"));
        }
        for (rate, expected) in self.rates.iter().zip([RATE..=RATE, during, RATE..=RATE]) {
            #[allow(clippy::cast_precision_loss)]
            let (least, most) = (
                *expected.start() as f64 * 0.95,
                *expected.end() as f64 * 1.05,
            );
            if !(least..=most).contains(rate) {
                return Err(format!("{:?} a second at the origin", self.rates));
            }
        }
        Ok(())
    }
}

#[test]
fn killed_each_zone_falls_back_as_it_says_and_no_request_is_lost() {
    let _machine = half_alone();
    best_of_three(|_| {
        let mut scene = Scene::new();
        let [local, open, closed] = scene.watch(
            "killed and restarted",
            POLICIES,
            |redis, _, _| redis.kill(),
            |redis, _| redis.restart(),
        );
        // Each gateway alone may use the full rate. Each continues from its last known level, so
        // there is no surge.
        local.check(&[200, 429], RATE..=2 * RATE)?;
        // 30 clients with a pause of 50 ms send far more than the rate.
        open.check(&[200, 429], RATE * 2..=RATE * 10)?;
        // The waiting requests keep their slots.
        closed.check(&[200, 429, 503], 0..=RATE / 4)?;
        for gateway in &scene.gateways {
            let log = gateway.log();
            let received = |part: &str| log.matches(part).count();
            if (received("the store is out"), received("the store is back")) != (1, 1) {
                return Err(format!("not told once: {log}"));
            }
            let metrics = gateway.metrics();
            let operations = |result| {
                let labels = [("zone", "local"), ("result", result)];
                metrics.count("drip_store_operations_total", &labels)
            };
            let labels = [("zone", "closed"), ("reason", "store")];
            let rejected = metrics.count("drip_zone_rejections_total", &labels);
            if operations("ok") == 0 || operations("skipped") == 0 || rejected == 0 {
                return Err(format!("not counted: {}", metrics.0));
            }
        }
        Ok(())
    });
}

#[test]
fn failing_over_to_another_the_pace_goes_on_there() {
    let _machine = half_alone();
    best_of_three(|_| {
        let mut scene = Scene::new();
        let [seen] = scene.watch(
            "failed over",
            ["local"],
            |redis, follower, relay| {
                // At first the name leads to a server that accepts no writes yet.
                redis.kill();
                relay.lead_to(follower.address);
            },
            |_, follower| assert_eq!(follower.ask("REPLICAOF NO ONE"), "+OK"),
        );
        seen.check(&[200, 429], RATE..=2 * RATE)?;
        let up = |it: &Gateway| it.count(UP, &[]) == 1;
        if !scene.gateways.iter().all(up) {
            return Err("it is not back".to_owned());
        }
        Ok(())
    });
}

#[test]
fn a_gateway_starts_without_the_store_and_says_so() {
    let (origin, mut redis) = (Origin::start(), Redis::start());
    redis.kill();
    let limit = ", burst = 1, nodelay = true";
    let gateway = Gateway::start(&file(&origin, &redis.url(), "1r/h", "", limit));
    let pass = |count: usize| {
        let answers = (0..count).map(|_| gateway.fetch("/?key=a").status);
        answers.filter(|status| *status == 200).count()
    };
    assert_eq!(pass(5), 2);
    let ready = gateway.admin("/readyz").expect("an admin port");
    let text = ready.text();
    let says = text.contains("the store is out")
        && text.ends_with("; zones follow their on_store_failure\n");
    assert!(ready.status == 200 && says, "{text}");
    assert_eq!(gateway.count(UP, &[]), 0);
    assert_eq!(gateway.fetch("/open").status, 200);
    redis.restart();
    eventually("the store is back", || gateway.count(UP, &[]) == 1);
    // The new server does not know the earlier requests.
    assert_eq!(pass(5), 2);
    let ready = gateway.admin("/readyz").expect("an admin port");
    assert!(!ready.text().contains("store"), "{}", ready.text());
}
