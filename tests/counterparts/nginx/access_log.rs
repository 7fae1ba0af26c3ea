//! The access log of a running gateway, in both forms.

use serde_json::Value;

use crate::support::{Client, Gateway, Origin, eventually, fetch, now, whole_lines};
use crate::support::{start_drip, zone};

const LIMITS: &str = "limits = [{ zone = \"z\", burst = 1 }]";

fn start(origin: &Origin, key: &str, format: &str) -> Gateway {
    let log = format!("[log]\nformat = \"{format}\"\naccess = \"access.log\"\n");
    start_drip(origin, &(zone("z", key, "5r/s") + &log), &[("/", LIMITS)])
}

fn lines(gateway: &Gateway, count: usize) -> Vec<String> {
    let read = || whole_lines(gateway.site.folder().join("access.log"));
    eventually("all requests are logged", || {
        read().lines().count() >= count
    });
    read().lines().map(ToOwned::to_owned).collect()
}

#[test]
fn json_tells_what_the_limits_said() {
    let origin = Origin::start();
    let gateway = start(&origin, "$arg_a", "json");
    let began = now();
    let mut clients: Vec<Client> = (0..2)
        .map(|nth| {
            let mut client = Client::connect(gateway.address());
            client.get("/x?a=1");
            if nth == 0 {
                assert_eq!(client.answer().status, 200);
            }
            client
        })
        .collect();
    gateway.wait_for_depth(1);
    assert_eq!(fetch(gateway.address(), "/x?a=1").status, 429);
    assert_eq!(clients[1].answer().status, 200);
    let took = began.elapsed().as_secs_f64();
    fetch(gateway.address(), "/unlimited");
    let lines: Vec<Value> = lines(&gateway, 4)
        .iter()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let of = |status: &str| {
        let told = lines.iter().find(|line| line["limit_status"] == status);
        told.unwrap_or_else(|| panic!("no {status}: {lines:?}"))
    };
    for line in [of("passed"), of("delayed"), of("rejected")] {
        assert_eq!((&line["zone"], &line["key"]), (&"z".into(), &"1".into()));
        assert_eq!(line["client"], "127.0.0.1");
        assert_eq!(
            (&line["method"], &line["target"]),
            (&"GET".into(), &"/x?a=1".into())
        );
        assert_eq!(
            (&line["protocol"], &line["route"]),
            (&"HTTP/1.1".into(), &"/".into())
        );
        assert!(
            line["time"]
                .as_str()
                .is_some_and(|time| time.ends_with('Z'))
        );
    }
    assert_eq!(of("passed")["status"], 200);
    assert_eq!(of("passed")["origin"], "app");
    assert!(of("passed")["origin_seconds"].as_f64().is_some());
    let queued = of("delayed")["queue_seconds"].as_f64().expect("a time");
    // It waited until the next turn, less the time in which a busy machine sent it late.
    assert!(queued > 0.0 && queued <= took, "{queued} of {took}");
    assert_eq!(of("rejected")["status"], 429);
    assert!(of("rejected").get("server").is_none());
    let unlimited = lines
        .iter()
        .find(|line| line["target"] == "/unlimited")
        .expect("logged");
    assert!(unlimited.get("limit_status").is_none() && unlimited.get("zone").is_none());
}

#[test]
fn a_client_that_leaves_while_it_waits_is_a_499() {
    let origin = Origin::start();
    // So slow that it waits until it leaves, on a busy machine, too.
    let settings =
        zone("z", "$arg_a", "1r/m") + "[log]\nformat = \"json\"\naccess = \"access.log\"\n";
    let gateway = start_drip(&origin, &settings, &[("/", LIMITS)]);
    fetch(gateway.address(), "/?a=1");
    let waiting = Client::ask(gateway.address(), "/?a=1");
    gateway.wait_for_depth(1);
    drop(waiting);
    let left: Value = serde_json::from_str(&lines(&gateway, 2)[1]).expect("JSON");
    assert_eq!(left["status"], 499);
    assert!(left.get("origin").is_none(), "{left}");
    assert_eq!(left["limit_status"], "cancelled", "{left}");
    assert_eq!((&left["zone"], &left["key"]), (&"z".into(), &"1".into()));
    assert!(left["queue_seconds"].as_f64().is_some(), "{left}");
    let labels = [("route", "/"), ("code", "499")];
    assert_eq!(gateway.metrics().count("drip_requests_total", &labels), 1);
}

