//! Tests of responses that report the cost of their requests, in zones that gateways share.

use std::thread;

use crate::programs::redis::Redis;
use crate::redis::shared::file;
use crate::support::{Exchange, Gateway, MS, Origin, fetch};

/// Starts an origin that answers after 50 ms and bills the cost given by `says=` in the target.
pub fn billing() -> Origin {
    Origin::answering(|exchange: &mut Exchange| {
        let target = exchange.target().to_owned();
        let said = target.split("says=").nth(1).unwrap_or("1");
        thread::sleep(50 * MS);
        let head = format!("HTTP/1.1 200 OK\r\nX-Drip-Cost: {said}\r\nContent-Length: 2\r\n\r\nok");
        exchange.send(head.as_bytes())
    })
}

/// Starts two gateways that share a zone whose requests are billed by responses.
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

/// Algorithms, each with its rate and the rest of its limit: ten requests pass at once.
const LIMITS: [(&str, &str, &str); 5] = [
    ("leaky_bucket", "1r/h", ", burst = 9, nodelay = true"),
    ("token_bucket", "1r/h", ", burst = 10"),
    ("fixed_window", "10r/24h", ""),
    ("sliding_window_log", "10r/24h", ""),
    ("sliding_window_counter", "10r/24h", ""),
];

/// Starts two gateways with a zone for each of [`LIMITS`] and a route for each estimate.
///
/// Example of a route: `/leaky_bucket/5`.
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
    // A request is admitted if its estimate fits: after three costs of 3, or after five of 1.
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
