//! Tests of a waiting room that gateways share: one order, one number of sessions.
//!
//! The store may fail.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::programs::redis::Redis;
use crate::support::night::day_or_night;
use crate::support::rng::Rng;
use crate::support::{Gateway, Origin, assert_contains, fetch_with, now, quarter_alone};

const SESSIONS: i64 = 5;

/// Returns a file with a room of five sessions, which end this long after their last request.
fn file(origin: &Origin, redis: &Redis, idle: &str) -> String {
    format!(
        r#"
[redis]
url = "{}"
timeout = "1s"

[origins.shop]
servers = ["http://{}"]

[origins.shop.room]
sessions = {SESSIONS}
idle = "{idle}"
claim = "10s"
store = "redis"
secret = "a secret that both have"
draw = "none"

[[routes]]
path = "/"
origin = "shop"
"#,
        redis.url(),
        origin.address
    )
}

/// A visitor that keeps its cookies.
#[derive(Default)]
struct Visitor {
    ticket: Option<String>,
    session: Option<String>,
    again: Option<Instant>,
    asked: u32,
    /// Time after which it polls again, if `Retry-After` is longer.
    patience: Option<Duration>,
}

/// Returns visitors. By day they poll every second, whatever `Retry-After` says.
fn visitors(count: usize) -> Vec<Visitor> {
    let patience = day_or_night(Some(Duration::from_secs(1)), None);
    let visitor = |_| Visitor {
        patience,
        ..Visitor::default()
    };
    (0..count).map(visitor).collect()
}

/// Returns the number in a ticket or a session.
fn number(text: &str) -> u64 {
    let bytes = URL_SAFE_NO_PAD.decode(text).expect("base64");
    u64::from_be_bytes(bytes[..8].try_into().expect("a number"))
}

impl Visitor {
    /// Polls a gateway as soon as allowed. Returns whether the visitor is inside.
    fn ask(&mut self, gateway: &Gateway) -> bool {
        if self.again.is_some_and(|again| now() < again) {
            return false;
        }
        self.asked += 1;
        let field = match (&self.session, &self.ticket) {
            (Some(session), _) => format!("Drip-Session: {session}\r\n"),
            (None, Some(ticket)) => format!("Drip-Ticket: {ticket}\r\n"),
            (None, None) => String::new(),
        };
        let answer = fetch_with(gateway.address(), "/", &field);
        if let Some(session) = answer.field("drip-session") {
            assert_eq!(answer.status, 200);
            self.session = Some(session.to_owned());
        }
        if answer.status == 200 {
            let has_session = self.session.is_some();
            assert!(has_session, "no visitor passes without a session");
            return true;
        }
        assert_eq!(answer.status, 429, "{answer:?}");
        if let Some(ticket) = answer.field("drip-ticket") {
            self.ticket = Some(ticket.to_owned());
        }
        let after = answer.field("retry-after").and_then(|it| it.parse().ok());
        let after = Duration::from_secs(after.expect("Retry-After"));
        self.again = Some(now() + after.min(self.patience.unwrap_or(Duration::MAX)));
        false
    }

    fn number(&self) -> u64 {
        number(
            self.session
                .as_ref()
                .or(self.ticket.as_ref())
                .expect("it has one"),
        )
    }
}

/// Returns the number of visitors inside or called, from one reply of Redis.
fn taken(gateway: &Gateway) -> i64 {
    let metrics = gateway.metrics();
    let count = |state| {
        metrics.count(
            "drip_room_visitors",
            &[("origin", "shop"), ("where", state)],
        )
    };
    count("inside") + count("called")
}

