//! Tests of `mask_keys` over reloads: a new file never reveals a key that was masked before.

use serde_json::Value;

use crate::gateway::masked_keys::{SECRET, Shown, read_samples, send};
use crate::support::operator::{json, post};
use crate::support::{Gateway, Origin, assert_contains, eventually};

/// A zone whose keys share a gate, and another zone.
const ZONES: &str = r#"
[zones.z]
key = "$http_x_api_key"
rate = "1000r/s"
mask_keys = true

[zones.y]
key = "$http_x_other"
rate = "1000r/s"
"#;
const SHARE: &str = "share = \"z\"\nqueue = 20\n";

/// Returns a file with a gate that admits one request.
fn gated(origin: &Origin, share: &str, zones: &str) -> String {
    let origin = origin.address;
    format!(
        r#"
[origins.app]
servers = ["http://{origin}"]
rate = "1r/h"
queue_timeout = "100h"
{share}
{zones}
[[routes]]
path = "/"
origin = "app"
"#
    )
}

fn reload(gateway: &Gateway, text: &str) {
    gateway.site.write(text);
    let (status, answer) = post(gateway, "/api/reload", "");
    assert_eq!(status, 200, "{answer}");
}

/// Returns the keys with the most requests at the gate, each with the number.
fn deepest(gateway: &Gateway) -> Vec<(String, u64)> {
    let origins = json(gateway, "/api/origins");
    let keys = &origins["origins"][0]["gate"]["deepest"];
    let key = |key: &Value| {
        let name = key["key"].as_str().expect("a text").to_owned();
        (name, key["queue_depth"].as_u64().expect("a number"))
    };
    keys.as_array().expect("a list").iter().map(key).collect()
}

#[test]
fn a_key_that_waits_at_a_gate_stays_masked_when_the_gate_gets_the_keys_of_another_zone() {
    let origin = Origin::start();
    let (z, y) = ZONES.split_once("\n\n").expect("two zones");
    let unmasked = ZONES.replace("mask_keys = true", "");
    let gateway = Gateway::start(&gated(&origin, SHARE, ZONES));
    assert_eq!(send(&gateway, "/", "sk_live_gold").answer().status, 200);
    let _waiters = [(); 3].map(|()| send(&gateway, "/", "sk_live_gold"));
    gateway.wait_at_gate(3);
    let known = deepest(&gateway);
    assert!(known[0].0.starts_with("key-"), "{known:?}");
    let of_y = SHARE.replace("\"z\"", "\"y\"");
    for (what, share, zones) in [
        ("another zone", of_y.as_str(), ZONES),
        ("no zone", "", ZONES),
        ("the zone has left the file", "", y),
        ("another zone, and it has left the file", &of_y, y),
        ("without the other zone", SHARE, z),
    ] {
        reload(&gateway, &gated(&origin, share, zones));
        assert_eq!(deepest(&gateway), known, "{what}");
        let origins = json(&gateway, "/api/origins").to_string();
        let mut shown = Shown(vec![("/api/origins".to_owned(), origins)]);
        read_samples(&gateway, &mut shown);
        for (source, text) in shown.0 {
            assert!(!text.contains(SECRET), "{what}: {source}: {text}");
        }
    }
    // The zone through which a request joined decides how its key is shown.
    reload(&gateway, &gated(&origin, &of_y, &unmasked));
    assert_eq!(deepest(&gateway), [("sk_live_gold".to_owned(), 3)]);
}

#[test]
fn an_error_of_a_file_shows_no_key_that_is_masked_now() {
    const PLANS: &str = "[zones.z.plans.gold]\nkeys = [\"sk_live_gold\"]\n";
    let origin = Origin::start();
    let right = gated(&origin, SHARE, &format!("{ZONES}{PLANS}"));
    let gateway = Gateway::start(&right);
    let broken = |mask: &str, more: &str| {
        let text = right.replace("mask_keys = true", mask);
        text.replace(PLANS, &format!("{PLANS}{more}"))
    };
    let twice = "[zones.z.plans.b]\nkeys = [\"sk_live_gold\"]\n";
    for (text, says) in [
        (
            broken("mask_key = true", twice),
            "the key hidden by mask_keys is in the plans gold and b",
        ),
        (
            broken("", twice),
            "the key hidden by mask_keys is in the plans gold and b",
        ),
        (
            broken("mask_keys = true", "rate = \"sk_live_gold\"\n"),
            "found a value hidden by mask_keys",
        ),
        (
            broken("", "sk_live_gold = 1\n"),
            "a name hidden by mask_keys is not a field",
        ),
    ] {
        gateway.site.write(&text);
        let (status, answer) = post(&gateway, "/api/reload", "");
        assert_eq!(status, 422, "{answer}");
        let error = json(&gateway, "/api/config")["error"].to_string();
        for received in [answer.to_string(), error] {
            assert_contains!(received, says);
            assert!(!received.contains(SECRET), "{received}");
        }
        eventually("the log says so", || gateway.log().contains(says));
    }
    assert!(!gateway.log().contains(SECRET), "{}", gateway.log());
}
