//! Tests of a shared gate while Redis or a gateway fails.

use rustix::process::Signal;

use crate::programs::redis::Redis;
use crate::redis::shared::all_at_once;
use crate::support::night::day_or_night;
use crate::support::{Gateway, Origin, best_of_three, eventually, fetch, quarter_alone};

use super::{
    Crowd, busy, check_rate, check_windows, file, gauge, millis, pass, rate_of, shared, slack,
    usual_rate, within,
};

#[test]
fn a_gateway_that_is_killed_holds_up_nobody() {
    let (text_rate, rate) = usual_rate();
    let _machine = quarter_alone();
    let (origin, redis) = (Origin::start(), Redis::start());
    let text = file(&origin, &redis.url(), &shared(text_rate));
    let one = Gateway::start(&text);
    best_of_three(|attempt| {
        let other = Gateway::start(&text);
        let crowds = [
            Crowd::of(&one, &format!("/{attempt}?key=a"), 20),
            Crowd::of(&other, &format!("/{attempt}?key=b"), 20),
        ];
        let (before, after) = busy(&crowds, || {
            pass(millis(300));
            let before = pass(millis(day_or_night(600, 1000)));
            other.signal(Signal::KILL);
            // Slots granted ahead expire.
            pass(millis(250));
            (before, pass(millis(day_or_night(1000, 1500))))
        });
        check_rate(&within(&origin, "key=", before), before, rate)?;
        let of_a = within(&origin, "key=a", after);
        check_rate(&of_a, after, rate)?;
        check_windows(&of_a, rate, slack())
    });
}

/// Without Redis each gateway has its share, and no surge follows when Redis returns empty.
#[test]
fn without_redis_each_goes_on_with_its_part_and_then_they_share_again() {
    let (text_rate, rate) = usual_rate();
    let _machine = quarter_alone();
    best_of_three(|_| {
        let (origin, mut redis) = (Origin::start(), Redis::start());
        let text = file(&origin, &redis.url(), &shared(text_rate));
        let (one, other) = (Gateway::start(&text), Gateway::start(&text));
        eventually("both are known", || {
            [&one, &other]
                .iter()
                .all(|it| gauge(it, "drip_origin_gateways") == Some(2.0))
        });
        let crowds = [
            Crowd::of(&one, "/?key=a", 20),
            Crowd::of(&one, "/?key=b", 10),
            Crowd::of(&other, "/?key=c", 20),
        ];
        let (all, alone, after) = busy(&crowds, || {
            let began = pass(millis(day_or_night(300, 1000))).0;
            redis.kill();
            pass(millis(500));
            eventually("each goes on alone", || {
                let is_alone = |it| gauge(it, "drip_origin_shared") == Some(0.0);
                [&one, &other].into_iter().all(is_alone)
            });
            let alone = pass(millis(day_or_night(1000, 2000)));
            for gateway in [&one, &other] {
                assert_eq!(gauge(gateway, "drip_origin_shared"), Some(0.0));
                assert_eq!(gauge(gateway, "drip_origin_part"), Some(0.5));
            }
            redis.restart();
            eventually("they share again", || {
                [&one, &other]
                    .iter()
                    .all(|it| gauge(it, "drip_origin_shared") == Some(1.0))
            });
            pass(millis(300));
            let after = pass(millis(day_or_night(1000, 1500)));
            ((began, after.1), alone, after)
        });
        check_rate(&within(&origin, "key=", alone), alone, rate)?;
        for keys in [&["key=a", "key=b"][..], &["key=c"]] {
            let of_one: f64 = keys
                .iter()
                .map(|key| rate_of(&within(&origin, key, alone), alone))
                .sum();
            if (of_one - rate / 2.0).abs() > 2.0 {
                return Err(format!("{keys:?} had {of_one:.1}r/s alone"));
            }
        }
        let moments = within(&origin, "key=", after);
        check_rate(&moments, after, rate)?;
        // Alone, both gateways may send at the same moment. Old slots may overlap with new ones.
        check_windows(&within(&origin, "key=", all), rate, millis(80))
    });
}

#[test]
fn a_gateway_that_never_reached_redis_takes_the_part_that_the_file_says() {
    let (origin, mut redis) = (Origin::start(), Redis::start());
    redis.kill();
    let text = file(&origin, &redis.url(), &shared("200r/s"));
    let counted = text.replace("store = \"redis\"", "store = \"redis\"\ngateways = 4");
    let (tenth, quarter) = (Gateway::start(&text), Gateway::start(&counted));
    tenth.wait_for_line("goes on alone with 1/10 of it; gateways in [origins.app] says how many");
    quarter.wait_for_line("goes on alone with 1/4 of the rate");
    let machine = quarter_alone();
    best_of_three(|_| {
        let crowds = [
            Crowd::of(&tenth, "/?key=a", 5),
            Crowd::of(&quarter, "/?key=b", 5),
        ];
        let span = busy(&crowds, || {
            pass(millis(300));
            pass(millis(day_or_night(1200, 2000)))
        });
        for (key, rate) in [("key=a", 20.0), ("key=b", 50.0)] {
            let found = rate_of(&within(&origin, key, span), span);
            if (found - rate).abs() > 1.5 {
                return Err(format!("{key} had {found:.1}r/s, not {rate}"));
            }
        }
        Ok(())
    });
    drop(machine);
    redis.restart();
    quarter.wait_for_line("the gateways share the rate again");
}

