//! Tests of what the live page shows in a failure: the cause, and nothing green beside it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::chromium::page::webdriver::{Browser, DESKTOP};
use crate::chromium::page::{
    check_that_it_fits, check_that_nobody_complained, crowd, live, opened, wait_for_cause,
};
use crate::programs::redis::Redis;
use crate::support::{Gateway, Origin, assert_contains, free_address, now, one_zone};

/// Script that checks whether all pills of the origins are red.
const ALL_RED: &str = "[...document.querySelectorAll('#origins .pill')].every((it) => it.dataset.state === 'rejecting')";

/// Script that returns key and rejections of each row of the table of limited keys.
const LIMITED: &str = "[...document.querySelectorAll('#limited tbody tr')].map((row) => [
      row.querySelector('code').textContent, row.cells[1].textContent])";

/// Sends requests for these targets on one connection. Returns their statuses.
fn ask_all<I: IntoIterator<Item = String>>(gateway: &Gateway, targets: I) -> Vec<u16> {
    let mut client = gateway.connect();
    let mut ask = |target: String| client.fetch(&target).status;
    targets.into_iter().map(&mut ask).collect()
}

/// Sends requests until a script returns true.
fn wait_under_load(gateway: &Gateway, browser: &Browser, what: &str, script: &str) {
    let deadline = now() + Duration::from_secs(20);
    while browser.run(script) != json!(true) {
        ask_all(gateway, (0..3).map(|_| "/?key=a".to_owned()));
        if now() > deadline {
            let page = browser.run("return document.body.innerText");
            panic!("in vain for this: {what}; the page says: {page}");
        }
    }
}

#[test]
fn a_store_that_is_out_is_the_headline_and_has_a_panel() {
    let origin = Origin::start();
    let mut redis = Redis::start();
    let store = format!(
        "[redis]\nurl = \"{}\"\n\n[zones.z]\nstore = \"redis\"\n",
        redis.url()
    );
    let file = one_zone(&origin, "100r/s", "burst = 9").replace("[zones.z]", &store);
    let (gateway, browser) = opened(&file);
    assert_eq!(gateway.fetch("/?key=a").status, 200);
    browser.reads("#store-state", "up");
    browser.begins("#store-url", "redis://");
    redis.kill();
    ask_all(&gateway, (0..5).map(|_| "/?key=a".to_owned()));
    wait_for_cause(&browser, "store_out");
    browser.reads("#store-state", "out");
    browser.has("#store", "out for");
    browser.begins("#what", "The store is out");
    browser.holds("document.querySelector('#store-state').dataset.state === 'rejecting'");
    check_that_it_fits(&browser, &[390, 320, 700, 1000, 1280]);
    redis.restart();
    browser.reads("#store-state", "up");
    check_that_nobody_complained(&browser);
}

