//! Tests of plans: other numbers for some keys, from the file and from lists of keys.

use std::fs;
use std::thread;

use serde_json::Value;

use crate::support::live::Listener;
use crate::support::operator::{json, keys};
use crate::support::{
    Answer, Client, Gateway, MS, Origin, all_pass, eventually, make_fifo, now, one_zone,
};

/// Returns a zone of one request per hour, `burst` 4, with these plans.
fn file(origin: &Origin, plans: &str) -> String {
    one_zone(origin, "1r/h", "burst = 4, nodelay = true") + plans
}

fn ask(gateway: &Gateway, key: &str) -> Answer {
    gateway.fetch(&format!("/?key={key}"))
}

fn remaining(gateway: &Gateway, key: &str) -> u64 {
    ask(gateway, key).number("x-ratelimit-remaining")
}

fn limit(gateway: &Gateway, key: &str) -> u64 {
    ask(gateway, key).number("x-ratelimit-limit")
}

fn write_keys(gateway: &Gateway, keys: &str) {
    fs::write(gateway.site.folder().join("gold.txt"), keys).expect("a file");
}

#[test]
fn a_plan_gives_its_keys_their_own_rate_and_burst() {
    let origin = Origin::start();
    let plans = "[zones.z.plans.gold]\nkeys = [\"alice\", \"bob\"]\nrate = \"20r/s\"\nburst = 9\n\
                 [zones.z.plans.silver]\nkeys = [\"carol\"]\nburst = 6\n";
    let gateway = Gateway::start(&file(&origin, plans));
    for (key, burst) in [("alice", 9), ("bob", 9), ("carol", 6), ("dave", 4)] {
        assert_eq!(limit(&gateway, key), burst + 1, "{key}");
        for left in (0..burst).rev() {
            let left_now = remaining(&gateway, key);
            // The bucket of gold leaks meanwhile.
            assert!(left_now == left || (burst == 9 && left_now > left), "{key}");
        }
    }
    let listed = keys(&gateway, "");
    let plan = |key: &str| {
        let found = listed.iter().find(|it| it["key"] == key);
        found.expect("it is known")["plan"].clone()
    };
    assert_eq!((plan("alice"), plan("dave")), ("gold".into(), Value::Null));
    assert_eq!(ask(&gateway, "carol").status, 429);
    assert_eq!(ask(&gateway, "dave").status, 429);
    // A twentieth of a second is enough for gold.
    thread::sleep(300 * MS);
    assert_eq!(ask(&gateway, "alice").status, 200);
}

#[test]
fn a_file_of_keys_that_changes_takes_effect_and_paces_those_who_wait() {
    let origin = Origin::start();
    let plans = "[zones.z.plans.gold]\nfile = \"gold.txt\"\nrate = \"20r/s\"\n";
    let text = file(&origin, plans).replace(", nodelay = true", "");
    let gateway = Gateway::start_beside(&[("gold.txt", "# nobody yet\n")], &text);
    let ask = |key: &str| gateway.ask(&format!("/?key={key}"));
    let mut clients = [(); 4].map(|()| ask("alice"));
    let _others = [(); 4].map(|()| ask("eve"));
    gateway.wait_for_depth(6);
    origin.wait_for(2);
    assert_eq!(origin.arrivals().len(), 2);
    // The leaked part stays: less than a thousandth of a request, so the next leaves after 50 ms.
    let began = now();
    write_keys(&gateway, "alice\n");
    origin.wait_for(5);
    assert!(began.elapsed() > 100 * MS, "they keep their pace");
    all_pass(&mut clients);
    // No other request has moved.
    gateway.wait_for_depth(3);
    assert_eq!(origin.moments("eve").len(), 1);
}

#[test]
fn a_broken_list_of_keys_changes_nothing_and_its_line_is_reported() {
    let origin = Origin::start();
    let plans = "[zones.z.plans.gold]\nfile = \"gold.txt\"\nburst = 9\n\
                 [zones.z.plans.silver]\nkeys = [\"bob\"]\nburst = 6\n";
    let gateway = Gateway::start_beside(&[("gold.txt", "alice\n")], &file(&origin, plans));
    let limits = || (limit(&gateway, "alice"), limit(&gateway, "bob"));
    assert_eq!(limits(), (10, 7));
    write_keys(&gateway, "alice\n\nbob\n");
    let received = gateway.wait_for_line("gold.txt, line 3");
    let in_plans = |name: &str| received.contains(&format!("{name} is in the plans"));
    assert!(in_plans("bob\\\"") || in_plans("\"bob\""), "{received}");
    assert_eq!(limits(), (10, 7));
    write_keys(&gateway, "carol\n");
    eventually("it is in force", || limit(&gateway, "carol") == 10);
    assert_eq!(limits(), (5, 7));
    fs::remove_file(gateway.site.folder().join("gold.txt")).expect("it is there");
    gateway.wait_for_line("cannot be read");
    assert_eq!(limit(&gateway, "carol"), 10);
}

