//! The same requests to nginx and to drip at the same times: the verdict of each, and how long it takes.

use std::collections::HashMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use limit::{Bucket, Cost, Delay, Limit, Moment, Rate, Verdict};

use crate::programs::nginx::Nginx;
use crate::support::{BUSY, Client, Gateway, MS, Origin, alone, now, watching};
use crate::support::{start_drip, zone};

/// No request is sent this close to a time at which its verdict would change: there nginx's millisecond decides.
const MARGIN: Duration = Duration::from_millis(3);

/// How much the delays may differ.
const TOLERANCE: Duration = Duration::from_millis(8);

/// How long to wait for a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Minimum gap between requests of one case, so that both sides see them in the same order.
const APART: Duration = Duration::from_millis(2);

/// Connections to each side, opened beforehand.
const CONNECTIONS: usize = 250;

struct Case {
    what: &'static str,
    /// Name, key and rate.
    zones: &'static [(&'static str, Key, &'static str)],
    /// The limits of each route.
    routes: &'static [&'static [On]],
    keys: u64,
    /// Average time between two requests.
    gap: Duration,
    begins: Duration,
    ends: Duration,
}

#[derive(Clone, Copy, PartialEq)]
enum Key {
    Client,
    Site,
}

/// A limit: the zone's place in the case, its burst and its delay.
struct On(usize, u32, Delay);

const fn case(
    what: &'static str,
    zones: &'static [(&'static str, Key, &'static str)],
    routes: &'static [&'static [On]],
    keys: u64,
    gap: u64,
) -> Case {
    Case {
        what,
        zones,
        routes,
        keys,
        gap: Duration::from_millis(gap),
        begins: Duration::ZERO,
        ends: Duration::from_secs(3),
    }
}

const CASES: [Case; 9] = [
    case(
        "10r/s",
        &[("plain", Key::Client, "10r/s")],
        &[&[On(0, 0, Delay::Above(0))]],
        3,
        40,
    ),
    case(
        "10r/s burst=5",
        &[("queue", Key::Client, "10r/s")],
        &[&[On(0, 5, Delay::Above(0))]],
        2,
        30,
    ),
    case(
        "10r/s burst=5 nodelay",
        &[("nodelay", Key::Client, "10r/s")],
        &[&[On(0, 5, Delay::Never)]],
        2,
        30,
    ),
    case(
        "10r/s burst=10 delay=3",
        &[("delay", Key::Client, "10r/s")],
        &[&[On(0, 10, Delay::Above(3))]],
        2,
        25,
    ),
    Case {
        begins: Duration::from_millis(500),
        ends: Duration::from_millis(1700),
        ..case(
            "100r/s burst=20",
            &[("fast", Key::Client, "100r/s")],
            &[&[On(0, 20, Delay::Above(0))]],
            1,
            5,
        )
    },
    case(
        "30r/m burst=2 delay=1",
        &[("slow", Key::Client, "30r/m")],
        &[&[On(0, 2, Delay::Above(1))]],
        9,
        60,
    ),
    case(
        "1r/s burst=2",
        &[("second", Key::Client, "1r/s")],
        &[&[On(0, 2, Delay::Above(0))]],
        8,
        50,
    ),
    case(
        "5r/s burst=3 and for all together 20r/s burst=10 nodelay",
        &[("each", Key::Client, "5r/s"), ("all", Key::Site, "20r/s")],
        &[&[On(0, 3, Delay::Above(0)), On(1, 10, Delay::Never)]],
        5,
        25,
    ),
    case(
        "10r/s on one route burst=3 delay=1 and on the other burst=8",
        &[("shared", Key::Client, "10r/s")],
        &[&[On(0, 3, Delay::Above(1))], &[On(0, 8, Delay::Above(0))]],
        2,
        30,
    ),
];

impl Key {
    fn field(self) -> &'static str {
        match self {
            Self::Client => "$http_x_key",
            Self::Site => "$http_x_site",
        }
    }
}

