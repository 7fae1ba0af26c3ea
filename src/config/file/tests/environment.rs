//! Tests of variables of the environment in strings.

use std::env::VarError;

use super::*;
use crate::{FieldEdits, Route, changes, show};

/// Lookup of the variables that the tests use.
fn variable(name: &str) -> Result<String, VarError> {
    let value = match name {
        "REDIS_URL" => "redis://:hush-hush@cache:6379/1",
        "HOST" => "10.9.8.7",
        "PLAN_KEY" => "k-0123456789",
        "ROOM_SECRET" => "room-0123456789-secret",
        "NOT_A_RATE" => "sesame-open",
        "EMPTY" => "",
        "DOLLARS" => "p$uri $x",
        "LATIN" => return Err(VarError::NotUnicode("caf\u{e9}".into())),
        _ => return Err(VarError::NotPresent),
    };
    Ok(value.to_owned())
}

/// Parses a file with the variables of [`variable`].
fn parse_expanded(text: &str) -> Result<Settings, Problems> {
    let shared = Shared::default();
    parse_in(text, Path::new("gateway.toml"), false, &variable, &shared)
}

/// Returns the settings of a valid file with variables.
fn expanded(text: &str) -> Settings {
    parse_expanded(text).unwrap_or_else(|problems| panic!("{problems}\n{text}"))
}

/// Returns the problems of a file with variables; empty if it is valid.
fn message(text: &str) -> String {
    parse_expanded(text).map_or_else(|found| found.to_string(), |_| String::new())
}

pub(super) const WITH_SECRETS: &str = r#"redis.url = "${REDIS_URL}"
[origins.app]
servers = ["http://127.0.0.1:9000", "http://${HOST}:9000"]

[zones.per_client]
key  = "${remote_addr}"
rate = "10r/s"
plans.gold = { keys = ["${PLAN_KEY}", "b"] }

[[routes]]
path   = "/"
origin = "app"
limits = [{ zone = "per_client", burst = 20 }]

[[routes]]
path = "/literal"
origin = "app"
reject_body = "$${HOST} $$${HOST} $HOST ${EMPTY}."
request_headers = { authorization = "Bearer ${HOST}", cookie = false }
"#;

/// One of the tables of a route that edit header fields.
type EditsOf = fn(&Route) -> &FieldEdits;

#[test]
fn a_dollar_in_a_variable_begins_no_variable_of_the_request_in_any_field_of_a_route() {
    let edits: [(&str, EditsOf); 3] = [
        ("request_headers", |route| &route.request_fields),
        ("response_headers", |route| &route.response_fields),
        ("answer_headers", |route| &route.answer_fields),
    ];
    for (field, edits_of) in edits {
        let value = format!("{field} = {{ x-a = \"$host ${{DOLLARS}} $${{HOST}}\" }}");
        let text = SMALLEST.replace("origin = \"app\"", &format!("origin = \"app\"\n{value}"));
        let settings = expanded(&text);
        let (_, value) = edits_of(&settings.routes[0]).set().next().unwrap();
        assert_eq!(value.to_string(), "$host p$$uri $$x $${HOST}", "{field}");
    }
}

