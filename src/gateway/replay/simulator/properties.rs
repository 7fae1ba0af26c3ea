//! Property tests of replays: compared with a simple model, and with and without a gate.
//!
//! Instants and durations are in milliseconds.

use std::collections::BTreeMap;
use std::time::Duration;

use config::Settings;
use limit::Moment;
use proptest::prelude::*;
use testing::config;

use super::Simulator;
use crate::observe::metrics::GateRejected;
use crate::replay::{Line, Outcome, Recorded};

/// A request: instant of its arrival, key, and time at the origin.
type Request = (u64, u8, u64);

/// Returns the settings of an origin with these fields, three zones, and further tables.
fn settings(origin: &str, tables: &str) -> Settings {
    let text = format!(
        "[origins.app]\nservers = [\"http://app\"]\n{origin}\n{tables}\n\
         [zones.key]\nkey = \"$remote_addr\"\nrate = \"10r/s\"\nmax_keys = 2\n\
         [zones.all]\nkey = \"all\"\nrate = \"20r/s\"\n\
         [zones.token]\nkey = \"$remote_addr\"\nrate = \"5r/s\"\nalgorithm = \"token_bucket\"\n"
    );
    crate::test_settings::of_file(&text)
}

fn line((at, key, holds): Request, path: &'static str) -> Line<'static> {
    Line {
        time: Moment::from_nanos(at * 1_000_000),
        key: Some(vec![b'a' + key].into()),
        path: path.into(),
        cost: None,
        recorded: Some(Recorded {
            method: "GET".into(),
            target: path.into(),
            at_origin: Some(Duration::from_millis(holds)),
            ..Recorded::default()
        }),
    }
}

/// Replays `lines`. Returns the outcomes in the order of the lines.
fn replay(settings: &Settings, lines: &[Line]) -> Vec<Option<Outcome>> {
    let mut simulator = Simulator::new(settings);
    let mut outcomes = vec![None; lines.len()];
    for (number, line) in lines.iter().enumerate() {
        simulator.submit(number as u64, line);
    }
    simulator.end();
    for (number, outcome) in simulator.take_known() {
        outcomes[usize::try_from(number).unwrap()] = outcome;
    }
    outcomes
}

/// Simple model of a gate, in steps of one millisecond.
#[derive(Default)]
struct Model {
    /// Time between two departures.
    interval: u64,
    permits: usize,
    /// Maximum number of waiters of a key, and of all keys.
    queue: usize,
    max_queue: usize,
    timeout: u64,
    /// Instant from which the next request may depart.
    next: u64,
    /// Ends of the requests at the origin.
    at_origin: Vec<u64>,
    waiting: Vec<Waiter>,
    /// Tag of the last departure. A *tag* is a virtual time: the key with the lowest one is next.
    now: u64,
    /// Tag for keys that begin to wait.
    newcomers: u64,
    /// Tag of each key, and the order in which the tags were set.
    tags: BTreeMap<u8, (u64, u64)>,
    /// Number of times that a tag was set.
    sets: u64,
    /// Result of each request: its wait, or the reason of its rejection.
    decided: Vec<Result<u64, GateRejected>>,
}

struct Waiter {
    number: usize,
    request: Request,
}

impl Model {
    fn set_tag(&mut self, key: u8, tag: u64) {
        self.sets += 1;
        self.tags.insert(key, (tag, self.sets));
    }

    fn waits(&self, key: u8) -> bool {
        self.waiting.iter().any(|waiter| waiter.request.1 == key)
    }

    fn leave(&mut self, (at, key, holds): Request, number: usize, now: u64, is_first: bool) {
        if is_first {
            // The gate was idle: earlier tags have no effect.
            self.tags.clear();
            (self.now, self.newcomers) = (0, 0);
            self.set_tag(key, 1);
        } else {
            let (tag, _) = self.tags[&key];
            self.now = tag;
            self.set_tag(key, tag + 1);
            let others = self.tags.iter();
            let others = others.filter(|(other, _)| **other != key && self.waits(**other));
            let first = others.map(|(_, (tag, _))| tag + 1).min();
            let reached = first.map_or(tag, |first| first.min(tag + 1));
            self.newcomers = self.newcomers.max(reached);
        }
        self.next = now + self.interval;
        self.at_origin.push(now + holds);
        self.at_origin.retain(|end| *end > now);
        self.decided[number] = Ok(now - at);
    }

    /// Returns the key whose request departs next.
    fn next_key(&self) -> Option<u8> {
        let waiting = self.tags.iter().filter(|(key, _)| self.waits(**key));
        waiting.min_by_key(|(_, tag)| **tag).map(|(key, _)| *key)
    }

    fn is_open(&self, now: u64) -> bool {
        self.next <= now && self.at_origin.len() < self.permits
    }

    /// Runs all events that are due now.
    fn settle(&mut self, now: u64) {
        self.at_origin.retain(|end| *end > now);
        while self.is_open(now)
            && let Some(key) = self.next_key()
        {
            let mut waiting = self.waiting.iter();
            let first = waiting.position(|waiter| waiter.request.1 == key).unwrap();
            let waiter = self.waiting.remove(first);
            self.leave(waiter.request, waiter.number, now, false);
        }
        let is_late = |waiter: &mut Waiter| waiter.request.0 + self.timeout <= now;
        for waiter in self.waiting.extract_if(.., is_late) {
            self.decided[waiter.number] = Err(GateRejected::Timeout);
        }
    }

    fn come(&mut self, number: usize, request: Request) {
        let (now, key, _) = request;
        if self.waiting.is_empty() && self.is_open(now) {
            return self.leave(request, number, now, true);
        }
        let left = self.max_queue - self.waiting.len();
        let of_key = self.waiting.iter().filter(|it| it.request.1 == key);
        let of_key = of_key.count();
        if of_key >= self.queue.min(left) {
            let is_full = left == 0;
            self.decided[number] = Err(if is_full {
                GateRejected::MaxQueue
            } else {
                GateRejected::Queue
            });
            return;
        }
        self.waiting.push(Waiter { number, request });
        let is_known = self.tags.get(&key).is_some_and(|(tag, _)| *tag >= self.now);
        if of_key == 0 && !is_known {
            self.set_tag(key, self.newcomers);
        }
    }

    fn run(mut self, requests: &[Request]) -> Vec<Result<u64, GateRejected>> {
        let end = requests.last().map_or(0, |last| last.0) + self.timeout + 1;
        let mut coming = requests.iter().copied().enumerate().peekable();
        for now in 0..=end {
            self.settle(now);
            while let Some((number, request)) = coming.next_if(|(_, request)| request.0 == now) {
                self.come(number, request);
                self.settle(now);
            }
        }
        self.decided
    }
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let hold = prop_oneof![Just(0), 1..400u64];
    let all = prop::collection::vec((0..1500u64, 0..4u8, hold), 1..80);
    all.prop_map(|mut all| {
        all.sort_by_key(|request| request.0);
        all
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn each_request_departs_as_in_the_model_of_every_millisecond(
        requests in requests(),
        interval in prop_oneof![Just(0), Just(10), Just(50), Just(100)],
        permits in prop_oneof![Just(0), 1..4usize],
        (queue, max_queue) in (1..9usize, 1..25usize),
        timeout in prop_oneof![Just(0), 1..900u64],
    ) {
        prop_assume!(interval > 0 || permits > 0);
        // The timeout is long enough that no request is rejected on arrival: the model does not
        // predict waits.
        let timeout = timeout + interval * max_queue as u64;
        let rate = match interval {
            0 => "none".to_owned(),
            interval => format!("{}r/s", 1000 / interval),
        };
        let origin = format!(
            "rate = \"{rate}\"\nmax_in_flight = {permits}\nshare = \"key\"\nqueue = {queue}\n\
             max_queue = {max_queue}\nqueue_timeout = \"{timeout}ms\""
        );
        let model = Model {
            interval,
            permits: if permits == 0 { usize::MAX } else { permits },
            queue,
            max_queue,
            timeout,
            decided: vec![Ok(0); requests.len()],
            ..Model::default()
        };
        let expected = model.run(&requests);
        let settings = settings(&origin, "[[routes]]\npath = \"/\"\norigin = \"app\"");
        let lines: Vec<Line> = requests.iter().map(|request| line(*request, "/")).collect();
        for ((outcome, expected), request) in replay(&settings, &lines).iter().zip(expected).zip(&requests) {
            let outcome = outcome.unwrap();
            let decided = match (outcome.delay(), outcome.at_gate.unwrap().rejected) {
                (Some(delay), None) => Ok(u64::try_from(delay.as_micros()).unwrap()),
                (_, rejected) => Err(rejected.unwrap()),
            };
            prop_assert_eq!(decided, expected.map(|millis| millis * 1000), "{:?}", request);
        }
    }

    #[test]
    fn a_gate_with_free_permits_changes_no_outcome(
        requests in requests(),
        paths in prop::collection::vec(0..4usize, 80),
        (burst, delay) in (0..9u32, 0..3u32),
        dry_run in any::<bool>(),
        max_wait in prop_oneof![Just("none"), Just("150ms")],
    ) {
        let limits = [
            format!("{{ zone = \"key\", burst = {burst} }}"),
            format!(
                "{{ zone = \"key\", burst = {burst}, delay = {} }}, {{ zone = \"all\", burst = 5 }}",
                delay.min(burst)
            ),
            "{ zone = \"token\", burst = 2 }, { zone = \"all\", burst = 9 }".to_owned(),
            String::new(),
        ];
        let route = |(nth, limits): (usize, &String)| format!(
            "[[routes]]\npath = \"/{nth}\"\norigin = \"app\"\nlimits = [{limits}]\n\
             max_wait = \"{max_wait}\"\ndry_run = {}\n",
            dry_run && nth == 1
        );
        let routes: String = limits.iter().enumerate().map(route).collect();
        let paths = paths.iter().map(|path| ["/0", "/1", "/2", "/3"][*path]);
        let lines: Vec<Line> = requests.iter().zip(paths).map(|(it, path)| line(*it, path)).collect();
        let open = settings("max_in_flight = 1000000", &routes);
        let free = settings("", &routes);
        let mut simulator = Simulator::new(&free);
        for ((number, line), outcome) in (0..).zip(&lines).zip(replay(&open, &lines)) {
            let gated = outcome.map(|outcome| Outcome { at_gate: None, ..outcome });
            // Without a gate, the outcome is known at once.
            simulator.submit(number, line);
            let known: Vec<_> = simulator.take_known().collect();
            prop_assert_eq!(known, [(number, gated)]);
        }
        simulator.end();
        prop_assert_eq!(simulator.take_known().count(), 0);
    }
}
