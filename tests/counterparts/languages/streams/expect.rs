//! Tests of uploads that wait for an interim response (RFC 9110, section 10.1.1).

use tempfile::TempDir;

use super::programs::{Program, body};
use crate::support::secure::gateway;
use crate::support::{Origin, one_origin};

/// Checks uploads to an origin that sends 100, or ignores the expectation.
fn check_uploads(invites: bool) {
    let origin = Origin::answering(move |exchange| {
        let expectation = exchange.field("expect").map(str::to_ascii_lowercase);
        assert_eq!(expectation.as_deref(), Some("100-continue"));
        if invites {
            exchange.send(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let length = exchange.body()?.len();
        exchange.reply(length.to_string().as_bytes())
    });
    let file = one_origin(origin.address, "", "");
    let gateway = gateway("", &file);
    let folder = TempDir::new().expect("a folder");
    let file = body(folder.path(), 100_000);
    let url = format!("https://{}/", gateway.address());
    for program in [Program::Curl, Program::Node, Program::Java] {
        let received = program.upload(&url, &file, 3, true);
        assert_eq!(received, vec![program.seen(200); 3], "{program:?}");
    }
    assert_eq!(origin.arrivals().len(), 9);
}

#[test]
fn an_upload_that_waits_for_an_interim_answer_goes_on_when_the_origin_sends_one() {
    check_uploads(true);
}

#[test]
fn an_upload_that_waits_for_an_interim_answer_goes_on_when_the_origin_sends_none() {
    check_uploads(false);
}
