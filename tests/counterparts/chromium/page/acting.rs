//! What the reader of the live page can do: act on zones and keys, see what changed, keep a link.

use std::path::Path;

use serde_json::json;

use crate::chromium::page::webdriver::{Browser, DESKTOP};
use crate::chromium::page::{check_that_it_fits, check_that_nobody_complained, crowd};
use crate::support::{Client, Gateway, Origin, fetch, one_zone};

/// Chooses an action in the open dialog.
pub fn choose(browser: &Browser, action: &str) {
    let script = format!(
        "const it = document.querySelector('#act-what input[value={action}]');
         it.checked = true;
         it.dispatchEvent(new Event('input', {{ bubbles: true }}))"
    );
    browser.run(&script);
}

pub fn enter(browser: &Browser, field: &str, text: &str) {
    let script = format!(
        "const it = document.querySelector('{field}');
         it.value = '{text}';
         it.dispatchEvent(new Event('input', {{ bubbles: true }}));
         it.dispatchEvent(new Event('change', {{ bubbles: true }}))"
    );
    browser.run(&script);
}

pub fn click(browser: &Browser, what: &str) {
    browser.run(&format!("document.querySelector('{what}').click()"));
}

pub fn wait_until_closed(browser: &Browser) {
    browser.wait_for(
        "the dialog closes",
        "return !document.querySelector('#act-dialog').open",
    );
}

/// The browser itself logs an answer that is an error; this drops those of the API.
fn check_that_only_the_api_refused(browser: &Browser, statuses: &[u16]) {
    for complaint in browser.complaints() {
        let text = complaint["message"].as_str().expect("a text").to_owned();
        let expected = statuses
            .iter()
            .any(|status| text.contains(&format!("status of {status}")));
        assert!(expected && text.contains("/api/"), "{text}");
    }
}

#[test]
fn a_zone_is_paused_and_resumed_and_says_that_it_is_not_as_in_the_file() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "1000r/s", "burst = 9"));
    let browser = Browser::open(&gateway, DESKTOP);
    browser.wait_for("the zone", "return says('.settings').includes('1000r/s')");
    click(&browser, ".zone .act");
    choose(&browser, "pause");
    browser.wait_for(
        "what will happen",
        "return says('#act-will').startsWith('No request of z leaves for 10 minutes') && says('#act-do') === 'Pause'",
    );
    click(&browser, "#act-do");
    wait_until_closed(&browser);
    browser.wait_for(
        "it is paused",
        "return says('.zone .pill') === 'paused' && says('.differs').startsWith('not as in the file: paused until ') \
            && says('.override').startsWith('Not as in the file: paused')",
    );
    let _waiting = crowd(&gateway, "a", 2);
    gateway.wait_for_depth(2);
    check_that_it_fits(&browser, &[390, 320, 700, 1280]);
    click(&browser, ".override button");
    browser.wait_for("the undo", "return says('#act-do') === 'Resume'");
    click(&browser, "#act-do");
    wait_until_closed(&browser);
    browser.wait_for(
        "it goes on",
        "return says('.zone .pill') !== 'paused' && document.querySelector('.override').hidden",
    );
    gateway.wait_for_depth(0);
    check_that_nobody_complained(&browser);
}

#[test]
fn a_temporary_rate_is_checked_compared_and_set() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "10r/s", "burst = 4"));
    let browser = Browser::open(&gateway, DESKTOP);
    browser.wait_for("the zone", "return says('.settings').includes('10r/s')");
    click(&browser, ".zone .act");
    choose(&browser, "rate");
    enter(&browser, "#act-rate", "fast");
    click(&browser, "#act-do");
    browser.wait_for(
        "the error",
        "return !document.querySelector('#act-error').hidden && says('#act-error').includes('fast') \
            && document.querySelector('#act-dialog').open",
    );
    enter(&browser, "#act-rate", "25r/s");
    click(&browser, "#act-compare");
    browser.wait_for(
        "side by side",
        "const rows = [...document.querySelectorAll('#what-if tbody tr')];
         return !document.querySelector('#what-if').hidden && rows.length >= 4 && rows.every((row) => row.cells.length === 3)",
    );
    click(&browser, "#act-do");
    wait_until_closed(&browser);
    browser.wait_for(
        "the rate",
        "return says('.override').replace(/\\s+/g, ' ').startsWith('Not as in the file: rate 25r/s instead of 10r/s, until ') \
            && says('.plot figcaption').includes('25 r/s')",
    );
    browser.wait_for(
        "the change in the list",
        "return says('#changes ol').includes('25r/s')",
    );
    check_that_only_the_api_refused(&browser, &[400]);
}