#[test]
fn strings_have_the_values_and_what_is_shown_has_the_names() {
    let settings = expanded(WITH_SECRETS);
    let server = settings.origins[0].servers[1].to_string();
    assert_eq!(server, "http://10.9.8.7:9000");
    assert!(settings.zones[0].plans.index_of(b"k-0123456789").is_some());
    assert_eq!(settings.zones[0].key.to_string(), "$remote_addr");
    assert_eq!(settings.routes[1].reject_body, "${HOST} $${HOST} $HOST .");
    let (name, value) = settings.routes[1].request_fields.set().next().unwrap();
    assert_eq!(name, "authorization");
    assert_eq!(value.as_text(), Some("Bearer 10.9.8.7"));
    assert_eq!(settings.redis.url.to_string(), "${REDIS_URL}");
    let url: crate::redis::Url = "redis://:hush-hush@cache:6379/1".parse().unwrap();
    assert_eq!(settings.redis.url, url.shown_as("${REDIS_URL}".to_owned()));

    for shown in [show(&settings), show(&settings.without_secrets())] {
        for part in [
            "\nurl = \"${REDIS_URL}\"\n",
            "\nservers = [\"http://127.0.0.1:9000\", \"http://${HOST}:9000\"]\n",
            "\nkeys = [\"${PLAN_KEY}\", \"b\"]\n",
            "\nkey = \"$remote_addr\"\n",
            "\nrequest_headers = { \"authorization\" = \"Bearer ${HOST}\", \"cookie\" = false }\n",
            "\nreject_body = \"$${HOST} $$${HOST} $HOST ${EMPTY}.\"\n",
        ] {
            assert!(shown.contains(part), "no{part}in\n{shown}");
        }
        for secret in ["hush-hush", "10.9.8.7", "k-0123456789"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        assert_eq!(show(&expanded(&shown)), shown);
    }
    assert!(!format!("{:?}", settings.redis).contains("hush-hush"));
}

#[test]
fn a_key_beside_a_variable_is_masked_too() {
    let masked = WITH_SECRETS.replace("plans.gold", "mask_keys = true\nplans.gold");
    let settings = expanded(&masked.replace("\"b\"", "\"alice\""));
    assert!(show(&settings).contains("\nkeys = [\"${PLAN_KEY}\", \"alice\"]\n"));
    let shown = show(&settings.without_secrets());
    assert!(shown.contains("\nkeys = [\"key-"), "{shown}");
    assert!(!shown.contains("alice"), "{shown}");
}

#[test]
#[rustfmt::skip]
fn the_secret_of_a_room_is_shown_nowhere() {
    const ROOM: &str = "[origins.app.room]\nsessions = 1\nbind = \"${remote_addr}\"\n";
    let with_room = |secret: &str| {
        let room = format!("{ROOM}secret = {secret}\n\n[zones.per_client]");
        WITH_SECRETS.replace("[zones.per_client]", &room)
    };
    for (secret, shown) in [
        ("\"${ROOM_SECRET}\"", "\"${ROOM_SECRET}\""),
        ("[\"${ROOM_SECRET}\", \"plain-0123456789\"]", "[\"${ROOM_SECRET}\", \"***\"]"),
        ("\"plain-${ROOM_SECRET}\"", "\"***\""),
        ("\"plain-0123456789-$${A}\"", "\"***\""),
    ] {
        let settings = expanded(&with_room(secret));
        let whole = show(&settings);
        assert_eq!(show(&expanded(&whole)), whole);
        let text = show(&settings.without_room_secrets());
        assert!(text.contains(&format!("\nsecret = {shown}\n")), "{text}");
        assert!(text.contains("\nbind = \"$remote_addr\"\n"), "{text}");
        let others = changes(&settings, &expanded(WITH_SECRETS), &settings);
        for text in [text, format!("{settings:?}"), others.join(" ")] {
            assert!(!text.contains("plain-") && !text.contains("-secret"), "{text}");
        }
    }
    let found = message(&with_room("[\"${EMPTY}\", \"plain\", 9]"));
    assert!(!found.contains("plain") && found.contains("EMPTY is set and empty"), "{found}");
}

#[test]
fn no_change_shows_a_value() {
    let settings = expanded(WITH_SECRETS);
    let other = WITH_SECRETS
        .replace("\"${REDIS_URL}\"", "\"redis://cache:6379/1\"")
        .replace("http://${HOST}:9000", "http://10.0.0.1:9000")
        .replace("${PLAN_KEY}", "a");
    let other = expanded(&other);
    let expected = [
        "origins.app.servers - http://10.0.0.1:9000",
        "origins.app.servers + http://${HOST}:9000",
        "redis.url redis://cache:6379/1 -> ${REDIS_URL}",
        "zones.per_client.plans.gold.keys - a",
        "zones.per_client.plans.gold.keys + ${PLAN_KEY}",
    ];
    assert_eq!(changes(&other, &settings, &other), expected);
}

#[test]
#[rustfmt::skip]
fn an_unset_variable_is_reported_with_location_and_name() {
    for (value, expected) in [
        ("${NOWHERE}",
         "1:13: url: NOWHERE is not set in the environment; set it, or write $${ for the characters themselves"),
        ("${LATIN}", "1:13: url: LATIN is not UTF-8 in the environment; set it to text in that encoding"),
        ("${A-B}",
         "1:13: url: ${ begins a variable of the environment, such as \"${REDIS_URL}\"; write $${ for the characters themselves"),
        ("${REDIS_URL",
         "1:13: url: ${ begins a variable of the environment, such as \"${REDIS_URL}\"; write $${ for the characters themselves"),
    ] {
        let text = format!("redis.url = \"{value}\"\n{SMALLEST}");
        assert_eq!(message(&text), format!("gateway.toml:{expected}"));
    }
    // A value in a list is reported under the name of the list.
    let found = message(&SMALLEST.replace("http://127.0.0.1:9000", "${NOWHERE}"));
    assert!(found.starts_with("gateway.toml:2:12: servers: NOWHERE is not set"), "{found}");
}

#[test]
#[rustfmt::skip]
fn no_problem_shows_a_value() {
    let secret = "sesame-open";
    for (from, to, expected) in [
        ("\"10r/s\"", "\"${NOT_A_RATE}\"",
         "6:8: rate: expected \"none\", or a rate such as \"10r/s\"; found \"${NOT_A_RATE}\""),
        ("\"app\"", "\"${NOT_A_RATE}\"",
         "10:10: origin: the value does not fit here; found \"${NOT_A_RATE}\""),
        ("\"app\"", "\"app\"\nmethods = [\"${NOT_A_RATE}\"]",
         "11:12: methods: expected a method such as \"POST\"; found \"${NOT_A_RATE}\""),
        // A message may say that a variable is empty: this reveals nothing.
        ("\"10r/s\"", "\"${EMPTY}\"",
         "6:8: rate: expected \"none\", or a rate such as \"10r/s\"; found \"${EMPTY}\"; EMPTY is set and empty in the environment"),
        ("\"http://127.0.0.1:9000\"", "\"http://${EMPTY}:9000\"",
         "2:12: servers: expected a server such as \"http://127.0.0.1:9000\"; found \"http://${EMPTY}:9000\"; EMPTY is set and empty in the environment"),
        // The reason of an unreadable file shows no value, either.
        ("\"10r/s\"", "\"1r/s\"\nplans.a.file = \"/none/${NOT_A_RATE}\"",
         "7:16: file: \"/none/${NOT_A_RATE}\" cannot be read: No such file or directory (os error 2)"),
        ("\"app\"", "\"app\"\nrequest_headers = { x-a = \" ${NOT_A_RATE}\" }",
         "11:27: x-a: a value has no line breaks or other control characters, and no blanks around it"),
        // A message about another value would show the key.
        ("\"10r/s\"", "\"1r/s\"\nplans.a = { keys = [\"${NOT_A_RATE}\"] }\nplans.b = { keys = [\"sesame-open\"] }",
         "8:20: keys: the key \"${NOT_A_RATE}\" is in the plans a and b; remove it from one"),
    ] {
        let text = SMALLEST.replacen(from, to, 1);
        let found = message(&text);
        assert_eq!(found, format!("gateway.toml:{expected}"));
        assert!(!found.contains(secret));
    }
}

#[test]
fn characters_that_only_look_like_a_variable_are_none() {
    let tls = "[server.tls]\ncert = [\"a.pem\", \"$${b.pem\"]\nkey = [\"a.key\", \"b.key\"]\n";
    let settings = expanded(&format!("{tls}{SMALLEST}"));
    assert!(settings.from_environment.is_empty(), "{settings:?}");
    let folder = std::env::current_dir().unwrap();
    let folder = folder.display();
    let cert = format!("cert = [\"{folder}/a.pem\", \"{folder}/$${{b.pem\"]");
    let shown = show(&settings);
    assert!(shown.contains(&cert), "{shown}");
}
