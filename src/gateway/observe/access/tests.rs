//! Tests of the lines of the access log.

use super::*;
use crate::observe::escape::escape;

/// Creates an entry with almost all fields.
fn entry() -> Entry<'static> {
    Entry {
        time: Moment::from_nanos(1_795_232_027_349_286_123),
        client: Some("192.0.2.1".parse().unwrap()),
        line: Some(Line {
            method: "GET",
            target: b"/a?b=\"c\"".into(),
            protocol: "HTTP/1.1",
        }),
        request_id: Some("a\"b"),
        status: 200,
        bytes: 66,
        route: Some("/".to_owned()),
        origin: Some("app"),
        server: Some("http://127.0.0.1:9000".to_owned()),
        shared: None,
        is_refused: false,
        limited: Some(Limited {
            zone: "per_client",
            key: b"a\n\xff\\",
            names: KeyNames::at_gate(None),
            status: LimitStatus::Delayed,
            excess: Some(Excess::default()),
            plan: Some("gold"),
            is_flood: false,
        }),
        planned: None,
        queue: Some(Duration::from_micros(950_200)),
        origin_queue: Some(Duration::from_millis(3)),
        origin_rejected: Some("queue"),
        class: Some("batch"),
        cost: Some(5),
        origin_took: Some(Duration::from_millis(12)),
        duration: Duration::from_millis(963),
        referer: None,
        user_agent: Some("curl\r\n\"8\"".into()),
    }
}

#[test]
fn text_is_nginx_combined_with_the_limit_after_it() {
    assert_eq!(
        text(&entry()),
        "192.0.2.1 - - [21/Nov/2026:03:33:47 +0000] \"GET /a?b=\\x22c\\x22 HTTP/1.1\" 200 66 \"-\" \
         \"curl\\x0D\\x0A\\x228\\x22\" zone=\"per_client\" key=\"a\\x0A\\xFF\\\\\" limit_status=delayed excess=0.000 \
         queue=0.950200 origin_queue=0.003000 origin=0.012000 duration=0.963000 origin_rejected=queue \
         plan=gold class=batch cost=5 request_id=a\\x22b"
    );
}

#[test]
fn without_a_limit_there_is_the_plan_at_the_gate() {
    let at_gate = |limited| Entry {
        limited,
        planned: Some(GatePlan {
            zone: "z",
            key: b"alice",
            names: KeyNames::at_gate(None),
            plan: "silver",
        }),
        ..entry()
    };
    let only_gate = at_gate(None);
    assert!(text(&only_gate).contains("\" key=\"alice\" queue="));
    assert!(text(&only_gate).contains(" plan=silver plan_zone=z "));
    let line: serde_json::Value = serde_json::from_str(&json(&only_gate)).unwrap();
    assert_eq!(line["key"], "alice");
    assert_eq!(line["plan"], "silver");
    assert_eq!(line["plan_zone"], "z");
    assert!(line.get("zone").is_none());
    // The limit's plan and key come before those of the gate.
    let both = json(&at_gate(entry().limited));
    assert!(both.contains("\"plan\":\"gold\""), "{both}");
    for of_gate in ["alice", "plan_zone"] {
        assert!(!both.contains(of_gate), "{both}");
    }
}

#[test]
fn a_request_in_the_bucket_of_unknown_keys_says_so() {
    let mut entry = entry();
    assert!(!json(&entry).contains("flooded"));
    if let Some(limited) = &mut entry.limited {
        limited.is_flood = true;
    }
    assert!(json(&entry).contains("\"flooded\":true,\"queue_seconds\""));
    assert!(text(&entry).contains(" excess=0.000 flooded queue="));
}

#[test]
fn line_breaks_and_direction_marks_are_escaped() {
    let cases = [
        ("a\u{2028}b", "a\\xE2\\x80\\xA8b"),
        ("\u{202e}exe.txt", "\\xE2\\x80\\xAEexe.txt"),
        ("\u{feff}", "\\xEF\\xBB\\xBF"),
        ("\u{85}", "\\xC2\\x85"),
        ("e\u{301}é😀", "e\u{301}é😀"),
    ];
    for (text, escaped) in cases {
        assert_eq!(escape(text.as_bytes()), escaped);
    }
}

#[test]
fn json_has_only_fields_with_a_value() {
    let line: serde_json::Value = serde_json::from_str(&json(&entry())).unwrap();
    assert_eq!(line["time"], "2026-11-21T03:33:47.349286Z");
    assert_eq!(line["key"], "a\\x0A\\xFF\\\\");
    assert_eq!(line["queue_seconds"], 0.9502);
    assert_eq!(line["user_agent"], "curl\r\n\"8\"");
    assert!(line.get("referer").is_none());
    let bare = json(&Entry {
        line: None,
        limited: None,
        origin: None,
        queue: None,
        origin_queue: None,
        origin_rejected: None,
        ..entry()
    });
    let absent_fields = "method|target|protocol|zone|key|limit_status|excess|origin\"|queue_seconds|\
        origin_queue_seconds|origin_rejected";
    for absent in absent_fields.split('|') {
        assert!(!bare.contains(&format!("\"{absent}")), "{bare}");
    }
}
