//! Tests of Chromium's WebSocket over HTTP/2 and TLS, to a Python server over HTTP/1.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::chromium::page::webdriver::Browser;
use crate::programs::python::python_with;
use crate::programs::running::Running;
use crate::support::secure;
use crate::support::{free_address, one_origin};

#[test]
fn messages_of_a_page_that_came_over_http_2_are_echoed_on_its_connection() {
    let address = free_address();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/counterparts/chromium/echo.py");
    let mut python = Command::new(python_with(&["websockets==15.0.1"]));
    let _origin = Running::listening(python.arg(script).arg(address.to_string()), address);
    let gateway = secure::gateway("", &one_origin(address, "", "max_in_flight = 10"));
    let browser = Browser::start(&[
        "--ignore-certificate-errors",
        "--host-resolver-rules=MAP a.test 127.0.0.1",
    ]);
    let port = gateway.address().port();
    browser.go(&format!("https://a.test:{port}/"));
    let version = "return performance.getEntriesByType('navigation')[0].nextHopProtocol";
    assert_eq!(browser.run(version), json!("h2"));
    browser.run(
        "window.told = []; \
         window.open_at = (path) => { \
             window.socket = new WebSocket(location.origin.replace('https', 'wss') + path); \
             socket.onopen = () => told.push('open'); \
             socket.onerror = () => told.push('error'); \
             socket.onmessage = (it) => told.push(it.data); \
             socket.onclose = (it) => told.push('closed ' + it.code); }; \
         window.large = Array.from({length: 1 << 20}, (_, at) => at % 10).join(''); \
         open_at('/chat')",
    );
    browser.holds("told[0] === 'open'");
    assert_eq!(gateway.in_flight(), 1);
    let opened = browser.events("Network.webSocketHandshakeResponseReceived");
    // Over HTTP/1 the status would be 101.
    assert_eq!(opened[0]["response"]["status"], json!(200), "{opened:?}");
    browser.run("socket.send('small')");
    browser.holds("told[1] === 'small'");
    browser.run("socket.send(large)");
    browser.holds("told[2] === large");
    browser.run("socket.close(1000)");
    browser.holds("told[3] === 'closed 1000'");
    gateway.wait_in_flight(0);
    browser.run("open_at('/chat')");
    browser.holds("told[4] === 'open'");
    browser.run("socket.send('close')");
    browser.holds("told[5] === 'closed 4001'");
    gateway.wait_in_flight(0);
    browser.run("open_at('/refused')");
    browser.holds("told[6] === 'error'");
    browser.holds("told[7] === 'closed 1006'");
    gateway.wait_in_flight(0);
}