#[test]
fn an_origin_that_answers_500_is_nowhere_green() {
    let origin = Origin::answering(|exchange| {
        exchange.send(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 3\r\n\r\nbad")
    });
    let (gateway, browser) = opened(&one_zone(&origin, "1000r/s", "burst = 9"));
    let statuses = ask_all(&gateway, (0..20).map(|_| "/?key=a".to_owned()));
    assert_eq!(statuses, [500; 20]);
    wait_for_cause(&browser, "origin_errors");
    browser.reads("#what", "Origin app answers 100 % with 5xx");
    browser.holds("document.querySelector('#answer').dataset.severity === 'bad'");
    browser.reads("#routes .codes", "5xx 20");
    wait_under_load(
        &gateway,
        &browser,
        "the panel",
        &format!(
            "return says('.origin h3 .pill') === 'answers 5xx' && says('.servers .pill') === 'answers 5xx' \
                && {ALL_RED} && says('[data-total=errors] dd') === '100%'"
        ),
    );
    browser.holds("[...document.querySelectorAll('.origin canvas')].some((it) => /^Latency, now: p99 .*p50 /.test(it.getAttribute('aria-label')))");
    check_that_it_fits(&browser, &[390, 320, 700, 1000, 1280]);
    check_that_nobody_complained(&browser);
}

#[test]
fn a_single_lost_server_is_nowhere_called_healthy() {
    let missing = free_address();
    let origin = Origin::start();
    let file = one_zone(&origin, "1000r/s", "burst = 9")
        .replace(&origin.address.to_string(), &missing.to_string());
    let (gateway, browser) = opened(&file);
    let statuses = ask_all(&gateway, (0..12).map(|_| "/?key=a".to_owned()));
    assert_eq!(statuses, [502; 12]);
    wait_for_cause(&browser, "origin_failing");
    let title = "Origin app does not answer: it refuses connections";
    browser.reads("#what", title);
    browser.begins("#why", "12 of 12 attempts");
    wait_under_load(
        &gateway,
        &browser,
        "the server",
        &format!(
            "return {ALL_RED} && says('.servers').includes('Last failure ') && says('.origin h3 .pill') === 'does not answer'"
        ),
    );
    browser.has(".origin .fails", "unreachable");
    check_that_nobody_complained(&browser);
}

#[test]
fn with_one_of_two_servers_out_no_headline_advises_a_higher_rate() {
    let origin = Origin::start();
    let alive = format!("\"http://{}\"", origin.address);
    // The dead server is first, and is tried first.
    let servers = format!("\"http://{}\", {alive}", free_address());
    let file = one_zone(&origin, "1r/m", "burst = 40")
        .replace(&alive, &servers)
        .replace(
            "[zones.z]",
            "max_fails = 1\nfail_timeout = \"60s\"\n\n[zones.z]",
        );
    let (gateway, browser) = opened(&file);
    ask_all(&gateway, (0..6).map(|nth| format!("/?key={nth}")));
    let _waiting = crowd(&gateway, "a", 3);
    wait_for_cause(&browser, "server_out");
    browser.reads(".origin h3 .pill", "1 of 2 out");
    browser.has(".servers", "Out since ");
    browser.holds("document.querySelectorAll('.servers .pill[data-state=rejecting]').length === 1");
    browser.has("#also", "requests wait in z");
    let remedy = browser.run("return says('#turn')");
    let remedy = remedy.as_str().expect("a text");
    assert!(!remedy.contains("raise rate"), "{remedy}");
    check_that_nobody_complained(&browser);
}

/// Script that records each reason that the page shows from now on.
const NOTE: &str = "
    window.whys = [];
    new MutationObserver(() => whys.push(says('#why'))).observe(document.querySelector('#why'), { childList: true, subtree: true });
    window.whys.push(says('#why'))";

#[test]
fn who_is_rejected_is_named_and_not_who_waits() {
    let origin = Origin::start();
    let file = one_zone(&origin, "1r/m", "burst = 3")
        + "[zones.z.plans.patient]\nkeys = [\"deep\"]\nburst = 12\n";
    let gateway = Gateway::start(&file);
    let _deep = crowd(&gateway, "deep", 10);
    let _greedy = crowd(&gateway, "greedy", 3);
    gateway.wait_for_depth(9 + 2);
    let _last = crowd(&gateway, "greedy", 1);
    gateway.wait_for_depth(9 + 3);
    let browser = Browser::open(&gateway, DESKTOP);
    wait_for_cause(&browser, "waiting");
    // A headline is about the last seconds, so the script records what the page showed.
    browser.run(NOTE);
    let statuses = ask_all(&gateway, (0..8).map(|_| "/?key=greedy".to_owned()));
    assert_eq!(statuses, [429; 8]);
    browser.holds("whys.some((why) => why.includes('greedy') && !why.includes('deep '))");
    browser.reads("#keys .key code", "deep");
    browser.reads("#keys td", "9 / 12");
    browser.holds(format!(
        "JSON.stringify({LIMITED}) === '[[\"greedy\",\"8\"]]'"
    ));
    browser.has(".zone .blame", "greedy 100%");
    browser.click("#limited [value=requests]");
    browser.wait_for(
        "all who ask",
        &format!(
            "const keys = {LIMITED}.map(([key]) => key).sort().join();
             return keys === 'deep,greedy' && document.querySelector('#limited [value=requests]').ariaPressed === 'true'"
        ),
    );
    browser.click("input[name=window][value=\"600\"]");
    browser.has("#limited-note", "in the last 10 minutes");
    check_that_it_fits(&browser, &[390, 320, 700, 1000, 1280]);
    check_that_nobody_complained(&browser);
}

#[test]
fn a_zone_flooded_with_new_keys_is_not_green() {
    let origin = Origin::start();
    let file =
        one_zone(&origin, "10r/s", "burst = 3").replace("rate =", "max_keys = 100000\nrate =");
    let (gateway, browser) = opened(&file);
    let mut nth = 0;
    let flooded = "return document.querySelector('.zone .pill').dataset.state === 'flooded'
         && document.querySelector('#answer').dataset.cause === 'key_flood'";
    // On average of ten seconds, more than 50 per second.
    while browser.run(flooded) != json!(true) {
        assert!(nth < 100_000, "{}", browser.run("return says('main')"));
        let targets = (nth..nth + 200).map(|nth| format!("/?key=made-up-{nth}"));
        ask_all(&gateway, targets);
        nth += 200;
    }
    let facts = browser.run("return says('.zone .facts')");
    let facts = facts.as_str().expect("a text");
    assert_contains!(facts, " of 100k", "new keys ");
    assert_eq!(browser.run("return says('.zone .pill')"), json!("new keys"));
    check_that_nobody_complained(&browser);
}

/// Returns two zones that all requests pass: `wide` admits all, `z` has this limit.
fn two_zones(origin: &Origin, rate: &str, limit: &str) -> String {
    let wide = "[zones.wide]\nkey = \"$host\"\nrate = \"100000r/s\"\n\n[zones.z]";
    one_zone(origin, rate, limit)
        .replace("[zones.z]", wide)
        .replace(
            "limits = [",
            "limits = [{ zone = \"wide\", burst = 100000, nodelay = true }, ",
        )
}

#[test]
fn a_request_counts_once_in_the_totals() {
    // Script that records the responses in each sample from now on.
    const NOTE: &str = "
        window.counts = [];
        const parse = JSON.parse;
        JSON.parse = (text) => {
            const it = parse(text);
            if (it.seq !== undefined && it.codes) counts.push(Object.values(it.codes).reduce((a, b) => a + b, 0));
            return it;
        }";
    let origin = Origin::start();
    let (gateway, browser) = opened(&two_zones(
        &origin,
        "100000r/s",
        "burst = 9, nodelay = true",
    ));
    browser.run(NOTE);
    browser.holds("counts.length >= 10");
    ask_all(&gateway, (0..60).map(|_| "/?key=a".to_owned()));
    browser.reads("[data-total=answers] dd", "6 r/s");
    let all = "return counts.reduce((a, b) => a + b, 0)";
    assert_eq!(browser.run(all), json!(60));
    browser.holds("document.querySelector('#routes tbody tr').cells[2].textContent === '60'");

    // Two requests wait, both in one zone.
    gateway.site.write(&two_zones(&origin, "1r/m", "burst = 9"));
    browser.holds(
        "[...document.querySelectorAll('.settings')].some((it) => it.textContent.includes('1r/m'))",
    );
    let _waiting = crowd(&gateway, "b", 3);
    browser.reads("[data-total=waiting] dd", "2");
    check_that_nobody_complained(&browser);
}

#[test]
fn what_another_limit_rejected_is_not_a_client_that_left() {
    let origin = Origin::start();
    let (gateway, browser) = opened(&two_zones(&origin, "1r/m", "burst = 0"));
    let statuses = ask_all(&gateway, (0..6).map(|_| "/?key=a".to_owned()));
    assert_eq!(statuses[1..], [429; 5]);
    let legend = "[...document.querySelectorAll('.zone')]
        .find((it) => it.querySelector('.name').textContent === 'wide')
        .querySelectorAll('.plot:last-child figcaption li')";
    browser.holds(format!("[...{legend}].some((it) => !it.hidden && it.textContent.startsWith('rejected by another limit'))"));
    let left = format!(
        "return [...{legend}].filter((it) => !it.hidden && it.textContent.startsWith('client left')).length"
    );
    assert_eq!(browser.run(&left), json!(0));
    browser.holds("/^[0-9.]*[1-9][0-9.]* r.s$/.test(says('[data-total=rejected] dd'))");
    check_that_nobody_complained(&browser);
}

#[test]
fn past_headlines_are_kept_with_their_times() {
    let (_origin, gateway, browser) = live("1r/m", "burst = 4");
    wait_for_cause(&browser, "idle");
    let waiting = crowd(&gateway, "a", 3);
    wait_for_cause(&browser, "waiting");
    browser.holds("/^Since \\d\\d:\\d\\d:\\d\\d\\.$/.test(says('#when'))");
    browser.run("document.querySelector('#past').open = true");
    let past = "[...document.querySelectorAll('#past li')].map((it) => it.querySelector('span').textContent)";
    browser.wait_for(
        "the warning alone",
        &format!(
            "const past = {past};
             return past.length === 1 && past[0].startsWith('2 requests wait in z')"
        ),
    );
    let times = browser.run("return says('#past time')");
    let is_now = times.as_str().is_some_and(|it| it.ends_with("– now"));
    assert!(is_now, "{times}");
    let shown: Value = browser.run("return document.querySelector('#past li').dataset.severity");
    assert_eq!(shown, json!("warn"));
    drop(waiting);
    browser.holds("/^Ended \\d+ s ago: 2 requests wait in z/.test(says('#when'))");
    check_that_nobody_complained(&browser);
}
