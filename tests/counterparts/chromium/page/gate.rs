//! Tests of the gate of an origin on the live page, and of actions on it.

use rustix::process::Signal;
use serde_json::json;

use crate::chromium::page::acting::{choose, confirm, enter};
use crate::chromium::page::webdriver::{Browser, DESKTOP};
use crate::chromium::page::{check_that_it_fits, check_that_nobody_complained, crowd, opened};
use crate::programs::redis::Redis;
use crate::support::{Gateway, HoldingOrigin, Origin, free_address, one_origin};

/// Returns a file with this gate as the only limit, and a zone that may name its keys.
fn gated(origin: &Origin, gate: &str, zone: &str) -> String {
    one_origin(origin.address, "", &format!("{gate}\n{zone}"))
}

const ZONE: &str = "[zones.per_key]\nkey = \"$arg_key\"\nrate = \"1000r/s\"\n";

/// Returns a script for the gate's number with this label.
fn stat(nth: usize) -> String {
    format!("document.querySelectorAll('.gate .stat b')[{nth}].textContent")
}

#[test]
fn a_gate_shows_who_waits_and_who_is_rejected() {
    let origin = Origin::start();
    let gate = "rate = \"1r/m\"\nmax_in_flight = 5\nshare = \"per_key\"\nqueue = 3\nqueue_timeout = \"1h\"";
    let (gateway, browser) = opened(&gated(&origin, gate, ZONE));
    browser.reads("#what", "No requests are waiting");
    browser.has(".gate .settings", "rate 1r/m");
    assert_eq!(
        browser.run("return says('.gate .settings')"),
        json!("rate 1r/mpermits 5share per_key queue 3max_queue 10k")
    );

    let mut waiting = crowd(&gateway, "first", 1);
    assert_eq!(waiting[0].answer().status, 200);
    let long = "long".repeat(60);
    waiting.extend(crowd(&gateway, &long, 3));
    waiting.extend(crowd(&gateway, "b", 1));
    browser.reads("#what", "4 requests wait at the gate of app");
    browser.begins("#why", "They leave one by one, ");
    browser.reads("[data-total=waiting] dd", "4");
    browser.reads("[data-total=waiting] dt", "waiting · 4 at the gate");
    browser.holds("/^(⚠ )?\\(4\\) /.test(document.title)");
    browser.holds(format!("{} === '4'", stat(0)));
    let keys = "return [...document.querySelectorAll('.shares li')].map((row) => [...row.children].map((it) => it.textContent))";
    let shown = browser.run(keys);
    assert_eq!(shown[0][2], "3", "{shown}");
    assert_eq!(shown[0][3], "75%", "{shown}");
    assert_eq!(shown[1], json!(["b", "", "1", "25%"]));
    browser.holds("document.querySelector('.gate canvas').getAttribute('aria-label') === 'Waiting, now: all keys 4'");

    assert_eq!(gateway.fetch(&format!("/?key={long}")).status, 429);
    browser.begins("#what", "The gate of app rejects ");
    browser.has("#why", "a key has as many requests waiting as queue allows");
    browser.begins(".gate .rejected", "Rejected: queue ");
    check_that_it_fits(&browser, &[390, 320, 700, 1000, 1280]);
    check_that_nobody_complained(&browser);
}

#[test]
fn a_gate_shows_its_shared_and_its_withheld_permits() {
    let (origin, redis) = (HoldingOrigin::start(), Redis::start());
    let gate = "store = \"redis\"\nmax_in_flight = 6\norphan = \"60s\"\n";
    let text = one_origin(origin.origin.address, "", gate);
    let text = format!(
        "{text}\n[redis]\nurl = \"{}\"\ntimeout = \"2s\"\n",
        redis.url()
    );
    let [one, other] = [Gateway::start(&text), Gateway::start(&text)];
    let browser = Browser::open(&one, DESKTOP);
    let _here = [one.ask("/a"), one.ask("/b")];
    let _there = [0; 3].map(|_| other.ask("/c"));
    browser.holds("/uses 2 of [23] held, 6 of 2 gateways/.test(says('.gate .settings'))");
    other.signal(Signal::KILL);
    browser.holds("/withheld [34] of gateways that vanished/.test(says('.gate .settings'))");
    check_that_nobody_complained(&browser);
}

#[test]
fn a_gate_counts_where_there_is_no_zone_and_goes_with_its_setting() {
    let origin = Origin::start();
    let gate = "rate = \"2r/m\"\nqueue_timeout = \"1h\"";
    let (gateway, browser) = opened(&gated(&origin, gate, ""));
    browser.reads("#what", "No requests are waiting");
    let _waiting = crowd(&gateway, "a", 2);
    browser.reads("#what", "1 request waits at the gate of app");
    browser.has(".gate .settings", "one queue for all");
    browser.holds("!says('.shares')");
    gateway.site.write(&gated(&origin, "", ""));
    browser.reads("#what", "No requests are waiting");
    browser.holds("!document.querySelector('.gate')");
    check_that_nobody_complained(&browser);
}

