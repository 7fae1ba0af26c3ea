//! A process that may not open as many files as it needs.

use super::driver::{RULE, Rule, Severity, is_calm};
use super::scene::{
    Admin, CALM_WITHIN, SEEN_WITHIN, begin, calm, follows, reported, wait, with_descriptors,
};
use crate::support::frames::{END_STREAM, Frames, head};
use crate::support::{Client, HoldingOrigin, Origin, eventually, now, one_origin};

const LIMIT: usize = 128;
const REMEDY: &str = r"Raise the limit of the process \(`LimitNOFILE` in systemd, `ulimit -n`\)";

fn file(origin: &Origin) -> String {
    one_origin(
        origin.address,
        "workers = 1\nheader_timeout = \"120s\"",
        "connect_timeout = \"2s\"",
    )
}

#[test]
fn requests_without_a_descriptor_are_told_and_no_server_is_blamed() {
    let holding = HoldingOrigin::start();
    let gateway = with_descriptors(LIMIT, &file(&holding.origin));
    begin(&gateway);
    // Later none is left for it.
    let mut admin = Admin::connect(&gateway);
    admin.headline();
    // A few clients, each with many requests at the origin at once.
    let mut clients: Vec<_> = (0..3).map(|_| Frames::connect(gateway.address())).collect();
    let began = now();
    let target = |client: usize, nth: usize| format!("/{client}/{nth}");
    for (client, frames) in clients.iter_mut().enumerate() {
        for nth in 0..LIMIT / 2 {
            let stream = u32::try_from(2 * nth + 1).expect("a stream");
            let fields = [
                (":method", "GET"),
                (":scheme", "http"),
                (":path", &target(client, nth)),
                (":authority", "test"),
            ];
            frames
                .send(head(stream, END_STREAM, &fields))
                .expect("it is read");
        }
    }
    let rule = Rule {
        cause: Some("connections_full"),
        severity: Severity::Bad,
        says: &[
            "no file descriptor for connections to origins",
            "The origin is not at fault",
        ],
        helps: &[REMEDY],
        ..RULE
    };
    let told = wait(
        began,
        SEEN_WITHIN,
        "connections_full",
        || admin.headline(),
        |it| follows(it, &rule),
    );
    for also in told["also"].as_array().expect("a list") {
        assert!(
            !also.as_str().expect("a title").contains("rigin app"),
            "{told:#}"
        );
    }
    admin.last();
    drop(clients);
    let what = "calm with descriptors";
    wait(now(), CALM_WITHIN, what, || admin.headline(), is_calm);
    let log = gateway.log();
    assert!(!log.contains("taken out"), "{log}");
}

#[test]
fn clients_that_the_limit_of_descriptors_keeps_out_are_told_to_raise_that_limit() {
    let origin = Origin::start();
    let gateway = with_descriptors(LIMIT, &file(&origin));
    begin(&gateway);
    let clients: Vec<_> = (0..LIMIT)
        .map(|_| Client::connect(gateway.address()))
        .collect();
    let rule = Rule {
        cause: Some("connections_full"),
        severity: Severity::Bad,
        says: &[
            "The limit of file descriptors allows only ",
            "new clients wait in the kernel",
        ],
        helps: &[r"Raise the limit of file descriptors \(`LimitNOFILE` in systemd, `ulimit -n`\)"],
        ..RULE
    };
    let headline = reported(&gateway, &rule);
    let remedy = headline["remedy"].as_str().expect("a text");
    assert!(
        !remedy.contains("max_connections"),
        "it would not help: {headline:#}"
    );
    let line = gateway.wait_for_line("all client connections are in use");
    assert!(line.contains("limit of file descriptors"), "{line}");
    drop(clients);
    calm(&gateway);
    eventually("all have left", || {
        gateway.metrics().count("drip_connections", &[]) == 0
    });
}