#[test]
fn visitors_of_two_gateways_have_one_order_and_share_the_sessions() {
    let _alone = quarter_alone();
    let (origin, redis) = (Origin::start(), Redis::start());
    let (count, idle) = day_or_night((12, "1s"), (40, "3s"));
    let text = file(&origin, &redis, idle);
    let gateways = [Gateway::start(&text), Gateway::start(&text)];
    let mut rng = Rng::of(1, 0);
    let mut visitors: Vec<Visitor> = (0..count).map(|_| Visitor::default()).collect();
    for (nth, visitor) in visitors.iter_mut().enumerate() {
        let inside = visitor.ask(&gateways[nth % 2]);
        assert_eq!(inside, nth < 5, "the first ones walk in at either gateway");
        assert_eq!(visitor.number(), 1 + nth as u64, "one order for both");
    }
    let mut entered = 5;
    let deadline = now() + Duration::from_secs(90);
    while entered < count {
        assert!(now() < deadline, "only {entered} of {count} are in");
        for visitor in visitors.iter_mut().filter(|it| it.session.is_none()) {
            // Visitors may change the gateway at any time.
            if visitor.ask(&gateways[usize::from(rng.percent(50))]) {
                entered += 1;
                // A session is valid at both gateways.
                let others = gateways.iter().map(|gateway| visitor.ask(gateway));
                assert!(others.collect::<Vec<_>>().iter().all(|inside| *inside));
            }
        }
        for taken in gateways.iter().map(taken) {
            assert!(taken <= SESSIONS, "{taken}");
        }
        thread::sleep(Duration::from_millis(day_or_night(60, 20)));
    }
    let numbers: BTreeSet<u64> = visitors.iter().map(Visitor::number).collect();
    let are_all = numbers.into_iter().eq(1..=count);
    assert!(are_all, "no visitor lost its number");
    let mut asked: Vec<u32> = visitors.iter().map(|it| it.asked).collect();
    asked.sort_unstable();
    let median = asked[asked.len() / 2];
    assert!(
        median < 20,
        "who keeps to Retry-After asks seldom: {asked:?}"
    );
}

#[test]
fn without_redis_those_inside_stay_and_those_who_come_are_behind_the_others() {
    let _alone = quarter_alone();
    let (origin, mut redis) = (Origin::start(), Redis::start());
    let (idle, without) = day_or_night(("2s", 2), ("4s", 4));
    let text = file(&origin, &redis, idle);
    let gateways = [Gateway::start(&text), Gateway::start(&text)];
    let mut early = visitors(8);
    for (nth, visitor) in early.iter_mut().enumerate() {
        visitor.ask(&gateways[nth % 2]);
    }
    redis.kill();
    let mut late = visitors(4);
    let until = now() + Duration::from_secs(without);
    while now() < until {
        for gateway in &gateways {
            assert!(early[0].ask(gateway), "a visitor inside stays");
            assert!(early[..5].iter().all(|it| it.session.is_some()));
            for waiting in early[5..].iter_mut().chain(&mut late) {
                assert!(!waiting.ask(gateway), "no visitor is called");
            }
        }
        thread::sleep(Duration::from_millis(200));
    }
    // Redis returns without its data. The gateways know the last numbers.
    redis.restart();
    let mut order = Vec::new();
    let deadline = now() + Duration::from_secs(90);
    let mut all: Vec<&mut Visitor> = early[5..].iter_mut().chain(&mut late).collect();
    while order.len() < 7 {
        assert!(now() < deadline, "only {order:?} are in");
        for visitor in all.iter_mut().filter(|it| it.session.is_none()) {
            if visitor.ask(&gateways[order.len() % 2]) {
                order.push(visitor.number());
            }
        }
        thread::sleep(Duration::from_millis(day_or_night(60, 20)));
    }
    let numbers: BTreeSet<u64> = order.iter().copied().collect();
    assert_eq!(numbers.len(), 7, "no number is given twice: {order:?}");
    let are_first = numbers.iter().take(3).eq(&[6, 7, 8]);
    assert!(are_first, "those who waited are before: {numbers:?}");
    for gateway in &gateways {
        let log = gateway.log();
        assert_contains!(log, "waiting rooms call no visitors");
        assert_contains!(log, "the waiting room calls visitors again");
    }
}