#[test]
fn a_file_of_keys_that_comes_later_is_noticed() {
    let origin = Origin::start();
    let gateway = Gateway::start(&file(&origin, ""));
    assert_eq!(limit(&gateway, "alice"), 5);
    let plans = "[zones.z.plans.gold]\nfile = \"lists/deep/gold.txt\"\nburst = 9\n";
    gateway.site.write(&file(&origin, plans));
    gateway.wait_for_line("lists/deep/gold.txt cannot be read");
    let folder = gateway.site.folder().join("lists/deep");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("gold.txt"), "\u{feff}alice\n").expect("a file");
    eventually("it is in force", || limit(&gateway, "alice") == 10);
}

#[test]
fn a_hundred_thousand_keys_are_reloaded_while_others_are_served() {
    let origin = Origin::start();
    let keys = |from: u32| {
        (from..from + 100_000).fold(String::new(), |all, it| all + &format!("key-{it}\n"))
    };
    let plans = "[zones.z.plans.gold]\nfile = \"gold.txt\"\nrate = \"1r/m\"\nburst = 99\n";
    let gateway = Gateway::start_beside(&[("gold.txt", &keys(0))], &file(&origin, plans));
    let limits = ["key-0", "key-99999", "key-100000"].map(|it| limit(&gateway, it));
    assert_eq!(limits, [100, 100, 5]);
    let spent = remaining(&gateway, "key-60000");
    let own = remaining(&gateway, "eve");
    let draft = gateway.site.folder().join("gold.new");
    fs::write(&draft, keys(50_000)).expect("a file");
    fs::rename(draft, gateway.site.folder().join("gold.txt")).expect("a file");
    eventually("it is in force", || limit(&gateway, "key-149999") == 100);
    assert_eq!(limit(&gateway, "key-0"), 5);
    // Keys that keep their plan, or have none, keep their level.
    assert_eq!(remaining(&gateway, "key-60000"), spent - 1);
    assert_eq!(remaining(&gateway, "eve"), own - 1);
}

#[test]
fn a_file_of_keys_that_would_never_end_is_an_error_and_nothing_hangs() {
    let origin = Origin::start();
    let gateway = Gateway::start_beside(&[("real.txt", "alice\n")], &file(&origin, ""));
    make_fifo(gateway.site.folder().join("gold.txt"));
    let plans = |name: &str| format!("[zones.z.plans.gold]\nfile = \"{name}\"\nburst = 9\n");
    for name in ["gold.txt", "/dev/zero", "."] {
        gateway.site.write(&file(&origin, &plans(name)));
        gateway.wait_for_line("it is not a regular file");
        assert_eq!(limit(&gateway, "alice"), 5, "{name}");
    }
    gateway.site.write(&file(&origin, &plans("real.txt")));
    eventually("it is in force", || limit(&gateway, "alice") == 10);
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
        .map(|key| gateway.ask(&format!("/?key={key}")))
        .collect();
    all_pass(&mut clients);
    // While all wait, key a has three slots for each of b, and both together four for each of c.
    let arrivals = origin.arrivals();
    let of = |key: &str| {
        let taken = arrivals[5..35].iter();
        taken.filter(|it| it.target.ends_with(key)).count()
    };
    let (a, b, c) = (of("=a"), of("=b"), of("=c"));
    let is_fair = a.abs_diff(18) <= 3 && b.abs_diff(6) <= 2 && c.abs_diff(6) <= 2;
    assert!(is_fair, "{a} {b} {c}");
}

/// Returns how many requests of a plan had this status.
fn counted(gateway: &Gateway, plan: &str, status: &str) -> i64 {
    let labels = [("zone", "z"), ("plan", plan), ("status", status)];
    gateway.count("drip_plan_requests_total", &labels)
}

