//! Tests that a gateway keeps its identity when a reload changes `[redis]`.
//!
//! None of its permits are withheld.

use super::in_flight::text;
use super::places::{Counting, busy, pass, told};
use crate::programs::redis::Redis;
use crate::support::night::day_or_night;
use crate::support::{Gateway, MS, eventually, now};

/// Returns files with another timeout, and with another user of the same Redis.
///
/// By day returns only the last file, which has both.
fn changed(text: &str, redis: &Redis) -> Vec<String> {
    redis.ask("ACL SETUSER app on >secret ~* &* +@all");
    let url = redis.url();
    let as_user = url.replace("redis://", "redis://app:secret@");
    let slower = text.replace("timeout = \"2", "timeout = \"3");
    assert_ne!(slower, *text);
    let all = [slower.clone(), slower.replace(&url, &as_user)];
    all.into_iter().skip(day_or_night(1, 0)).collect()
}

fn reload(gateway: &Gateway, text: &str) {
    let line = "the changed file is in force";
    let count = || gateway.log().matches(line).count();
    let before = count();
    gateway.site.write(text);
    eventually("the file is in force", || count() > before);
}

#[test]
fn a_reload_with_another_redis_table_withholds_no_places_of_an_origin() {
    let (app, redis) = (Counting::start(), Redis::start());
    let text = app.file(&redis, "max_in_flight = 6");
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    let (target, few) = day_or_night(("/120", 100), ("/40", 300));
    busy(&[(&one, 5), (&other, 5)], target, || {
        eventually("both share", || told(&other, "gateways") == Some(2));
        eventually("all are used", || app.here() == 6);
        for text in changed(&text, &redis) {
            reload(&one, &text);
            let (began, all) = (now(), app.all());
            while began.elapsed() < 4000 * MS {
                assert_eq!(told(&other, "withheld"), Some(0));
                assert_eq!(told(&other, "gateways"), Some(2));
                pass(20);
            }
            // Twice as many requests fit into 4 s if all permits are used.
            assert!(app.all() - all > few, "{} requests", app.all() - all);
        }
    });
    assert!(app.most() <= 6, "{} at once", app.most());
    // An idle gateway keeps its permits, and returns all when the file no longer shares them.
    reload(&one, &text);
    pass(day_or_night(500, 3000));
    assert_eq!(told(&other, "withheld"), Some(0));
    reload(&one, &text.replace("store = \"redis\"\n", ""));
    eventually("the other one is alone", || {
        told(&other, "gateways") == Some(1) && told(&other, "withheld") == Some(0)
    });
}

#[test]
fn a_reload_with_another_redis_table_withholds_no_places_of_a_key() {
    let (app, redis) = (Counting::start(), Redis::start());
    let text = text(&app, &redis.url(), "", ", burst = 50, in_flight = 4");
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    let (target, few) = day_or_night(("/120?key=a", 65), ("/40?key=a", 200));
    busy(&[(&one, 5), (&other, 5)], target, || {
        eventually("all are used", || app.here() == 4);
        for text in changed(&text, &redis) {
            reload(&one, &text);
            // Permits of a vanished gateway would be withheld after 3 s, and count before.
            let all = app.all();
            pass(4000);
            let all = app.all() - all;
            // Twice as many requests fit if all permits are used.
            assert!(all > few, "{all} requests");
            let keys = other.admin("/api/zones/z/keys").expect("an admin port");
            let keys: serde_json::Value = serde_json::from_slice(&keys.body).expect("JSON");
            assert_eq!(keys["keys"][0]["withheld"], 0);
        }
    });
    assert!(app.most() <= 4, "{} at once", app.most());
}

#[test]
fn a_reload_with_another_redis_table_adds_no_gateway_to_a_shared_rate() {
    let (app, redis) = (Counting::start(), Redis::start());
    let text = app.file(&redis, "rate = \"100r/s\"");
    let gateway = Gateway::start(&text);
    let sharing = || {
        let origins = gateway.admin("/api/origins").expect("an admin port");
        let origins: serde_json::Value = serde_json::from_slice(&origins.body).expect("JSON");
        let sharing = &origins["origins"][0]["gate"]["sharing"];
        (sharing["gateways"].as_u64(), sharing["part"].as_f64())
    };
    busy(&[(&gateway, 4)], "/0", || {
        eventually("it shares", || sharing().0 == Some(1));
        for text in changed(&text, &redis) {
            reload(&gateway, &text);
            let began = now();
            while began.elapsed() < 2000 * MS {
                let (gateways, part) = sharing();
                assert!(gateways.is_none_or(|it| it == 1), "{gateways:?}");
                assert_eq!(part, Some(1.0));
                pass(20);
            }
        }
    });
}
