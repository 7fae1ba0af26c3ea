//! Plans: other numbers for some keys, from the file and from files of keys.

use std::fmt::Write as _;
use std::fs;
use std::thread;

use serde_json::Value;

use crate::support::live::Listener;
use crate::support::operator::json;
use crate::support::{
    Answer, Client, Gateway, MS, Origin, Site, drip, eventually, fetch, make_fifo, now, one_zone,
    whole_lines,
};

/// A zone of one request an hour, `burst` 4, with these plans.
fn file(origin: &Origin, plans: &str) -> String {
    one_zone(origin, "1r/h", "burst = 4, nodelay = true") + plans
}

fn ask(gateway: &Gateway, key: &str) -> Answer {
    fetch(gateway.address(), &format!("/?key={key}"))
}

fn remaining(gateway: &Gateway, key: &str) -> u64 {
    ask(gateway, key).number("x-ratelimit-remaining")
}

#[test]
fn a_plan_gives_its_keys_their_own_rate_and_burst() {
    let origin = Origin::start();
    let plans = "[zones.z.plans.gold]\nkeys = [\"alice\", \"bob\"]\nrate = \"20r/s\"\nburst = 9\n\
                 [zones.z.plans.silver]\nkeys = [\"carol\"]\nburst = 6\n";
    let gateway = Gateway::start(&file(&origin, plans));
    for (key, burst) in [("alice", 9), ("bob", 9), ("carol", 6), ("dave", 4)] {
        let first = ask(&gateway, key);
        assert_eq!(first.number("x-ratelimit-limit"), burst + 1, "{key}");
        for left in (0..burst).rev() {
            let left_now = remaining(&gateway, key);
            // The bucket of gold leaks while this goes on.
            assert!(left_now == left || (burst == 9 && left_now > left), "{key}");
        }
    }
    let listed = gateway
        .admin("/api/zones/z/keys")
        .expect("an admin port")
        .text();
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    let plan = |key: &str| {
        let keys = listed["keys"].as_array().expect("a list");
        let found = keys
            .iter()
            .find(|it| it["key"] == key)
            .expect("it is known");
        found.get("plan").and_then(Value::as_str).map(str::to_owned)
    };
    assert_eq!(plan("alice").as_deref(), Some("gold"));
    assert_eq!(plan("dave"), None);
    assert_eq!(ask(&gateway, "carol").status, 429);
    assert_eq!(ask(&gateway, "dave").status, 429);
    // A twentieth of a second is enough for gold.
    thread::sleep(300 * MS);
    assert_eq!(ask(&gateway, "alice").status, 200);
}

#[test]
fn a_file_of_keys_that_changes_takes_effect_and_paces_those_who_wait() {
    let origin = Origin::start();
    let site = Site::new();
    let list = site.folder().join("gold.txt");
    fs::write(&list, "# nobody yet\n").expect("a file");
    let plans = "[zones.z.plans.gold]\nfile = \"gold.txt\"\nrate = \"20r/s\"\n";
    site.write(&file(&origin, plans).replace(", nodelay = true", ""));
    let gateway = Gateway::run(site);
    gateway.wait_until_ready();
    let mut clients: Vec<Client> = ["alice", "eve"]
        .iter()
        .flat_map(|key| (0..4).map(move |_| key))
        .map(|key| Client::ask(gateway.address(), &format!("/?key={key}")))
        .collect();
    eventually("three of each wait", || {
        gateway.zone("drip_zone_queue_depth") == 6
    });
    origin.wait_for(2);
    assert_eq!(origin.arrivals().len(), 2);
    // What has leaked stays: less than a thousandth of a request, so the next leaves after 50 ms.
    let began = now();
    fs::write(&list, "alice\n").expect("a file");
    origin.wait_for(5);
    assert!(began.elapsed() > 100 * MS, "they keep their pace");
    for client in &mut clients[..4] {
        assert_eq!(client.answer().status, 200);
    }
    // Nobody else has moved.
    assert_eq!(gateway.zone("drip_zone_queue_depth"), 3);
    let arrivals = origin.arrivals();
    let of_eve = arrivals.iter().filter(|it| it.target.ends_with("eve"));
    assert_eq!(of_eve.count(), 1);
}

