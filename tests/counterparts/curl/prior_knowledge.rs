//! Tests with curl and nghttp of HTTP/2 on a plain address, with prior knowledge.

use std::fs;
use std::process::Command;

use crate::support::{Gateway, Origin, Site, noise, one_origin};

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output =
        output.unwrap_or_else(|error| panic!("{program}: {error}; tests/run.sh installs it"));
    let received = String::from_utf8_lossy(&output.stderr);
    let is_done = output.status.success();
    assert!(is_done, "{program} {arguments:?}: {received}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn curl_uploads_and_gets_it_back() {
    let origin = Origin::echo();
    let gateway = Gateway::start(&one_origin(origin.address, "workers = 1", ""));
    let site = Site::new();
    let (up, down) = (site.folder().join("up"), site.folder().join("down"));
    let body = noise(3_000_000);
    fs::write(&up, &body).expect("a file");
    let upload = format!("@{}", up.display());
    let url = format!("http://{}/up", gateway.address());
    let received = run(
        "curl",
        &[
            "--silent",
            "--show-error",
            "--http2-prior-knowledge",
            "--data-binary",
            &upload,
            "--output",
            down.to_str().expect("text"),
            "--write-out",
            "%{http_version} %{response_code}",
            &url,
        ],
    );
    assert_eq!(received, "2 200");
    let returned = fs::read(&down).expect("a file");
    assert!(returned == body, "another body came back");
}

#[test]
fn nghttp_asks_many_times_on_one_connection() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_origin(origin.address, "workers = 1", ""));
    let url = format!("http://{}/", gateway.address());
    // -m: number of requests; -n: without the bodies; -s: a table with the status of each.
    let received = run("nghttp", &["-m", "100", "-n", "-s", &url]);
    let served = received
        .lines()
        .filter(|line| line.split_whitespace().nth(4) == Some("200"))
        .count();
    assert_eq!(served, 100, "{received}");
    assert_eq!(origin.arrivals().len(), 100);
}
