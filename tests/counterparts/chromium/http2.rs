//! A WebSocket of Chromium over HTTP/2 and TLS, to a server of Python's over HTTP/1.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::chromium::page::webdriver::Browser;
use crate::programs::python::python_with;
use crate::support::secure;
use crate::support::{eventually, free_address, one_origin};

/// The server.
struct Echo {
    process: Child,
    address: SocketAddr,
}

impl Echo {
    fn start() -> Self {
        let address = free_address();
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/counterparts/chromium/echo.py");
        let mut command = Command::new(python_with(&["websockets==15.0.1"]));
        command.arg(script).arg(address.to_string());
        let mut process = command.stdout(Stdio::piped()).spawn().expect("python");
        let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let first = lines.next().and_then(Result::ok);
        assert_eq!(first.as_deref(), Some("ready"));
        Self { process, address }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.process.kill();
        let _ended = self.process.wait();
    }
}

#[test]
fn messages_of_a_page_that_came_over_http_2_are_echoed_on_its_connection() {
    let origin = Echo::start();
    let gateway = secure::gateway("", &one_origin(origin.address, "", "max_in_flight = 10"));
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
    let in_flight = || gateway.metrics().count("drip_origin_in_flight", &[]);
    browser.wait_for("it is open", "return told[0] === 'open'");
    assert_eq!(in_flight(), 1);
    let opened = browser.events("Network.webSocketHandshakeResponseReceived");
    // Over HTTP/1 it would be a 101.
    assert_eq!(opened[0]["response"]["status"], json!(200), "{opened:?}");
    browser.run("socket.send('small')");
    browser.wait_for("a small message", "return told[1] === 'small'");
    browser.run("socket.send(large)");
    browser.wait_for("a large message", "return told[2] === large");
    browser.run("socket.close(1000)");
    browser.wait_for("the page closed it", "return told[3] === 'closed 1000'");
    eventually("the place is free", || in_flight() == 0);
    browser.run("open_at('/chat')");
    browser.wait_for("it is open again", "return told[4] === 'open'");
    browser.run("socket.send('close')");
    browser.wait_for("the server closed it", "return told[5] === 'closed 4001'");
    eventually("the place is free", || in_flight() == 0);
    browser.run("open_at('/refused')");
    browser.wait_for("it was refused", "return told[6] === 'error'");
    browser.wait_for("and is closed", "return told[7] === 'closed 1006'");
    eventually("the place is free", || in_flight() == 0);
}