#[test]
fn a_broken_file_of_keys_changes_nothing_and_is_told_by_its_line() {
    let origin = Origin::start();
    let site = Site::new();
    let list = site.folder().join("gold.txt");
    fs::write(&list, "alice\n").expect("a file");
    let plans = "[zones.z.plans.gold]\nfile = \"gold.txt\"\nburst = 9\n\
                 [zones.z.plans.silver]\nkeys = [\"bob\"]\nburst = 6\n";
    site.write(&file(&origin, plans));
    let gateway = Gateway::run(site);
    gateway.wait_until_ready();
    let limit = |key| ask(&gateway, key).number("x-ratelimit-limit");
    assert_eq!((limit("alice"), limit("bob")), (10, 7));
    fs::write(&list, "alice\n\nbob\n").expect("a file");
    let told = gateway.wait_for_line("gold.txt, line 3");
    assert!(
        told.contains("the key \\\"bob\\\" is in the plans")
            || told.contains("\"bob\" is in the plans"),
        "{told}"
    );
    assert_eq!((limit("alice"), limit("bob")), (10, 7));
    fs::write(&list, "carol\n").expect("a file");
    eventually("it is in force", || limit("carol") == 10);
    assert_eq!((limit("alice"), limit("bob")), (5, 7));
    fs::remove_file(&list).expect("it is there");
    gateway.wait_for_line("cannot be read");
    assert_eq!(limit("carol"), 10);
}

#[test]
fn a_file_of_keys_that_comes_later_is_noticed() {
    let origin = Origin::start();
    let gateway = Gateway::start(&file(&origin, ""));
    let limit = || ask(&gateway, "alice").number("x-ratelimit-limit");
    assert_eq!(limit(), 5);
    let plans = "[zones.z.plans.gold]\nfile = \"lists/gold.txt\"\nburst = 9\n";
    gateway.site.write(&file(&origin, plans));
    gateway.wait_for_line("lists/gold.txt cannot be read");
    let folder = gateway.site.folder().join("lists");
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join("gold.txt"), "\u{feff}alice\n").expect("a file");
    eventually("it is in force", || limit() == 10);
}

#[test]
fn a_file_of_keys_that_is_missing_beside_another_mistake_is_named_and_noticed() {
    let origin = Origin::start();
    let gateway = Gateway::start(&file(&origin, ""));
    let limit = || ask(&gateway, "alice").number("x-ratelimit-limit");
    assert_eq!(limit(), 5);
    let plans = "[zones.z.plans.gold]\nfile = \"lists/deep/gold.txt\"\nburst = 9\n";
    let wrong = format!("{plans}rate = \"1 r/s\"\n");
    gateway.site.write(&file(&origin, &wrong));
    gateway.wait_for_line("lists/deep/gold.txt cannot be read");
    gateway.wait_for_line("rate: write");
    // With the file there, the other mistake is the only one.
    let folder = gateway.site.folder().join("lists/deep");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("gold.txt"), "alice\n").expect("a file");
    eventually("the file is no problem", || {
        let config = json(&gateway, "/api/config");
        config["error"]["problems"].as_array().map(Vec::len) == Some(1)
    });
    gateway.site.write(&file(&origin, plans));
    eventually("it is in force", || limit() == 10);
}

