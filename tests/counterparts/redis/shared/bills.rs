//! Answers that tell what their requests cost, in zones that gateways share.

use std::thread;
use std::time::Duration;

use crate::programs::redis::Redis;
use crate::redis::shared::file;
use crate::support::{Client, Exchange, Gateway, MS, Origin, best_of_three, fetch};

/// Answers after 50 ms, and says that the request has cost what its target says in `says=`.
pub fn billing() -> Origin {
    Origin::answering(|exchange: &mut Exchange| {
        let target = exchange.target().to_owned();
        let said = target.split("says=").nth(1).unwrap_or("1");
        thread::sleep(50 * MS);
        let head = format!("HTTP/1.1 200 OK\r\nX-Drip-Cost: {said}\r\nContent-Length: 2\r\n\r\nok");
        exchange.send(head.as_bytes())
    })
}

/// Two gateways that share a zone whose requests cost what their answers say.
pub fn two(
    origin: &Origin,
    redis: &Redis,
    rate: &str,
    more: &str,
    limit: &str,
    estimate: u32,
) -> [Gateway; 2] {
    let cost =
        format!("cost = {{ response_header = \"x-drip-cost\", estimate = {estimate}, max = 9 }}");
    let text = file(origin, &redis.url(), rate, more, limit);
    let text = text.replace("path = \"/\"\n", &format!("path = \"/\"\n{cost}\n"));
    [Gateway::start(&text), Gateway::start(&text)]
}

/// Fails unless these requests came so many milliseconds after the first one, give or take 25.
fn check(origin: &Origin, wanted: &[(&str, u32)]) -> Result<(), String> {
    let first = origin.moments(wanted[0].0)[0];
    let came = wanted
        .iter()
        .map(|(who, _)| origin.moments(who)[0].saturating_duration_since(first));
    let came: Vec<_> = came.collect();
    let is_near =
        |(came, (_, wanted)): (&Duration, &(&str, u32))| came.abs_diff(*wanted * MS) < 25 * MS;
    if came.iter().zip(wanted).all(is_near) {
        Ok(())
    } else {
        Err(format!("they came after {came:?}"))
    }
}

#[test]
fn a_bill_moves_those_who_wait_here_back_and_comes_before_all_who_join_later() {
    let (origin, redis) = (billing(), Redis::start());
    let [one, other] = two(&origin, &redis, "10r/s", "", ", burst = 20", 1);
    best_of_three(|attempt| {
        let ask = |gateway: &Gateway, who: &str, says: u32| {
            let target = format!("/?key={attempt}&{who}{attempt}&says={says}");
            let client = Client::ask(gateway.address(), &target);
            thread::sleep(10 * MS);
            client
        };
        let mut clients = vec![ask(&one, "first", 5), ask(&one, "second", 1)];
        // It has a time of the schedule already, which no other gateway takes.
        clients.push(ask(&other, "third", 1));
        thread::sleep(60 * MS);
        clients.push(ask(&other, "fourth", 1));
        assert!(clients.iter_mut().all(|it| it.answer().status == 200));
        let who = ["first", "second", "third", "fourth"].map(|who| format!("{who}{attempt}"));
        // The bill of four takes the places at 300 to 600 ms, and that at 100 ms stays unused.
        let wanted = [
            (&*who[0], 0),
            (&*who[1], 600),
            (&*who[2], 200),
            (&*who[3], 700),
        ];
        check(&origin, &wanted)
    });
}

#[test]
fn what_an_answer_costs_less_moves_those_who_wait_here_up() {
    let (origin, redis) = (billing(), Redis::start());
    let [one, other] = two(&origin, &redis, "10r/s", "", ", burst = 30", 5);
    best_of_three(|attempt| {
        let mut clients: Vec<Client> = ["first", "second", "third"]
            .iter()
            .map(|who| {
                let target = format!("/?key={attempt}&{who}{attempt}&says=1");
                let client = Client::ask(one.address(), &target);
                thread::sleep(5 * MS);
                client
            })
            .collect();
        assert!(clients.iter_mut().all(|it| it.answer().status == 200));
        // The last part is given back about now.
        thread::sleep(20 * MS);
        let last = format!("/?key={attempt}&last{attempt}&says=1");
        assert_eq!(fetch(other.address(), &last).status, 200);
        let who = ["first", "second", "third", "last"].map(|who| format!("{who}{attempt}"));
        let wanted = [
            (&*who[0], 0),
            (&*who[1], 100),
            (&*who[2], 200),
            (&*who[3], 300),
        ];
        check(&origin, &wanted)
    });
}