#[test]
fn a_key_is_forgotten_with_who_waits() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "1r/m", "burst = 9"));
    let key = "<i>a/b?%&</i>";
    let encoded = "%3Ci%3Ea%2Fb%3F%25%26%3C%2Fi%3E";
    let file = one_zone(&origin, "1r/m", "burst = 9").replace("$arg_key", "$uri");
    gateway.site.write(&file);
    let browser = Browser::open(&gateway, DESKTOP);
    browser.wait_for("the file", "return says('.settings').includes('$uri')");
    let target = format!("/{encoded}");
    assert_eq!(fetch(gateway.address(), &target).status, 200);
    let mut waiting: Vec<_> = (0..2)
        .map(|_| Client::ask(gateway.address(), &target))
        .collect();
    gateway.wait_for_depth(2);
    browser.wait_for(
        "the key",
        &format!("return says('#keys .key code').includes('{key}')"),
    );
    click(&browser, "#keys .keyname");
    choose(&browser, "drop");
    browser.wait_for(
        "what will happen",
        "return says('#act-will').includes('its waiting requests get 503')",
    );
    click(&browser, "#act-do");
    wait_until_closed(&browser);
    for client in &mut waiting {
        assert_eq!(client.answer().status, 503);
    }
    browser.wait_for(
        "no key",
        "return document.querySelectorAll('#keys .key').length === 0",
    );
    check_that_nobody_complained(&browser);
}

#[test]
fn the_token_is_asked_for_and_kept_in_this_tab_only() {
    let origin = Origin::start();
    let gateway = Gateway::start_with(
        &one_zone(&origin, "10r/s", "burst = 4"),
        &[("DRIP_ADMIN_TOKEN", Path::new("s3cret"))],
    );
    let browser = Browser::open(&gateway, DESKTOP);
    click(&browser, "#reload");
    click(&browser, "#act-do");
    browser.wait_for(
        "the refusal",
        "return says('#act-error').includes('DRIP_ADMIN_TOKEN') && !document.querySelector('#act-token-line').hidden",
    );
    enter(&browser, "#act-token", "wrong");
    click(&browser, "#act-do");
    browser.wait_for(
        "the second refusal",
        "return document.querySelector('#act-dialog').open && !document.querySelector('#act-do').disabled \
            && says('#act-error').includes('DRIP_ADMIN_TOKEN')",
    );
    enter(&browser, "#act-token", "s3cret");
    click(&browser, "#act-do");
    wait_until_closed(&browser);
    browser.wait_for("it is done", "return says('#acted') === 'Reload: done.'");
    let kept =
        "return [sessionStorage.getItem('drip.token'), localStorage.length, document.cookie]";
    assert_eq!(browser.run(kept), json!(["s3cret", 0, ""]));
    check_that_only_the_api_refused(&browser, &[401]);
}

#[test]
fn a_route_is_put_into_maintenance_and_back() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "1000r/s", "burst = 9"));
    let browser = Browser::open(&gateway, DESKTOP);
    browser.wait_for("the route", "return says('#routes tbody code') === '/'");
    click(&browser, "#routes tbody button");
    browser.wait_for(
        "what will happen",
        "return says('#act-title') === 'Route /' && says('#act-will').startsWith('New requests of / get 503 for 10 minutes')",
    );
    click(&browser, "#act-do");
    wait_until_closed(&browser);
    browser.wait_for(
        "it is in maintenance",
        "return says('#routes tbody small').startsWith('refused: in maintenance until ') \
            && says('#what') === '/ is in maintenance'",
    );
    assert_eq!(fetch(gateway.address(), "/").status, 503);
    check_that_it_fits(&browser, &[390, 320, 700, 1280]);
    // That of all routes is a change of its own.
    click(&browser, "#act-on-routes");
    browser.wait_for("the dialog", "return says('#act-title') === 'All routes'");
    click(&browser, "#act-do");
    wait_until_closed(&browser);
    browser.wait_for(
        "all are in maintenance",
        "return says('#routes-count').startsWith('1, all in maintenance until ')",
    );
    for what in ["#act-on-routes", "#routes tbody button"] {
        click(&browser, what);
        browser.wait_for("the end", "return says('#act-do') === 'End maintenance'");
        click(&browser, "#act-do");
        wait_until_closed(&browser);
        browser.wait_for("all are not", "return says('#routes-count') === '1'");
    }
    browser.wait_for(
        "it forwards",
        "return says('#routes tbody small').startsWith('to app') && says('#routes-count') === '1'",
    );
    assert_eq!(fetch(gateway.address(), "/").status, 200);
    check_that_nobody_complained(&browser);
}