#[test]
fn requests_are_counted_for_the_plan_of_their_key() {
    let origin = Origin::start();
    let gold = "[zones.z.plans.gold]\nkeys = [\"alice\"]\nburst = 1\n";
    let silver = "[zones.z.plans.silver]\nkeys = [\"carol\", \"dan\"]\n";
    let queue =
        "[[routes]]\npath = \"/queue\"\norigin = \"app\"\nlimits = [{ zone = \"z\", burst = 9 }]\n";
    let text = |plans: &str| file(&origin, &format!("{queue}{plans}"));
    let both_plans = format!("{gold}{silver}");
    let gateway = Gateway::start(&text(&both_plans));
    let there = gateway.metrics().0.contains("drip_plan_requests_total");
    assert!(there, "from the start");
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
    // The rest of the zone's requests are those of keys without a plan.
    let zone = |status| gateway.zone_requests("z", status);
    assert_eq!((zone("passed"), zone("rejected")), (2 + 3 + 5, 1 + 1));
    let waiting = gateway.ask("/queue?key=carol");
    gateway.wait_for_depth(1);
    drop(waiting);
    eventually("it is counted", || {
        counted(&gateway, "silver", "cancelled") == 1
    });
    // A removed plan loses its series, and counts from zero if it returns.
    gateway.site.write(&text(silver));
    eventually("it has left", || {
        !gateway.metrics().0.contains("plan=\"gold\"")
    });
    ask(&gateway, "alice");
    assert_eq!(both("silver"), (3, 0));
    gateway.site.write(&text(&both_plans));
    gateway.wait_for_line("plans.gold added");
    assert_eq!(both("gold"), (0, 0));
    ask(&gateway, "carol");
    assert_eq!(both("silver"), (4, 0));
}

#[test]
fn the_plan_of_each_waiting_key_is_reported() {
    let origin = Origin::start();
    let plans = "[zones.z.plans.gold]\nkeys = [\"alice\", \"bob\"]\nburst = 9\nweight = 3\n\
                 [[routes]]\npath = \"/gate\"\norigin = \"app\"\n";
    let text = file(&origin, plans).replace(", nodelay = true", "");
    let gate = "rate = \"2r/m\"\nshare = \"z\"\nqueue_timeout = \"1h\"\n\n[zones.z]";
    let gateway = Gateway::start(&text.replacen("[zones.z]", gate, 1));
    // One request of each passes its zone and waits at the gate, as do those of the other route.
    let targets = ["/?key=alice", "/?key=eve", "/gate?key=bob", "/gate?key=bob"];
    let ask = |target| gateway.ask(target);
    let _waiting = targets.map(|target| [target; 2].map(ask));
    let has = |of: &Value, key: &str, plan: Option<&str>| {
        let mut keys = of.as_array().expect("a list").iter();
        keys.any(|it| it["key"] == key && it["plan"] == Value::from(plan))
    };
    eventually("the gate tells it", || {
        let deepest = &json(&gateway, "/api/origins")["origins"][0]["gate"]["deepest"];
        has(deepest, "bob", Some("gold"))
    });
    let mut listener = Listener::connect(&gateway, "", "");
    listener.history();
    let mut sample = Value::Null;
    eventually("both keys of the zone wait", || {
        sample = listener.next().data;
        sample["deepest"].as_array().map(Vec::len) == Some(2)
    });
    assert!(has(&sample["deepest"], "alice", Some("gold")), "{sample}");
    assert!(has(&sample["deepest"], "eve", None), "{sample}");
    let at_gate = &sample["origins"][0]["gate"]["deepest"];
    assert!(has(at_gate, "bob", Some("gold")), "{sample}");
    let plan = serde_json::json!({
        "plan": "gold", "keys": 2, "rate": null, "burst": 9, "weight": 3, "class": null,
    });
    assert_eq!(json(&gateway, "/api/zones/z")["plans"][0], plan);

    let shown = gateway.top();
    let row = |first: &str, last: &str| {
        let mut rows = shown.lines().map(|line| line.split_whitespace().collect());
        rows.any(|row: Vec<_>| row.first() == Some(&first) && row.ends_with(&["gold", last]))
    };
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
    let gate =
        "rate = \"1000r/s\"\nshare = \"z\"\nclasses = { interactive = 4, batch = 1 }\n\n[zones.z]";
    let gateway = Gateway::start(&file(&origin, plans).replacen("[zones.z]", gate, 1));
    // Zone and key of the limit, the plan, its zone if it is another one, and the class.
    for (nth, (path, key, expected)) in [
        ("/", "alice", "z alice gold - batch"),
        ("/free", "alice", "- alice gold z batch"),
        ("/other", "alice", "other 127.0.0.1 gold z batch"),
        ("/free", "eve", "- - - - interactive"),
    ]
    .into_iter()
    .enumerate()
    {
        let target = format!("{path}?key={key}");
        assert_eq!(gateway.fetch(&target).status, 200);
        let line = &gateway.access_log(nth + 1)[nth];
        let received = ["zone", "key", "plan", "plan_zone", "class"];
        let received = received.map(|name| line[name].as_str().unwrap_or("-"));
        assert_eq!(received.join(" "), expected, "{line}");
    }
}
