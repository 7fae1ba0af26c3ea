//! Tests of slow readers beside normal readers, with common programs on both sides.

use std::process::Command;

use crate::programs::python::python_with;
use crate::programs::running::{Running, go, source};
use crate::support::frames::without_window;
use crate::support::process::Process;
use crate::support::secure::write_pair;
use crate::support::{Gateway, Raw, Site, eventually};

/// Starts an origin that prints its port.
fn start(command: &mut Command) -> (Running, String) {
    let (origin, port, _) = Running::printing(command);
    (origin, port)
}

/// Fails unless each program downloads complete bodies.
fn check_downloads(gateway: &Gateway, name: &str) {
    let url = format!("http://{}/whole", gateway.address());
    let curl = |version: &str| {
        let mut command = Command::new("curl");
        let quiet = "--silent --max-time 20 --output /dev/null";
        command.args(quiet.split(' ')).arg(version);
        command
            .args(["--write-out", "%{http_code} %{size_download}\n"])
            .arg(&url);
        command
    };
    let program = |mut command: Command, file: &str| {
        command.arg(source("http2").join(file)).args([&*url, "5"]);
        command
    };
    let httpx = python_with(&["httpx[http2]==0.28.1"]);
    let programs = [
        (curl("--http1.1"), 1),
        (curl("--http2-prior-knowledge"), 1),
        (program(Command::new("node"), "download.js"), 5),
        (program(Command::new(httpx), "download.py"), 5),
    ];
    for (mut command, count) in programs {
        let output = command.output().expect("the program");
        let received = String::from_utf8_lossy(&output.stdout);
        let expected = "200 300000\n".repeat(count);
        assert_eq!(received, expected, "{name}: {command:?}");
    }
}

/// Attacks a gateway on this origin by readers that read nothing, beside normal programs.
fn check_programs(gateway: &Gateway) {
    check_downloads(gateway, "before");
    let large = without_window(gateway, "/large", 20);
    let events = without_window(gateway, "/events", 5);
    let over_http_1: Vec<_> = (0..6)
        .map(|_| {
            let mut client = Raw::connect(gateway.address());
            client.send("GET /large HTTP/1.1\r\nHost: test\r\n\r\n");
            client
        })
        .collect();
    let process = Process::of(gateway.id());
    eventually("clients that do not read get no more", || {
        process.load() < 0.1
    });
    check_downloads(gateway, "during");
    drop((large, events, over_http_1));
    check_downloads(gateway, "afterwards");
    assert!(!gateway.log().contains("WARN"), "{}", gateway.log());
}

#[test]
fn slow_readers_of_an_origin_on_node_hold_up_no_program() {
    let (_origin, port) = start(Command::new("node").arg(source("http2/origin.js")));
    let gateway = Gateway::start(&format!(
        "workers = 1\n[origins.app]\nservers = [\"h2c://127.0.0.1:{port}\"]\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n"
    ));
    check_programs(&gateway);
}

#[test]
fn slow_readers_of_an_origin_in_go_hold_up_no_program() {
    let site = Site::new();
    write_pair(site.folder(), "localhost", &["localhost"]);
    let in_folder = |name: &str| site.folder().join(name);
    let pair = [in_folder("localhost.pem"), in_folder("localhost.key")];
    let (_origin, port) = start(Command::new(go("http2/origin.go")).args(pair));
    site.write(&format!(
        "workers = 1\n[origins.app]\nservers = [\"https://localhost:{port}\"]\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n"
    ));
    let mut command = crate::support::drip();
    command.env("SSL_CERT_FILE", in_folder("localhost.pem"));
    command.arg("-c").arg(site.file());
    let gateway = Gateway::run_as(site, command);
    gateway.wait_until_ready();
    check_programs(&gateway);
}
