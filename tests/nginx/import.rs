//! An nginx, and drip on what `drip import` makes of nginx's own file.

use crate::support::nginx::Nginx;
use crate::support::{Client, Gateway, Origin, alone, drip};

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

/// The path, the key, and how many requests at once.
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

#[test]
fn drip_on_the_imported_file_does_with_each_request_what_nginx_does() {
    let _alone = alone();
    let origin = Origin::start();
    let nginx = Nginx::start(&origin, HTTP, &LOCATIONS);
    let output = drip()
        .arg("import")
        .arg(nginx.file())
        .output()
        .expect("drip runs");
    assert!(output.status.success(), "{output:?}");
    let settings = String::from_utf8(output.stdout).expect("text");
    // drip gets an address of its own.
    let (before, rest) = settings.split_once("listen = ").expect("an address");
    assert!(before.ends_with("[server]\n"), "{settings}");
    let (listen, rest) = rest.split_once('\n').expect("a line");
    assert_eq!(listen, format!("[\"{}\"]", nginx.address));
    let gateway = Gateway::start(rest);
    for (path, key, times) in ASKED {
        let statuses = [nginx.address, gateway.address()].map(|address| {
            let mut clients: Vec<_> = (0..times).map(|_| Client::connect(address)).collect();
            for client in &mut clients {
                client.get(&format!("{path}?key={key}"));
            }
            let mut statuses: Vec<_> = clients
                .iter_mut()
                .map(|client| client.answer().status)
                .collect();
            // The kernel decides which of several connections is read first.
            statuses.sort_unstable();
            statuses
        });
        assert_eq!(statuses[0], statuses[1], "{path} {key}\n{settings}");
        let limited = statuses[0].iter().any(|status| *status >= 400);
        assert_eq!(
            limited,
            !path.starts_with("/dry") && !key.is_empty(),
            "{path}: {statuses:?}"
        );
    }
}
