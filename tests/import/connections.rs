//! `limit_conn` becomes limits with `in_flight`, or `max_in_flight` of an origin.

use super::corpus;

const CONNECTIONS: &str = r#"[server]
listen = ["0.0.0.0:8081"]
max_body_size = "1MB"

[origins.127-0-0-1-9000]
servers = ["http://127.0.0.1:9000"]

[origins.127-0-0-1-9000-2]
servers = ["http://127.0.0.1:9000"]
max_in_flight = 50

[zones.perip]
key = "$remote_addr"
rate = "10r/s"
max_keys = 8000
ipv6_prefix = 128

[zones.addr]
key = "$remote_addr"
rate = "none"
max_keys = 16000
ipv6_prefix = 128

[zones.key]
key = "$http_x_api_key"
rate = "none"
max_keys = 160000
ipv6_prefix = 128

[zones.mapped]
key = "$remote_addr"
rate = "none"
max_keys = 16000
ipv6_prefix = 128
exempt = ["10.0.0.0/8"]

[[routes]]
path = "/"
origin = "127-0-0-1-9000"
limits = [{ zone = "addr", burst = 0, in_flight = 10 }]
reject_status = 429

[[routes]]
path = "/both"
origin = "127-0-0-1-9000"
limits = [{ zone = "perip", burst = 5 }, { zone = "addr", burst = 0, in_flight = 10 }]
reject_status = 503

[[routes]]
path = "/agreed"
origin = "127-0-0-1-9000"
limits = [{ zone = "perip", burst = 5 }, { zone = "addr", burst = 0, in_flight = 10 }]
reject_status = 429

[[routes]]
path = "/several"
origin = "127-0-0-1-9000-2"
limits = [{ zone = "addr", burst = 0, in_flight = 2 }, { zone = "key", burst = 0, in_flight = 4 }, { zone = "mapped", burst = 0, in_flight = 3 }]
reject_status = 429

[[routes]]
path = "/dry"
origin = "127-0-0-1-9000"
limits = [{ zone = "addr", burst = 0, in_flight = 10 }]
reject_status = 429
dry_run = true

[[routes]]
path = "/dry/req"
origin = "127-0-0-1-9000"
limits = [{ zone = "addr", burst = 0, in_flight = 10 }]
reject_status = 429

[[routes]]
path = "/dry/conn"
origin = "127-0-0-1-9000"
limits = [{ zone = "perip", burst = 0 }]
reject_status = 503

[[routes]]
path = "/dry/both"
origin = "127-0-0-1-9000"
limits = [{ zone = "perip", burst = 0 }, { zone = "addr", burst = 0, in_flight = 10 }]
reject_status = 503
dry_run = true

[[routes]]
path = "/dry/all"
origin = "127-0-0-1-9000"

[[routes]]
path = "/wrong"
origin = "127-0-0-1-9000"
limits = [{ zone = "addr", burst = 0, in_flight = 1 }]
reject_status = 429
"#;

const NOTES: [&str; 12] = [
    "9: zone session is left out, and so are its limits: its key is \"$ssl_session_id\"; ",
    "38: limit_conn has a zone and a number; it is left out",
    "39: zone session is not translated, so this limit is left out",
    "40: limit_conn: \"none\" is not a number above 0; it is left out",
    "43: there is no limit_conn_zone nowhere; it is left out",
    "10: zone addr is defined a second time; this one is left out",
    "18: limit_conn has another status or dry_run here than limit_req, and a route has one of each for all limits; those of limit_req count",
    "23: limit_conn perserver became max_in_flight: requests above it wait up to queue_timeout and then get 503, where nginx rejects them at once",
    "28: limit_req has another status or dry_run here than limit_conn, and a route has one of each for all limits; those of limit_req, which reject nothing, are left out",
    "29: limit_conn has another status or dry_run here than limit_req, and a route has one of each for all limits; those of limit_conn, which reject nothing, are left out",
    "36: limit_conn perserver: limit_conn_dry_run is on, and max_in_flight has no dry run; it is left out",
    "42: zone addr limits here already; this limit is left out",
];

#[test]
fn limit_conn_of_a_key_bounds_what_runs() {
    let (code, settings, notes) = corpus("connections.conf");
    let is_setting = |line: &&str| !line.starts_with('#');
    let lines = settings.lines().filter(is_setting);
    let lines = lines.skip_while(|line| !line.starts_with('['));
    let lines: Vec<&str> = lines.collect();
    assert_eq!(code, Some(0));
    assert_eq!(lines, CONNECTIONS.lines().collect::<Vec<_>>(), "{settings}");
    assert_eq!(notes.len(), NOTES.len() + 1, "{notes:#?}");
    for (note, expected) in notes.iter().zip(NOTES) {
        let expected = format!("connections.conf:{expected}");
        assert!(note.starts_with(&expected), "{note}\n{expected}");
    }
    // A note also stands where its route does.
    let route = "dry run; it is left out\n[[routes]]\npath = \"/dry/all\"\n";
    assert!(settings.contains(route), "{settings}");
}
