//! Compares nginx with drip on the import of nginx's own file.

use std::net::SocketAddr;

use crate::programs::nginx::Nginx;
use crate::support::{Client, Gateway, HoldingOrigin, Origin, drip, eventually, quarter_alone};

const HTTP: &str = "limit_req_zone $arg_key zone=slow:1m rate=1r/m;\n\
    limit_req_zone $arg_key zone=quick:1m rate=2r/s;\n\
    limit_req_zone all zone=site:1m rate=2r/m;\n\
    limit_req zone=slow burst=2 nodelay;";

const LOCATIONS: [(&str, &str); 7] = [
    ("/", ""),
    (
        "/own/",
        "limit_req zone=quick burst=2; limit_req_status 429;",
    ),
    (
        "/own/deeper/",
        "limit_req zone=slow burst=5 delay=5; limit_req_status 418;",
    ),
    ("= /one", "limit_req zone=slow;"),
    ("^~ /dry/", "limit_req_dry_run on;"),
    (
        "/both/",
        "limit_req zone=slow burst=3 nodelay; limit_req zone=site burst=1 delay=9;",
    ),
    ("/status/", "limit_req_status 420;"),
];

/// Path, key, and number of simultaneous requests.
const ASKED: [(&str, &str, usize); 10] = [
    ("/a", "1", 5),
    ("/own/a", "2", 6),
    ("/owner", "3", 5),
    ("/own/deeper/x", "4", 8),
    ("/one", "5", 3),
    ("/one/more", "6", 5),
    ("/dry/x", "7", 6),
    ("/both/x", "8", 5),
    ("/status/x", "9", 5),
    ("/a", "", 6),
];

/// Starts drip on the import of nginx's file, at its own address.
pub(super) fn drip_on_the_file_of(nginx: &Nginx) -> Gateway {
    let output = drip()
        .arg("import")
        .arg(nginx.file())
        .output()
        .expect("drip runs");
    assert!(output.status.success(), "{output:?}");
    let settings = String::from_utf8(output.stdout).expect("text");
    let (before, rest) = settings.split_once("listen = ").expect("an address");
    assert!(before.ends_with("[server]\n"), "{settings}");
    let (listen, rest) = rest.split_once('\n').expect("a line");
    assert_eq!(listen, format!("[\"{}\"]", nginx.address));
    Gateway::start(rest)
}

/// Sends a request on a new connection.
pub(super) fn send(to: SocketAddr, host: &str, target: &str) -> Client {
    let mut client = Client::connect(to);
    client.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
    client
}

/// Returns the statuses of simultaneous requests, in order.
///
/// The kernel decides which of several connections is read first.
pub(super) fn verdicts(to: SocketAddr, host: &str, target: &str, times: usize) -> Vec<u16> {
    let mut clients: Vec<_> = (0..times).map(|_| send(to, host, target)).collect();
    let statuses = clients.iter_mut().map(|client| client.answer().status);
    let mut statuses: Vec<_> = statuses.collect();
    statuses.sort_unstable();
    statuses
}

#[test]
fn drip_on_the_imported_file_does_with_each_request_what_nginx_does() {
    let _alone = quarter_alone();
    let origin = Origin::start();
    let nginx = Nginx::start(&origin, HTTP, &LOCATIONS);
    let gateway = drip_on_the_file_of(&nginx);
    for (path, key, times) in ASKED {
        let statuses = [nginx.address, gateway.address()]
            .map(|address| verdicts(address, "a", &format!("{path}?key={key}"), times));
        assert_eq!(statuses[0], statuses[1], "{path} {key}");
        let limited = statuses[0].iter().any(|status| *status >= 400);
        let expected = !path.starts_with("/dry") && !key.is_empty();
        assert_eq!(limited, expected, "{path}: {statuses:?}");
    }
}

#[test]
fn both_count_what_runs_once_a_request_has_been_delayed() {
    let _alone = quarter_alone();
    let held = HoldingOrigin::of("hold");
    let origin = &held.origin;
    let nginx = Nginx::start(
        origin,
        "limit_req_zone $binary_remote_addr zone=paced:1m rate=1r/s;
        limit_conn_zone $binary_remote_addr zone=addr:1m;",
        &[("/", "limit_req zone=paced burst=5; limit_conn addr 1;")],
    );
    let gateway = drip_on_the_file_of(&nginx);
    let waits = |who: &str| {
        if who == "nginx" {
            return nginx.error_log().contains("delaying request");
        }
        let paced = [("zone", "paced")];
        gateway.count("drip_zone_queue_depth", &paced) == 1
    };
    let both = [("nginx", nginx.address), ("drip", gateway.address())];
    for (nth, (who, address)) in both.into_iter().enumerate() {
        let mut running = Client::ask(address, &format!("/hold-{who}"));
        origin.wait_for(2 * nth + 1);
        let mut delayed = Client::ask(address, "/");
        eventually("it is delayed", || waits(who));
        held.release(&format!("/hold-{who}"));
        let statuses = [running.answer().status, delayed.answer().status];
        assert_eq!(statuses, [200; 2], "{who}");
    }
}
