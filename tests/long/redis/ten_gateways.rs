//! Tests of ten gateways on one Redis: one even stream, fair to each key, while gateways die.

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
/// Number of keys that use several gateways, and requests per second of each.
const KEYS: usize = 20;
const RATE_OF_KEY: f64 = 25.0;

/// One way in which the gateways of a test share `rate` requests per second.
struct Case {
    name: &'static str,
    /// Further fields of the zone.
    zone: fn(rate: f64) -> String,
    /// Further fields of the origin.
    origin: fn(rate: f64) -> String,
    limits: &'static str,
    /// Whether each gateway must have decided requests by leases.
    leases: bool,
    /// Time for which a gateway may hold what others wait for.
    holds: Duration,
}

const EACH_JOIN_ASKS: Case = Case {
    name: "each join asks",
    zone: |rate| format!("rate = \"{rate}r/s\"\nstore = \"redis\""),
    origin: |_| String::new(),
    limits: "limits = [{ zone = \"z\", burst = 200 }]",
    leases: false,
    holds: Duration::ZERO,
};

/// A gateway gets a tenth of the rate: ten requests during a lease.
const LEASES: Case = Case {
    name: "leases",
    zone: |rate| format!("rate = \"{rate}r/s\"\nstore = \"redis\"\nlease = \"200ms\""),
    leases: true,
    holds: Duration::from_millis(200),
    ..EACH_JOIN_ASKS
};

const GATE: Case = Case {
    name: "a gate",
    zone: |_| "rate = \"none\"".to_owned(),
    origin: |rate| {
        format!("rate = \"{rate}r/s\"\nstore = \"redis\"\nshare = \"z\"\nqueue_timeout = \"60s\"")
    },
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
    key: usize,
    took: Duration,
    /// Status of the response; `None` if the gateway died.
    status: Option<u16>,
    gateway: usize,
}

