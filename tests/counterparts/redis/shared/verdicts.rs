//! Tests that gateways with a shared zone give the same verdicts as a single gateway.

use std::time::Duration;

use crate::programs::redis::Redis;
use crate::redis::shared::file;
use crate::support::{Client, Gateway, Origin, eventually, fetch};

const BUCKET: &str = ", burst = 3, nodelay = true";
const WINDOWS: [&str; 3] = [
    "fixed_window",
    "sliding_window_log",
    "sliding_window_counter",
];

/// Sends requests to gateways in turn. Returns how many passed.
fn passed(gateways: &[&Gateway], key: &str, count: usize) -> usize {
    let answers = (0..count).map(|nth| {
        let gateway = gateways[nth % gateways.len()];
        fetch(gateway.address(), &format!("/?key={key}")).status
    });
    answers.filter(|status| *status == 200).count()
}

#[test]
fn two_gateways_have_one_limit_by_all_five_algorithms() {
    let (origin, redis) = (Origin::start(), Redis::start());
    let start = |rate: &str, algorithm: &str, limit: &str| {
        let more = format!("algorithm = \"{algorithm}\"");
        Gateway::start(&file(&origin, &redis.url(), rate, &more, limit))
    };
    let mut cases = vec![
        ("leaky_bucket", "4r/h", BUCKET),
        ("token_bucket", "4r/h", ", burst = 4"),
    ];
    // A new window may begin during the test, but not twice.
    cases.extend(WINDOWS.map(|algorithm| (algorithm, "4r/24h", "")));
    for (algorithm, rate, limit) in cases {
        let (one, other) = (start(rate, algorithm, limit), start(rate, algorithm, limit));
        let mut all = passed(&[&one, &other], "a", 10);
        if all > 4 && WINDOWS.contains(&algorithm) {
            all = passed(&[&one, &other], "b", 10);
        }
        assert_eq!(all, 4, "{algorithm}");
        let answer = fetch(one.address(), "/?key=c");
        assert_eq!(
            answer.head.field("x-ratelimit-limit"),
            Some("4"),
            "{algorithm}"
        );
        let remaining = answer.head.field("x-ratelimit-remaining");
        assert_eq!(remaining, Some("3"), "{algorithm}");
        let refused = fetch(other.address(), "/?key=a");
        assert_eq!(refused.status, 429, "{algorithm}");
        let retry = refused.head.field("retry-after").expect("a time");
        let retry: u64 = retry.parse().expect("seconds");
        let most = if WINDOWS.contains(&algorithm) {
            2 * 86_400
        } else {
            900
        };
        assert!((1..=most).contains(&retry), "{algorithm}: {retry}");
    }
}

#[test]
fn the_bucket_outlives_the_gateways_and_can_be_forgotten() {
    let (origin, redis) = (Origin::start(), Redis::start());
    let start = || Gateway::start(&file(&origin, &redis.url(), "4r/h", "", BUCKET));
    assert_eq!(passed(&[&start()], "a", 6), 4);
    let again = start();
    assert_eq!(passed(&[&again], "a", 3), 0);
    let mut admin = Client::connect(again.site.admin);
    admin.send(b"DELETE /api/zones/z/keys/a HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(admin.answer().status, 200);
    eventually("the store has forgotten it", || redis.ask("DBSIZE") == ":0");
    assert_eq!(passed(&[&again], "a", 6), 4);
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
    let gateway = Gateway::start(&text);
    // The route `shut` admits one request and rejects all others.
    for _ in 0..10 {
        fetch(gateway.address(), "/?key=a&shut=x");
    }
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(passed(&[&gateway], "a", 10), 3);
}