#[test]
fn a_page_without_the_token_for_reading_asks_for_it() {
    let origin = Origin::start();
    let gateway = Gateway::start_with(
        &one_zone(&origin, "10r/s", "burst = 4"),
        &[
            ("DRIP_ADMIN_READ_TOKEN", Path::new("reader")),
            ("DRIP_ADMIN_TOKEN", Path::new("ops:SECRET1")),
        ],
    );
    let browser = Browser::start(&[]);
    browser.look(DESKTOP);
    browser.go(&format!("http://{}/", gateway.site.admin));
    let asks = "return !document.querySelector('#login').hidden && says('#link') === 'needs a token' \
        && document.querySelector('#login').checkVisibility() && !document.querySelector('.layout').checkVisibility()";
    browser.wait_for("the form", asks);
    check_that_it_fits(&browser, &[390, 320, 1280]);
    enter(&browser, "#login-token", "wrong");
    click(&browser, "#login button");
    browser.wait_for(
        "the refusal",
        "return says('#login-error') === 'The gateway does not know this token.' && !document.querySelector('#login-error').hidden",
    );
    enter(&browser, "#login-token", "reader");
    click(&browser, "#login button");
    browser.wait_for(
        "the page is live",
        "return says('#link') === 'live' && document.querySelector('#login').hidden && says('.settings').includes('10r/s') \
            && document.querySelector('.layout').checkVisibility() && says('#what') === 'No requests are waiting'",
    );
    // The stream goes on: samples come.
    let before = browser.run("return document.querySelector('#totals').textContent");
    assert_eq!(fetch(gateway.address(), "/?key=a").status, 200);
    browser.wait_for(
        "a sample",
        &format!("return document.querySelector('#totals').textContent !== {before}"),
    );
    // The token for reading changes nothing, and the dialog asks for another.
    click(&browser, "#reload");
    click(&browser, "#act-do");
    browser.wait_for(
        "the refusal of the change",
        "return says('#act-error').includes('only reads') && !document.querySelector('#act-token-line').hidden",
    );
    enter(&browser, "#act-token", "SECRET1");
    click(&browser, "#act-do");
    wait_until_closed(&browser);
    browser.wait_for("it is done", "return says('#acted') === 'Reload: done.'");
    assert!(gateway.log().contains("by=\"ops\""), "{}", gateway.log());
    check_that_only_the_api_refused(&browser, &[401, 403]);
    let shown = browser.requests();
    assert!(shown.iter().all(|url| !url.contains("reader")), "{shown:?}");
}

#[test]
fn a_change_is_told_at_its_mark_and_in_a_list() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "10r/s", "burst = 4"));
    let browser = Browser::open(&gateway, DESKTOP);
    browser.wait_for("the rate", "return says('.settings').includes('10r/s')");
    for rate in ["20r/s", "30r/s"] {
        gateway.site.write(&one_zone(&origin, rate, "burst = 4"));
        browser.wait_for(
            "the new rate",
            &format!("return says('.settings').includes('{rate}')"),
        );
    }
    browser.wait_for(
        "the list",
        "return says('#changes ol').includes('zones.z.rate 10r/s → 20r/s') && says('#changes ol').includes('zones.z.rate 20r/s → 30r/s')",
    );
    // Both marks are close to each other, and are told together. The cursor goes back over the last steps again and again: a
    // busy machine draws later than the next key comes.
    browser.wait_for(
        "the mark",
        "const plot = document.querySelector('.plot');
         plot.focus();
         window.presses = ((window.presses ?? -1) + 1) % 10;
         const key = window.presses === 0 ? 'Escape' : 'ArrowLeft';
         if (window.presses % 2 || key === 'Escape') plot.dispatchEvent(new KeyboardEvent('keydown', { key }));
         const tip = plot.querySelector('.tip');
         return !tip.hidden && tip.textContent.includes('10r/s → 20r/s') && tip.textContent.includes('20r/s → 30r/s')",
    );
    check_that_it_fits(&browser, &[390, 1280]);
    check_that_nobody_complained(&browser);
}

#[test]
fn a_link_keeps_the_zone_and_the_time_span() {
    let origin = Origin::start();
    let mut file = one_zone(&origin, "1r/m", "burst = 4");
    for nth in 0..20 {
        let zone = format!("\n[zones.other_{nth}]\nkey = \"$host\"\nrate = \"9r/s\"\n");
        file = file.replacen("\n[zones.z]", &format!("{zone}\n[zones.z]"), 1);
    }
    let gateway = Gateway::start(&file);
    let browser = Browser::open(&gateway, DESKTOP);
    let shown = "const card = [...document.querySelectorAll('.zone:not([hidden])')].find((it) => it.querySelector('.name').textContent === 'other_17');
        return Boolean(card) && card.querySelector('.head').ariaExpanded === 'true'
            && document.querySelector('input[name=range]:checked').value === '120'
            && document.querySelector('#limited-zone').value === 'other_17'";
    browser.run("location.hash = '#zone=other_17&span=120'");
    browser.wait_for("what the link says", shown);
    browser.run("location.reload()");
    browser.wait_for("the same after a reload", shown);

    browser.run("document.querySelector('input[name=range][value=\"600\"]').click()");
    assert_eq!(
        browser.run("return location.hash"),
        json!("#zone=other_17&span=600")
    );
    browser.run("document.querySelector('.zone .head[aria-expanded=false]').click()");
    browser.wait_for(
        "the other zone",
        "return !location.hash.includes('other_17') && location.hash.startsWith('#zone=')",
    );
    check_that_nobody_complained(&browser);
}
