//! The gate of an origin on the live page, and acting there.

use crate::chromium::page::acting::{choose, click, enter, wait_until_closed};
use crate::chromium::page::webdriver::{Browser, DESKTOP};
use crate::chromium::page::{check_that_it_fits, check_that_nobody_complained};
use crate::support::{Client, Gateway, Origin, one_origin};

#[test]
fn a_gate_is_paused_and_gets_other_values_for_a_while() {
    let origin = Origin::start();
    let gate = "rate = \"200r/s\"\nmax_in_flight = 24\nqueue_timeout = \"60s\"";
    let gateway = Gateway::start(&one_origin(origin.address, "", gate));
    let browser = Browser::open(&gateway, DESKTOP);
    let act = ".gate .act";
    browser.wait_for(
        "the gate",
        "return says('.gate .settings').includes('rate 200r/s')",
    );
    click(&browser, act);
    choose(&browser, "pause");
    browser.wait_for(
        "what will happen",
        "return says('#act-title') === 'Gate of app' && says('#act-do') === 'Pause' \
            && says('#act-will').startsWith('No request leaves to app for 10 minutes')",
    );
    click(&browser, "#act-do");
    wait_until_closed(&browser);
    let waiting: Vec<_> = (0..2)
        .map(|_| Client::ask(gateway.address(), "/"))
        .collect();
    browser.wait_for(
        "it is paused",
        "return says('.gate .stat b') === '2' \
            && says('.gate .override').startsWith('Not as in the file: paused: no request leaves')",
    );
    browser.wait_for(
        "the headline",
        "return says('#what') === 'The gate of app is paused'",
    );
    check_that_it_fits(&browser, &[390, 320, 700, 1280]);
    click(&browser, ".gate .override button");
    browser.wait_for("the undo", "return says('#act-do') === 'Resume'");
    click(&browser, "#act-do");
    wait_until_closed(&browser);
    for mut client in waiting {
        assert_eq!(client.answer().status, 200);
    }
    click(&browser, act);
    choose(&browser, "rate");
    enter(&browser, "#act-rate", "250r/s");
    click(&browser, "#act-do");
    wait_until_closed(&browser);
    browser.wait_for(
        "the rate",
        "return says('.gate .override').startsWith('Not as in the file: rate 250r/s instead of 200r/s') \
            && says('.gate .settings').includes('rate 250r/s')",
    );
    click(&browser, act);
    choose(&browser, "places");
    enter(&browser, "#act-text", "30");
    click(&browser, "#act-do");
    wait_until_closed(&browser);
    browser.wait_for(
        "the places",
        "return says('.gate .override').startsWith('Not as in the file: max_in_flight 30 instead of 24')",
    );
    check_that_nobody_complained(&browser);
}
