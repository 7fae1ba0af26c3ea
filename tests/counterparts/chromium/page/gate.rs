//! The gate of an origin on the live page.

use rustix::process::Signal;
use serde_json::json;

use crate::chromium::page::webdriver::{Browser, DESKTOP};
use crate::chromium::page::{check_that_it_fits, check_that_nobody_complained, crowd};
use crate::programs::redis::Redis;
use crate::support::{Client, Gateway, HoldingOrigin, Origin, fetch, free_address, one_origin};

/// A file with this gate and nothing else that limits, and a zone that may name its keys.
fn gated(origin: &Origin, gate: &str, zone: &str) -> String {
    one_origin(origin.address, "", &format!("{gate}\n{zone}"))
}

const ZONE: &str = "[zones.per_key]\nkey = \"$arg_key\"\nrate = \"1000r/s\"\n";

/// Of the gate: the number of the stat with this label.
fn stat(nth: usize) -> String {
    format!("document.querySelectorAll('.gate .stat b')[{nth}].textContent")
}

#[test]
fn a_gate_shows_who_waits_and_who_is_rejected() {
    let origin = Origin::start();
    let gate = "rate = \"1r/m\"\nmax_in_flight = 5\nshare = \"per_key\"\nqueue = 3\nqueue_timeout = \"1h\"";
    let gateway = Gateway::start(&gated(&origin, gate, ZONE));
    let browser = Browser::open(&gateway, DESKTOP);
    browser.wait_for(
        "all is calm",
        "return says('#what') === 'No requests are waiting' && says('.gate .settings').includes('rate 1r/m')",
    );
    assert_eq!(
        browser.run("return says('.gate .settings').replace(/\\s+/g, ' ')"),
        json!("rate 1r/mplaces 5share per_key queue 3max_queue 10k")
    );

    let mut waiting = crowd(&gateway, "first", 1);
    assert_eq!(waiting[0].answer().status, 200);
    let long = "long".repeat(60);
    waiting.extend(crowd(&gateway, &long, 3));
    waiting.extend(crowd(&gateway, "b", 1));
    browser.wait_for(
        "four wait",
        "return says('#what') === '4 requests wait at the gate of app'",
    );
    browser.wait_for(
        "why",
        "return says('#why').startsWith('They leave one by one, ')",
    );
    browser.wait_for(
        "the tile",
        "return says('[data-total=waiting] dd') === '4' && says('[data-total=waiting] dt') === 'waiting · 4 at the gate'",
    );
    browser.wait_for("the title", "return /^(⚠ )?\\(4\\) /.test(document.title)");
    browser.wait_for("the number", &format!("return {} === '4'", stat(0)));
    let keys = "return [...document.querySelectorAll('.shares li')].map((row) => [...row.children].map((it) => it.textContent))";
    let shown = browser.run(keys);
    assert_eq!(
        (&shown[0][2], &shown[0][3]),
        (&json!("3"), &json!("75%")),
        "{shown}"
    );
    assert_eq!(shown[1], json!(["b", "", "1", "25%"]));
    browser.wait_for(
        "the plot",
        "return document.querySelector('.gate canvas').getAttribute('aria-label') === 'Waiting, now: all keys 4'",
    );

    assert_eq!(
        fetch(gateway.address(), &format!("/?key={long}")).status,
        429
    );
    browser.wait_for(
        "the rejection",
        "return says('#what').startsWith('The gate of app rejects ') \
            && says('#why').includes('a key has as many requests waiting as queue allows') \
            && says('.gate .rejected').startsWith('Rejected: queue ')",
    );
    check_that_it_fits(&browser, &[390, 320, 700, 1000, 1280]);
    check_that_nobody_complained(&browser);
}

