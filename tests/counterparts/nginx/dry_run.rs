//! Tests of limits in dry run: they decide, charge and report, but admit everything at once.

use std::time::Duration;

use serde_json::Value;

use crate::programs::nginx::Nginx;
use crate::support::{Origin, assert_contains, eventually, fetch, now, whole_lines};
use crate::support::{start_drip, zone};

/// The five cases of nginx's own test: request, response, and limit status in nginx's syntax.
const CASES: [(&str, u16, Option<&str>); 5] = [
    ("/delay", 200, Some("PASSED")),
    ("/delay", 200, Some("DELAYED_DRY_RUN")),
    ("/reject", 200, Some("REJECTED_DRY_RUN")),
    ("/reject/off", 503, Some("REJECTED")),
    ("/", 200, None),
];

/// Maximum duration of a request, far below the minute of its delay.
const AT_ONCE: Duration = Duration::from_secs(2);

#[test]
fn nginx_answers_the_five_cases_so() {
    let origin = Origin::start();
    let status_header = "add_header X-Status $limit_req_status always;";
    let dry = format!("limit_req_dry_run on; {status_header}");
    let nginx = Nginx::start(
        &origin,
        "limit_req_zone $remote_addr zone=one:1m rate=1r/m;",
        &[
            ("/delay", &format!("{dry} limit_req zone=one burst=2;")),
            ("/reject", &format!("{dry} limit_req zone=one;")),
            (
                "/reject/off",
                &format!("{status_header} limit_req zone=one;"),
            ),
            ("/", &dry),
        ],
    );
    for (target, status, limit_status) in CASES {
        let answer = fetch(nginx.address, target);
        assert_eq!(answer.status, status, "{target}");
        assert_eq!(answer.field("x-status"), limit_status, "{target}");
    }
    let log = nginx.error_log();
    assert_contains!(log, "delaying request, dry run");
    assert_contains!(log, "limiting requests, dry run");
}

#[test]
fn drip_answers_the_five_cases_the_same_and_counts_and_logs_them() {
    let origin = Origin::start();
    let zones =
        zone("one", "$remote_addr", "1r/m") + "[log]\nformat = \"json\"\naccess = \"access.log\"\n";
    let gateway = start_drip(
        &origin,
        &zones,
        &[
            (
                "/delay",
                "limits = [{ zone = \"one\", burst = 2 }]\ndry_run = true",
            ),
            ("/reject", "limits = [{ zone = \"one\" }]\ndry_run = true"),
            (
                "/reject/off",
                "limits = [{ zone = \"one\" }]\nreject_status = 503",
            ),
            ("/", "dry_run = true"),
        ],
    );
    let log = gateway.site.folder().join("access.log");
    let read = || whole_lines(&log);
    for (sent, (target, status, _)) in (1..).zip(CASES) {
        let began = now();
        assert_eq!(gateway.fetch(target).status, status, "{target}");
        assert!(began.elapsed() < AT_ONCE, "no request waits");
        // The response arrives before its log line, and the next line could overtake it.
        eventually("it is logged", || read().lines().count() == sent);
    }
    for (line, (target, status, limit_status)) in read().lines().zip(CASES) {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let expected = limit_status.map(str::to_ascii_lowercase);
        assert_eq!(line["target"], target, "{line}");
        assert_eq!(line["status"], status, "{line}");
        assert_eq!(line["limit_status"].as_str(), expected.as_deref(), "{line}");
        let queued = line["queue_seconds"].as_f64();
        assert_eq!(queued.is_some(), limit_status.is_some(), "{line}");
        assert!(queued.is_none_or(|queued| queued < 1.0), "{line}");
    }
    for status in ["passed", "delayed_dry_run", "rejected_dry_run", "rejected"] {
        assert_eq!(gateway.zone_requests("one", status), 1, "{status}");
    }
    for status in ["delayed", "cancelled", "rejected_elsewhere"] {
        assert_eq!(gateway.zone_requests("one", status), 0, "{status}");
    }
    assert_eq!(origin.arrivals().len(), 4);
}

#[test]
fn in_a_dry_run_passes_and_delays_are_charged_and_rejects_are_not() {
    let origin = Origin::start();
    let zones = zone("one", "$arg_key", "1r/h") + &zone("two", "$arg_key", "1r/h");
    let both = "limits = [{ zone = \"one\" }, { zone = \"two\", burst = 5 }]\ndry_run = true";
    let routes = [
        (
            "/dry",
            "limits = [{ zone = \"one\", burst = 2 }]\ndry_run = true",
        ),
        (
            "/wet",
            "limits = [{ zone = \"one\", burst = 3, nodelay = true }]",
        ),
        ("/both", both),
        (
            "/two",
            "limits = [{ zone = \"two\", burst = 5, nodelay = true }]",
        ),
    ];
    let gateway = start_drip(&origin, &zones, &routes);
    let remaining = |target| {
        let answer = gateway.fetch(target);
        (answer.status, answer.number("x-ratelimit-remaining"))
    };
    let dry = [0; 6].map(|_| remaining("/dry?key=a"));
    let none = (200, 0);
    assert_eq!(dry, [(200, 2), (200, 1), none, none, none, none]);
    assert_eq!(remaining("/wet?key=a"), none, "three were charged, not six");
    assert_eq!(remaining("/wet?key=a"), (429, 0));
    // A request that would be rejected in one zone is charged in none.
    gateway.check_each(4, "/both?key=b", 200);
    assert_eq!(remaining("/two?key=b"), (200, 4), "one of four was charged");
    assert_eq!(gateway.zone_requests("two", "rejected_elsewhere"), 3);
    assert_eq!(gateway.zone_requests("two", "passed"), 2);
}
