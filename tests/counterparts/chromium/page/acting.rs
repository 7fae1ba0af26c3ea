//! Tests of actions on the live page: changing zones and keys, seeing changes, keeping a link.

use std::path::Path;

use serde_json::json;

use crate::chromium::page::webdriver::{Browser, DESKTOP};
use crate::chromium::page::{
    MARKED, check_that_it_fits, check_that_nobody_complained, crowd, live,
};
use crate::support::{Gateway, Origin, one_zone};

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

/// Confirms the dialog, and waits until it closes.
pub fn confirm(browser: &Browser) {
    browser.click("#act-do");
    browser.holds("!document.querySelector('#act-dialog').open");
}

/// Checks that the browser logged only errors of the API.
///
/// The browser itself logs an error response.
pub fn check_that_only_the_api_refused(browser: &Browser, statuses: &[u16]) {
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
    let (_origin, gateway, browser) = live("1000r/s", "burst = 9");
    browser.has(".settings", "1000r/s");
    browser.click(".zone .act");
    choose(&browser, "pause");
    browser.begins("#act-will", "No request of z leaves for 10 minutes");
    browser.reads("#act-do", "Pause");
    confirm(&browser);
    browser.reads(".zone .pill", "paused");
    browser.begins(".differs", "not as in the file: paused until ");
    browser.begins(".override", "Not as in the file: paused");
    let _waiting = crowd(&gateway, "a", 2);
    gateway.wait_for_depth(2);
    check_that_it_fits(&browser, &[390, 320, 700, 1280]);
    browser.click(".override button");
    browser.reads("#act-do", "Resume");
    confirm(&browser);
    browser.holds("says('.zone .pill') !== 'paused'");
    browser.holds("document.querySelector('.override').hidden");
    gateway.wait_for_depth(0);
    check_that_nobody_complained(&browser);
}

#[test]
fn a_temporary_rate_is_checked_compared_and_set() {
    let (_origin, _gateway, browser) = live("10r/s", "burst = 4");
    browser.has(".settings", "10r/s");
    browser.click(".zone .act");
    choose(&browser, "rate");
    enter(&browser, "#act-rate", "fast");
    browser.click("#act-do");
    browser.has("#act-error", "fast");
    browser.holds("!document.querySelector('#act-error').hidden");
    browser.holds("document.querySelector('#act-dialog').open");
    enter(&browser, "#act-rate", "25r/s");
    browser.click("#act-compare");
    browser.wait_for(
        "side by side",
        "const rows = [...document.querySelectorAll('#what-if tbody tr')];
         return !document.querySelector('#what-if').hidden && rows.length >= 4 && rows.every((row) => row.cells.length === 3)",
    );
    confirm(&browser);
    browser.has(".plot figcaption", "25 r/s");
    let differs = "Not as in the file: rate 25r/s instead of 10r/s, until ";
    browser.begins(".override", differs);
    browser.has("#changes ol", "25r/s");
    check_that_only_the_api_refused(&browser, &[400]);
}

#[test]
fn a_key_is_forgotten_with_who_waits() {
    let origin = Origin::start();
    let file = one_zone(&origin, "1r/m", "burst = 9").replace("$arg_key", "$uri");
    let gateway = Gateway::start(&file);
    let key = "<i>a/b?%&</i>";
    let encoded = "%3Ci%3Ea%2Fb%3F%25%26%3C%2Fi%3E";
    let browser = Browser::open(&gateway, DESKTOP);
    let target = format!("/{encoded}");
    assert_eq!(gateway.fetch(&target).status, 200);
    let mut waiting: Vec<_> = (0..2).map(|_| gateway.ask(&target)).collect();
    gateway.wait_for_depth(2);
    browser.has("#keys .key code", key);
    browser.click("#keys .keyname");
    choose(&browser, "drop");
    browser.has("#act-will", "its waiting requests get 503");
    confirm(&browser);
    for client in &mut waiting {
        assert_eq!(client.answer().status, 503);
    }
    browser.holds("document.querySelectorAll('#keys .key').length === 0");
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
    browser.click("#reload");
    browser.click("#act-do");
    browser.has("#act-error", "DRIP_ADMIN_TOKEN");
    browser.holds("!document.querySelector('#act-token-line').hidden");
    enter(&browser, "#act-token", "wrong");
    browser.click("#act-do");
    browser.has("#act-error", "DRIP_ADMIN_TOKEN");
    browser.holds("document.querySelector('#act-dialog').open");
    browser.holds("!document.querySelector('#act-do').disabled");
    enter(&browser, "#act-token", "s3cret");
    confirm(&browser);
    browser.reads("#acted", "Reload: done.");
    let kept =
        "return [sessionStorage.getItem('drip.token'), localStorage.length, document.cookie]";
    assert_eq!(browser.run(kept), json!(["s3cret", 0, ""]));
    check_that_only_the_api_refused(&browser, &[401]);
}

