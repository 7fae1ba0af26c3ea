//! Compares verdicts and delays of nginx and drip for the same requests at the same times.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use limit::{Bucket, Cost, Delay, Limit, Moment, Rate, Verdict};

use crate::programs::nginx::Nginx;
use crate::support::rng::Rng;
use crate::support::{BUSY, Client, Gateway, MS, Origin, alone, now, watching};
use crate::support::{start_drip, zone};

/// Minimum distance of a request from a time at which its verdict changes.
///
/// Within it, nginx's millisecond resolution would decide.
const MARGIN: Duration = Duration::from_millis(3);

/// Maximum difference of the delays.
const TOLERANCE: Duration = Duration::from_millis(8);

/// Maximum wait for a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Minimum gap between requests of one case, so that both sides see them in the same order.
const APART: Duration = Duration::from_millis(2);

/// Number of connections to each side, opened beforehand.
const CONNECTIONS: usize = 250;

/// The cases, with zones and limits in nginx's syntax.
///
/// Each has the number of keys, the average gap between two requests and the start in milliseconds,
/// its zones, and the limits of each of its routes. A zone is keyed by client or by site.
const CASES: [&str; 9] = [
    "3 40 0 3000; plain client 10r/s; plain",
    "2 30 0 3000; queue client 10r/s; queue burst=5",
    "2 30 0 3000; nodelay client 10r/s; nodelay burst=5 nodelay",
    "2 25 0 3000; delay client 10r/s; delay burst=10 delay=3",
    "1 5 500 1700; fast client 100r/s; fast burst=20",
    "9 60 0 3000; slow client 30r/m; slow burst=2 delay=1",
    "8 50 0 3000; second client 1r/s; second burst=2",
    "5 25 0 3000; each client 5r/s, all site 20r/s; each burst=3, all burst=10 nodelay",
    "2 30 0 3000; shared client 10r/s; shared burst=3 delay=1; shared burst=8",
];

struct Case {
    keys: u64,
    gap: Duration,
    begins: Duration,
    ends: Duration,
    zones: Vec<Zone>,
    /// Limits of each route.
    routes: Vec<Vec<On>>,
}

struct Zone {
    name: &'static str,
    is_site: bool,
    rate: &'static str,
}

/// A limit: index of the zone in the case, burst, delay, and the text in nginx's syntax.
struct On(usize, u32, Delay, &'static str);

impl Case {
    fn read(text: &'static str) -> Self {
        let mut parts = text.split("; ");
        let numbers = parts.next().expect("numbers").split(' ');
        let numbers: Vec<u64> = numbers.flat_map(str::parse).collect();
        let time = |nth: usize| Duration::from_millis(numbers[nth]);
        let zones = parts.next().expect("zones").split(", ").map(|zone| {
            let [name, key, rate] = zone.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{zone}")
            };
            let is_site = key == "site";
            Zone {
                name,
                is_site,
                rate,
            }
        });
        let zones: Vec<_> = zones.collect();
        let limit = |text: &'static str| {
            let mut words = text.split(' ');
            let name = words.next().expect("a zone");
            let zone = zones.iter().position(|zone| zone.name == name);
            let (mut burst, mut delay) = (0, Delay::Above(0));
            for word in words {
                match word.split_once('=') {
                    Some(("burst", number)) => burst = number.parse().expect("a number"),
                    Some((_, number)) => delay = Delay::Above(number.parse().expect("a number")),
                    None => delay = Delay::Never,
                }
            }
            On(zone.expect("a zone"), burst, delay, text)
        };
        let routes = parts.map(|route| route.split(", ").map(limit).collect());
        Self {
            keys: numbers[0],
            gap: time(1),
            begins: time(2),
            ends: time(3),
            routes: routes.collect(),
            zones,
        }
    }

    fn rate(&self, zone: usize) -> Rate {
        self.zones[zone].rate.parse().expect("a rate")
    }
}

fn cases() -> &'static [Case] {
    static READ: LazyLock<Vec<Case>> = LazyLock::new(|| CASES.map(Case::read).into());
    &READ
}

impl Zone {
    fn key(&self) -> &'static str {
        if self.is_site {
            "$http_x_site"
        } else {
            "$http_x_key"
        }
    }
}

/// Returns the limits of all routes, each with its path, one text for each.
fn routes(text: impl Fn(&On, &Case) -> String, separator: &str) -> Vec<(String, String)> {
    let cases = cases().iter().enumerate();
    let routes = cases.flat_map(|(number, case)| {
        let routes = case.routes.iter().enumerate();
        routes.map(move |(route, limits)| (path(number, route), case, limits))
    });
    let text = |(path, case, limits): (String, &Case, &Vec<On>)| {
        let limits: Vec<_> = limits.iter().map(|limit| text(limit, case)).collect();
        (path, limits.join(separator))
    };
    routes.map(text).collect()
}

