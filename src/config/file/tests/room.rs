//! Tests of `[origins.NAME.room]`, and of `room` of a route.
//!
//! `SMALLEST` in the parent module is a valid file. Each case replaces a text in it.

use std::fs;

use super::*;
use crate::{PagePart, PageValue, changes, show};

/// Text in the smallest file that cases replace.
const SERVERS: &str = "[\"http://127.0.0.1:9000\"]";
/// Text in the smallest file that cases replace.
const ROUTE: &str = "origin = \"app\"";

/// An origin with a room that has a secret and this line.
macro_rules! room {
    ($line:literal) => {
        concat!(
            "[\"http://a\"]\n[origins.app.room]\nsecret = \"0123456789abcdef\"\n",
            $line
        )
    };
}

/// Rows of replaced text, replacement and expected problems, as [`Case`] describes them.
#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    (SERVERS, "[\"http://a\"]\n[origins.app.room]\nsize = 1",
     r#"3:1: room: it has no secret to sign tickets with; add secret = "${ROOM_SECRET}", or state = "drip.state" in [server], where drip keeps one that it makes
3:1: room: this room lets everybody in at once; give it sessions such as sessions = 500, admit such as admit = "10r/s", or opens
4:1: "size" is not a field of [origins.app.room], whose fields are sessions, admit, idle, claim, page, secret, store, opens, same_site, bind, draw"#),
    (SERVERS, "[\"http://a\"]\n[origins.app.room]\nsessions = 1",
     r#"3:1: room: it has no secret to sign tickets with; add secret = "${ROOM_SECRET}", or state = "drip.state" in [server], where drip keeps one that it makes"#),
    // Each field.
    (SERVERS, room!("sessions = 1\nsame_site = \"strict\""), ""),
    (SERVERS, room!("admit = \"1001r/s\""),
     r#"5:9: admit: a room lets in at most 1000 visitors a second; lower it to 1000r/s, or write "none" to let them in as fast as sessions come free; found "1001r/s""#),
    (SERVERS, "[\"http://a\"]\n[origins.app.room]\nsessions = 1\nsecret = \"fifteen letters\"",
     "5:10: secret: a secret has at least 16 bytes, so that nobody can guess it; make one with openssl rand -base64 32"),
    (SERVERS, "[\"http://a\"]\n[origins.app.room]\nsessions = 1\nsecret = [\"0123456789abcdef\", \"short\", \"0123456789abcdef\"]",
     r"5:31: secret: a secret has at least 16 bytes, so that nobody can guess it; make one with openssl rand -base64 32
5:40: secret: the same secret is there twice; remove one"),
    (SERVERS, "[\"http://a\"]\n[origins.app.room]\nsessions = 1\nsecret = [\"\", \"\", \"\", \"\", \"\"]",
     "5:10: secret: a list has from 1 to 4 secrets; found 5"),
    (SERVERS, room!("opens = \"2026-12-01T10:00:00Z\""), ""),
    (SERVERS, room!("sessions = 1\nbind = \"remote_addr\""),
     r#"6:8: bind: without a variable all visitors have one key; name one such as "$remote_addr", or remove bind; found "remote_addr""#),
    (SERVERS, room!("sessions = 1\nbind = \"${remote_addr}:$cookie_a\""), ""),
    (SERVERS, room!("sessions = 1\ndraw = { zone = \"w\", burst = 3 }\n[zones.w]\nkey = \"$host\"\nrate = \"1r/s\"\nalgorithm = \"fixed_window\""),
     "6:30: burst: the zone counts by fixed_window, which allows the 1 requests of its rate in each period and no burst; remove burst"),
    (SERVERS, room!("sessions = 1\ndraw = { zone = \"w\" }\n[zones.w]\nkey = \"$host\"\nrate = \"none\""),
     "6:8: draw: zone w has no rate, so drawing would not be limited; name a zone that has one, or write draw = \"none\""),
    // `room` of a route.
    (ROUTE, "refuse = 403\nroom = false\n#",
     "11:8: room: a route with refuse answers all its requests itself; remove this field or refuse\n13:10: limits: a route with refuse answers all its requests itself; remove this field or refuse"),
    (ROUTE, "origin = \"app\"\nroom = false", ""),
];

#[test]
#[rustfmt::skip]
fn a_route_uses_the_room_of_its_origin_unless_disabled() {
    let with_room = format!(
        "{SERVERS}\nroom = {{ sessions = 1, secret = \"0123456789abcdef\", draw = {{ zone = \"per_client\" }} }}\n"
    );
    let (yes, no) = ("origin = \"app\"\nroom = true", "origin = \"app\"\nroom = false");
    for (servers, route, room, asks_room, has_warning) in [
        (&*with_room, ROUTE, true, true, false),
        (&*with_room, yes, true, true, false),
        (&*with_room, no, false, false, false),
        (SERVERS, ROUTE, true, false, false),
        (SERVERS, no, false, false, false),
        (SERVERS, yes, true, false, true),
    ] {
        let settings = settings_of(&SMALLEST.replace(SERVERS, servers).replace(ROUTE, route));
        let found = &settings.routes[0];
        assert_eq!((found.room, found.asks_room), (room, asks_room), "{servers} {route}");
        assert_eq!(!settings.warnings.is_empty(), has_warning, "{servers} {route}");
    }
}

#[test]
fn a_room_page_has_placeholders_and_is_watched() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("wait.html");
    fs::write(&page, "{{position}}{{status}}").unwrap();
    let room = "room = { sessions = 1, secret = \"0123456789abcdef\", page = \"wait.html\" }";
    let text = SMALLEST.replace(SERVERS, &format!("{SERVERS}\n{room}"));
    let read = || parse(&text, &folder.path().join("gateway.toml"), false);
    let old = read().unwrap();
    let room = old.origins[0].room.as_ref().unwrap();
    let expected = [PageValue::Position, PageValue::Status].map(PagePart::Value);
    assert_eq!(room.page.as_ref().unwrap().content.parts(), expected);
    let named: Vec<&Path> = old.named.iter().map(|file| &*file.path).collect();
    assert_eq!(named, [&page]);
    let shown = format!("\npage = \"{}\"\n", page.display());
    assert!(show(&old).contains(&shown));

    fs::write(&page, "later").unwrap();
    let found = changes(&old, &read().unwrap(), &old);
    assert_eq!(found, ["page file wait.html content changed"]);
    fs::write(&page, vec![b'a'; (256 << 10) + 1]).unwrap();
    let reported = read().unwrap_err().to_string();
    assert!(reported.contains("of at most 256KB"), "{reported}");
}

#[test]
#[rustfmt::skip]
fn no_change_shows_a_secret() {
    let with_room = |lines: &str| {
        settings_with(SERVERS, &format!("{SERVERS}\n[origins.app.room]\n{lines}"))
    };
    let first = with_room("sessions = 1\nsecret = \"first secret of it\"");
    let second = with_room("sessions = 1\nsecret = \"other secret of it\"");
    let both = with_room("sessions = 2\nsecret = [\"other secret of it\", \"first secret of it\"]");
    let none = settings_of(SMALLEST);
    let (secrets, sessions) =
        ("origins.app.room.secret *** -> [\"***\", \"***\"]", "origins.app.room.sessions 1 -> 2");
    for (old, new, expected) in [
        (&first, &second, &["origins.app.room.secret has another value"][..]),
        (&first, &first, &[]),
        (&first, &both, &[secrets, sessions]),
        (&none, &first, &["origins.app.room added"]),
        (&first, &none, &["origins.app.room removed"]),
    ] {
        assert_eq!(changes(old, new, old), expected);
    }
}
