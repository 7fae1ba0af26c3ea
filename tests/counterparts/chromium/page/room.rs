//! Tests of the waiting room of an origin on the live page.

use serde_json::json;

use crate::chromium::page::acting::{choose, confirm, enter};
use crate::chromium::page::{check_that_it_fits, check_that_nobody_complained, opened};
use crate::support::{Origin, one_origin};

#[test]
fn a_room_shows_who_waits_and_is_acted_in() {
    let origin = Origin::start();
    let room =
        "[origins.app.room]\nsecret = \"0123456789abcdef\"\nsessions = 2\nadmit = \"100r/s\"\n";
    let (gateway, browser) = opened(&one_origin(origin.address, "", room));
    browser.reads(".room .pill", "open");
    browser.click(".room .act");
    choose(&browser, "pause");
    browser.reads("#act-title", "Waiting room of app");
    browser.reads("#act-do", "Pause");
    browser.begins("#act-will", "Nobody is called for 10 minutes");
    confirm(&browser);
    gateway.check_each(3, "/", 429);
    browser.reads(".room .pill", "paused");
    browser.reads(".room .stat b", "3");
    let differs = "Not as in the file: paused: nobody is called";
    browser.begins(".room .override", differs);
    let title = "Calling is paused in the waiting room of app while 3 visitors wait";
    browser.reads("#what", title);
    check_that_it_fits(&browser, &[390, 320, 700, 1280]);
    browser.click(".room .act");
    choose(&browser, "call");
    enter(&browser, "#act-text", "1");
    confirm(&browser);
    let numbers =
        "return [...document.querySelectorAll('.room .stat b')].map((it) => it.textContent)";
    browser.wait_for(
        "one is called",
        "const it = document.querySelectorAll('.room .stat b')[1]; return it.textContent === '1'",
    );
    assert_eq!(browser.run(numbers), json!(["2", "1", "0 of 2", "–"]));
    browser.click(".room .act");
    choose(&browser, "word");
    browser.click("#act-do");
    browser.reads("#act-error", "Word is empty.");
    enter(&browser, "#act-text", "Tea & <b>cake</b>");
    confirm(&browser);
    browser.begins(".room .word", "They read: Tea & <b>cake</b> (until ");
    browser.click(".room .override button");
    browser.reads("#act-do", "Resume");
    confirm(&browser);
    browser.reads(".room .pill", "calling");
    browser.holds("document.querySelector('.room .override').hidden");
    browser.click(".room .act");
    choose(&browser, "empty");
    confirm(&browser);
    browser.reads(".room .stat b", "0");
    check_that_nobody_complained(&browser);
}