#[test]
fn a_hundred_thousand_keys_are_reloaded_while_others_are_served() {
    let origin = Origin::start();
    let site = Site::new();
    let list = site.folder().join("gold.txt");
    let keys = |from: u32| {
        let mut text = String::new();
        for key in from..from + 100_000 {
            writeln!(text, "key-{key}").expect("memory");
        }
        text
    };
    fs::write(&list, keys(0)).expect("a file");
    let plans = "[zones.z.plans.gold]\nfile = \"gold.txt\"\nrate = \"1r/m\"\nburst = 99\n";
    site.write(&file(&origin, plans));
    let gateway = Gateway::run(site);
    gateway.wait_until_ready();
    let limit = |key: &str| ask(&gateway, key).number("x-ratelimit-limit");
    assert_eq!(
        (limit("key-0"), limit("key-99999"), limit("key-100000")),
        (100, 100, 5)
    );
    let spent = remaining(&gateway, "key-60000");
    let own = remaining(&gateway, "eve");
    let draft = site_draft(&gateway);
    fs::write(&draft, keys(50_000)).expect("a file");
    fs::rename(draft, list).expect("a file");
    eventually("it is in force", || limit("key-149999") == 100);
    assert_eq!(limit("key-0"), 5);
    // Keys that keep their plan, or have none, go on where they were.
    assert_eq!(remaining(&gateway, "key-60000"), spent - 1);
    assert_eq!(remaining(&gateway, "eve"), own - 1);
}

#[test]
fn a_file_of_keys_that_would_never_end_is_an_error_and_nothing_hangs() {
    let origin = Origin::start();
    let gateway = Gateway::start(&file(&origin, ""));
    let list = gateway.site.folder().join("gold.txt");
    make_fifo(&list);
    let plans = |name: &str| format!("[zones.z.plans.gold]\nfile = \"{name}\"\nburst = 9\n");
    for name in ["gold.txt", "/dev/zero", "."] {
        gateway.site.write(&file(&origin, &plans(name)));
        gateway.wait_for_line("it is not a regular file");
        assert_eq!(
            ask(&gateway, "alice").number("x-ratelimit-limit"),
            5,
            "{name}"
        );
    }
    fs::write(gateway.site.folder().join("real.txt"), "alice\n").expect("a file");
    gateway.site.write(&file(&origin, &plans("real.txt")));
    eventually("it is in force", || {
        ask(&gateway, "alice").number("x-ratelimit-limit") == 10
    });
}

fn site_draft(gateway: &Gateway) -> std::path::PathBuf {
    gateway.site.folder().join("gold.new")
}

#[test]
fn a_plan_has_its_weight_and_class_at_the_gate() {
    let origin = Origin::start();
    let plans = "[zones.z.plans.gold]\nkeys = [\"a\"]\nweight = 3\n\
                 [zones.z.plans.slow]\nkeys = [\"c\"]\nclass = \"batch\"\n";
    let text = file(&origin, plans).replace(
        "[zones.z]",
        "rate = \"40r/s\"\nshare = \"z\"\nqueue_timeout = \"1h\"\n\
         classes = { interactive = 4, batch = 1 }\n\n[zones.z]",
    );
    let text = text.replace("limits = [{ zone = \"z\", burst = 4, nodelay = true }]", "");
    let gateway = Gateway::start(&text);
    let mut clients: Vec<Client> = (0..30)
        .flat_map(|_| ["a", "b", "c"])
        .map(|key| Client::ask(gateway.address(), &format!("/?key={key}")))
        .collect();
    assert!(clients.iter_mut().all(|it| it.answer().status == 200));
    // While all wait: a has three turns for each of b, and both together four for each of c.
    let arrivals = origin.arrivals();
    let of = |key: &str| {
        let taken = arrivals[5..35].iter();
        taken.filter(|it| it.target.ends_with(key)).count()
    };
    let (a, b, c) = (of("=a"), of("=b"), of("=c"));
    assert!(
        a.abs_diff(18) <= 3 && b.abs_diff(6) <= 2 && c.abs_diff(6) <= 2,
        "{a} {b} {c}"
    );
}

/// How many requests of a plan had this status.
fn counted(gateway: &Gateway, plan: &str, status: &str) -> i64 {
    let labels = [("zone", "z"), ("plan", plan), ("status", status)];
    gateway.metrics().count("drip_plan_requests_total", &labels)
}

