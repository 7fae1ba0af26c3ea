//! Tests of ten gateways on one Redis: one even stream, while gateways die.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::programs::redis::Redis;
use crate::redis::shared::{most_above, steady_rate as rate};
use crate::support::{
    Client, Done, Gateway, MS, Origin, alone, best_of_three, gaps, longest_pause, now,
};

const GATEWAYS: usize = 10;
/// Requests per second of the only key.
const RATE: f64 = 500.0;

/// One way in which the gateways share [`RATE`].
struct Case {
    name: &'static str,
    /// Further fields of the zone, of the origin and of the route.
    zone: &'static str,
    origin: &'static str,
    limits: &'static str,
    /// Whether each gateway must have decided requests by leases.
    leases: bool,
    /// Time for which a gateway may hold what others wait for.
    holds: Duration,
}

const EACH_JOIN_ASKS: Case = Case {
    name: "each join asks",
    zone: "rate = \"500r/s\"\nstore = \"redis\"",
    origin: "",
    limits: "limits = [{ zone = \"z\", burst = 200 }]",
    leases: false,
    holds: Duration::ZERO,
};

/// A gateway gets a tenth of the rate: ten requests during a lease.
const LEASES: Case = Case {
    name: "leases",
    zone: "rate = \"500r/s\"\nstore = \"redis\"\nlease = \"200ms\"",
    leases: true,
    holds: Duration::from_millis(200),
    ..EACH_JOIN_ASKS
};

const GATE: Case = Case {
    name: "a gate",
    zone: "rate = \"none\"",
    origin: "rate = \"500r/s\"\nstore = \"redis\"\nshare = \"z\"\nqueue_timeout = \"60s\"",
    limits: "",
    leases: false,
    holds: Duration::from_millis(200),
};

/// All cases. Tests of one key run with each of them.
const CASES: [&Case; 3] = [&EACH_JOIN_ASKS, &LEASES, &GATE];

/// Ten gateways with one worker each. Some may be replaced.
struct Scene {
    origin: Origin,
    text: String,
    gateways: Mutex<Vec<Gateway>>,
    _redis: Redis,
}

/// Result of one request.
struct Asked {
    took: Duration,
    /// Status of the response; `None` if the gateway died.
    status: Option<u16>,
    gateway: usize,
}

impl Scene {
    fn new(case: &Case) -> Self {
        let (origin, redis) = (Origin::start(), Redis::start());
        let text = format!(
            r#"
workers = 1

[origins.app]
servers = ["http://{}"]
{}

[redis]
url = "{}"
timeout = "2s"

[zones.z]
key = "$arg_key"
{}

[[routes]]
path = "/"
origin = "app"
{}
"#,
            origin.address,
            case.origin,
            redis.url(),
            case.zone,
            case.limits
        );
        let gateways = thread::scope(|scope| {
            let started = [(); GATEWAYS].map(|()| scope.spawn(|| Gateway::start(&text)));
            started.map(|it| it.join().expect("it starts"))
        });
        let gateways = gateways.into();
        Self {
            origin,
            text,
            gateways: Mutex::new(gateways),
            _redis: redis,
        }
    }

    /// Lets `clients` of each gateway send one request after another while `meanwhile` runs.
    ///
    /// A client whose gateway dies continues with the replacement. A gateway that accepts no
    /// connection loses requests too.
    fn under_load(&self, clients: usize, meanwhile: impl FnOnce()) -> Vec<Asked> {
        let (stop, all) = (AtomicBool::default(), Mutex::new(Vec::new()));
        let gateways = &self.gateways;
        let ask = |gateway: usize| {
            let address = || gateways.lock().expect("no panic")[gateway].address();
            let mut client = None;
            while !stop.load(Ordering::SeqCst) {
                let began = now();
                let connected = match client.take() {
                    Some(client) => Ok(client),
                    None => Client::try_connect(address()),
                };
                let status = connected.and_then(|mut connected| {
                    let status = connected.try_get("/?key=a")?;
                    client = Some(connected);
                    Ok(status)
                });
                let (status, took) = (status.ok(), began.elapsed());
                let asked = Asked {
                    took,
                    status,
                    gateway,
                };
                all.lock().expect("no panic").push(asked);
                if status.is_none() {
                    thread::sleep(MS);
                }
            }
        };
        thread::scope(|scope| {
            for nth in 0..GATEWAYS * clients {
                let ask = &ask;
                scope.spawn(move || ask(nth % GATEWAYS));
            }
            let _done = Done(&stop);
            meanwhile();
        });
        all.into_inner().expect("no panic")
    }

    /// Kills a gateway once its replacement is ready.
    fn replace(&self, nth: usize) {
        let new = Gateway::start(&self.text);
        let old = std::mem::replace(&mut self.gateways.lock().expect("no panic")[nth], new);
        // Dropping kills the process without stopping it first.
        drop(old);
    }

    /// Returns how many requests each gateway has decided by leases.
    fn leased(&self) -> Vec<i64> {
        let labels = [("zone", "z"), ("result", "leased")];
        let leased = |it: &Gateway| it.count("drip_store_operations_total", &labels);
        let gateways = self.gateways.lock().expect("no panic");
        gateways.iter().map(leased).collect()
    }

    /// Returns the arrivals at the origin in a span.
    fn within(&self, (from, until): (Instant, Instant)) -> Vec<Instant> {
        let moments = self.origin.moments("key=a").into_iter();
        moments.filter(|at| (from..until).contains(at)).collect()
    }
}