#[test]
fn without_redis_a_gateway_bills_its_own_level() {
    let origin = billing();
    for (algorithm, limit) in [
        ("leaky_bucket", ", burst = 9, nodelay = true"),
        ("token_bucket", ", burst = 10"),
    ] {
        let mut redis = Redis::start();
        let more = format!("algorithm = \"{algorithm}\"");
        let [gateway, _] = two(&origin, &redis, "1r/h", &more, limit, 1);
        redis.kill();
        let answers = (0..9).map(|_| fetch(gateway.address(), "/?key=a&says=3").status);
        let passed = answers.filter(|status| *status == 200).count();
        assert_eq!(passed, 4, "{algorithm}");
    }
}

/// Algorithms, each with its rate and the rest of its limit: ten requests pass at once.
const LIMITS: [(&str, &str, &str); 5] = [
    ("leaky_bucket", "1r/h", ", burst = 9, nodelay = true"),
    ("token_bucket", "1r/h", ", burst = 10"),
    ("fixed_window", "10r/24h", ""),
    ("sliding_window_log", "10r/24h", ""),
    ("sliding_window_counter", "10r/24h", ""),
];

/// Two gateways with a zone for each of [`LIMITS`], and a route for each zone and estimate: `/leaky_bucket/5`.
fn with_all_limits(origin: &Origin, redis: &Redis, estimates: [u32; 2]) -> [Gateway; 2] {
    let mut text = file(origin, &redis.url(), "1r/h", "", "");
    for (zone, rate, limit) in LIMITS {
        let more = format!(
            "[zones.{zone}]\nkey = \"$arg_key\"\nalgorithm = \"{zone}\"\nrate = \"{rate}\"\nstore = \"redis\"\n"
        );
        text.push_str(&more);
        for estimate in estimates {
            let more = format!(
                "[[routes]]\npath = \"/{zone}/{estimate}\"\norigin = \"app\"\n\
                 cost = {{ response_header = \"x-drip-cost\", estimate = {estimate}, max = 9 }}\n\
                 limits = [{{ zone = \"{zone}\"{limit} }}]\n"
            );
            text.push_str(&more);
        }
    }
    [Gateway::start(&text), Gateway::start(&text)]
}

#[test]
fn two_gateways_bill_one_limit_by_all_five_algorithms() {
    let (origin, redis) = (billing(), Redis::start());
    // Each is let through if its estimate fits: after three costs of 3, and after five of 1.
    let cases = [(1, 3, 4), (5, 1, 6)];
    let gateways = &with_all_limits(&origin, &redis, cases.map(|(estimate, ..)| estimate));
    thread::scope(|scope| {
        for (algorithm, rate, _) in LIMITS {
            for (estimate, says, wanted) in cases {
                let passed = move |key: &str| {
                    let answers = (0..9).map(|nth: usize| {
                        let target =
                            format!("/{algorithm}/{estimate}?key={key}{estimate}&says={says}");
                        let status = fetch(gateways[nth % 2].address(), &target).status;
                        thread::sleep(20 * MS);
                        status
                    });
                    answers.filter(|status| *status == 200).count()
                };
                scope.spawn(move || {
                    let mut all = passed("a");
                    if all > wanted && rate.ends_with("24h") {
                        // A new window may have begun during the test, but not twice.
                        all = passed("b");
                    }
                    assert_eq!(all, wanted, "{algorithm}, estimate {estimate}");
                });
            }
        }
    });
}