#[test]
fn a_route_is_put_into_maintenance_and_back() {
    let (_origin, gateway, browser) = live("1000r/s", "burst = 9");
    browser.reads("#routes tbody code", "/");
    browser.click("#routes tbody button");
    browser.reads("#act-title", "Route /");
    browser.begins("#act-will", "New requests of / get 503 for 10 minutes");
    confirm(&browser);
    browser.begins("#routes tbody small", "refused: in maintenance until ");
    browser.reads("#what", "/ is in maintenance");
    assert_eq!(gateway.fetch("/").status, 503);
    check_that_it_fits(&browser, &[390, 320, 700, 1280]);
    // Maintenance of all routes is a separate change.
    browser.click("#act-on-routes");
    browser.reads("#act-title", "All routes");
    confirm(&browser);
    browser.begins("#routes-count", "1, all in maintenance until ");
    for what in ["#act-on-routes", "#routes tbody button"] {
        browser.click(what);
        browser.reads("#act-do", "End maintenance");
        confirm(&browser);
        browser.reads("#routes-count", "1");
    }
    browser.begins("#routes tbody small", "to app");
    browser.reads("#routes-count", "1");
    assert_eq!(gateway.fetch("/").status, 200);
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
    browser.click("#login button");
    browser.reads("#login-error", "The gateway does not know this token.");
    browser.holds("!document.querySelector('#login-error').hidden");
    enter(&browser, "#login-token", "reader");
    browser.click("#login button");
    browser.reads("#link", "live");
    browser.has(".settings", "10r/s");
    browser.reads("#what", "No requests are waiting");
    browser.holds("document.querySelector('#login').hidden");
    browser.holds("document.querySelector('.layout').checkVisibility()");
    // The stream continues: samples arrive.
    let before = browser.run("return document.querySelector('#totals').textContent");
    assert_eq!(gateway.fetch("/?key=a").status, 200);
    browser.holds(format!(
        "document.querySelector('#totals').textContent !== {before}"
    ));
    // The token for reading may change nothing, and the dialog asks for another one.
    browser.click("#reload");
    browser.click("#act-do");
    browser.has("#act-error", "only reads");
    browser.holds("!document.querySelector('#act-token-line').hidden");
    check_that_only_the_api_refused(&browser, &[401, 403]);
    let shown = browser.requests();
    assert!(shown.iter().all(|url| !url.contains("reader")), "{shown:?}");
}

#[test]
fn a_change_is_shown_at_its_mark_and_in_a_list() {
    let (origin, gateway, browser) = live("10r/s", "burst = 4");
    browser.has(".settings", "10r/s");
    assert_eq!(browser.run(MARKED), json!(0));
    for rate in ["20r/s", "30r/s"] {
        gateway.site.write(&one_zone(&origin, rate, "burst = 40"));
        browser.has(".settings", rate);
    }
    browser.has(".settings", "burst 40");
    browser.has(".plot figcaption", "30 r/s");
    assert!(browser.run(MARKED).as_u64() > Some(20));
    browser.has("#changes ol", "zones.z.rate 10r/s → 20r/s");
    browser.has("#changes ol", "zones.z.rate 20r/s → 30r/s");
    // Both marks are close to each other, and are shown together. The test moves the cursor back
    // over the last steps again and again, because a busy machine draws later than the next key
    // press.
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
