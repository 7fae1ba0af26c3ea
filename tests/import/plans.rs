//! Zones of several tiers, each with a map, become one zone with plans.

use super::{corpus, drip, told, written};

const TIERS: &str = r#"[server]
listen = ["127.0.0.1:8081"]
max_body_size = "1MB"

[origins.127-0-0-1-9000]
servers = ["http://127.0.0.1:9000"]

# tiers.conf:4: zone free: nginx compares the values of its maps without regard to case, and drip the keys of plans exactly; add every other spelling that clients send to keys
[zones.free]
key = "$http_x_api_key"
rate = "10r/s"
max_keys = 160000
ipv6_prefix = 128

[zones.free.plans.gold]
keys = ["alice", "bob"]
rate = "100r/s"
burst = 200

# tiers.conf:6: the server for all hosts that have none of their own
[[routes]]
path = "/"
origin = "127-0-0-1-9000"
limits = [{ zone = "free", burst = 20 }]
reject_status = 503
"#;

#[test]
fn a_map_for_each_tier_becomes_a_plan() {
    let (code, settings, notes) = corpus("tiers.conf");
    assert_eq!((code, &*settings), (Some(0), TIERS));
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(
        notes[0].starts_with("tiers.conf:4: zone free: nginx compares"),
        "{notes:?}"
    );
}

const CHAINED: &str = r#"
[zones.free]
key = "$http_x_api_key"
rate = "10r/s"
max_keys = 32000
ipv6_prefix = 128

[zones.free.plans.gold]
keys = ["17", "23"]
rate = "100r/s"
burst = 200

[zones.free.plans.silver]
keys = ["42"]
rate = "1200r/m"
burst = 40

# tiers-chained.conf:21: the server for all hosts that have none of their own
[[routes]]
path = "/"
origin = "127-0-0-1-9000"
limits = [{ zone = "perip", burst = 100, nodelay = true }, { zone = "free", burst = 20, nodelay = true }]
reject_status = 429

[[routes]]
path = "/few"
origin = "127-0-0-1-9000"
limits = [{ zone = "free", burst = 5, delay = 4 }]
reject_status = 429

[[routes]]
path = "/open"
origin = "127-0-0-1-9000"
limits = [{ zone = "perip", burst = 0 }]
reject_status = 429
"#;

#[test]
fn maps_chained_by_the_name_of_a_tier_become_plans_too() {
    let (code, settings, notes) = corpus("tiers-chained.conf");
    assert_eq!(code, Some(0));
    assert!(settings.ends_with(CHAINED), "{settings}");
    let expected = [
        "tiers-chained.conf:17: zone platinum is left out: its map gives no key",
        "tiers-chained.conf:18: zone none is left out, and so are its limits: its map looks at $http_x_api_key and gives the key \"$binary_remote_addr\"",
        "tiers-chained.conf:14: map is not translated: ",
        "3 things need a look",
    ];
    assert_eq!(notes.len(), expected.len(), "{notes:#?}");
    for (note, expected) in notes.iter().zip(expected) {
        assert!(note.starts_with(expected), "{note}");
    }
}

const GOLD: &str =
    "map $http_x_api_key $gold { default ''; alice $http_x_api_key; bob $http_x_api_key; }";
const FREE: &str = "map $http_x_api_key $free { default $http_x_api_key; alice ''; bob ''; }";
const ZONES: &str = "limit_req_zone $gold zone=gold:10m rate=100r/s; limit_req_zone $free zone=free:10m rate=10r/s;";
const BOTH: &str = "location / { limit_req zone=gold burst=200; limit_req zone=free burst=20; proxy_pass http://127.0.0.1:9000; }";

/// The settings and notes for these lines of `http` and a server with these lines.
fn import(http: &[&str], locations: &[&str]) -> (String, Vec<String>) {
    let (http, locations) = (http.join("\n"), locations.join("\n"));
    let conf = format!("{http}\nserver {{\n{locations}\n}}\n");
    let folder = written(&[("nginx.conf", &conf)]);
    let (code, settings, notes) = told(&drip(folder.path(), &["import", "nginx.conf"]));
    assert_eq!(code, Some(0), "{conf}\n{notes:#?}");
    (settings, notes)
}

#[test]
fn tiers_are_clear_in_any_order_and_spelling() {
    let values = "map ${http_x_api_key} $free { ALICE ''; bob ''; '' ''; carol $http_x_api_key; default ${HTTP_X_API_KEY}; }";
    let zones = "limit_req_zone ${free} zone=free:10m rate=10r/s; limit_req_zone $gold zone=gold:10m rate=100r/s;";
    let locations = "limit_req zone=free burst=20; limit_req zone=gold burst=200; location / { proxy_pass http://127.0.0.1:9000; }";
    let plan =
        "\n[zones.free.plans.gold]\nkeys = [\"alice\", \"bob\"]\nrate = \"100r/s\"\nburst = 200\n";
    for (http, locations) in [
        ([FREE, GOLD, ZONES], BOTH),
        ([zones, GOLD, values], locations),
    ] {
        let (settings, notes) = import(&http, &[locations]);
        assert!(settings.contains(plan), "{settings}");
        assert_eq!(notes.iter().filter(|note| note.contains("map")).count(), 1);
    }
    // No location limits by the zones: there is no burst.
    let (settings, _) = import(
        &[FREE, GOLD, ZONES],
        &["location / { proxy_pass http://127.0.0.1:9000; }"],
    );
    let plan = "\n[zones.free.plans.gold]\nkeys = [\"alice\", \"bob\"]\nrate = \"100r/s\"\n\n";
    assert!(settings.contains(plan), "{settings}");
}