impl Scene {
    fn new(case: &Case, rate: f64) -> Self {
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
            (case.origin)(rate),
            redis.url(),
            (case.zone)(rate),
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

    /// Lets clients send one request after another while `meanwhile` runs.
    ///
    /// A client is given by a gateway and a key. A client whose gateway dies continues with the
    /// replacement. A gateway that accepts no connection loses requests too.
    fn under_load(&self, clients: &[(usize, usize)], meanwhile: impl FnOnce()) -> Vec<Asked> {
        let (stop, all) = (AtomicBool::default(), Mutex::new(Vec::new()));
        let gateways = &self.gateways;
        let ask = |gateway: usize, key: usize| {
            let address = || gateways.lock().expect("no panic")[gateway].address();
            let mut client = None;
            while !stop.load(Ordering::SeqCst) {
                let began = now();
                let connected = match client.take() {
                    Some(client) => Ok(client),
                    None => Client::try_connect(address()),
                };
                let status = connected.and_then(|mut connected| {
                    let status = connected.try_get(&format!("/?key=k{key}."))?;
                    client = Some(connected);
                    Ok(status)
                });
                let (status, took) = (status.ok(), began.elapsed());
                let asked = Asked {
                    key,
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
            for (gateway, key) in clients {
                let ask = &ask;
                scope.spawn(move || ask(*gateway, *key));
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
        let leased = |it: &Gateway| it.metrics().count("drip_store_operations_total", &labels);
        let gateways = self.gateways.lock().expect("no panic");
        gateways.iter().map(leased).collect()
    }

    fn moments(&self, key: usize) -> Vec<Instant> {
        self.origin.moments(&format!("key=k{key}."))
    }
}

fn span(length: Duration) -> (Instant, Instant) {
    let began = now();
    thread::sleep(length);
    (began, now())
}

fn within(moments: &[Instant], (from, until): (Instant, Instant)) -> Vec<Instant> {
    let within = moments.iter().filter(|at| (from..until).contains(*at));
    within.copied().collect()
}

/// Returns the median of the variation of each half second, so that a pause counts once.
fn evenness(moments: &[Instant], (from, until): (Instant, Instant)) -> f64 {
    const PART: Duration = Duration::from_millis(500);
    let mut parts = Vec::new();
    let mut begin = from;
    while begin + PART <= until {
        parts.push(coefficient_of_variation(&within(
            moments,
            (begin, begin + PART),
        )));
        begin += PART;
    }
    parts.sort_by(f64::total_cmp);
    parts[parts.len() / 2]
}

/// Returns the distance of the first and third quartile of the gaps, in mean gaps.
///
/// Pauses of the machine are a few long gaps, which hardly change it.
fn spread(moments: &[Instant]) -> f64 {
    let mut gaps = gaps(moments);
    gaps.sort_unstable();
    let count = u32::try_from(gaps.len()).expect("not so many");
    let mean = gaps.iter().sum::<Duration>() / count;
    let quarter = gaps.len() / 4;
    let middle = gaps[gaps.len() - 1 - quarter].saturating_sub(gaps[quarter]);
    middle.div_duration_f64(mean)
}

/// Returns the standard deviation of the gaps divided by their mean.
fn coefficient_of_variation(moments: &[Instant]) -> f64 {
    let gaps: Vec<f64> = gaps(moments).iter().map(Duration::as_secs_f64).collect();
    let count = f64::from(u32::try_from(gaps.len()).expect("few"));
    let mean = gaps.iter().sum::<f64>() / count;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count;
    variance.sqrt() / mean
}

fn as_f64(count: usize) -> f64 {
    f64::from(u32::try_from(count).expect("few"))
}

fn tell(text: &str) {
    // Written past the test harness, which captures output.
    let _nobody_listens = writeln!(std::io::stderr(), "ten gateways, {text}");
}

#[test]
fn one_key_is_one_stream_within_a_percent_and_each_gateway_has_its_part() {
    const CLIENTS: usize = 12;
    let _machine = alone();
    for case in CASES {
        best_of_three(|_| {
            let scene = Scene::new(case, RATE);
            let clients: Vec<_> = (0..GATEWAYS * CLIENTS)
                .map(|nth| (nth % GATEWAYS, 0))
                .collect();
            let mut measured = None;
            let all = scene.under_load(&clients, || {
                thread::sleep(Duration::from_millis(500));
                measured = Some(span(Duration::from_secs(2)));
            });
            let measured = measured.expect("it ran");
            let moments = scene.moments(0);
            let rate = rate(&within(&moments, measured), RATE);
            let cv = evenness(&moments, measured);
            let spread = spread(&within(&moments, measured));
            let parts = |nth| all.iter().filter(|asked| asked.gateway == nth).count();
            let parts: Vec<usize> = (0..GATEWAYS).map(parts).collect();
            let longest = all.iter().map(|asked| asked.took).max().unwrap_or_default();
            tell(&format!(
                "{}: {rate:.1}r/s, cv {cv:.2}, spread {spread:.2}, longest {longest:?}, parts {parts:?}",
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

#[test]
fn each_of_twenty_keys_has_its_rate_whichever_gateways_it_comes_in_by() {
    let _machine = alone();
    best_of_three(|_| {
        let scene = Scene::new(&EACH_JOIN_ASKS, RATE_OF_KEY);
        let clients = clients_of_keys();
        let mut measured = None;
        let all = scene.under_load(&clients, || {
            thread::sleep(Duration::from_millis(500));
            measured = Some(span(Duration::from_secs(3)));
        });
        let measured = measured.expect("it ran");
        let moments = |key| within(&scene.moments(key), measured);
        let rates = (0..KEYS).map(|key| rate(&moments(key), RATE_OF_KEY));
        let rates: Vec<f64> = rates.collect();
        let pause = longest_pause(measured.0, measured.1).as_secs_f64();
        tell(&format!("rates {rates:.1?}"));
        if all.iter().any(|asked| asked.status != Some(200)) {
            return Err("not all passed".to_owned());
        }
        let even = |rate: &f64| (rate / RATE_OF_KEY - 1.0).abs() < 0.01;
        if !rates.iter().all(even) {
            return Err(format!("rates {rates:.2?}"));
        }
        for key in 0..KEYS {
            let above = most_above(&moments(key), RATE_OF_KEY);
            if above > 2.0 + RATE_OF_KEY * pause {
                return Err(format!("key {key} is {above:.1} above the rate"));
            }
        }
        Ok(())
    });
}

/// Returns the clients of twenty keys, each given by a gateway and a key.
///
/// The first keys use one gateway, others two to five, with four clients at each.
fn clients_of_keys() -> Vec<(usize, usize)> {
    (0..KEYS)
        .flat_map(|key| gateways_of(key).map(move |gateway| (gateway, key)))
        .flat_map(|client| [client; 4])
        .collect()
}

fn gateways_of(key: usize) -> impl Iterator<Item = usize> {
    (0..=key % 5).map(move |nth| (key + 3 * nth) % GATEWAYS)
}

/// A key has the share of one key, at however many gateways it waits.
#[test]
fn at_a_gate_each_key_has_its_part_however_many_gateways_it_comes_in_by() {
    let _machine = alone();
    best_of_three(|_| {
        let scene = Scene::new(&GATE, RATE);
        let mut measured = None;
        let all = scene.under_load(&clients_of_keys(), || {
            thread::sleep(Duration::from_millis(500));
            measured = Some(span(Duration::from_secs(3)));
        });
        let measured = measured.expect("it ran");
        let moments = |key| within(&scene.moments(key), measured);
        let mut whole: Vec<Instant> = (0..KEYS).flat_map(moments).collect();
        whole.sort_unstable();
        let whole = rate(&whole, RATE);
        let seconds = (measured.1 - measured.0).as_secs_f64();
        let part = RATE * seconds / as_f64(KEYS);
        let found: Vec<f64> = (0..KEYS).map(|key| as_f64(moments(key).len())).collect();
        tell(&format!("{whole:.1}r/s, parts of {part:.1}: {found:.1?}"));
        if all.iter().any(|asked| asked.status != Some(200)) {
            return Err("not all passed".to_owned());
        }
        if (whole / RATE - 1.0).abs() > 0.01 {
            return Err(format!("{whole:.2}r/s, not {RATE}r/s within 1 %"));
        }
        if found.iter().any(|it| (it - part).abs() > 0.1 * part) {
            return Err(format!("parts of {part:.1}: {found:.1?}"));
        }
        Ok(())
    });
}

/// Killing a gateway loses only its own waiting requests.
///
/// Gateways are killed one after the other and replaced. Slots of the killed gateway's requests
/// expire;
/// all other requests keep theirs.
#[test]
fn gateways_that_are_killed_take_their_waiting_requests_with_them_and_nothing_else() {
    const CLIENTS: usize = 10;
    const KILLED: usize = 3;
    let _machine = alone();
    for case in CASES {
        best_of_three(|_| {
            let scene = Scene::new(case, RATE);
            let clients: Vec<_> = (0..GATEWAYS * CLIENTS)
                .map(|nth| (nth % GATEWAYS, 0))
                .collect();
            let mut measured = None;
            let all = scene.under_load(&clients, || {
                thread::sleep(Duration::from_millis(500));
                let began = now();
                for nth in 0..KILLED {
                    scene.replace(nth);
                    thread::sleep(Duration::from_millis(900));
                }
                measured = Some((began, now()));
            });
            let measured = measured.expect("it ran");
            let moments = within(&scene.moments(0), measured);
            let seconds = (measured.1 - measured.0).as_secs_f64();
            let rate = as_f64(moments.len()) / seconds;
            let pause = longest_pause(measured.0, measured.1);
            let above = most_above(&moments, RATE);
            let lost = all.iter().filter(|asked| asked.status.is_none()).count();
            let answered = all.iter().filter(|asked| asked.status.is_some());
            let longest = answered.map(|asked| asked.took).max().unwrap_or_default();
            tell(&format!(
                "{}, {KILLED} killed: {rate:.1}r/s, {above:.1} above the rate at most, {lost} lost with them, longest {longest:?}",
                case.name
            ));
            let odd = |asked: &&Asked| asked.status.is_some_and(|status| status != 200);
            if let Some(odd) = all.iter().find(odd) {
                return Err(format!("key {} got {:?}", odd.key, odd.status));
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
