//! Tests of the differences between settings.

use std::fs;
use std::path::Path;

use super::*;
use crate::parse;

const FILE: &str = r#"
[server]
workers = 2
name = "one"

[origins.app]
servers = ["http://10.0.0.1:9000"]

[zones.z]
key = "$remote_addr"
rate = "10r/s"

[zones.other]
key = "$host"
rate = "1r/s"

[redis]
url = "redis://:first@cache:6379"

[[routes]]
path = "/"
origin = "app"
limits = [{ zone = "z", burst = 20, delay = 8 }, { zone = "other" }]

[[routes]]
path = "= /login"
host = "a.example"
methods = ["POST", "PUT"]
origin = "app"
"#;

/// Returns the settings of a valid file.
fn settings(text: &str) -> Settings {
    parse(text, Path::new("/etc/drip/gateway.toml"), false).expect("a file")
}

/// Returns the changes from [`FILE`] to [`FILE`] with `replacements`: pairs of old and new text.
fn changes_after(replacements: &[(&str, &str)]) -> Vec<String> {
    let mut text = FILE.to_owned();
    for (old, new) in replacements {
        assert!(text.contains(old), "no {old}");
        text = text.replacen(old, new, 1);
    }
    let old = settings(FILE);
    changes(&old, &settings(&text), &old)
}

/// Replacements in [`FILE`], and the expected texts.
type Row<'t> = (&'t [(&'t str, &'t str)], &'t [&'t str]);

#[test]
#[rustfmt::skip]
fn each_change_has_its_text() {
    let table: &[Row] = &[
        (&[("[zones.z]", "# a comment\n[zones.z]")], &[]),
        (&[("burst = 20", "burst = 40")], &["routes[/].limits[z].burst 20 -> 40"]),
        (&[("delay = 8", "nodelay = true")],
         &["routes[/].limits[z].delay 8 -> none", "routes[/].limits[z].nodelay none -> true"]),
        (&[(", { zone = \"other\" }", "")], &["routes[/].limits[other] removed"]),
        (&[("{ zone = \"z\", burst = 20, delay = 8 }, { zone = \"other\" }", "{ zone = \"other\" }, { zone = \"z\", burst = 20, delay = 8 }")],
         &["routes[/].limits in another order"]),
        (&[("9000\"]", "9000\", \"http://10.0.0.2\"]")], &["origins.app.servers + http://10.0.0.2:80"]),
        (&[("http://10.0.0.1:9000", "http://10.0.0.2:9000")],
         &["origins.app.servers - http://10.0.0.1:9000", "origins.app.servers + http://10.0.0.2:9000"]),
        (&[("\"http://10.0.0.1:9000\"", "{ url = \"http://10.0.0.1:9000\", weight = 3 }")],
         &["origins.app.servers[http://10.0.0.1:9000].weight 1 -> 3"]),
        (&[("9000\"]", "9000\", { url = \"http://b\", backup = true }]")],
         &["origins.app.servers[http://b:80] added"]),
        (&[("[redis]", "[zones.new]\nkey = \"$host\"\nrate = \"1r/s\"\n[redis]")], &["zones.new added"]),
        (&[("[origins.app]", "[origins.app]\nrate = \"5r/s\"\nshare = \"z\"")],
         &["origins.app.rate none -> 5r/s", "origins.app.share none -> z"]),
        (&[("[\"POST\", \"PUT\"]", "[\"POST\"]")],
         &["routes[POST,PUT a.example = /login] removed", "routes[POST a.example = /login] added"]),
        (&[("[[routes]]\npath = \"/\"", "[[routes]]\npath = \"/\"\nreject_body = \"a\\nb\"")],
         &["routes[/].reject_body Too many requests\\n -> a\\nb"]),
        (&[(":first@", ":second@")], &["redis.url has another password"]),
        (&[(":first@cache", ":second@store")], &["redis.url redis://:***@cache:6379 -> redis://:***@store:6379"]),
        (&[("workers = 2", "workers = 3"), ("\"one\"", "\"two\"")],
         &["server.name one -> two", "server.workers 2 -> 3 (needs a restart)"]),
    ];
    for (replacements, expected) in table {
        assert_eq!(changes_after(replacements), *expected, "{replacements:?}");
    }
}

#[test]
#[rustfmt::skip]
fn each_entry_of_listen_is_compared_by_its_address() {
    let listen = |entries: &str| format!("workers = 2\nlisten = [{entries}]");
    let old = listen("\"127.0.0.1:8080\", { address = \"unix:b\", mode = \"0660\" }");
    for (new, texts) in [
        ("{ address = \"unix:b\", mode = \"660\" }, { address = \"127.0.0.1:8080\", tls = false }",
         &["server.listen in another order (needs a restart)"][..]),
        ("{ address = \"127.0.0.1:8080\", redirect = \"https:1\" }, \"unix:a\"",
         &["server.listen[unix:/etc/drip/b] removed (needs a restart)", "server.listen[127.0.0.1:8080] 127.0.0.1:8080 -> { address = \"127.0.0.1:8080\", redirect = \"https:1\" } (needs a restart)", "server.listen + unix:/etc/drip/a (needs a restart)"]),
        ("\"127.0.0.1:8080\", { address = \"unix:b\", mode = \"0600\" }",
         &["server.listen[unix:/etc/drip/b].mode 0660 -> 0600 (needs a restart)"]),
    ] {
        let [old, new] = [old.as_str(), &listen(new)]
            .map(|listen| settings(&FILE.replace("workers = 2", listen)));
        assert_eq!(changes(&old, &new, &old), texts);
    }
}

