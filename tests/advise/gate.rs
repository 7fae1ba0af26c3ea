//! Tests of the advice for the gate in front of the origin.

use super::logs::{Request, csv, json, shared, steady};
use super::{advise, pasted, run, toml, write};

/// Returns the lines for the origin's table.
fn gate(report: &str) -> &str {
    let (_, rest) = report.split_once("[origins.NAME]\n").expect("a gate");
    rest.split("\n\n").next().unwrap()
}

/// Returns a field of the origin's table.
fn field<'r>(report: &'r str, name: &str) -> Option<&'r str> {
    let mut lines = gate(report).lines();
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "))
}

#[test]
fn the_advised_rate_is_a_quarter_above_the_peak_and_permits_are_twice_those_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // 51 requests per second, of 20 ms each.
    write(folder, "log.json", json(&steady()));
    let report = advise(folder, &["log.json"]);
    let expected = "# In 99.9 % of the seconds at most 51 requests arrived. The rate is a quarter more.\n\
        rate = \"64r/s\"\n\
        # In 99.9 % of the seconds at most 1.0 were at the origin on average. This is twice that.\n\
        max_in_flight = 3\n\
        share = \"per_client\"";
    assert_eq!(gate(&report), expected);
}

#[test]
fn one_bad_second_in_an_hour_does_not_make_the_rate() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut requests: Vec<Request> = (0..36_000).map(|nth| (nth * 100, "a".to_owned())).collect();
    requests.extend((0..1000).map(|nth| (1_800_000 + nth, "b".to_owned())));
    requests.sort();
    write(folder, "log.csv", csv(&requests));
    let report = advise(folder, &["log.csv"]);
    assert_eq!(field(&report, "rate"), Some("\"13r/s\""), "{report}");
}

#[test]
fn nginx_logs_the_time_at_the_origin_and_requests_that_did_not_reach_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let line = |nth: u32, upstream: &str| {
        format!(
            "{{\"msec\":{}.{:03},\"remote_addr\":\"192.0.2.1\",\"request\":\"GET / HTTP/1.1\",\
             \"request_time\":5,\"upstream_response_time\":\"{upstream}\"}}\n",
            1_793_523_600 + nth / 10,
            nth % 10 * 100
        )
    };
    // Ten requests per second: the origin answers four in 0.5 s, and nginx rejects six.
    let lines = (0..600).map(|nth| line(nth, if nth % 10 < 4 { "0.500" } else { "-" }));
    write(folder, "log", lines.collect::<String>());
    let report = advise(folder, &["log"]);
    assert_eq!(field(&report, "rate"), Some("\"5r/s\""), "{report}");
    assert_eq!(field(&report, "max_in_flight"), Some("4"), "{report}");
}

#[test]
fn the_advised_gate_rejects_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "log.json", json(&shared()));
    let report = advise(folder, &["log.json"]);
    let file = pasted("127.0.0.1:9000", toml(&report));
    let gated = file.replacen("[[routes]]", &format!("{}\n\n[[routes]]", gate(&report)), 1);
    write(folder, "gateway.toml", gated);
    let replayed = run(folder, &["simulate", "log.json"]);
    let rows = String::from_utf8(replayed.stdout).unwrap();
    assert!(rows.lines().next().unwrap().ends_with("origin_rejected"));
    assert_eq!(rows.lines().count(), 6121);
    assert!(!rows.contains(",rejected,"));
}
