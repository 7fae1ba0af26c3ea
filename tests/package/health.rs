//! `drip health`, for health checks.

use std::fs;

use rustix::process::Signal;

use super::output;
use crate::support::{Client, Gateway, Origin, drip, one_zone};

#[test]
fn it_finds_the_admin_port_and_tells_whether_the_gateway_is_ready() {
    let origin = Origin::start();
    let rest = one_zone(&origin, "1r/m", "burst = 9");
    let gateway = Gateway::start(&rest);
    let file = gateway.site.file();
    let admin = gateway.site.admin.to_string();
    let by_file = || output(drip().args(["health", "-c"]).arg(&file));
    let by_address = || output(drip().args(["health", &admin]));
    for asked in [by_file(), by_address()] {
        assert!(asked.status.success(), "{asked:?}");
        assert_eq!(asked.stdout, b"ready\n");
    }

    // A running gateway goes on with the settings before.
    let text = fs::read_to_string(&file).expect("a file");
    fs::write(&file, text.replace("1r/m", "1")).expect("a file");
    assert!(by_address().status.success());

    fs::write(&file, text.replace(&format!("\"{admin}\""), "\"off\"")).expect("a file");
    let asked = by_file();
    assert_eq!(asked.status.code(), Some(1));
    let said = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert!(said.contains("server.admin is \"off\""), "{said}");

    // Two requests wait for a minute each, and meanwhile the admin port answers.
    let address = gateway.address();
    let _waiting: Vec<_> = (0..3).map(|_| Client::ask(address, "/?key=a")).collect();
    gateway.wait_for_depth(2);
    gateway.signal(Signal::TERM);
    gateway.wait_for_line("stopping");
    let asked = by_address();
    assert_eq!(asked.status.code(), Some(1));
    let said = String::from_utf8_lossy(&asked.stdout).into_owned();
    assert!(said.starts_with("not ready\n"), "{said}");

    let away = output(drip().args(["health", "127.0.0.1:1"]));
    assert_eq!(away.status.code(), Some(1));
    let said = String::from_utf8_lossy(&away.stderr).into_owned();
    assert!(said.starts_with("drip: 127.0.0.1:1: "), "{said}");
}