#[test]
fn a_plan_of_addresses_has_the_addresses() {
    let gold = "map $remote_addr $gold { default ''; 192.0.2.7 $binary_remote_addr; }";
    let free = "map $remote_addr $free { default $binary_remote_addr; 192.0.2.7 ''; }";
    let (settings, notes) = import(&[gold, free, ZONES], &[BOTH]);
    assert!(settings.contains("keys = [\"192.0.2.7\"]"), "{settings}");
    assert!(!settings.contains("exempt"), "{settings}");
    // Addresses have no case.
    assert!(!notes.iter().any(|note| note.contains("case")), "{notes:?}");
}

#[test]
fn tiers_whose_maps_are_not_clear_are_left_out_and_told() {
    let silver = "map $http_x_api_key $silver { default ''; bob $http_x_api_key; } limit_req_zone $silver zone=silver:10m rate=50r/s;";
    let cases: [(&[&str], &str); 9] = [
        (
            &[
                GOLD,
                "map $http_x_api_key $free { default $http_x_api_key; alice ''; bob ''; eve ''; }",
                ZONES,
            ],
            "zone free leaves out \"eve\", which is in no other zone (a plan with rate = \"none\" limits nothing)",
        ),
        (
            &[
                GOLD,
                "map $http_x_api_key $free { default $http_x_api_key; alice ''; }",
                ZONES,
            ],
            "\"bob\" is a key of zone free and of zone gold",
        ),
        (
            &[GOLD, FREE, ZONES, silver],
            "\"bob\" is a key of zone gold and of zone silver",
        ),
        (
            &[
                GOLD,
                "map $http_x_token $free { default $http_x_token; alice ''; bob ''; }",
                ZONES,
            ],
            "no zone limits all other keys by a map with $http_x_api_key as its default",
        ),
        (
            &[
                GOLD,
                FREE,
                ZONES,
                "limit_req_zone $free zone=slow:10m rate=100r/m;",
            ],
            "zones free and slow both limit all other keys",
        ),
        (
            &[
                GOLD,
                "map $http_x_api_key $free { default $http_x_api_key; alice ''; ~^b ''; }",
                ZONES,
            ],
            "the map of zone free is unclear",
        ),
        (
            &[
                GOLD,
                "map $http_x_api_key $free { default $http_x_api_key; '' $binary_remote_addr; alice ''; bob ''; }",
                ZONES,
            ],
            "the map of zone free is unclear",
        ),
        (
            &[
                "map $http_x_api_key $gold { default ''; ~^g $http_x_api_key; }",
                FREE,
                ZONES,
            ],
            "its map has patterns or variables, which plans do not have; write a plan by hand",
        ),
        (
            &[
                "map $http_x_api_key $gold { default ''; alice $binary_remote_addr; bob $binary_remote_addr; }",
                FREE,
                ZONES,
            ],
            "its map looks at $http_x_api_key and gives the key \"$binary_remote_addr\"",
        ),
    ];
    for (http, problem) in cases {
        is_unclear(&import(http, &[BOTH]), problem);
    }
}

#[test]
fn tiers_that_locations_limit_otherwise_are_left_out_and_told() {
    let zones = [GOLD, FREE, ZONES];
    let pass = "proxy_pass http://127.0.0.1:9000; }";
    let cases = [
        (
            format!("location /a {{ limit_req zone=gold burst=200; {pass}"),
            "the location at nginx.conf:6 limits by zone gold and not by zone free",
        ),
        (
            format!("location /a {{ limit_req zone=free burst=20; {pass}"),
            "the location at nginx.conf:6 limits by zone free and not by zone gold",
        ),
        (
            format!(
                "location /a {{ limit_req zone=gold burst=200 nodelay; limit_req zone=free burst=20; {pass}"
            ),
            "the location at nginx.conf:6 delays by zone gold otherwise than by zone free",
        ),
        // No request waits by `free`, but by `gold` some do.
        (
            format!(
                "location /a {{ limit_req zone=gold burst=200 delay=30; limit_req zone=free burst=20 delay=30; {pass}"
            ),
            "the location at nginx.conf:6 delays by zone gold otherwise than by zone free",
        ),
        (
            format!(
                "location /a {{ limit_req zone=gold burst=100; limit_req zone=free burst=5; {pass}"
            ),
            "zone gold has burst 100 at nginx.conf:6 and burst 200 at nginx.conf:5",
        ),
    ];
    for (location, problem) in cases {
        is_unclear(&import(&zones, &[BOTH, &location]), problem);
    }
}

fn is_unclear((settings, notes): &(String, Vec<String>), problem: &str) {
    let mut fields = settings.lines().filter(|line| !line.starts_with('#'));
    let limits = |line: &str| line.contains("plans") || line.contains("limits = ");
    assert!(!fields.any(limits), "{settings}");
    let told = |note: &String| {
        note.contains(problem)
            && note.contains(" is left out, and so are its limits: ")
            && note.contains("by hand")
    };
    assert!(notes.iter().any(told), "{problem}\n{notes:#?}");
    let map = |note: &String| note.contains("map is not translated: ");
    assert!(notes.iter().any(map), "{notes:#?}");
}
