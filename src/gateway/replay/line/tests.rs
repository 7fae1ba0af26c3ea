//! Tests of parsing CSV, the combined format and JSON, and of the detection of formats.

use super::*;

/// Returns the line of a request for `/a?b=1` by 192.0.2.7.
///
/// `took` and `at_origin` are in milliseconds.
pub(super) fn get_of_agent(agent: &str, nanos: u64, took: u64, at_origin: u64) -> Line<'_> {
    let recorded = Recorded {
        client: "192.0.2.7".parse().ok(),
        method: "GET".into(),
        target: "/a?b=1".into(),
        user_agent: agent.into(),
        took: Duration::from_millis(took),
        at_origin: Some(Duration::from_millis(at_origin)),
        ..Recorded::default()
    };
    Line::logged(Moment::from_nanos(nanos), recorded)
}

#[test]
fn csv_needs_a_time_and_a_key() {
    for (line, nanos, key, path) in [
        ("12.5,alice,/login", 12_500_000_000, "alice", "/login"),
        ("0.0000000019,a", 1, "a", "/"),
        ("1.,a", 1_000_000_000, "a", "/"),
    ] {
        let read = Form::Csv.read(line).unwrap();
        assert_eq!((read.time.as_nanos(), &*read.path), (nanos, path), "{line}");
        assert_eq!(read.key.as_deref(), Some(key.as_bytes()), "{line}");
    }
    assert_eq!(Form::Csv.read("1"), Err(csv::NOT_CSV));
    for time in ["", "x", "-1", "1e3", "99999999999"] {
        let (line, expected) = (format!("{time},a"), LineError::Seconds(time.to_owned()));
        assert_eq!(Form::Csv.read(&line), Err(expected), "{time}");
    }
    let headers = "time,key,path|\"time\",\"key\"|Zeit (s), Schlüssel|$msec,$remote_addr";
    for header in headers.split('|') {
        assert!(Form::Csv.is_header(header), "{header}");
    }
    for line in ["1,a", "\"1\",a", "time", "started: 1, 2", "Gecko) /5\" x,y"] {
        assert!(!Form::Csv.is_header(line), "{line}");
    }
    let long = format!("{},a", "é".repeat(1000));
    let long = Form::Csv.read(&long);
    assert!(long.unwrap_err().to_string().len() < 300);
}

#[test]
fn a_field_of_csv_may_stand_in_quotes() {
    // Line, key and path.
    let cases = [
        ("1,\"a,b\",/x", "a,b", "/x"),
        ("1, \"say \"\"hi\"\"\" , /x ", "say \"hi\"", "/x"),
        ("1,\" a \"", " a ", "/"),
        ("1,\"\",/x", "", "/x"),
        ("1,a,\"/x,\"\"y\"", "a", "/x,\"y"),
        ("1,a,/x,y", "a", "/x,y"),
        ("\"1\",a,/x", "a", "/x"),
        // A field that is not validly quoted is read as unquoted.
        ("1,\"a,/x", "\"a", "/x"),
        ("1,\"a\"b,/x", "\"a\"b", "/x"),
        ("1,a\"b\",/x", "a\"b\"", "/x"),
    ];
    for (line, key, path) in cases {
        let read = Form::Csv.read(line).unwrap();
        assert_eq!(read.key.as_deref(), Some(key.as_bytes()), "{line}");
        assert_eq!(read.path, path, "{line}");
    }
}

#[test]
fn a_number_behind_the_path_is_the_cost() {
    // Line, path and cost.
    let cases = [
        ("1,a,/x,5", "/x", Some(5)),
        ("1,a,\"/x,5\",64", "/x,5", Some(64)),
        ("1,a,/x,y,5", "/x,y", Some(5)),
        ("1,a,,5", "/", Some(5)),
        ("1,a,/x,", "/x,", None),
        ("1,a,\"/x\"", "/x", None),
        ("1,a", "/", None),
    ];
    for (line, path, cost) in cases {
        let read = Form::Csv.read(line).unwrap();
        assert_eq!(read.path, path, "{line}");
        assert_eq!(read.cost.map(Cost::get), cost, "{line}");
    }
    for cost in ["0", "256", "99999999999", "-1", "1.5"] {
        let line = format!("1,a,/x,{cost}");
        assert_eq!(Form::Csv.read(&line), Err(LineError::Cost(cost.to_owned())));
    }
    let json = "{\"time\":\"2026-11-21T03:33:47Z\",\"cost\":7}";
    assert_eq!(Form::detect(json).read(json).unwrap().cost, Cost::new(7));
}

