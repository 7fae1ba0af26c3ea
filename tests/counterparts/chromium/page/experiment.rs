//! The experiment at a gate on the live page.

use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::chromium::page::acting::{choose, click, enter, wait_until_closed};
use crate::chromium::page::webdriver::{Browser, DESKTOP};
use crate::chromium::page::{check_that_it_fits, check_that_nobody_complained};
use crate::support::Crowd;
use crate::support::operator;
use crate::support::{Gateway, MS, Origin, eventually, now, one_origin};

const FILE: &str = "rate = \"40r/s\"\nqueue_timeout = \"60s\"\nmax_queue = 1000";

/// Starts an experiment from 50r/s to 90r/s in the dialog, without its last click.
fn fill_in(browser: &Browser) {
    click(browser, ".gate .act");
    choose(browser, "find");
    enter(browser, "#act-find [name=slo]", "p95<2s, errors<5%");
    enter(browser, "#act-find [name=from]", "50r/s");
    enter(browser, "#act-find [name=to]", "90r/s");
    browser.wait_for(
        "what will happen",
        "return says('#act-do') === 'Start' && says('#act-will').includes('as long as p95<2s, errors<5% holds')",
    );
}

fn bars(verdict: &str) -> String {
    format!("document.querySelectorAll('.experiment svg .{verdict}').length")
}

#[test]
fn an_experiment_is_started_watched_and_stopped_and_ends_with_the_page() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_origin(origin.address, "", FILE));
    let crowd = Crowd::start(&gateway, 12);
    let browser = Browser::open(&gateway, DESKTOP);
    browser.wait_for(
        "the gate",
        "return says('.gate .settings').includes('rate 40r/s')",
    );
    fill_in(&browser);
    enter(&browser, "#act-find [name=to]", "fast");
    click(&browser, "#act-do");
    browser.wait_for(
        "the error",
        "return says('#act-error').startsWith('to is \"fast\"')",
    );
    enter(&browser, "#act-find [name=to]", "90r/s");
    click(&browser, "#act-do");
    wait_until_closed(&browser);
    browser.wait_for(
        "it runs",
        "return says('.experiment summary').startsWith('Experiment: 50r/s, climb') \
            && says('.experiment .override span').includes('ends 15 s after this page is closed') \
            && says('.gate .settings').includes('rate 50r/s')",
    );
    browser.wait_for(
        "the open step",
        &format!("return {} === 1", bars("running")),
    );
    // A step takes 20 s: without the page's renewals the experiment would have ended.
    thread::sleep(Duration::from_secs(15));
    browser.wait_for("the next step", &format!("return {} === 3", bars("ok")));
    browser.wait_for(
        "its line and the objective",
        "return says('.experiment .steps').startsWith('50r/s  ok') \
            && document.querySelectorAll('.experiment svg .bound').length === 2 \
            && says('.experiment svg').includes('p95 (< 2 s)')",
    );
    check_that_it_fits(&browser, &[390, 320, 700, 1280]);
    click(&browser, ".experiment .override button");
    browser.wait_for("the question", "return says('#act-do') === 'Stop'");
    click(&browser, "#act-do");
    wait_until_closed(&browser);
    browser.wait_for(
        "it has ended",
        "return says('.experiment summary').startsWith('Last experiment: ended: stopped') \
            && says('.gate .settings').includes('rate 40r/s')",
    );
    fill_in(&browser);
    click(&browser, "#act-do");
    wait_until_closed(&browser);
    check_that_only_one_was_refused(&browser);
    let state = || operator::json(&gateway, "/api/find/app");
    eventually("it runs again", || state()["state"] == "running");
    drop(browser);
    let deadline = now() + Duration::from_secs(40);
    while state()["state"] == "running" {
        assert!(now() < deadline, "it outlives its page");
        thread::sleep(200 * MS);
    }
    let reason = state()["result"]["reason"].to_string();
    assert!(
        reason.contains("the connection that started it is gone"),
        "{reason}"
    );
    assert_eq!(crowd.end(), 0, "nobody is refused because of it");
}

/// The browser itself logs an answer that is an error.
fn check_that_only_one_was_refused(browser: &Browser) {
    let complaints = browser.complaints();
    let is_refusal = |it: &serde_json::Value| it["message"].to_string().contains("status of 400");
    assert!(
        complaints.iter().all(is_refusal) && complaints.len() == 1,
        "{complaints:?}"
    );
}

#[test]
fn an_experiment_of_the_command_is_shown_and_its_start_needs_the_token() {
    let origin = Origin::start();
    let gateway = Gateway::start_with(
        &one_origin(origin.address, "", FILE),
        &[("DRIP_ADMIN_TOKEN", Path::new("ops:SECRET1"))],
    );
    let browser = Browser::open(&gateway, DESKTOP);
    browser.wait_for(
        "the gate",
        "return says('.gate .settings').includes('rate 40r/s')",
    );
    fill_in(&browser);
    click(&browser, "#act-do");
    browser.wait_for(
        "the refusal",
        "return says('#act-error').includes('DRIP_ADMIN_TOKEN') && !document.querySelector('#act-token-line').hidden",
    );
    enter(&browser, "#act-token", "SECRET1");
    click(&browser, "#act-do");
    wait_until_closed(&browser);
    browser.wait_for(
        "it runs",
        "return says('.experiment summary').startsWith('Experiment: 50r/s')",
    );
    let other = Browser::open(&gateway, DESKTOP);
    other.wait_for(
        "who started it",
        "return says('.experiment .override span').includes('Started by ops.')",
    );
    check_that_nobody_complained(&other);
}
