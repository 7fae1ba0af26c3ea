//! Tests that a gateway keeps its identity when a reload changes `[redis]`.
//!
//! None of its permits are withheld.

use super::busy;
use super::permits::{Counting, pass, permit_count};
use crate::programs::redis::Redis;
use crate::support::night::day_or_night;
use crate::support::operator::{json, keys};
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

/// Permits of an origin and of a key are kept, and no other gateway shares the rate.
#[test]
fn a_reload_with_another_redis_table_withholds_nothing_and_adds_no_gateway() {
    let (app, redis) = (Counting::start(), Redis::start());
    let key = "[zones.z]\nkey = \"$arg_key\"\nrate = \"100000r/s\"\nstore = \"redis\"\n\
               [[routes]]\npath = \"/key\"\norigin = \"app\"\n\
               limits = [{ zone = \"z\", burst = 50, nodelay = true, in_flight = 2 }]\n";
    let text = app.file(&redis, "max_in_flight = 6\nrate = \"1000r/s\"") + key;
    let [one, other] = [(); 2].map(|()| Gateway::start(&text));
    let crowds = [
        (&one, 5, "/120"),
        (&other, 5, "/120"),
        (&one, 2, "/key/120?key=a"),
        (&other, 2, "/key/120?key=a"),
    ];
    busy(&crowds, &[200, 503], || {
        eventually("both share", || permit_count(&other, "gateways") == Some(2));
        eventually("all are used", || app.here() == 6);
        for text in changed(&text, &redis) {
            reload(&one, &text);
            let (began, all) = (now(), app.all());
            // Permits of a vanished gateway would be withheld after 3 s.
            while began.elapsed() < 4000 * MS {
                assert_eq!(permit_count(&other, "withheld"), Some(0));
                assert_eq!(permit_count(&other, "gateways"), Some(2));
                let origins = json(&other, "/api/origins");
                let sharing = &origins["origins"][0]["gate"]["sharing"]["gateways"];
                assert!(sharing.as_u64().is_none_or(|it| it <= 2), "{sharing}");
                let of_key = keys(&other, "");
                assert!(!of_key.is_empty(), "the key is listed");
                assert!(of_key.iter().all(|it| it["withheld"] == 0), "{of_key:?}");
                pass(20);
            }
            // Twice as many requests fit into 4 s if all permits are used.
            assert!(app.all() - all > 100, "{} requests", app.all() - all);
        }
    });
    assert!(app.most() <= 6, "{} at once", app.most());
    // An idle gateway keeps its permits, and returns all when the file no longer shares them.
    reload(&one, &text);
    pass(day_or_night(500, 3000));
    assert_eq!(permit_count(&other, "withheld"), Some(0));
    reload(&one, &text.replacen("store = \"redis\"\n", "", 1));
    eventually("the other one is alone", || {
        permit_count(&other, "gateways") == Some(1) && permit_count(&other, "withheld") == Some(0)
    });
}
