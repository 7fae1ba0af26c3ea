//! Tests of a browser that loads a page with far more requests than `burst` allows.

use std::fmt::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::chromium::page::webdriver::Browser;
use crate::programs::nginx::Nginx;
use crate::support::secure::gateway;
use crate::support::{Gateway, MARGIN, Origin, free_address, longest_pause};

/// Number of images that the page needs.
const ASSETS: usize = 141;
/// Interval between two departures at 25r/s.
const INTERVAL: Duration = Duration::from_millis(40);

/// Starts an origin with a page of many small images, each at its own path.
fn page() -> Origin {
    Origin::answering(|exchange| {
        let (kind, body) = if exchange.target() == "/" {
            let mut page = String::from("<!doctype html><link rel=icon href=data:,>\n");
            for nth in 0..ASSETS {
                writeln!(page, "<img src=/image/{nth}.svg>").expect("a string takes it");
            }
            ("text/html", page)
        } else {
            let image = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>";
            ("image/svg+xml", image.to_owned())
        };
        let length = body.len();
        exchange.send(
            format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}"
            )
            .as_bytes(),
        )
    })
}

/// Returns a file with 25 requests per second for each client, and up to 20 more that wait.
fn file(origin: &Origin, of_origin: &str, of_limit: &str) -> String {
    format!(
        r#"
[origins.app]
servers = ["http://{}"]
{of_origin}

[zones.per_client]
key  = "$remote_addr"
rate = "25r/s"

[[routes]]
path   = "/"
origin = "app"
limits = [{{ zone = "per_client", {of_limit} }}]
"#,
        origin.address
    )
}

/// Returns how many images a browser shows of the page, all of them over HTTP/2.
fn load(address: SocketAddr) -> usize {
    // The certificate of the test has no issuer that a browser knows.
    let browser = Browser::start(&["--ignore-certificate-errors"]);
    browser.go(&format!("https://{address}/"));
    let received = browser.run(
        "const all = performance.getEntriesByType('resource');
         const entries = all.filter((it) => it.name.includes('/image/'));
         const protocols = new Set(entries.map((it) => it.nextHopProtocol).filter(Boolean));
         const shown = [...document.images].filter((it) => it.complete && it.naturalWidth === 9);
         return [document.images.length, shown.length, [...protocols].join()]",
    );
    assert_eq!(received[0], ASSETS, "{received}");
    assert_eq!(received[2], "h2", "{received}");
    usize::try_from(received[1].as_u64().expect("a count")).expect("few")
}

/// Delay of one request at the origin while the next one is in time.
///
/// Each request is recorded by its own thread, on a machine that other tests keep busy. `burst` is
/// twice this delay.
const LATE: Duration = Duration::from_millis(400);

/// Fails unless at most one request arrived per interval, all the time.
fn check_paced(moments: &[Instant]) {
    assert_eq!(moments.len(), ASSETS + 1);
    let whole = moments[ASSETS] - moments[0];
    let slack = LATE + longest_pause(moments[0], moments[ASSETS]);
    for (first, from) in moments.iter().enumerate() {
        for (count, to) in (0..).zip(&moments[first..]) {
            let (span, due) = (*to - *from, INTERVAL * count);
            let is_due = span + slack >= due;
            assert!(is_due, "{count} more than one came in {span:?}");
        }
    }
    // The browser does not send all of them at once, and no burst makes up for lost time.
    let due = INTERVAL * u32::try_from(ASSETS).expect("few");
    let is_quick = whole < 2 * due + Duration::from_secs(3);
    assert!(is_quick, "the page took {whole:?}, not {due:?}");
}

fn requests(gateway: &Gateway, status: &str) -> i64 {
    gateway.zone_requests("per_client", status)
}

#[test]
fn a_page_loads_whole_over_http_2_and_its_requests_are_paced() {
    let origin = page();
    let gateway = gateway("", &file(&origin, "", "burst = 20"));
    assert_eq!(load(gateway.address()), ASSETS);
    check_paced(&origin.moments(""));
    assert_eq!(requests(&gateway, "rejected"), 0);
}

#[test]
fn with_nodelay_or_without_hold_streams_what_is_above_burst_is_rejected() {
    for (server, limit) in [
        ("", "burst = 20, nodelay = true"),
        ("hold_streams = false", "burst = 20"),
    ] {
        let origin = page();
        let gateway = gateway(server, &file(&origin, "", limit));
        let images = load(gateway.address());
        // The level leaks while the browser sends requests.
        assert!((20..ASSETS).contains(&images), "{server}: {images}");
        let rejected = requests(&gateway, "rejected");
        assert!(rejected > 50, "{server}: {rejected}");
    }
}

#[test]
fn with_delay_some_come_at_once_and_the_rest_is_paced() {
    let origin = page();
    let gateway = gateway("", &file(&origin, "", "burst = 20, delay = 19"));
    assert_eq!(load(gateway.address()), ASSETS);
    let moments = origin.moments("");
    let slack = MARGIN + longest_pause(moments[0], moments[ASSETS]);
    // The page and 19 images pass at once. Then the level has leaked for as long as the page took.
    for (nth, at) in (0..).zip(&moments[20..]) {
        let (since, due) = (*at - moments[0], INTERVAL * nth);
        let is_due = since + slack >= due;
        assert!(
            is_due,
            "{nth} above delay came after {since:?}, not {due:?}"
        );
    }
    let [passed, delayed] = ["passed", "delayed"].map(|status| requests(&gateway, status));
    assert!(passed >= 20 && delayed > 0, "{passed}, {delayed}");
    assert_eq!(requests(&gateway, "rejected"), 0);
}

#[test]
fn without_hold_streams_few_streams_let_the_page_load_at_the_pace_of_nginx() {
    let origins = [page(), page()];
    let server = "hold_streams = false\nmax_concurrent_streams = 16";
    let gateway = gateway(server, &file(&origins[0], "", "burst = 20"));
    let folder = gateway.site.folder().display();
    let address = free_address();
    let http = format!(
        "limit_req_zone $binary_remote_addr zone=per_client:1m rate=25r/s;
         http2_max_concurrent_streams 16;
         server {{
             listen {address} ssl http2;
             ssl_certificate {folder}/a.pem;
             ssl_certificate_key {folder}/a.key;
             location / {{ limit_req zone=per_client burst=20; proxy_pass http://origin; }}
         }}"
    );
    let _nginx = Nginx::start(&origins[1], &http, &[]);
    for (origin, to) in origins.iter().zip([gateway.address(), address]) {
        assert_eq!(load(to), ASSETS);
        check_paced(&origin.moments(""));
    }
}

#[test]
fn the_page_passes_a_gate_whose_queue_is_shorter_than_the_page() {
    let origin = page();
    // Its queue for one key is 100 by default.
    let gate = "rate = \"30r/s\"\nshare = \"per_client\"";
    let text = file(&origin, gate, "burst = 200, nodelay = true");
    let gateway = gateway("", &text);
    assert_eq!(load(gateway.address()), ASSETS);
    let moments = origin.moments("");
    let least = Duration::from_millis(33) * 140;
    let took = moments[ASSETS] - moments[0];
    assert!(took + MARGIN >= least, "{moments:?}");
}
