//! Tests of one limit at two gateways: verdicts, plans, bills and unknown keys.

use std::thread;

use crate::programs::redis::Redis;
use crate::redis::shared::file;
use crate::support::operator::undo;
use crate::support::{Exchange, Gateway, MS, Origin, eventually, fetch, side_by_side};

const BUCKET: &str = ", burst = 3, nodelay = true";

/// An algorithm, and a zone that uses it.
struct Case {
    algorithm: &'static str,
    /// Rate, and rest of the limit: ten requests pass at once.
    rate: &'static str,
    limit: &'static str,
    /// Fields of a plan that lets twenty requests pass.
    plan: &'static str,
    /// Maximum time until a retry in seconds, without and with the plan.
    longest: [u64; 2],
}

const fn window(algorithm: &'static str) -> Case {
    Case {
        algorithm,
        rate: "10r/24h",
        limit: "",
        plan: "rate = \"20r/24h\"",
        longest: [2 * 86_400; 2],
    }
}

const CASES: [Case; 5] = [
    Case {
        algorithm: "leaky_bucket",
        rate: "1r/h",
        limit: ", burst = 9, nodelay = true",
        plan: "rate = \"2r/h\"\nburst = 19",
        longest: [3600, 1800],
    },
    Case {
        algorithm: "token_bucket",
        rate: "1r/h",
        limit: ", burst = 10",
        plan: "rate = \"2r/h\"\nburst = 20",
        longest: [3600, 1800],
    },
    window("fixed_window"),
    window("sliding_window_log"),
    window("sliding_window_counter"),
];

/// Starts two gateways with a zone for each case.
///
/// Requests for `/fixed_window/5` cost what their responses say, and 5 until then. Those for
/// `/fixed_window/0` cost 1.
fn two_gateways(origin: &Origin, redis: &Redis) -> [Gateway; 2] {
    let mut text = file(origin, &redis.url(), "1r/h", "", "");
    for case in &CASES {
        let Case {
            algorithm: zone,
            rate,
            limit,
            plan,
            ..
        } = case;
        text += &format!(
            "[zones.{zone}]\nkey = \"$arg_key\"\nalgorithm = \"{zone}\"\nrate = \"{rate}\"\nstore = \"redis\"\n\
             [zones.{zone}.plans.gold]\nkeys = [\"gold1\", \"gold2\"]\n{plan}\n"
        );
        for estimate in [0, 1, 5] {
            let cost = format!(
                "cost = {{ response_header = \"x-drip-cost\", estimate = {estimate}, max = 9 }}\n"
            );
            let cost = if estimate > 0 { cost } else { String::new() };
            text += &format!(
                "[[routes]]\npath = \"/{zone}/{estimate}\"\norigin = \"app\"\n{cost}\
                 limits = [{{ zone = \"{zone}\"{limit} }}]\n"
            );
        }
    }
    [Gateway::start(&text), Gateway::start(&text)]
}

/// Sends this many requests to the gateways in turn. Returns how many pass.
fn passed(gateways: &[Gateway], target: &str, count: usize) -> usize {
    let answers = (0..count).map(|nth| {
        let status = fetch(gateways[nth % gateways.len()].address(), target).status;
        // The cost of the request is known then.
        thread::sleep(20 * MS);
        status
    });
    answers.filter(|status| *status == 200).count()
}

#[test]
fn two_gateways_have_one_limit_by_all_five_algorithms() {
    let origin = Origin::answering(|exchange: &mut Exchange| {
        let says = exchange.target().split("says=").nth(1).unwrap_or("1");
        let head = format!("HTTP/1.1 200 OK\r\nX-Drip-Cost: {says}\r\nContent-Length: 2\r\n\r\nok");
        exchange.send(head.as_bytes())
    });
    let redis = Redis::start();
    let gateways = &two_gateways(&origin, &redis);
    side_by_side(&CASES, |case| check(gateways, case));
}

