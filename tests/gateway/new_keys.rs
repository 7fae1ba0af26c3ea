//! Tests of a flood of invented keys, with and without `new_keys`.

use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::support::live::Listener;
use crate::support::operator::{delete, json, keys};
use crate::support::{
    Gateway, MS, Origin, all_pass, assert_contains, eventually, now, one_zone, start_drip,
};

const ZONE: [(&str, &str); 1] = [("zone", "z")];

fn gateway(origin: &Origin, zone: &str) -> Gateway {
    let file = one_zone(origin, "5r/s", "burst = 5, nodelay = true")
        .replace("key = \"$arg_key\"", &format!("key = \"$arg_key\"\n{zone}"));
    let log = "[log]\nformat = \"json\"\naccess = \"access.log\"\n";
    Gateway::start(&format!("workers = 2\n{file}\n{log}"))
}

/// Sends 200 requests per second, each with a new key. Returns how many passed, and the duration.
fn flood(gateway: &Gateway, count: usize) -> (usize, Duration) {
    let mut client = gateway.connect();
    let began = now();
    let mut passed = 0;
    for nth in 0..count {
        client.get(&format!("/?key=invented{nth}"));
        passed += usize::from(client.answer().status == 200);
        let next = began + Duration::from_millis(5) * u32::try_from(nth + 1).expect("few");
        thread::sleep(next.saturating_duration_since(now()));
    }
    (passed, began.elapsed())
}

#[test]
fn past_new_keys_invented_keys_share_one_bucket_and_a_known_client_is_served_as_before() {
    let origin = Origin::start();
    let gateway = gateway(&origin, "new_keys = \"10r/s\"");
    assert_eq!(json(&gateway, "/api/zones/z")["new_keys"], "10r/s");
    assert_eq!(gateway.fetch("/?key=good").status, 200);
    let mut listener = Listener::connect(&gateway, "", "");
    listener.history();

    let ((passed, took), good) = thread::scope(|scope| {
        let flood = scope.spawn(|| flood(&gateway, 600));
        let mut good = Vec::new();
        while !flood.is_finished() {
            good.push(gateway.fetch("/?key=good").status);
            thread::sleep(Duration::from_millis(300));
        }
        (flood.join().expect("no panic"), good)
    });
    let are_served = good.len() >= 8 && good.iter().all(|status| *status == 200);
    assert!(are_served, "{good:?}");
    // 10 new keys and 10 per second; the shared bucket has its burst and 5 per second.
    let seconds = took.as_secs_f64();
    let most = 10.0 + 10.0 * seconds + 6.0 + 5.0 * seconds;
    #[allow(clippy::cast_precision_loss)]
    let passed_now = passed as f64;
    assert!(passed_now <= most + 1.0, "{passed} of 600 in {took:?}");
    assert!(passed_now >= most * 0.7, "{passed} of 600 in {took:?}");

    let metrics = gateway.metrics();
    let (new, flooded) = (
        metrics.count("drip_zone_new_keys_total", &ZONE),
        metrics.count("drip_zone_flooded_total", &ZONE),
    );
    assert_eq!(new + flooded, 601, "each unknown key is one of the two");
    assert!(flooded >= 400, "{flooded}");
    assert_eq!(metrics.count("drip_zone_max_keys", &ZONE), 100_000);
    let (mut seen, mut seen_new) = (0, 0);
    eventually("the samples show all", || {
        let sample = listener.next().data;
        let number = |field: &str| sample["zones"][0][field].as_i64().expect("a number");
        (seen, seen_new) = (seen + number("flooded"), seen_new + number("new_keys"));
        (seen, seen_new) == (flooded, new) || (seen, seen_new) == (flooded, new - 1)
    });
    let rejected = json(&gateway, "/api/zones/z/keys?sort=rejections");
    assert_eq!(rejected["keys"][0]["key"], "\\(new keys)", "{rejected}");
    let named = |it: &Value| it["key"] == "\\(new keys)";
    assert!(keys(&gateway, "?limit=1000").iter().any(named));
    let log = gateway.log();
    assert_contains!(log, "(new keys)");
    let (status, answer) = delete(&gateway, "/api/zones/z/keys/%5C(new%20keys)");
    assert_eq!((status, &answer["forgotten"]), (200, &true.into()));

    let lines = gateway.access_log(601 + good.len());
    assert_eq!(lines.len(), 601 + good.len());
    let of_flood: Vec<_> = lines
        .iter()
        .filter(|line| line["flooded"] == true)
        .collect();
    assert_eq!(i64::try_from(of_flood.len()), Ok(flooded));
    for line in of_flood {
        let key = line["key"].as_str().expect("a key");
        assert!(key.starts_with("invented"), "{line}");
    }
}

#[test]
fn the_shared_bucket_keeps_queue_cost_and_dry_run() {
    let origin = Origin::start();
    let new_keys = "key = \"$arg_key\"\nnew_keys = \"1r/h\"";
    let file = one_zone(&origin, "10r/s", "burst = 9").replace("key = \"$arg_key\"", new_keys)
        + "[[routes]]\npath = \"/dry\"\norigin = \"app\"\ndry_run = true\nlimits = [{ zone = \"z\", burst = 0 }]\n\
         [[routes]]\npath = \"/dear\"\norigin = \"app\"\ncost = 5\nlimits = [{ zone = \"z\", burst = 9 }]\n";
    let gateway = Gateway::start(&file);
    let ask = |target: &str| assert_eq!(gateway.fetch(target).status, 200);
    ask("/?key=first");
    let began = now();
    let unknown = |nth| gateway.ask(&format!("/?key=unknown{nth}"));
    let mut waiting: Vec<_> = (0..5).map(unknown).collect();
    all_pass(&mut waiting);
    assert!(began.elapsed() >= 390 * MS, "one each 0.1 s");
    ask("/dear?key=unknown");
    let began = now();
    for nth in 0..3 {
        ask(&format!("/dry?key=shadow{nth}"));
    }
    // A dry run delays nothing.
    assert!(began.elapsed() < 390 * MS);
    ask("/?key=another");
    assert_eq!(gateway.count("drip_zone_flooded_total", &ZONE), 10);
}

#[test]
fn at_the_gate_invented_keys_share_one_key_too() {
    let origin = Origin::start();
    let zones = "rate = \"20r/s\"\nshare = \"z\"\nqueue_timeout = \"60s\"\n\
                 [zones.z]\nkey = \"$arg_key\"\nrate = \"1000r/s\"\nnew_keys = \"1r/s\"\n\
                 [zones.z.plans.known]\nkeys = [\"good\"]\n";
    let limits = "limits = [{ zone = \"z\", burst = 1000, nodelay = true }]";
    let gateway = start_drip(&origin, zones, &[("/", limits)]);
    let end = now() + Duration::from_secs(4);
    let ask = |key: &dyn Fn(usize) -> String| {
        let mut client = gateway.connect();
        for nth in 0.. {
            if now() > end {
                return;
            }
            client.fetch(&format!("/?key={}", key(nth)));
        }
    };
    let ask = &ask;
    thread::scope(|scope| {
        for flooder in 0..12 {
            scope.spawn(move || (*ask)(&|nth| format!("invented{flooder}x{nth}")));
        }
        for _ in 0..2 {
            scope.spawn(move || (*ask)(&|_| "good".to_owned()));
        }
    });
    // The flood still gets one separate key per second, and each sends one request.
    let (good, all) = (origin.moments("good").len(), origin.moments("").len());
    assert!(10 * good >= 3 * all, "{good} of {all}");
}
