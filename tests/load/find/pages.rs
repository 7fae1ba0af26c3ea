//! Tests that responses replaced by a page of the route still count as the origin's.

use std::fs;
use std::thread;

use serde_json::json;

use super::{SECOND, body, experiment};
use crate::support::operator::post;
use crate::support::{Gateway, MS, Origin, Site, now, one_origin};

/// A response that a page replaces counts with its own status.
///
/// None of these responses is complete without an error, as abandoned ones would be.
#[test]
fn an_answer_that_a_page_replaces_counts_with_its_own_status() {
    let origin = Origin::answering(|exchange| {
        exchange.send(b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\n")?;
        thread::sleep(5 * MS);
        exchange.send(b"busy")
    });
    let site = Site::new();
    fs::write(site.folder().join("down.html"), "down").expect("a file");
    let file = one_origin(origin.address, "", "rate = \"40r/s\"");
    let pages = "pages = { \"5xx\" = \"down.html\" }\norigin_pages = true\n";
    site.write(&(file + pages));
    let gateway = Gateway::start_at(site);
    let expected = body("").replace("p95<200ms, errors<5%", "p95 whole<200ms");
    let (status, received) = post(&gateway, "/api/find", &expected);
    assert_eq!(status, 200, "{received}");
    let began = now();
    while experiment(&gateway)["state"] == "running" {
        let answer = gateway.fetch("/");
        assert_eq!((answer.status, &*answer.body), (503, &b"down"[..]));
        assert!(began.elapsed() < 14 * SECOND, "nothing is known of them");
    }
    let outcome = &experiment(&gateway)["result"];
    let reason = outcome["reason"].as_str().unwrap_or_default();
    let says = reason.contains("does not hold at the lowest level");
    assert!(says, "{outcome}");
    assert_eq!(experiment(&gateway)["steps"][0]["verdict"], json!("broke"));
}