#[test]
fn a_gate_shows_what_it_has_of_places_that_gateways_share_and_what_is_withheld() {
    let (origin, redis) = (HoldingOrigin::start(), Redis::start());
    let gate = "store = \"redis\"\nmax_in_flight = 6\norphan = \"60s\"\n";
    let text = one_origin(origin.origin.address, "", gate);
    let text = format!(
        "{text}\n[redis]\nurl = \"{}\"\ntimeout = \"2s\"\n",
        redis.url()
    );
    let [one, other] = [Gateway::start(&text), Gateway::start(&text)];
    let browser = Browser::open(&one, DESKTOP);
    let _here = [
        Client::ask(one.address(), "/a"),
        Client::ask(one.address(), "/b"),
    ];
    let _there = [0; 3].map(|_| Client::ask(other.address(), "/c"));
    browser.wait_for(
        "what it has",
        "return /uses 2 of [23] held, 6 of 2 gateways/.test(says('.gate .settings').replace(/\\s+/g, ' '))",
    );
    other.signal(Signal::KILL);
    browser.wait_for(
        "what is withheld",
        "return /withheld [34] of gateways that vanished/.test(says('.gate .settings').replace(/\\s+/g, ' '))",
    );
    check_that_nobody_complained(&browser);
}

#[test]
fn a_gate_counts_where_there_is_no_zone_and_goes_with_its_setting() {
    let origin = Origin::start();
    let gateway = Gateway::start(&gated(
        &origin,
        "rate = \"2r/m\"\nqueue_timeout = \"1h\"",
        "",
    ));
    let browser = Browser::open(&gateway, DESKTOP);
    browser.wait_for(
        "all is calm",
        "return says('#what') === 'No requests are waiting'",
    );
    let _waiting = crowd(&gateway, "a", 2);
    browser.wait_for(
        "one waits",
        "return says('#what') === '1 request waits at the gate of app'",
    );
    browser.wait_for(
        "nobody shares",
        "return says('.gate .settings').includes('one queue for all') && !says('.shares')",
    );
    gateway.site.write(&gated(&origin, "", ""));
    browser.wait_for(
        "no gate",
        "return !document.querySelector('.gate') && says('#what') === 'No requests are waiting'",
    );
    check_that_nobody_complained(&browser);
}

#[test]
fn an_outage_says_who_waits_for_the_origin_and_how_long() {
    let address = free_address();
    let text = |hold: &str| one_origin(address, "", &format!("hold = \"{hold}\""));
    let gateway = Gateway::start(&text("2m"));
    let browser = Browser::open(&gateway, DESKTOP);
    let mut waiting = crowd(&gateway, "a", 3);
    browser.wait_for(
        "the summary",
        "return says('#what') === 'Origin app is down; 3 requests wait for it, up to 2m' \
            && says('#why').includes('Connection refused') \
            && document.querySelector('#answer').dataset.severity === 'bad'",
    );
    browser.wait_for(
        "the gate",
        "return says('.gate .less').startsWith('The origin is down: 3 requests wait for it, up to 2m (connecting to ')",
    );
    let _origin = Origin::at(&address.to_string(), |exchange| exchange.reply(b"ok"));
    for client in &mut waiting {
        assert_eq!(client.answer().status, 200);
    }
    browser.wait_for(
        "it is over",
        "return document.querySelector('.gate .less').hidden",
    );
    check_that_nobody_complained(&browser);
}

#[test]
fn a_gate_that_backs_off_says_from_what_to_what_and_why() {
    // What samples say of a gate in trouble.
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
    let gateway = Gateway::start(&gated(&origin, gate, ""));
    let browser = Browser::open(&gateway, DESKTOP);
    browser.run(IN_TROUBLE);
    browser.wait_for(
        "the summary",
        "return says('#what') === 'The gate of app backs off' \
            && says('#why') === '14 of 120 answers were <b>503</b>. See rate.' && says('#why code') === 'rate' \
            && says('#also') === '<i>more</i>' && document.querySelector('#answer').dataset.severity === 'warn'",
    );
    browser.wait_for(
        "the rates",
        "return says('.gate .settings').startsWith('rate 17.3 r/s of 1200r/m') && says('.gate .settings').includes('places 7 of 10')",
    );
    browser.wait_for(
        "the reason",
        "return says('.gate .less').startsWith('Backing off: the origin is in trouble') && says('.origin .told') === '0 of 7 in flight'",
    );
    check_that_nobody_complained(&browser);
}
