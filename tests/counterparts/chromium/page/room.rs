//! The waiting room of an origin on the live page.

use serde_json::json;

use crate::chromium::page::acting::{choose, click, enter, wait_until_closed};
use crate::chromium::page::webdriver::{Browser, DESKTOP};
use crate::chromium::page::{check_that_it_fits, check_that_nobody_complained};
use crate::support::{Gateway, Origin, fetch, one_origin};

#[test]
fn a_room_shows_who_waits_and_is_acted_in() {
    let origin = Origin::start();
    let room =
        "[origins.app.room]\nsecret = \"0123456789abcdef\"\nsessions = 2\nadmit = \"100r/s\"\n";
    let gateway = Gateway::start(&one_origin(origin.address, "", room));
    let browser = Browser::open(&gateway, DESKTOP);
    browser.wait_for("the room", "return says('.room .pill') === 'open'");
    click(&browser, ".room .act");
    choose(&browser, "pause");
    browser.wait_for(
        "what will happen",
        "return says('#act-title') === 'Waiting room of app' && says('#act-do') === 'Pause' \
            && says('#act-will').startsWith('Nobody is called for 10 minutes')",
    );
    click(&browser, "#act-do");
    wait_until_closed(&browser);
    for _ in 0..3 {
        assert_eq!(fetch(gateway.address(), "/").status, 429);
    }
    browser.wait_for(
        "it is paused",
        "return says('.room .pill') === 'paused' && says('.room .stat b') === '3' \
            && says('.room .override').startsWith('Not as in the file: paused: nobody is called')",
    );
    browser.wait_for(
        "the headline",
        "return says('#what') === 'Calling is paused in the waiting room of app while 3 visitors wait'",
    );
    check_that_it_fits(&browser, &[390, 320, 700, 1280]);
    click(&browser, ".room .act");
    choose(&browser, "call");
    enter(&browser, "#act-text", "1");
    click(&browser, "#act-do");
    wait_until_closed(&browser);
    let numbers =
        "return [...document.querySelectorAll('.room .stat b')].map((it) => it.textContent)";
    browser.wait_for(
        "one is called",
        "const it = document.querySelectorAll('.room .stat b')[1]; return it.textContent === '1'",
    );
    assert_eq!(browser.run(numbers), json!(["2", "1", "0 of 2", "–"]));
    click(&browser, ".room .act");
    choose(&browser, "word");
    click(&browser, "#act-do");
    browser.wait_for("why not", "return says('#act-error') === 'Word is empty.'");
    enter(&browser, "#act-text", "Tea & <b>cake</b>");
    click(&browser, "#act-do");
    wait_until_closed(&browser);
    browser.wait_for(
        "the word",
        "return says('.room .word').startsWith('They read: Tea & <b>cake</b> (until ')",
    );
    click(&browser, ".room .override button");
    browser.wait_for("the undo", "return says('#act-do') === 'Resume'");
    click(&browser, "#act-do");
    wait_until_closed(&browser);
    browser.wait_for(
        "it goes on",
        "return says('.room .pill') === 'calling' && document.querySelector('.room .override').hidden",
    );
    click(&browser, ".room .act");
    choose(&browser, "empty");
    click(&browser, "#act-do");
    wait_until_closed(&browser);
    browser.wait_for("nobody waits", "return says('.room .stat b') === '0'");
    check_that_nobody_complained(&browser);
}