fn check(gateways: &[Gateway; 2], case: &Case) {
    let name = case.algorithm;
    // Two keys, because a new window may begin during the test, but not twice.
    let check_count = |estimate: u32, keys: [&str; 2], more: &str, expected: usize| {
        let pass = |key| {
            let target = format!("/{name}/{estimate}?key={key}{more}");
            passed(gateways, &target, expected + 4)
        };
        let (mut key, mut count) = (keys[0], pass(keys[0]));
        if count > expected && case.limit.is_empty() {
            (key, count) = (keys[1], pass(keys[1]));
        }
        assert_eq!(count, expected, "{name}, estimate {estimate}, key {key}");
        key.to_owned()
    };
    let plain = check_count(0, ["a", "b"], "", 10);
    let gold = check_count(0, ["gold1", "gold2"], "", 20);
    for (key, longest) in [plain, gold].iter().zip(case.longest) {
        let refused = gateways[1].fetch(&format!("/{name}/0?key={key}"));
        assert_eq!(refused.status, 429, "{name} {key}");
        let retry = refused.head.field("retry-after").expect("a time");
        let retry: u64 = retry.parse().expect("seconds");
        assert!((1..=longest).contains(&retry), "{name} {key}: {retry}");
    }
    let first = gateways[0].fetch(&format!("/{name}/0?key=c"));
    for (field, value) in [("limit", "10"), ("remaining", "9")] {
        let received = first.head.field(&format!("x-ratelimit-{field}"));
        assert_eq!(received, Some(value), "{name}");
    }
    // A request is admitted if its estimate fits: after three costs of 3, or after five of 1.
    check_count(1, ["d", "e"], "&says=3", 4);
    check_count(5, ["f", "g"], "&says=1", 6);
}

#[test]
fn two_gateways_take_new_keys_each_on_its_own_and_share_the_bucket_of_the_others() {
    let (origin, redis) = (Origin::start(), Redis::start());
    for (algorithm, limit) in [("leaky_bucket", BUCKET), ("token_bucket", ", burst = 4")] {
        let more = format!("algorithm = \"{algorithm}\"\nnew_keys = \"1r/h\"");
        let text = file(&origin, &redis.url(), "1r/h", &more, limit);
        let gateways = [Gateway::start(&text), Gateway::start(&text)];
        assert_eq!(passed(&gateways, "/?key=own", 2), 2, "{algorithm}");
        let invented = (0..12).map(|nth| format!("/?key=invented{nth}"));
        let both = (0..12).map(|nth| &gateways[nth % 2..=nth % 2]);
        let flood = both
            .zip(invented)
            .map(|(it, target)| passed(it, &target, 1));
        assert_eq!(flood.sum::<usize>(), 4, "{algorithm}");
        let again = passed(&gateways, "/?key=own", 1);
        assert_eq!(again, 1, "{algorithm}: its own bucket has room");
    }
}

#[test]
fn the_bucket_outlives_the_gateways_and_can_be_forgotten() {
    let (origin, redis) = (Origin::start(), Redis::start());
    let text = file(&origin, &redis.url(), "4r/h", "", BUCKET);
    let start = || [Gateway::start(&text)];
    assert_eq!(passed(&start(), "/?key=a", 6), 4);
    let again = start();
    assert_eq!(passed(&again, "/?key=a", 3), 0);
    undo(&again[0], "/api/zones/z/keys/a");
    eventually("the store has no key", || redis.ask("DBSIZE") == ":0");
    assert_eq!(passed(&again, "/?key=a", 6), 4);
    // The key expires by itself, after its bucket has drained.
    let expires = redis.ask("PTTL drip:z:leaky_bucket.2:a");
    let expires: u64 = expires.trim_start_matches(':').parse().expect("a time");
    assert!((3_500_000..=3_700_000).contains(&expires), "{expires}");
}

#[test]
fn a_turn_that_another_zone_refuses_is_given_back_to_the_store() {
    let (origin, redis) = (Origin::start(), Redis::start());
    let text = file(&origin, &redis.url(), "4r/h", "", BUCKET);
    let text = text.replace(
        "[[routes]]\npath = \"/\"",
        "[zones.shut]\nkey = \"$arg_shut\"\nrate = \"1r/h\"\nstore = \"redis\"\n\n[[routes]]\npath = \"/\"",
    );
    let text = text.replace("limits = [{", "limits = [{ zone = \"shut\", burst = 0 }, {");
    let gateway = [Gateway::start(&text)];
    // The route `shut` admits one request and rejects all others.
    assert_eq!(passed(&gateway, "/?key=a&shut=x", 10), 1);
    thread::sleep(100 * MS);
    assert_eq!(passed(&gateway, "/?key=a", 10), 3, "without `shut`");
}