fn span(length: Duration) -> (Instant, Instant) {
    let began = now();
    thread::sleep(length);
    (began, now())
}

/// Returns the distance of the first and third quartile of the gaps, in mean gaps.
///
/// Pauses of the machine are a few long gaps, which hardly change it.
fn spread(moments: &[Instant]) -> f64 {
    let mut gaps = gaps(moments);
    gaps.sort_unstable();
    let count = u32::try_from(gaps.len()).expect("few");
    let mean = gaps.iter().sum::<Duration>() / count;
    let quarter = gaps.len() / 4;
    let middle = gaps[gaps.len() - 1 - quarter].saturating_sub(gaps[quarter]);
    middle.div_duration_f64(mean)
}

fn as_f64(count: usize) -> f64 {
    f64::from(u32::try_from(count).expect("few"))
}

fn print(text: &str) {
    // Written past the test harness, which captures output.
    let _nobody_listens = writeln!(std::io::stderr(), "ten gateways, {text}");
}

#[test]
fn one_key_is_one_stream_within_a_percent_and_each_gateway_has_its_part() {
    const CLIENTS: usize = 12;
    let _machine = alone();
    for case in CASES {
        best_of_three(|_| {
            let scene = Scene::new(case);
            let mut measured = None;
            let all = scene.under_load(CLIENTS, || {
                thread::sleep(Duration::from_millis(500));
                measured = Some(span(Duration::from_secs(2)));
            });
            let measured = measured.expect("it ran");
            let moments = scene.within(measured);
            let (rate, spread) = (rate(&moments, RATE), spread(&moments));
            let parts = |nth| all.iter().filter(|asked| asked.gateway == nth).count();
            let parts: Vec<usize> = (0..GATEWAYS).map(parts).collect();
            let longest = all.iter().map(|asked| asked.took).max().unwrap_or_default();
            print(&format!(
                "{}: {rate:.1}r/s, spread {spread:.2}, longest {longest:?}, parts {parts:?}",
                case.name
            ));
            if all.iter().any(|asked| asked.status != Some(200)) {
                return Err("not all passed".to_owned());
            }
            if (rate / RATE - 1.0).abs() > 0.01 {
                return Err(format!("{rate:.2}r/s, not {RATE}r/s within 1 %"));
            }
            let leased = scene.leased();
            if case.leases && leased.iter().any(|count| *count < 10) {
                return Err(format!("leases decided on {leased:?}"));
            }
            // Independent streams have 1.1.
            if spread > 0.7 {
                return Err(format!("a spread of {spread:.2}"));
            }
            let (least, most) = (parts.iter().min(), parts.iter().max());
            let ratio = |(least, most): (&usize, &usize)| least * 2 >= *most;
            if !least.zip(most).is_some_and(ratio) {
                return Err(format!("parts {parts:?}"));
            }
            Ok(())
        });
    }
}

/// Killing a gateway loses only its own waiting requests.
///
/// Gateways are killed one after the other and replaced. Slots of the killed gateway's requests
/// expire; all other requests keep theirs.
#[test]
fn gateways_that_are_killed_take_their_waiting_requests_with_them_and_nothing_else() {
    const CLIENTS: usize = 10;
    const KILLED: usize = 3;
    let _machine = alone();
    for case in CASES {
        best_of_three(|_| {
            let scene = Scene::new(case);
            let mut measured = None;
            let all = scene.under_load(CLIENTS, || {
                thread::sleep(Duration::from_millis(500));
                let began = now();
                for nth in 0..KILLED {
                    scene.replace(nth);
                    thread::sleep(Duration::from_millis(900));
                }
                measured = Some((began, now()));
            });
            let measured = measured.expect("it ran");
            let moments = scene.within(measured);
            let seconds = (measured.1 - measured.0).as_secs_f64();
            let rate = as_f64(moments.len()) / seconds;
            let pause = longest_pause(measured.0, measured.1);
            let above = most_above(&moments, RATE);
            let lost = all.iter().filter(|asked| asked.status.is_none()).count();
            let answered = all.iter().filter(|asked| asked.status.is_some());
            let longest = answered.map(|asked| asked.took).max().unwrap_or_default();
            print(&format!(
                "{}, {KILLED} killed: {rate:.1}r/s, {above:.1} above the rate at most, {lost} lost with them, longest {longest:?}",
                case.name
            ));
            let odd = |asked: &&Asked| asked.status.is_some_and(|status| status != 200);
            if let Some(odd) = all.iter().find(odd) {
                return Err(format!("one got {:?}", odd.status));
            }
            // Only clients of killed gateways lost a request, each one.
            if lost > KILLED * CLIENTS {
                return Err(format!("{lost} requests got no answer"));
            }
            // 100 requests wait for 200 ms. They include slots that a dead gateway had requested.
            if longest > Duration::from_millis(300) + case.holds + pause {
                return Err(format!("one waited {longest:?}"));
            }
            // As many again may have been taken ahead.
            let at_each = if case.leases { 2 * CLIENTS } else { CLIENTS };
            let unused = as_f64(KILLED * at_each);
            let least = RATE - unused / seconds;
            // A pause of the machine ends within the span, except at its edges.
            let slack = RATE * (0.01 + pause.as_secs_f64() / seconds);
            if rate > RATE + slack || rate < least - slack {
                return Err(format!("{rate:.1}r/s, not {least:.1} to {RATE}"));
            }
            // Late requests arrive together.
            if above > 1.0 + RATE * (0.02 + pause.as_secs_f64()) {
                return Err(format!("{above:.1} above the rate"));
            }
            Ok(())
        });
    }
}
