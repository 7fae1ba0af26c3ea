//! Tests that a gateway keeps its identity when a reload changes `[redis]`.
//!
//! None of its permits are withheld.

use super::busy;
use super::permits::{pass, permit_count};
use crate::programs::redis::Redis;
use crate::support::night::day_or_night;
use crate::support::operator::{json, keys};
use crate::support::{Counting, Gateway, MS, eventually, now};

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
    let ([app, keyed, rated], redis) = ([(); 3].map(|()| Counting::start()), Redis::start());
    let key = format!(
        "[zones.z]\nkey = \"$arg_key\"\nrate = \"100000r/s\"\nstore = \"redis\"\n\
         [origins.keyed]\nservers = [\"http://{}\"]\n\
         [[routes]]\npath = \"/key\"\norigin = \"keyed\"\n\
         limits = [{{ zone = \"z\", burst = 50, nodelay = true, in_flight = 4 }}]\n",
        keyed.origin.address
    );
    let text = app.file(&redis, "max_in_flight = 6\nrate = \"1000r/s\"") + &key;
    let [one, other] = [(); 2].map(|()| Gateway::start(&text));
    let rate = rated.file(&redis, "rate = \"100r/s\"");
    let rate = rate.replace("app", "rated");
    let lone = Gateway::start(&rate);
    let sharing = |gateway: &Gateway, name: &str| {
        json(gateway, "/api/origins")["origins"][0]["gate"]["sharing"][name].clone()
    };
    let crowds = [
        (&one, 5, "/240"),
        (&other, 5, "/240"),
        (&one, 5, "/key/240?key=a"),
        (&other, 5, "/key/240?key=a"),
        (&lone, 4, "/0"),
    ];
    busy(&crowds, &[200, 503], || {
        eventually("both share", || permit_count(&other, "gateways") == Some(2));
        eventually("all are used", || app.here() == 6 && keyed.here() == 4);
        eventually("the rate is in Redis", || sharing(&lone, "gateways") == 1);
        let files = changed(&text, &redis).into_iter();
        for (text, rate) in files.zip(changed(&rate, &redis)) {
            reload(&one, &text);
            reload(&lone, &rate);
            let (began, before) = (now(), (app.all(), keyed.all()));
            // Permits of a vanished gateway would be withheld after 3 s, and count before.
            while began.elapsed() < 4000 * MS {
                assert_eq!(permit_count(&other, "withheld"), Some(0));
                assert_eq!(permit_count(&other, "gateways"), Some(2));
                let gateways = sharing(&other, "gateways");
                assert!(gateways.as_u64().is_none_or(|it| it <= 2), "{gateways}");
                let gateways = sharing(&lone, "gateways");
                assert!(gateways.as_u64().is_none_or(|it| it == 1), "{gateways}");
                assert_eq!(sharing(&lone, "part"), 1.0);
                let of_key = keys(&other, "");
                assert!(!of_key.is_empty(), "the key is listed");
                assert!(of_key.iter().all(|it| it["withheld"] == 0), "{of_key:?}");
                pass(20);
            }
            // Twice as many requests fit into 4 s if all permits are used.
            let (all, of_key) = (app.all() - before.0, keyed.all() - before.1);
            assert!(all > 50, "{all} requests of the origin");
            assert!(of_key > 33, "{of_key} requests of the key");
        }
    });
    assert!(app.most() <= 6, "{} at once", app.most());
    assert!(keyed.most() <= 4, "{} of the key at once", keyed.most());
    // An idle gateway keeps its permits, and returns all when the file no longer shares them.
    reload(&one, &text);
    pass(day_or_night(500, 3000));
    assert_eq!(permit_count(&other, "withheld"), Some(0));
    reload(&one, &text.replacen("store = \"redis\"\n", "", 1));
    eventually("the other one is alone", || {
        permit_count(&other, "gateways") == Some(1) && permit_count(&other, "withheld") == Some(0)
    });
}