#[test]
fn requests_are_counted_for_the_plan_of_their_key() {
    let origin = Origin::start();
    let gold = "[zones.z.plans.gold]\nkeys = [\"alice\"]\nburst = 1\n";
    let silver = "[zones.z.plans.silver]\nkeys = [\"carol\", \"dan\"]\n";
    let gateway = Gateway::start(&file(&origin, &format!("{gold}{silver}")));
    assert!(
        gateway.metrics().0.contains("drip_plan_requests_total"),
        "they are there from the start"
    );
    for (key, requests) in [("alice", 3), ("carol", 1), ("dan", 2), ("eve", 6)] {
        for _ in 0..requests {
            ask(&gateway, key);
        }
    }
    let both = |plan| {
        let of = |status| counted(&gateway, plan, status);
        (of("passed"), of("rejected"))
    };
    assert_eq!((both("gold"), both("silver")), ((2, 1), (3, 0)));
    // The rest of the zone's are those of keys without a plan.
    let zone = |status| {
        let labels = [("zone", "z"), ("status", status)];
        gateway.metrics().count("drip_zone_requests_total", &labels)
    };
    assert_eq!((zone("passed"), zone("rejected")), (2 + 3 + 5, 1 + 1));
    // A plan that leaves the file takes its series with it, and counts anew if it comes back.
    gateway.site.write(&file(&origin, silver));
    eventually("it has left", || {
        !gateway.metrics().0.contains("plan=\"gold\"")
    });
    ask(&gateway, "alice");
    assert_eq!(both("silver"), (3, 0));
    gateway
        .site
        .write(&file(&origin, &format!("{gold}{silver}")));
    gateway.wait_for_line("plans.gold added");
    assert_eq!(both("gold"), (0, 0));
    ask(&gateway, "carol");
    assert_eq!(both("silver"), (4, 0));
}

#[test]
fn those_who_wait_and_leave_are_counted_for_their_plan() {
    let origin = Origin::start();
    let plans = "[zones.z.plans.gold]\nkeys = [\"alice\"]\n";
    let gateway = Gateway::start(&file(&origin, plans).replace(", nodelay = true", ""));
    assert_eq!(ask(&gateway, "alice").status, 200);
    let waiting = Client::ask(gateway.address(), "/?key=alice");
    gateway.wait_for_depth(1);
    drop(waiting);
    eventually("it is counted", || {
        counted(&gateway, "gold", "cancelled") == 1
    });
    assert_eq!(counted(&gateway, "gold", "passed"), 1);
}