/// Returns nginx's configuration for all cases: the content of `http`, and the locations.
fn for_nginx() -> (String, Vec<(String, String)>) {
    let zones = cases().iter().flat_map(|case| &case.zones).map(|zone| {
        let Zone { name, rate, .. } = zone;
        format!("limit_req_zone {} zone={name}:1m rate={rate};", zone.key())
    });
    let http = format!("limit_req_status 429;{}", zones.collect::<String>());
    (
        http,
        routes(|limit, _| format!("limit_req zone={};", limit.3), " "),
    )
}

/// Returns drip's configuration for all cases: the zones and the routes.
fn for_drip() -> (String, Vec<(String, String)>) {
    let zones = cases().iter().flat_map(|case| &case.zones);
    let zones = zones.map(|it| zone(it.name, it.key(), it.rate)).collect();
    let limit = |On(zone, burst, delay, _): &On, case: &Case| {
        let delay = match delay {
            Delay::Never => "nodelay = true".to_owned(),
            Delay::Above(delay) => format!("delay = {delay}"),
        };
        let name = case.zones[*zone].name;
        format!("{{ zone = \"{name}\", burst = {burst}, {delay} }}")
    };
    let mut routes = routes(limit, ", ");
    for (_, limits) in &mut routes {
        *limits = format!("limits = [{limits}]");
    }
    (zones, routes)
}

fn path(case: usize, route: usize) -> String {
    format!("/{case}/{route}/")
}

/// A request to send.
#[derive(Clone, Copy)]
struct Shot {
    at: Duration,
    case: usize,
    route: usize,
    key: u64,
}

/// Exact result for a request: `None` if rejected, or its wait.
type Expected = Option<Duration>;

/// All buckets of all cases, without any rounding.
#[derive(Default)]
struct Model(HashMap<(usize, usize, u64), Bucket>);

impl Model {
    /// Returns the limits of a request: index of the bucket, its state, and its parameters.
    fn limits(
        &self,
        shot: &Shot,
    ) -> impl Iterator<Item = ((usize, usize, u64), Bucket, Rate, Limit)> {
        let (case, found) = (&cases()[shot.case], *shot);
        case.routes[shot.route]
            .iter()
            .map(move |On(zone, burst, delay, _)| {
                let key = if case.zones[*zone].is_site {
                    0
                } else {
                    found.key
                };
                let id = (found.case, *zone, key);
                let bucket = self.0.get(&id).copied().unwrap_or_default();
                let limit = Limit {
                    burst: *burst,
                    delay: *delay,
                    max_wait: None,
                    cost: Cost::ONE,
                    in_flight: None,
                    above_burst: 0,
                };
                (id, bucket, case.rate(*zone), limit)
            })
    }

    fn decide(&mut self, shot: &Shot, at: Duration) -> Expected {
        let mut until = moment(at);
        let mut charged = Vec::new();
        for (id, mut bucket, rate, limit) in self.limits(shot) {
            match bucket.decide(rate, limit, moment(at)) {
                Verdict::Reject(_) => return None,
                Verdict::Pass { .. } => {}
                Verdict::Delay { until: turn, .. } => until = until.max(turn),
            }
            charged.push((id, bucket));
        }
        self.0.extend(charged);
        Some(until.since(moment(at)))
    }

    /// Returns whether a limit would decide differently slightly earlier or later.
    fn is_on_edge(&self, shot: &Shot, at: Duration) -> bool {
        self.limits(shot).any(|(_, bucket, rate, limit)| {
            let rejects = |at| {
                let verdict = bucket.clone().decide(rate, limit, moment(at));
                matches!(verdict, Verdict::Reject(_))
            };
            // nginx counts in thousandths of a request, and truncates each time.
            let margin = MARGIN + rate.interval() / 200;
            rejects(at.saturating_sub(margin)) != rejects(at + margin)
        })
    }
}

fn moment(at: Duration) -> Moment {
    Moment::from_nanos(0) + at + Duration::from_secs(1)
}