#[test]
fn what_redis_forgets_costs_at_most_a_span() {
    let (text_rate, rate) = usual_rate();
    let _machine = quarter_alone();
    let (origin, redis) = (Origin::start(), Redis::start());
    let text = file(&origin, &redis.url(), &shared(text_rate));
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    best_of_three(|_| {
        let crowds = [
            Crowd::of(&one, "/?key=a", 20),
            Crowd::of(&other, "/?key=b", 20),
        ];
        let span = busy(&crowds, || {
            pass(millis(500));
            let from = pass(millis(500)).0;
            redis.ask("FLUSHALL");
            (from, pass(millis(1000)).1)
        });
        check_windows(&within(&origin, "key=", span), rate, millis(70))
    });
}

/// A gate whose key in Redis has foreign data reports it and continues alone.
///
/// The key is a list, or has bytes that are not a grid.
#[test]
fn a_gate_whose_key_something_else_has_is_named_and_goes_on_alone() {
    let check = |taken: &str| {
        let (origin, redis) = (Origin::start(), Redis::start());
        redis.ask(taken);
        let gateway = Gateway::start(&file(&origin, &redis.url(), &shared("200r/s")));
        let line = gateway.wait_for_line("the store refused the key of an origin's gate");
        for said in [
            "origin=\"app\"",
            " key=\"drip:gate:app.2\" ",
            "delete it in Redis",
        ] {
            assert!(line.contains(said), "{line}");
        }
        gateway.wait_for_line(
            "the store refuses the claims of the origin's gate, and has not told how many gateways",
        );
        assert_eq!(fetch(gateway.address(), "/?key=a").status, 200);
        assert_eq!(gauge(&gateway, "drip_origin_shared"), Some(0.0));
        assert_eq!(gateway.metrics().value("drip_store_up", &[]), Some(1.0));
        // The gateway retries four times per second, and logs the failure once.
        pass(millis(1000));
        let log = gateway.log();
        for wrong in ["on_store_failure", "does not answer", "is out"] {
            assert!(!log.contains(wrong), "{log}");
        }
        assert_eq!(log.matches("refused the key").count(), 1, "{log}");
        let claims = |result| {
            let labels = [("origin", "app"), ("result", result)];
            gateway
                .metrics()
                .count("drip_store_operations_total", &labels)
        };
        assert!(claims("refused") > 1 && claims("ok") == 0);
        redis.ask("DEL drip:gate:app.2");
        gateway.wait_for_line("the gateways share the rate again");
        assert!(claims("ok") > 0);
    };
    all_at_once(
        ["LPUSH drip:gate:app.2 taken", "SET drip:gate:app.2 taken"],
        check,
    );
}

#[test]
fn an_outage_names_those_who_share() {
    const ZONES: &str = "zones follow their on_store_failure";
    const ORIGINS: &str = "origins go on with this gateway's part of their rate";
    const CLOSED: &str = "origins with on_store_failure = \"closed\" start nothing";
    let in_memory = "rate = \"200r/s\"".to_owned();
    let (zone, shared_zone) = (
        "key = \"$arg_key\"\nrate = \"none\"",
        "key = \"$arg_key\"\nrate = \"1r/s\"\nstore = \"redis\"",
    );
    let both = format!("{ZONES}, and {ORIGINS}");
    let closed = format!(
        "{}\nmax_in_flight = 4\non_store_failure = \"closed\"",
        shared("200r/s")
    );
    let check = |(gate, zone_now, said): (&String, &str, &str)| {
        let (origin, mut redis) = (Origin::start(), Redis::start());
        redis.kill();
        let text = file(&origin, &redis.url(), gate).replace(zone, zone_now);
        let gateway = Gateway::start(&text);
        let line = gateway.wait_for_line("the store is out; ");
        assert!(
            line.contains(&format!("the store is out; {said} store=")),
            "{line}"
        );
        let ready = gateway.admin("/readyz").expect("an admin port");
        assert!(
            ready.text().ends_with(&format!("; {said}\n")),
            "{}",
            ready.text()
        );
        let in_json = said.replace('"', "\\\"");
        let says_so = |text: &str| text.contains(&format!("Meanwhile, {in_json}."));
        eventually("the headline says so", || {
            says_so(
                &gateway
                    .admin("/api/headline")
                    .expect("an admin port")
                    .text(),
            )
        });
        redis.restart();
        gateway.wait_for_line("the store is back");
    };
    let cases = [
        (&in_memory, shared_zone, ZONES),
        (&shared("200r/s"), zone, ORIGINS),
        (&shared("200r/s"), shared_zone, both.as_str()),
        (&closed, zone, CLOSED),
    ];
    all_at_once(cases, check);
}
