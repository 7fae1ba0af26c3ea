//! Tests of the experiment at a gate on the live page.

use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::chromium::page::acting::{check_that_only_the_api_refused, choose, confirm, enter};
use crate::chromium::page::webdriver::{Browser, DESKTOP};
use crate::chromium::page::{check_that_it_fits, check_that_nobody_complained};
use crate::support::Crowd;
use crate::support::operator;
use crate::support::{Gateway, Origin, assert_contains, eventually, now, one_origin};

const FILE: &str = "rate = \"40r/s\"\nqueue_timeout = \"60s\"\nmax_queue = 1000";

/// Fills in the dialog for an experiment from 50r/s to 90r/s, without the last click.
fn fill_in(browser: &Browser) {
    browser.click(".gate .act");
    choose(browser, "find");
    enter(browser, "#act-find [name=slo]", "p95<2s, errors<5%");
    enter(browser, "#act-find [name=from]", "50r/s");
    enter(browser, "#act-find [name=to]", "90r/s");
    browser.reads("#act-do", "Start");
    browser.has("#act-will", "as long as p95<2s, errors<5% holds");
}

fn bars(verdict: &str) -> String {
    format!("document.querySelectorAll('.experiment svg .{verdict}').length")
}

#[test]
fn an_experiment_is_started_with_a_token_watched_and_stopped_and_ends_with_the_page() {
    let origin = Origin::start();
    let gateway = Gateway::start_with(
        &one_origin(origin.address, "", FILE),
        &[("DRIP_ADMIN_TOKEN", Path::new("ops:SECRET1"))],
    );
    let crowd = Crowd::start(&gateway, 12);
    let browser = Browser::open(&gateway, DESKTOP);
    browser.has(".gate .settings", "rate 40r/s");
    fill_in(&browser);
    browser.click("#act-do");
    browser.has("#act-error", "DRIP_ADMIN_TOKEN");
    browser.holds("!document.querySelector('#act-token-line').hidden");
    enter(&browser, "#act-token", "SECRET1");
    enter(&browser, "#act-find [name=to]", "fast");
    browser.click("#act-do");
    browser.begins("#act-error", "to is \"fast\"");
    enter(&browser, "#act-find [name=to]", "90r/s");
    confirm(&browser);
    browser.begins(".experiment summary", "Experiment: 50r/s, climb");
    let end = "ends 15 s after this page is closed";
    browser.has(".experiment .override span", end);
    browser.has(".gate .settings", "rate 50r/s");
    browser.holds(format!("{} === 1", bars("running")));
    {
        let other = Browser::open(&gateway, DESKTOP);
        other.has(".experiment .override span", "Started by ops.");
        check_that_nobody_complained(&other);
    }
    // A step takes 20 s: without the page's renewals the experiment would have ended.
    thread::sleep(Duration::from_secs(15));
    browser.holds(format!("{} === 3", bars("ok")));
    browser.begins(".experiment .steps", "50r/s ok");
    browser.has(".experiment svg", "p95 (< 2 s)");
    browser.holds("document.querySelectorAll('.experiment svg .bound').length === 2");
    check_that_it_fits(&browser, &[390, 320, 700, 1280]);
    browser.click(".experiment .override button");
    browser.reads("#act-do", "Stop");
    confirm(&browser);
    browser.begins(".experiment summary", "Last experiment: ended: stopped");
    browser.has(".gate .settings", "rate 40r/s");
    fill_in(&browser);
    confirm(&browser);
    check_that_only_the_api_refused(&browser, &[400, 401]);
    let state = || operator::json(&gateway, "/api/find/app");
    eventually("it runs again", || state()["state"] == "running");
    let closed = now();
    drop(browser);
    eventually("it ends with its page", || state()["state"] != "running");
    assert!(closed.elapsed() < Duration::from_secs(40));
    let reason = state()["result"]["reason"].to_string();
    assert_contains!(reason, "the connection that started it is gone");
    assert_eq!(crowd.end(), 0, "no request is rejected");
}