#[test]
fn an_outage_says_who_waits_for_the_origin_and_how_long() {
    let address = free_address();
    let text = |hold: &str| one_origin(address, "", &format!("hold = \"{hold}\""));
    let (gateway, browser) = opened(&text("2m"));
    let mut waiting = crowd(&gateway, "a", 3);
    let title = "Origin app is down; 3 requests wait for it, up to 2m";
    browser.reads("#what", title);
    browser.has("#why", "Connection refused");
    browser.holds("document.querySelector('#answer').dataset.severity === 'bad'");
    let less = "The origin is down: 3 requests wait for it, up to 2m (connecting to ";
    browser.begins(".gate .less", less);
    let _origin = Origin::at(&address.to_string(), |exchange| exchange.reply(b"ok"));
    for client in &mut waiting {
        assert_eq!(client.answer().status, 200);
    }
    browser.holds("document.querySelector('.gate .less').hidden");
    check_that_nobody_complained(&browser);
}

#[test]
fn a_gate_that_backs_off_says_from_what_to_what_and_why() {
    // Samples of a gate in trouble.
    const IN_TROUBLE: &str = "
        const parse = JSON.parse;
        JSON.parse = (text) => {
            const sample = parse(text);
            const { gate } = sample.origins?.[0] ?? {};
            if (gate?.blocked) {
                gate.rate.now = 17.345;
                gate.max_in_flight.now = 7;
                gate.backing_off = { reason: 'trouble', text: '14 of 120 answers were <b>503</b>' };
                const title = 'The gate of app backs off';
                const evidence = '14 of 120 answers were <b>503</b>. See `rate`.';
                sample.headline = { cause: 'backing_off', severity: 'warn', title, evidence, remedy: '', also: ['<i>more</i>'] };
            }
            return sample;
        }";
    let origin = Origin::start();
    let gate = "rate = \"1200r/m\"\nmax_in_flight = 10";
    let (_gateway, browser) = opened(&gated(&origin, gate, ""));
    browser.run(IN_TROUBLE);
    browser.reads("#what", "The gate of app backs off");
    browser.reads("#why", "14 of 120 answers were <b>503</b>. See rate.");
    browser.reads("#why code", "rate");
    browser.reads("#also", "<i>more</i>");
    browser.holds("document.querySelector('#answer').dataset.severity === 'warn'");
    browser.begins(".gate .settings", "rate 17.3 r/s of 1200r/m");
    browser.has(".gate .settings", "permits 7 of 10");
    browser.begins(".gate .less", "Backing off: the origin is in trouble");
    browser.reads(".origin .told", "0 of 7 in flight");
    check_that_nobody_complained(&browser);
}

#[test]
fn a_gate_is_paused_and_gets_other_values_for_a_while() {
    let origin = Origin::start();
    let gate = "rate = \"200r/s\"\nmax_in_flight = 24\nqueue_timeout = \"60s\"";
    let (gateway, browser) = opened(&one_origin(origin.address, "", gate));
    let act = ".gate .act";
    browser.has(".gate .settings", "rate 200r/s");
    browser.click(act);
    choose(&browser, "pause");
    browser.reads("#act-title", "Gate of app");
    browser.reads("#act-do", "Pause");
    browser.begins("#act-will", "No request leaves to app for 10 minutes");
    confirm(&browser);
    let waiting: Vec<_> = (0..2).map(|_| gateway.ask("/")).collect();
    browser.reads(".gate .stat b", "2");
    let differs = "Not as in the file: paused: no request leaves";
    browser.begins(".gate .override", differs);
    browser.reads("#what", "The gate of app is paused");
    check_that_it_fits(&browser, &[390, 320, 700, 1280]);
    browser.click(".gate .override button");
    browser.reads("#act-do", "Resume");
    confirm(&browser);
    for mut client in waiting {
        assert_eq!(client.answer().status, 200);
    }
    browser.click(act);
    choose(&browser, "rate");
    enter(&browser, "#act-rate", "250r/s");
    confirm(&browser);
    let differs = "Not as in the file: rate 250r/s instead of 200r/s";
    browser.begins(".gate .override", differs);
    browser.has(".gate .settings", "rate 250r/s");
    browser.click(act);
    choose(&browser, "permits");
    enter(&browser, "#act-text", "30");
    confirm(&browser);
    let differs = "Not as in the file: max_in_flight 30 instead of 24";
    browser.begins(".gate .override", differs);
    check_that_nobody_complained(&browser);
}