#[test]
fn the_plan_of_each_key_that_waits_is_told() {
    let origin = Origin::start();
    let plans = "[zones.z.plans.gold]\nkeys = [\"alice\", \"bob\"]\nburst = 9\nweight = 3\n\
                 [[routes]]\npath = \"/gate\"\norigin = \"app\"\n";
    let text = file(&origin, plans).replace(", nodelay = true", "");
    let text = text.replacen(
        "[zones.z]",
        "rate = \"2r/m\"\nshare = \"z\"\nqueue_timeout = \"1h\"\n\n[zones.z]",
        1,
    );
    let gateway = Gateway::start(&text);
    // One of each passes its zone and waits at the gate, where also those of the other route are.
    let targets = ["/?key=alice", "/?key=eve", "/gate?key=bob", "/gate?key=bob"];
    let _waiting: Vec<Client> = targets
        .iter()
        .flat_map(|target| [target; 2])
        .map(|target| Client::ask(gateway.address(), target))
        .collect();
    let deepest = |of: &Value| -> Vec<(String, Value)> {
        let keys = of.as_array().expect("a list").iter();
        let mut keys: Vec<_> = keys
            .map(|it| {
                (
                    it["key"].as_str().expect("a key").to_owned(),
                    it["plan"].clone(),
                )
            })
            .collect();
        keys.sort_by(|one, other| one.0.cmp(&other.0));
        keys
    };
    let pair = |key: &str, plan: Option<&str>| (key.to_owned(), Value::from(plan));
    let at_gate = |of: &Value| {
        let keys = deepest(of);
        keys.contains(&pair("bob", Some("gold"))) && !keys.contains(&pair("bob", None))
    };
    eventually("the gate tells it", || {
        at_gate(&json(&gateway, "/api/origins")["origins"][0]["gate"]["deepest"])
    });
    let mut listener = Listener::connect(&gateway, "", "");
    listener.history();
    let sample = loop {
        let sample = listener.next().data;
        if sample["deepest"]
            .as_array()
            .is_some_and(|keys| keys.len() == 2)
        {
            break sample;
        }
    };
    let expected = [pair("alice", Some("gold")), pair("eve", None)];
    assert_eq!(deepest(&sample["deepest"]), expected);
    assert!(
        at_gate(&sample["origins"][0]["gate"]["deepest"]),
        "{sample}"
    );
    let zone = json(&gateway, "/api/zones/z");
    let plan = serde_json::json!({
        "plan": "gold", "keys": 2, "rate": null, "burst": 9, "weight": 3, "class": null,
    });
    assert_eq!(zone["plans"], serde_json::json!([plan]));

    let address = gateway.site.admin.to_string();
    let output = drip().args(["top", &address]).output().expect("it runs");
    let shown = String::from_utf8(output.stdout).expect("text");
    let rows: Vec<Vec<&str>> = shown
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let row = |first: &str, last: &str| {
        let mut found = rows.iter().filter(|row| row.first() == Some(&first));
        found.any(|row| row.ends_with(&["gold", last]))
    };
    assert!(
        rows.contains(&vec!["waiting", "in", "depth", "oldest", "plan", "key"]),
        "{shown}"
    );
    assert!(row("z", "alice") && row("gate", "bob"), "{shown}");
}

#[test]
fn the_log_names_the_plan_that_decided_at_the_gate() {
    let origin = Origin::start();
    let plans = "[zones.z.plans.gold]\nkeys = [\"alice\"]\nclass = \"batch\"\n\
                 [zones.other]\nkey = \"$host\"\nrate = \"1000r/s\"\n\
                 [[routes]]\npath = \"/free\"\norigin = \"app\"\n\
                 [[routes]]\npath = \"/other\"\norigin = \"app\"\n\
                 limits = [{ zone = \"other\", burst = 9 }]\n\
                 [log]\nformat = \"json\"\naccess = \"access.log\"\n";
    let text = file(&origin, plans).replacen(
        "[zones.z]",
        "rate = \"1000r/s\"\nshare = \"z\"\nclasses = { interactive = 4, batch = 1 }\n\n[zones.z]",
        1,
    );
    let gateway = Gateway::start(&text);
    let log = gateway.site.folder().join("access.log");
    // Zone and key of the limit, the plan, its zone if it is not that one, and the class.
    for (path, key, expected) in [
        ("/", "alice", ["z", "alice", "gold", "", "batch"]),
        ("/free", "alice", ["", "alice", "gold", "z", "batch"]),
        (
            "/other",
            "alice",
            ["other", "127.0.0.1", "gold", "z", "batch"],
        ),
        ("/free", "eve", ["", "", "", "", "interactive"]),
    ] {
        let target = format!("{path}?key={key}");
        assert_eq!(fetch(gateway.address(), &target).status, 200);
        let find = || {
            let text = whole_lines(&log);
            let mut lines = text
                .lines()
                .map(|line| serde_json::from_str(line).expect("JSON"));
            lines.find(|line: &Value| line["target"] == target.as_str())
        };
        eventually("it is logged", || find().is_some());
        let line = find().expect("logged");
        let told = ["zone", "key", "plan", "plan_zone", "class"];
        let told = told.map(|name| line[name].as_str().unwrap_or_default());
        assert_eq!(told, expected, "{line}");
    }
}