#[test]
fn a_reverted_setting_needs_no_restart() {
    let started_with = settings(FILE);
    let changed = settings(&FILE.replace("workers = 2", "workers = 3"));
    let found = changes(&changed, &started_with, &started_with);
    assert_eq!(found, ["server.workers 3 -> 2"]);
}

#[test]
fn the_order_of_routes_is_a_change() {
    let mut new = settings(FILE);
    new.routes.reverse();
    let old = settings(FILE);
    assert_eq!(changes(&old, &new, &old), ["routes in another order"]);
}

#[test]
fn changed_keys_of_a_plan_file_are_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let list = folder.path().join("gold.txt");
    let file = folder.path().join("gateway.toml");
    let plan =
        "[zones.z.plans.gold]\nkeys = [\"192.0.2.1\"]\nfile = \"gold.txt\"\nrate = \"9r/s\"\n";
    let text = FILE.replace("[zones.other]", &format!("{plan}[zones.other]"));
    let read = |keys: &str, text: &str| {
        fs::write(&list, keys).expect("a file");
        parse(text, &file, false).expect("a file")
    };
    let old = read("192.0.2.2\n192.0.2.3\n", &text);
    let new = read("192.0.2.3\n192.0.2.4\n192.0.2.5\n", &text);
    assert_eq!(
        changes(&old, &new, &old),
        [
            "zones.z.plans.gold.file gold.txt: 2 keys more",
            "zones.z.plans.gold.file gold.txt: 1 key less"
        ]
    );
    let text = text.replace("\"192.0.2.1\"]", "\"192.0.2.7\"]");
    let new = read("192.0.2.2\n192.0.2.3\n", &text);
    assert_eq!(
        changes(&old, &new, &old),
        [
            "zones.z.plans.gold.keys - 192.0.2.1",
            "zones.z.plans.gold.keys + 192.0.2.7"
        ]
    );
}

#[test]
fn a_plan_that_lost_half_of_its_keys_is_named() {
    let with = |gold: &str, silver: &str| {
        let plans = format!(
            "[zones.z.plans.gold]\nkeys = [{gold}]\nrate = \"9r/s\"\n[zones.z.plans.silver]\nkeys = [{silver}]\nrate = \"8r/s\"\n"
        );
        settings(&FILE.replace("[zones.other]", &format!("{plans}[zones.other]")))
    };
    let four = "\"a\", \"b\", \"c\", \"d\"";
    let old = with(four, "\"e\"");
    for (gold, silver, lost) in [
        (four, "\"e\"", &[][..]),
        ("\"a\", \"b\", \"c\"", "\"e\", \"f\"", &[]),
        ("\"a\", \"b\"", "\"e\"", &[("gold", 2, 4)]),
        // A key with another plan is not lost.
        ("\"a\"", "\"b\", \"c\", \"d\", \"e\"", &[]),
        ("\"a\"", "\"f\"", &[("gold", 3, 4), ("silver", 1, 1)]),
    ] {
        let found = lost_keys(&old, &with(gold, silver));
        let found: Vec<_> = found
            .iter()
            .map(|it| (&*it.plan, it.lost, it.had))
            .collect();
        assert_eq!(found, lost, "{gold} {silver}");
    }
}

#[test]
fn long_values_are_cut() {
    let body = "b".repeat(500);
    let text = format!("[[routes]]\npath = \"/\"\nreject_body = \"{body}\"");
    let found = changes_after(&[("[[routes]]\npath = \"/\"", &text)]);
    assert!(found[0].len() < 200, "{found:?}");
}

#[test]
fn no_change_shows_a_key_of_a_zone_that_masks_or_masked_its_keys() {
    let with = |mask: &str, keys: &str| {
        let plan = format!("{mask}\nplans.gold = {{ keys = [{keys}] }}\n");
        settings(&FILE.replacen(
            "rate = \"10r/s\"\n",
            &format!("rate = \"10r/s\"\n{plan}"),
            1,
        ))
    };
    let (off, on) = ("mask_keys = false", "mask_keys = true");
    for (before, after, expected) in [(off, off, 1), (on, on, 1), (off, on, 2), (on, off, 2)] {
        let (old, new) = (with(before, "\"alice\""), with(after, "\"alice\", \"bob\""));
        let found = changes(&old, &new, &old);
        assert_eq!(found.len(), expected, "{found:?}");
        let text = found.join("\n");
        let is_shown = text.contains("bob") || text.contains("alice");
        assert_eq!(is_shown, before == after && before == off, "{text}");
    }
}
