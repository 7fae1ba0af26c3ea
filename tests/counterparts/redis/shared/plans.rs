//! Tests of plans of zones that gateways share.

use std::fs;
use std::path::Path;
use std::thread;

use tempfile::TempDir;

use crate::programs::redis::Redis;
use crate::redis::shared::file;
use crate::support::{Client, Gateway, MS, Origin, check_pace, eventually, fetch, now};

/// Sends twelve requests to the gateways in turn. Returns how many pass, and the last retry time.
fn passed(gateways: &[Gateway; 2], key: &str) -> (u32, Option<u64>) {
    let answers: Vec<_> = (0..12)
        .map(|nth| fetch(gateways[nth % 2].address(), &format!("/?key={key}")))
        .collect();
    let passed = answers.iter().map(|it| u32::from(it.status == 200)).sum();
    let retry = answers[11].head.field("retry-after");
    (passed, retry.and_then(|it| it.parse().ok()))
}

#[test]
fn two_gateways_have_one_limit_for_a_key_of_a_plan_by_all_five_algorithms() {
    let (origin, redis) = (Origin::start(), Redis::start());
    for (algorithm, rate, limit, plan) in [
        (
            "leaky_bucket",
            "4r/h",
            ", burst = 3, nodelay = true",
            "rate = \"8r/h\"\nburst = 7",
        ),
        (
            "token_bucket",
            "4r/h",
            ", burst = 4",
            "rate = \"8r/h\"\nburst = 8",
        ),
        ("fixed_window", "4r/24h", "", "rate = \"8r/24h\""),
        ("sliding_window_log", "4r/24h", "", "rate = \"8r/24h\""),
        ("sliding_window_counter", "4r/24h", "", "rate = \"8r/24h\""),
    ] {
        let more = format!(
            "algorithm = \"{algorithm}\"\n[zones.z.plans.gold]\nkeys = [\"gold1\", \"gold2\"]\n{plan}"
        );
        let text = file(&origin, &redis.url(), rate, &more, limit);
        let gateways = [Gateway::start(&text), Gateway::start(&text)];
        let is_window = limit.is_empty();
        for (keys, wanted) in [(["gold1", "gold2"], 8_u32), (["other1", "other2"], 4)] {
            let (mut count, mut retry) = passed(&gateways, keys[0]);
            if count > wanted && is_window {
                // A new window may have begun during the test, but not twice.
                (count, retry) = passed(&gateways, keys[1]);
            }
            assert_eq!(count, wanted, "{algorithm} {}", keys[0]);
            let most = if is_window {
                2 * 86_400
            } else {
                3600 / u64::from(wanted)
            };
            let retry = retry.expect("a time");
            assert!((1..=most).contains(&retry), "{algorithm}: {retry}");
        }
    }
}

/// Returns the fields of a plan whose keys are in this file.
fn listed(list: &Path) -> String {
    format!(
        "[zones.z.plans.gold]\nfile = \"{}\"\nrate = \"10r/s\"",
        list.display()
    )
}

#[test]
fn a_key_that_gets_a_plan_at_one_gateway_is_paced_anew_at_both() {
    let (origin, redis, folder) = (Origin::start(), Redis::start(), TempDir::new());
    let folder = folder.expect("a folder");
    let lists = ["one.txt", "other.txt"].map(|name| folder.path().join(name));
    let [one, other] = lists.each_ref().map(|list| {
        fs::write(list, "# nobody yet\n").expect("a file");
        let more = listed(list);
        Gateway::start(&file(
            &origin,
            &redis.url(),
            "1r/10s",
            &more,
            ", burst = 20",
        ))
    });
    let mut clients = Vec::new();
    for _ in 0..4 {
        for gateway in [&one, &other] {
            clients.push(Client::ask(gateway.address(), "/?key=alice"));
            thread::sleep(20 * MS);
        }
    }
    let _of_eve: Vec<Client> = (0..3)
        .map(|_| Client::ask(one.address(), "/?key=eve"))
        .collect();
    one.wait_for_depth(3 + 2);
    other.wait_for_depth(4);
    let began = now();
    fs::write(&lists[0], "alice\n").expect("a file");
    one.wait_for_line("the changed file is in force");
    // The other gateway learns of the plan with its next join.
    thread::sleep(100 * MS);
    clients.push(Client::ask(other.address(), "/?key=alice"));
    for client in &mut clients {
        assert_eq!(client.answer().status, 200);
    }
    let took = began.elapsed();
    assert!(took < 4000 * MS, "{took:?}: 80 s at the zone's rate");
    let moments = origin.moments("alice");
    check_pace(&moments[moments.len() - 5..], 100 * MS).unwrap_or_else(|told| panic!("{told}"));
    let line = other.wait_for_line("another gateway that shares the zone has another rate");
    assert!(
        line.contains("in_force=10r/s") && line.contains("own=1r/10s"),
        "{line}"
    );
    // No other key is faster.
    let most = 2 + took.as_secs() / 10;
    assert!(origin.moments("eve").len() as u64 <= most);

    // The other gateway also adds and removes the key: the list saved last applies.
    fs::write(&lists[1], "alice\n").expect("a file");
    other.wait_for_line("the changed file is in force");
    assert_eq!(fetch(other.address(), "/?key=alice").status, 200);
    other.wait_for_line("have the same rate again");
    fs::write(&lists[1], "# nobody\n").expect("a file");
    eventually("it is read", || {
        other.log().matches("the changed file is in force").count() == 2
    });
    assert_eq!(fetch(other.address(), "/?key=alice").status, 200);
    let _waits = Client::ask(one.address(), "/?key=alice");
    let line = one.wait_for_line("another gateway that shares the zone has another rate");
    assert!(
        line.contains("in_force=1r/10s") && line.contains("own=10r/s"),
        "{line}"
    );
}
