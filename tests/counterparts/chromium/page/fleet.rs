//! This gateway and its peers on the live page.

use crate::chromium::page::webdriver::{Browser, DESKTOP, Look};
use crate::chromium::page::{PHONE_IN_THE_DARK, WIDER, check_that_nobody_complained, crowd};
use crate::support::{Gateway, Origin, one_zone};

#[test]
fn the_page_has_all_gateways_and_says_which_does_not_answer() {
    let origin = Origin::start();
    let zone = one_zone(&origin, "1r/m", "burst = 9");
    let others: Vec<Gateway> = (2..=10)
        .map(|nth| Gateway::start(&format!("name = \"edge-{nth}\"\nworkers = 1\n{zone}")))
        .collect();
    let urls: Vec<String> = others
        .iter()
        .map(|it| format!("\"{}\"", it.site.admin))
        .collect();
    let peers = format!("name = \"edge-1\"\npeers = [{}]\n", urls.join(", "));
    let gateway = Gateway::start(&format!("{peers}{zone}"));
    let _waiting = [crowd(&gateway, "x", 3), crowd(&others[0], "x", 4)];
    let browser = Browser::open(&gateway, DESKTOP);
    browser.wait_for(
        "all answer",
        "return says('#fleet-count') === '10 of 10 answer'",
    );
    browser.wait_for(
        "the sum",
        "return says('#fleet-zones').includes('5 waiting') && says('#fleet-keys').includes('at 2 gateways')",
    );
    browser.wait_for(
        "the parts",
        "document.querySelector('#fleet-zones details').open = true;
         return says('#fleet-zones details').includes('edge-2')",
    );
    assert_eq!(
        browser.run("return says('#fleet-state')"),
        "10 gateways agree"
    );
    for width in [390, 320, 700, 1280] {
        browser.look(Look {
            width,
            ..PHONE_IN_THE_DARK
        });
        assert_eq!(
            browser.run(WIDER),
            serde_json::json!([false, []]),
            "{width}"
        );
    }
    drop(others);
    browser.wait_for(
        "nobody else",
        "return says('#fleet-count') === '1 of 10 answer'",
    );
    browser.wait_for(
        "why",
        "return says('#fleet-gateways').includes('connection refused')
           && document.querySelector('#fleet-state').dataset.state === 'rejecting'",
    );
    gateway.site.write(&zone);
    gateway.wait_for_line("the changed file is in force");
    browser.wait_for(
        "no panel without peers",
        "return document.querySelector('#fleet-section').hidden",
    );
    check_that_nobody_complained(&browser);
}