#[test]
fn text_is_nginx_combined_with_more_after_it() {
    let origin = Origin::start();
    let gateway = start(&origin, "$arg_a", "text");
    let mut client = Client::connect(gateway.address());
    client.send(
        b"GET /x?a=1 HTTP/1.1\r\nHost: a\r\nReferer: http://b/\r\nUser-Agent: test \"1\"\r\n\r\n",
    );
    assert_eq!(client.answer().status, 200);
    let line = lines(&gateway, 1).remove(0);
    let (begin, rest) = line.split_once(" [").expect("a time");
    assert_eq!(begin, "127.0.0.1 - -");
    let (_, rest) = rest.split_once("] ").expect("a time");
    let expected = "\"GET /x?a=1 HTTP/1.1\" 200 2 \"http://b/\" \"test \\x221\\x22\" \
                    zone=\"z\" key=\"1\" limit_status=passed excess=0.000 queue=";
    assert!(rest.starts_with(expected), "{rest}");
}

#[test]
fn a_key_of_any_bytes_harms_neither_log_nor_verdict() {
    let origin = Origin::start();
    for format in ["json", "text"] {
        let gateway = start(&origin, "$http_x_key", format);
        let mut client = Client::connect(gateway.address());
        let mut remaining = Vec::new();
        for key in [&b"a\"b\\c"[..], b"\xff\xfe", b"a\"b\\c"] {
            client.send(&[b"GET / HTTP/1.1\r\nHost: a\r\nX-Key: ", key, b"\r\n\r\n"].concat());
            remaining.push(client.answer().number("x-ratelimit-remaining"));
        }
        assert_eq!(remaining[..2], [1, 1], "two keys");
        let lines = lines(&gateway, 3);
        assert_eq!(lines.len(), 3, "{lines:?}");
        let shown = if format == "json" {
            [
                "\"key\":\"a\\\\x22b\\\\\\\\c\"",
                "\"key\":\"\\\\xFF\\\\xFE\"",
            ]
        } else {
            ["key=\"a\\x22b\\\\c\"", "key=\"\\xFF\\xFE\""]
        };
        assert!(lines[0].contains(shown[0]), "{}", lines[0]);
        assert!(lines[1].contains(shown[1]), "{}", lines[1]);
    }
}

#[test]
fn rejections_and_delays_are_log_events_of_which_a_flood_shows_few() {
    let origin = Origin::start();
    let zones = zone("z", "$arg_a", "5r/s") + "[log]\nlevel = \"debug\"\n";
    let gateway = start_drip(&origin, &zones, &[("/", LIMITS)]);
    let mut client = Client::connect(gateway.address());
    let waiting: Vec<Client> = (0..2)
        .map(|_| Client::ask(gateway.address(), "/?a=1"))
        .collect();
    gateway.wait_for_depth(1);
    for _ in 0..100 {
        client.get("/?a=1");
        client.answer();
    }
    let line = gateway.wait_for_line("limiting requests");
    assert!(
        line.contains(" INFO ") && line.contains("zone=\"z\" count=1 key=\"1\" reason=\"burst\""),
        "{line}"
    );
    let line = gateway.wait_for_line("delaying requests");
    assert!(line.contains(" DEBUG "), "{line}");
    let log = gateway.log();
    let shown = log.lines().filter(|line| line.contains("limiting")).count();
    assert!(shown < 20, "{shown} lines for a hundred requests");
    drop(waiting);
}
