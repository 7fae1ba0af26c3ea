//! Tests of a file of one gateway that changes a limit of all gateways.

use std::fs;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::programs::redis::Redis;
use crate::redis::shared::file;
use crate::support::{Gateway, MS, Origin, assert_contains, check_pace, eventually, gaps, now};

/// A new rate in one file also applies to waiting requests of the other gateway.
///
/// Three requests wait at each of two gateways, one every ten seconds. The new rate is ten times as
/// high.
#[test]
fn a_retune_of_one_file_reaches_those_who_wait_at_both() {
    let (origin, redis) = (Origin::start(), Redis::start());
    let text = |rate: &str| file(&origin, &redis.url(), rate, "", ", burst = 20");
    let [one, other] = [(); 2].map(|()| Gateway::start(&text("1r/10s")));
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(one.ask("/?key=a&who=one"));
        thread::sleep(Duration::from_millis(20));
        clients.push(other.ask("/?key=a&who=other"));
        thread::sleep(Duration::from_millis(20));
    }
    one.wait_for_depth(3);
    other.wait_for_depth(4);
    let began = now();
    one.site.write(&text("5r/s"));
    one.wait_for_line("the changed file is in force");
    // The other gateway learns of the rate with its next join.
    thread::sleep(Duration::from_millis(100));
    clients.push(other.ask("/?key=a&who=other"));
    for client in &mut clients {
        assert_eq!(client.answer().status, 200);
    }
    let took = began.elapsed();
    assert!(took < 6000 * MS, "{took:?}: 80 s at the old rate");
    let moments = origin.moments("key=a");
    let closest = gaps(&moments).into_iter().min().expect("nine requests");
    assert!(closest > Duration::from_millis(100), "{moments:?}");
    let line = other.wait_for_line("another gateway that shares the zone has another rate");
    assert_contains!(line, "in_force=5r/s", "own=1r/10s");
    assert_eq!(other.value("drip_zone_rate", &[("zone", "z")]), Some(5.0));
    // After saving, the files agree.
    other.site.write(&text("5r/s"));
    other.wait_for_line("the changed file is in force");
    other.fetch("/?key=a");
    other.wait_for_line("have the same rate again");
    assert_eq!(other.log().matches("has another rate").count(), 1);
}

#[test]
fn a_zone_moves_into_redis_and_out_of_it_and_says_so() {
    let (origin, redis) = (Origin::start(), Redis::start());
    let limit = ", burst = 1, nodelay = true";
    let shared = file(&origin, &redis.url(), "1r/h", "", limit);
    let own = shared.replace("store = \"redis\"", "store = \"memory\"");
    let gateway = Gateway::start(&own);
    let pass = |count: usize| {
        let answers = (0..count).map(|_| gateway.fetch("/?key=a").status);
        answers.filter(|status| *status == 200).count()
    };
    assert_eq!(pass(4), 2);
    assert_eq!(redis.ask("EXISTS drip:z:leaky_bucket.2:a"), ":0");
    gateway.site.write(&shared);
    gateway.wait_for_line("moved to another store: its keys start empty");
    gateway.wait_for_line("the changed file is in force");
    assert_eq!(pass(4), 2);
    assert_eq!(redis.ask("EXISTS drip:z:leaky_bucket.2:a"), ":1");
}

/// The list of a plan's keys that was saved last applies at both gateways.
#[test]
fn a_key_that_gets_a_plan_at_one_gateway_is_paced_anew_at_both() {
    let (origin, redis, folder) = (Origin::start(), Redis::start(), TempDir::new());
    let folder = folder.expect("a folder");
    let lists = ["one.txt", "other.txt"].map(|name| folder.path().join(name));
    let [one, other] = lists.each_ref().map(|list| {
        fs::write(list, "# nobody yet\n").expect("a file");
        let list = list.display();
        let more = format!("[zones.z.plans.gold]\nfile = \"{list}\"\nrate = \"10r/s\"");
        let text = file(&origin, &redis.url(), "1r/10s", &more, ", burst = 20");
        Gateway::start(&text)
    });
    let mut clients = vec![one.ask("/?key=alice")];
    origin.wait_for(1);
    for gateway in [&other, &one, &other, &one, &other] {
        clients.push(gateway.ask("/?key=alice"));
        thread::sleep(20 * MS);
    }
    let _of_eve = [(); 3].map(|()| one.ask("/?key=eve"));
    one.wait_for_depth(2 + 2);
    other.wait_for_depth(3);
    let began = now();
    fs::write(&lists[0], "alice\n").expect("a file");
    one.wait_for_line("the changed file is in force");
    // The other gateway learns of the plan with its next join.
    thread::sleep(100 * MS);
    clients.push(other.ask("/?key=alice"));
    assert!(clients.iter_mut().all(|it| it.answer().status == 200));
    let took = began.elapsed();
    assert!(took < 4000 * MS, "{took:?}: a minute at the zone's rate");
    let moments = origin.moments("alice");
    check_pace(&moments[moments.len() - 4..], 100 * MS)
        .unwrap_or_else(|received| panic!("{received}"));
    let has_other = "another gateway that shares the zone has another rate";
    let line = other.wait_for_line(has_other);
    let says = line.contains("in_force=10r/s") && line.contains("own=1r/10s");
    assert!(says, "{line}");
    // No other key is faster.
    let most = 2 + took.as_secs() / 10;
    assert!(origin.moments("eve").len() as u64 <= most);

    // The other gateway also adds and removes the key.
    fs::write(&lists[1], "alice\n").expect("a file");
    other.wait_for_line("the changed file is in force");
    assert_eq!(other.fetch("/?key=alice").status, 200);
    other.wait_for_line("have the same rate again");
    fs::write(&lists[1], "# nobody\n").expect("a file");
    eventually("it is read", || {
        other.log().matches("the changed file is in force").count() == 2
    });
    assert_eq!(other.fetch("/?key=alice").status, 200);
    let _waits = one.ask("/?key=alice");
    let line = one.wait_for_line(has_other);
    let says = line.contains("in_force=1r/10s") && line.contains("own=10r/s");
    assert!(says, "{line}");
}