impl Case {
    fn rate(&self, zone: usize) -> Rate {
        self.zones[zone].2.parse().expect("a rate")
    }
}

/// nginx's configuration for all cases: the content of `http`, and the locations.
fn for_nginx() -> (String, Vec<(String, String)>) {
    let mut http = "limit_req_status 429;".to_owned();
    let mut locations = Vec::new();
    for (number, case) in CASES.iter().enumerate() {
        for (name, key, rate) in case.zones {
            let key = key.field();
            write!(http, "limit_req_zone {key} zone={name}:1m rate={rate};").expect("text");
        }
        for (route, limits) in case.routes.iter().enumerate() {
            let mut text = String::new();
            for On(zone, burst, delay) in *limits {
                write!(text, "limit_req zone={}", case.zones[*zone].0).expect("text");
                // nginx accepts no zeros here; they are its defaults.
                if *burst > 0 {
                    write!(text, " burst={burst}").expect("text");
                }
                match delay {
                    Delay::Never => text += " nodelay",
                    Delay::Above(0) => {}
                    Delay::Above(delay) => write!(text, " delay={delay}").expect("text"),
                }
                text += ";";
            }
            locations.push((path(number, route), text));
        }
    }
    (http, locations)
}

/// drip's configuration for all cases: the zones and the routes.
fn for_drip() -> (String, Vec<(String, String)>) {
    let (mut zones, mut routes) = (String::new(), Vec::new());
    for (number, case) in CASES.iter().enumerate() {
        for (name, key, rate) in case.zones {
            zones += &zone(name, key.field(), rate);
        }
        for (route, limits) in case.routes.iter().enumerate() {
            let limits: Vec<_> = limits
                .iter()
                .map(|On(zone, burst, delay)| {
                    let delay = match delay {
                        Delay::Never => "nodelay = true".to_owned(),
                        Delay::Above(delay) => format!("delay = {delay}"),
                    };
                    let name = case.zones[*zone].0;
                    format!("{{ zone = \"{name}\", burst = {burst}, {delay} }}")
                })
                .collect();
            routes.push((
                path(number, route),
                format!("limits = [{}]", limits.join(", ")),
            ));
        }
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

/// The result of the exact arithmetic for a request: rejected, or wait this long.
type Expected = Option<Duration>;

/// All buckets of all cases, without any rounding.
#[derive(Default)]
struct Model(HashMap<(usize, usize, u64), Bucket>);

impl Model {
    /// The limits of a request: the bucket's index, its state, and its parameters.
    fn limits(
        &self,
        shot: &Shot,
    ) -> impl Iterator<Item = ((usize, usize, u64), Bucket, Rate, Limit)> {
        let (case, found) = (&CASES[shot.case], *shot);
        case.routes[shot.route]
            .iter()
            .map(move |On(zone, burst, delay)| {
                let key = if case.zones[*zone].1 == Key::Site {
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

    /// Whether any limit would decide differently a little earlier or later.
    fn is_on_edge(&self, shot: &Shot, at: Duration) -> bool {
        self.limits(shot).any(|(_, bucket, rate, limit)| {
            let rejects = |at| {
                let verdict = bucket.clone().decide(rate, limit, moment(at));
                matches!(verdict, Verdict::Reject(_))
            };
            // nginx counts in thousandths of a request, cut off at each.
            let margin = MARGIN + rate.interval() / 200;
            rejects(at.saturating_sub(margin)) != rejects(at + margin)
        })
    }
}

fn moment(at: Duration) -> Moment {
    Moment::from_nanos(0) + at + Duration::from_secs(1)
}

/// Pseudorandom numbers, the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// The requests of all cases in the order of their times.
fn plan(seed: u64) -> Vec<Shot> {
    let mut numbers = Numbers(seed);
    let mut shots = Vec::new();
    for (number, case) in CASES.iter().enumerate() {
        let mut at = case.begins;
        while at < case.ends {
            // Some follow at once, others after a while.
            let gap = match numbers.below(3) {
                0 => Duration::ZERO,
                _ => case.gap * u32::try_from(numbers.below(300)).unwrap_or(0) / 100,
            };
            at += gap.max(APART);
            shots.push(Shot {
                at,
                case: number,
                route: usize::try_from(numbers.below(case.routes.len() as u64)).unwrap_or(0),
                key: numbers.below(case.keys),
            });
        }
    }
    shots.sort_by_key(|shot| shot.at);
    shots
}

/// One of the two, with its origin.
struct Side {
    origin: Origin,
    clients: Vec<Client>,
    /// When each request was sent, and on which connection.
    sent: Vec<(Instant, usize)>,
}

/// The result of a request: its status, and when the origin got it.
struct Outcome {
    status: u16,
    delay: Option<Duration>,
}

impl Side {
    /// Opens all connections, and sends a request without a key on each, which is not limited: the first ones take longer.
    fn new(origin: Origin, to: SocketAddr) -> Self {
        let open = |_| {
            let mut client = Client::connect(to);
            client.get(&path(0, 0));
            assert_eq!(client.answer().status, 200);
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

/// Sends all requests to both sides, each at its time or as soon after it as no edge is near. Returns the result of the
/// exact arithmetic for each, by the time at which it was really sent.
fn fire(shots: &[Shot], attempt: usize, sides: &mut [Side; 2]) -> Vec<Expected> {
    let mut model = Model::default();
    let mut last = [Duration::ZERO; CASES.len()];
    let began = now() + 50 * MS;
    let elapsed = || now().saturating_duration_since(began);
    // A connection is used again once its response has certainly come.
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

/// The results of the comparison, case by case.
#[derive(Debug, Default)]
struct Tally {
    passed: usize,
    delayed: usize,
    rejected: usize,
    /// The largest difference of the delays.
    apart: Duration,
}

/// Compares what the two did with each request, with each other and with the exact arithmetic.
///
/// Returns how many requests of each case did what, the requests that differ, and whether nginx's differ from the arithmetic:
/// then the machine was too busy to tell anything.
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
            let what = CASES[shot.case].what;
            let failure = format!(
                "{what}, key {}, at {:?}: nginx {} {:?}, drip {} {:?}, exactly {exact:?}",
                shot.key, shot.at, nginx.status, nginx.delay, drip.status, drip.delay
            );
            failures.push((number, failure));
        }
    }
    (tallies, failures, nginx_is_late)
}

/// Returns whether each case has passed, rejected and perhaps delayed requests. On a busy machine a burst may be spread.
fn has_variety(tallies: &[Tally; CASES.len()]) -> bool {
    CASES.iter().zip(tallies).all(|(case, tally)| {
        println!("{}: {tally:?}", case.what);
        let mut limits = case.routes.iter().flat_map(|route| route.iter());
        let waits =
            limits.any(|On(_, burst, delay)| matches!(delay, Delay::Above(delay) if delay < burst));
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
    // On a calm machine one attempt must be right as a whole. On a busy one some requests are late, other ones in each
    // attempt: all must be right in one of them. What is really different is so each time.
    let mut unsure: Vec<usize> = (0..shots.len()).collect();
    // The pause is measured by one thread, and others may have had a longer one: nginx is one of them.
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
        let told = format!(
            "the longest pause was {pause:?}, and {wrong} of {all} requests differ, {} each time so far:\n{}",
            unsure.len(),
            differences.join("\n")
        );
        calm += usize::from(pause <= BUSY && !nginx_is_late);
        assert!(calm < 3 && began.elapsed() < PATIENCE, "{told}");
        println!("spoilt: {told}");
        for side in &mut sides {
            side.sent.clear();
        }
    }
}