#[test]
fn the_format_is_detected_by_the_first_line() {
    assert_eq!(Form::detect("{\"time\":\"x\"}"), Form::Json);
    assert_eq!(Form::detect(COMBINED), Form::Combined);
    assert_eq!(Form::detect("time,key"), Form::Csv);
    let of_syslog = "Nov 21 03:33:47 lb1 nginx: 192.0.2.7 - - [21/Nov/2026:03:33:47 +0000] \"GET /a HTTP/1.1\" 200 612 \"-\" \"curl/8\"";
    assert_eq!(Form::detect(of_syslog), Form::Combined);
    let agent_of_haproxy = "{\"time\":\"2026-11-21T03:33:47Z\",\"agent\":\"x [21/Nov/2026:03:33:47.359] a b 0/0/0/0/0 y\"}";
    assert_eq!(Form::detect(agent_of_haproxy), Form::Json);
}

const COMBINED: &str = "192.0.2.1 - bob [21/Nov/2026:04:33:47 +0100] \"GET /a/b?x=1 HTTP/1.1\" 200 66 \"-\" \"curl/8\" zone=\"z\"";

#[test]
fn the_combined_format_is_read_with_what_follows_it() {
    let line = Form::Combined.read(COMBINED).unwrap();
    assert_eq!(line.time.as_nanos(), 1_795_232_027_000_000_000);
    assert_eq!(line.path, "/a/b");
    let recorded = line.recorded.unwrap();
    assert_eq!(recorded.client, "192.0.2.1".parse().ok());
    assert_eq!((&*recorded.method, &*recorded.target), ("GET", "/a/b?x=1"));
    assert_eq!((&*recorded.referer, &*recorded.user_agent), ("", "curl/8"));
    // A zone without a key is not used.
    assert_eq!(recorded.keyed, None);
    let keyed = format!("{COMBINED} key=\"a\" limit_status=passed");
    let keyed = Form::Combined.read(&keyed).unwrap().recorded.unwrap().keyed;
    assert_eq!(keyed, Some(("z".into(), "a".into())));
    assert_eq!(Form::Combined.read("nonsense"), Err(combined::NOT_COMBINED));
    for year in ["Nix/2026", "Nov/1969", "Nov/9999"] {
        let wrong = COMBINED.replace("Nov/2026", year);
        let read = Form::Combined.read(&wrong);
        assert!(matches!(read, Err(LineError::Time(_))), "{year}");
    }
    // The name of a user may contain the brackets that are around the time.
    let user = COMBINED.replace("bob", "a [b] c[");
    assert_eq!(Form::Combined.read(&user).unwrap().time, line.time);
}

#[test]
fn apache_escapes_quotes_and_may_name_its_host_first() {
    let line = "www.example:443 192.0.2.7 - - [21/Nov/2026:03:33:47 +0000] \"GET /a?q=\\\"b\\\" HTTP/1.1\" 200 66 \"-\" \"an \\\"agent\\\" \\\\\" 17";
    assert_eq!(Form::detect(line), Form::Combined);
    let recorded = Form::Combined.read(line).unwrap().recorded.unwrap();
    assert_eq!(recorded.client, "192.0.2.7".parse().ok());
    assert_eq!(recorded.target, "/a?q=\\\"b\\\"");
    assert_eq!(recorded.user_agent, "an \\\"agent\\\" \\\\");
    let common = "192.0.2.7 - - [21/Nov/2026:03:33:47 +0000] \"GET / HTTP/1.1\" 200 66";
    let recorded = Form::Combined.read(common).unwrap().recorded.unwrap();
    assert_eq!(recorded.client, "192.0.2.7".parse().ok());
}

#[test]
fn a_host_in_the_target_is_no_path_and_a_mapped_address_is_of_ipv4() {
    // Logged target, target of the request, and its path.
    let cases = [
        ("http://example.com/a/b?x=1", "/a/b?x=1", "/a/b"),
        ("HTTPS://example.com?x=1", "?x=1", "/"),
        ("http://example.com", "/", "/"),
        ("http:/a", "http:/a", "http:/a"),
        ("/http://b", "/http://b", "/http://b"),
    ];
    for (logged, target, path) in cases {
        let combined = COMBINED.replace("192.0.2.1", "::ffff:192.0.2.1");
        let combined = combined.replace("/a/b?x=1", logged);
        let json = format!(
            "{{\"time\":\"2026-11-21T03:33:47Z\",\"client\":\"::ffff:192.0.2.1\",\"target\":\"{logged}\"}}"
        );
        for (form, line) in [(Form::Combined, combined), (Form::Json, json)] {
            let line = form.read(&line).unwrap();
            assert_eq!(line.path, path, "{logged}");
            let recorded = line.recorded.unwrap();
            assert_eq!(recorded.target, target);
            assert_eq!(recorded.client, "192.0.2.1".parse().ok());
        }
    }
}
