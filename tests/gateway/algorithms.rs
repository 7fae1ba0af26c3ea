//! The algorithms where no request waits.

use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::support::{Answer, Gateway, Origin, eventually, fetch, now};

/// A file with the zone `z` and one route. A port of 2 on the loopback has no origin behind it, and none is needed.
fn file(origin: &Origin, zone: &str, limit: &str) -> String {
    format!(
        "[origins.app]\nservers = [\"http://{}\"]\n[zones.z]\nkey = \"$arg_key\"\n{zone}\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\nheaders = [\"x-ratelimit\", \"ratelimit\"]\n\
         limits = [{{ zone = \"z\"{limit} }}]\n",
        origin.address
    )
}

fn number(answer: &Answer, field: &str) -> u64 {
    let value = answer
        .head
        .field(field)
        .unwrap_or_else(|| panic!("no {field}"));
    value.parse().expect("a number")
}

/// How many of `asked` consecutive requests pass; returns the last response too.
fn passed(gateway: &Gateway, key: &str, asked: usize) -> (usize, Answer) {
    let ask = |_| fetch(gateway.address(), &format!("/?key={key}"));
    let mut answers: Vec<_> = (0..asked).map(ask).collect();
    let passed = answers.iter().filter(|answer| answer.status == 200).count();
    (passed, answers.pop().expect("an answer"))
}

/// Waits until a window of three seconds has just begun.
#[allow(clippy::disallowed_methods)]
fn wait_for_a_window() {
    let past = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    let into = past.as_millis() % 3000;
    let left = u64::try_from(3000 - into).expect("few");
    thread::sleep(Duration::from_millis(left + 20));
}

#[test]
fn each_algorithm_passes_its_number_and_rejects_the_next_until_retry_after() {
    let origin = Origin::start();
    for (algorithm, limit) in [
        ("token_bucket", ", burst = 4"),
        ("fixed_window", ""),
        ("sliding_window_log", ""),
        ("sliding_window_counter", ""),
    ] {
        let zone = format!("algorithm = \"{algorithm}\"\nrate = \"4r/3s\"");
        let gateway = Gateway::start(&file(&origin, &zone, limit));
        wait_for_a_window();
        let (first, last) = passed(&gateway, "a", 1);
        assert_eq!(first, 1, "{algorithm}");
        assert_eq!(number(&last, "x-ratelimit-limit"), 4, "{algorithm}");
        assert_eq!(number(&last, "x-ratelimit-remaining"), 3, "{algorithm}");
        assert_eq!(
            last.head.field("ratelimit-policy"),
            Some("\"z\";q=4;w=3"),
            "{algorithm}"
        );

        let (more, refused) = passed(&gateway, "a", 8);
        assert_eq!(more, 3, "{algorithm}");
        assert_eq!(refused.status, 429, "{algorithm}");
        assert_eq!(number(&refused, "x-ratelimit-remaining"), 0, "{algorithm}");
        let retry_after = number(&refused, "retry-after");
        assert_eq!(
            number(&refused, "x-ratelimit-retry-after"),
            retry_after,
            "{algorithm}"
        );
        // Another key has a number of its own.
        assert_eq!(passed(&gateway, "b", 1).0, 1, "{algorithm}");
        thread::sleep(Duration::from_secs(retry_after) + Duration::from_millis(10));
        assert!(
            passed(&gateway, "a", 1).0 == 1,
            "{algorithm}: {retry_after} s later"
        );

        let counted = |status| {
            gateway.metrics().count(
                "drip_zone_requests_total",
                &[("zone", "z"), ("status", status)],
            )
        };
        assert_eq!(
            (counted("passed"), counted("rejected"), counted("delayed")),
            (6, 5, 0),
            "{algorithm}"
        );
        assert_eq!(
            gateway.metrics().count("drip_zone_keys", &[("zone", "z")]),
            2,
            "{algorithm}"
        );
    }
}

#[test]
fn nobody_waits() {
    let origin = Origin::start();
    let zone = "algorithm = \"token_bucket\"\nrate = \"1r/s\"";
    let gateway = Gateway::start(&file(&origin, zone, ", burst = 3"));
    let since = now();
    assert_eq!(passed(&gateway, "a", 6).0, 3);
    assert!(
        since.elapsed() < Duration::from_millis(950),
        "{:?}",
        since.elapsed()
    );
}

#[test]
fn a_changed_rate_holds_at_once_and_what_was_charged_stays() {
    let origin = Origin::start();
    let zone = |rate: &str| format!("algorithm = \"sliding_window_log\"\nrate = \"{rate}\"");
    let gateway = Gateway::start(&file(&origin, &zone("3r/m"), ""));
    assert_eq!(passed(&gateway, "a", 5).0, 3);
    gateway.site.write(&file(&origin, &zone("5r/m"), ""));
    gateway.wait_for_line("the changed file is in force");
    assert_eq!(passed(&gateway, "a", 5).0, 2);
}

#[test]
fn another_algorithm_starts_the_zone_afresh_and_says_so() {
    let origin = Origin::start();
    let zone = |algorithm: &str| format!("algorithm = \"{algorithm}\"\nrate = \"3r/m\"");
    let gateway = Gateway::start(&file(&origin, &zone("fixed_window"), ""));
    assert_eq!(passed(&gateway, "a", 5).0, 3);
    gateway
        .site
        .write(&file(&origin, &zone("sliding_window_log"), ""));
    gateway.wait_for_line("its keys start empty");
    gateway.wait_for_line("the changed file is in force");
    assert_eq!(passed(&gateway, "a", 5).0, 3);
}

#[test]
fn a_key_is_forgotten_once_it_counts_no_longer_and_not_before() {
    let origin = Origin::start();
    let zone = "algorithm = \"sliding_window_log\"\nrate = \"2r/3s\"\nidle_timeout = \"0s\"";
    let gateway = Gateway::start(&file(&origin, zone, ""));
    let since = now();
    assert_eq!(passed(&gateway, "a", 4).0, 2);
    let keys = || gateway.metrics().count("drip_zone_keys", &[("zone", "z")]);
    eventually("it is remembered", || keys() == 1);
    eventually("it is forgotten", || keys() == 0);
    assert!(
        since.elapsed() > Duration::from_secs(3),
        "{:?}",
        since.elapsed()
    );
}

#[test]
fn a_request_that_another_zone_rejects_is_not_charged() {
    let origin = Origin::start();
    let text = format!(
        "[origins.app]\nservers = [\"http://{}\"]\n\
         [zones.z]\nkey = \"$arg_key\"\nalgorithm = \"fixed_window\"\nrate = \"5r/d\"\n\
         [zones.narrow]\nkey = \"all\"\nrate = \"1r/d\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{{ zone = \"z\" }}]\n\
         [[routes]]\npath = \"/both\"\norigin = \"app\"\nlimits = [{{ zone = \"z\" }}, {{ zone = \"narrow\" }}]\n",
        origin.address
    );
    let gateway = Gateway::start(&text);
    let statuses: Vec<_> = (0..4)
        .map(|_| fetch(gateway.address(), "/both?key=a").status)
        .collect();
    assert_eq!(statuses, [200, 429, 429, 429]);
    // One of the five is used.
    assert_eq!(passed(&gateway, "a", 9).0, 4);
}