/// Returns the requests of all cases in the order of their times.
fn plan(seed: u64) -> Vec<Shot> {
    let mut numbers = Rng::of(seed, 0);
    let mut shots = Vec::new();
    for (number, case) in cases().iter().enumerate() {
        let mut at = case.begins;
        while at < case.ends {
            // Some follow at once, others after a while.
            let gap = match numbers.within(0, 3) {
                0 => Duration::ZERO,
                _ => case.gap * u32::try_from(numbers.within(0, 300)).unwrap_or(0) / 100,
            };
            at += gap.max(APART);
            shots.push(Shot {
                at,
                case: number,
                route: usize::try_from(numbers.within(0, case.routes.len() as u64)).unwrap_or(0),
                key: numbers.within(0, case.keys),
            });
        }
    }
    shots.sort_by_key(|shot| shot.at);
    shots
}

/// One of the two proxies, with its origin.
struct Side {
    origin: Origin,
    clients: Vec<Client>,
    /// Instant and connection of each request.
    sent: Vec<(Instant, usize)>,
}

/// Result of a request: its status, and its arrival at the origin.
struct Outcome {
    status: u16,
    delay: Option<Duration>,
}

impl Side {
    /// Opens all connections, and sends an unlimited request on each.
    ///
    /// The first requests take longer.
    fn new(origin: Origin, to: SocketAddr) -> Self {
        let open = |_| {
            let mut client = Client::connect(to);
            assert_eq!(client.fetch(&path(0, 0)).status, 200);
            client
        };
        Self {
            origin,
            clients: (0..CONNECTIONS).map(open).collect(),
            sent: Vec::new(),
        }
    }

    fn send(&mut self, connection: usize, attempt: usize, number: usize, shot: &Shot) {
        let text = format!(
            "GET {} HTTP/1.1\r\nHost: test\r\nX-Key: {attempt}-{}\r\nX-Site: {attempt}\r\n\r\n",
            target(attempt, number, shot),
            shot.key
        );
        self.sent.push((now(), connection));
        self.clients[connection].send(text.as_bytes());
    }

    fn outcomes(&mut self, attempt: usize, shots: &[Shot]) -> Vec<Outcome> {
        let statuses: Vec<_> = self
            .sent
            .iter()
            .map(|(_, connection)| self.clients[*connection].answer().status)
            .collect();
        let arrivals = self.origin.arrivals();
        let arrivals: HashMap<_, _> = arrivals
            .iter()
            .map(|arrival| (arrival.target.as_str(), arrival.at))
            .collect();
        let outcome = |(number, (shot, status)): (usize, (&Shot, u16))| {
            let arrived = arrivals.get(target(attempt, number, shot).as_str());
            Outcome {
                status,
                delay: arrived.map(|at| *at - self.sent[number].0),
            }
        };
        shots
            .iter()
            .zip(statuses)
            .enumerate()
            .map(outcome)
            .collect()
    }
}

fn target(attempt: usize, number: usize, shot: &Shot) -> String {
    format!("{}{attempt}/{number}", path(shot.case, shot.route))
}

/// Sends all requests to both sides, each at its time or soon after, away from any edge.
///
/// Returns the exact result for each, by the time at which it was really sent.
fn fire(shots: &[Shot], attempt: usize, sides: &mut [Side; 2]) -> Vec<Expected> {
    let mut model = Model::default();
    let mut last = [Duration::ZERO; CASES.len()];
    let began = now() + 50 * MS;
    let elapsed = || now().saturating_duration_since(began);
    // A connection is used again once its response has certainly arrived.
    let mut free_from = [Duration::ZERO; CONNECTIONS];
    let mut expected = Vec::new();
    for (number, shot) in shots.iter().enumerate() {
        let due = shot.at.max(last[shot.case] + APART);
        thread::sleep((began + due).saturating_duration_since(now()));
        while model.is_on_edge(shot, elapsed()) {
            thread::sleep(MS / 2);
        }
        let free = free_from.iter().position(|free| *free <= elapsed());
        let connection = free.expect("enough connections");
        for side in sides.iter_mut() {
            side.send(connection, attempt, number, shot);
        }
        let sent = sides[0].sent[number].0 - began;
        last[shot.case] = sent;
        let wait = model.decide(shot, sent);
        free_from[connection] = sent + wait.unwrap_or_default() + 200 * MS;
        expected.push(wait);
    }
    expected
}

/// Results of the comparison, by case.
#[derive(Debug, Default)]
struct Tally {
    passed: usize,
    delayed: usize,
    rejected: usize,
    /// Largest difference of the delays.
    apart: Duration,
}

