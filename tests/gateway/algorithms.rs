//! Tests of the algorithms without waiting requests.

use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::support::{Answer, Gateway, Origin, side_by_side};

/// Returns a file with the zone `z` and one route.
///
/// Port 2 on the loopback interface has no origin behind it. None is needed.
fn file(origin: &Origin, zone: &str, limit: &str) -> String {
    format!(
        "[origins.app]\nservers = [\"http://{}\"]\n[zones.z]\nkey = \"$arg_key\"\n{zone}\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\nheaders = [\"x-ratelimit\", \"ratelimit\"]\n\
         limits = [{{ zone = \"z\"{limit} }}]\n",
        origin.address
    )
}

/// Sends `asked` requests. Returns how many pass, and the last response.
fn passed(gateway: &Gateway, key: &str, asked: usize) -> (usize, Answer) {
    let ask = |_| gateway.fetch(&format!("/?key={key}"));
    let mut answers: Vec<_> = (0..asked).map(ask).collect();
    let passed = answers.iter().filter(|answer| answer.status == 200).count();
    (passed, answers.pop().expect("an answer"))
}

/// Waits until a window of this many milliseconds has just begun, unless it lasts for `needed`
/// more.
#[allow(clippy::disallowed_methods)]
fn wait_for_a_window(length: u128, needed: u128) {
    let past = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    let left = length - past.as_millis() % length;
    if left < needed {
        let left = u64::try_from(left).expect("few");
        thread::sleep(Duration::from_millis(left + 20));
    }
}

#[test]
fn each_algorithm_passes_its_number_and_rejects_the_next_until_retry_after() {
    let origin = Origin::start();
    let cases = [
        ("token_bucket", ", burst = 4"),
        ("fixed_window", ""),
        ("sliding_window_log", ""),
        ("sliding_window_counter", ""),
    ];
    side_by_side(cases, |(algorithm, limit)| {
        let zone = format!("algorithm = \"{algorithm}\"\nrate = \"4r/3s\"");
        let gateway = Gateway::start(&file(&origin, &zone, limit));
        wait_for_a_window(3000, 3001);
        let (first, last) = passed(&gateway, "a", 1);
        assert_eq!(first, 1, "{algorithm}");
        assert_eq!(last.number("x-ratelimit-limit"), 4, "{algorithm}");
        assert_eq!(last.number("x-ratelimit-remaining"), 3, "{algorithm}");
        let policy = last.field("ratelimit-policy");
        assert_eq!(policy, Some("\"z\";q=4;w=3"), "{algorithm}");

        let (more, refused) = passed(&gateway, "a", 8);
        assert_eq!((more, refused.status), (3, 429), "{algorithm}");
        assert_eq!(refused.number("x-ratelimit-remaining"), 0, "{algorithm}");
        let retry_after = refused.number("retry-after");
        let received = refused.number("x-ratelimit-retry-after");
        assert_eq!(received, retry_after, "{algorithm}");
        // Another key is counted separately.
        assert_eq!(passed(&gateway, "b", 1).0, 1, "{algorithm}");
        thread::sleep(Duration::from_secs(retry_after) + Duration::from_millis(10));
        assert_eq!(passed(&gateway, "a", 1).0, 1, "{algorithm}");

        let counted = |status| gateway.zone_requests("z", status);
        let counts = ["passed", "rejected", "delayed"].map(counted);
        assert_eq!(counts, [6, 5, 0], "{algorithm}");
        assert_eq!(gateway.zone("drip_zone_keys"), 2, "{algorithm}");
    });
}

#[test]
fn what_was_charged_stays_with_another_rate_and_not_with_another_algorithm() {
    let origin = Origin::start();
    let file = |algorithm: &str, rate: &str| {
        let zone = format!("algorithm = \"{algorithm}\"\nrate = \"{rate}\"");
        file(&origin, &zone, "")
    };
    let gateway = Gateway::start(&file("sliding_window_log", "3r/m"));
    wait_for_a_window(60_000, 10_000);
    assert_eq!(passed(&gateway, "a", 5).0, 3);
    gateway.site.write(&file("sliding_window_log", "5r/m"));
    gateway.wait_for_line("zones.z.rate 3r/m -> 5r/m");
    assert_eq!(passed(&gateway, "a", 5).0, 2);
    gateway.site.write(&file("sliding_window_counter", "5r/m"));
    gateway.wait_for_line("its keys start empty");
    gateway.wait_for_line("-> sliding_window_counter");
    assert_eq!(passed(&gateway, "a", 7).0, 5);
}
