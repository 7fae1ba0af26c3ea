//! Tests of collapsed requests on the live page.

use crate::chromium::page::{check_that_it_fits, check_that_nobody_complained, opened};
use crate::support::{Origin, one_origin};

#[test]
fn an_origin_says_what_was_received_and_sent_while_a_route_collapses_to_it() {
    let origin = Origin::start();
    let plain = one_origin(origin.address, "", "");
    let collapse = format!("{plain}\n[routes.collapse]\nkeep = \"1h\"\n");
    let (gateway, browser) = opened(&collapse);
    browser.begins(".shared", "No requests to share; 0 B of 64 MB kept");
    gateway.check_each(20, "/page", 200);
    browser.wait_for(
        "what is shared",
        "return / r\\/s received, 0\\.\\d+ r\\/s sent: 95 % shared; \\d+ B of 64 MB kept$/.test(says('.shared'))",
    );
    check_that_it_fits(&browser, &[390, 320, 700, 1280]);
    gateway.site.write(&plain);
    gateway.wait_for_line("the changed file is in force");
    browser.holds("document.querySelector('.shared').hidden");
    check_that_nobody_complained(&browser);
}