/// Compares the results of both sides with each other and with the exact result.
///
/// Returns counts by case, the requests that differ, and whether nginx differs from the exact
/// result: then the machine was too busy for a comparison.
fn compare(
    shots: &[Shot],
    expected: &[Expected],
    nginx: &[Outcome],
    drip: &[Outcome],
) -> ([Tally; CASES.len()], Vec<(usize, String)>, bool) {
    let mut tallies: [Tally; CASES.len()] = Default::default();
    let mut failures = Vec::new();
    let mut nginx_is_late = false;
    for (number, shot) in shots.iter().enumerate() {
        let (exact, nginx, drip) = (expected[number], &nginx[number], &drip[number]);
        let tally = &mut tallies[shot.case];
        let status = if exact.is_some() { 200 } else { 429 };
        let mut right = nginx.status == status && drip.status == status;
        match (exact, nginx.delay, drip.delay) {
            (None, None, None) => tally.rejected += 1,
            (Some(wait), Some(in_nginx), Some(in_drip)) => {
                let apart = in_nginx.abs_diff(in_drip);
                tally.apart = tally.apart.max(apart);
                right &= apart <= TOLERANCE && in_drip >= wait && in_drip <= wait + TOLERANCE;
                nginx_is_late |= in_nginx > wait + TOLERANCE;
                *(if wait.is_zero() {
                    &mut tally.passed
                } else {
                    &mut tally.delayed
                }) += 1;
            }
            _ => right = false,
        }
        if !right {
            let what = CASES[shot.case];
            let failure = format!(
                "{what}, key {}, at {:?}: nginx {} {:?}, drip {} {:?}, exactly {exact:?}",
                shot.key, shot.at, nginx.status, nginx.delay, drip.status, drip.delay
            );
            failures.push((number, failure));
        }
    }
    (tallies, failures, nginx_is_late)
}

/// Returns whether each case has passed, rejected and perhaps delayed requests.
///
/// On a busy machine a burst may be spread.
fn has_variety(tallies: &[Tally; CASES.len()]) -> bool {
    cases()
        .iter()
        .zip(tallies)
        .zip(CASES)
        .all(|((case, tally), what)| {
            println!("{what}: {tally:?}");
            let mut limits = case.routes.iter().flat_map(|route| route.iter());
            let waits = limits.any(
                |On(_, burst, delay, _)| matches!(delay, Delay::Above(delay) if delay < burst),
            );
            tally.passed > 0 && tally.rejected > 0 && (tally.delayed > 0) == waits
        })
}

fn borrowed(pairs: &[(String, String)]) -> Vec<(&str, &str)> {
    pairs
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect()
}

#[test]
fn nginx_and_drip_do_the_same_with_the_same_requests() {
    let _alone = alone();
    let origins = [Origin::start(), Origin::start()];
    let (http, locations) = for_nginx();
    let nginx = Nginx::start(&origins[0], &http, &borrowed(&locations));
    let (zones, routes) = for_drip();
    let drip: Gateway = start_drip(&origins[1], &zones, &borrowed(&routes));
    let shots = plan(2_026);
    let [at_nginx, at_drip] = origins;
    let mut sides = [
        Side::new(at_nginx, nginx.address),
        Side::new(at_drip, drip.address()),
    ];
    // On a calm machine one attempt must be completely right. On a busy one some requests are late,
    // others in each attempt: each must be right in one of them. Real differences appear each time.
    let mut unsure: Vec<usize> = (0..shots.len()).collect();
    // One thread measures the pause. Others may have had a longer one, including nginx.
    let (began, mut calm) = (now(), 0);
    for attempt in 0.. {
        let ((expected, outcomes), pause) = watching(|| {
            let expected = fire(&shots, attempt, &mut sides);
            (
                expected,
                sides.each_mut().map(|side| side.outcomes(attempt, &shots)),
            )
        });
        let (tallies, failures, nginx_is_late) =
            compare(&shots, &expected, &outcomes[0], &outcomes[1]);
        let is_varied = has_variety(&tallies);
        let differs = |number: &usize| failures.iter().any(|(failed, _)| failed == number);
        unsure.retain(differs);
        if is_varied && (failures.is_empty() || unsure.is_empty()) {
            return;
        }
        let differences: Vec<&str> = failures.iter().map(|(_, failure)| &**failure).collect();
        let (wrong, all) = (failures.len(), shots.len());
        let received = format!(
            "the longest pause was {pause:?}, and {wrong} of {all} requests differ, {} each time so far:\n{}",
            unsure.len(),
            differences.join("\n")
        );
        calm += usize::from(pause <= BUSY && !nginx_is_late);
        assert!(calm < 3 && began.elapsed() < PATIENCE, "{received}");
        println!("spoilt: {received}");
        for side in &mut sides {
            side.sent.clear();
        }
    }
}
