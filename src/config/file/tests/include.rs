//! Tests of included files.

use std::fs;

use super::*;
use crate::FileKind;

/// Returns the settings of `gateway.toml` beside other files, or its problems without the folder.
fn parse_beside(text: &str, files: &[(&str, &str)]) -> Result<Settings, String> {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("conf.d")).unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let main = folder.path().join("gateway.toml");
    fs::write(&main, text).unwrap();
    let shown = format!("{}/", folder.path().display());
    load(&main).map_err(|problems| problems.to_string().replace(&shown, ""))
}

/// Returns the problems of `gateway.toml` beside other files; empty if it is valid.
fn problems_beside(text: &str, files: &[(&str, &str)]) -> String {
    parse_beside(text, files).map_or_else(|found| found, |_| String::new())
}

/// Returns the paths of the routes, in the order of the settings.
fn route_paths(settings: &Settings) -> Vec<String> {
    let routes = settings.routes.iter();
    routes.map(|route| route.path.to_string()).collect()
}

const MAIN: &str = "include = [\"conf.d/*.toml\"]\n";
const ZONE: &str = "[zones.z]\nkey = \"$host\"\nrate = \"1r/s\"\n";
const SITE: &str = "[origins.site]\nservers = [\"unix:site.sock\"]\n[[routes]]\npath = \"/site\"\norigin = \"site\"\nlimits = [{ zone = \"z\" }]\n";

#[test]
fn tables_of_included_files_join_those_of_the_file() {
    let text = format!("{MAIN}{SMALLEST}");
    let plans = "[zones.y]\nkey = \"$host\"\nrate = \"1r/s\"\nplans.gold.file = \"gold.txt\"\n[[routes]]\npath = \"/y\"\norigin = \"site\"\nlimits = [{ zone = \"y\" }]\n";
    let files = [
        ("conf.d/b.toml", &format!("{SITE}{ZONE}")[..]),
        ("conf.d/a.toml", plans),
        ("conf.d/gold.txt", "alice\n"),
        ("conf.d/.hidden.toml", "broken"),
        ("conf.d/notes.md", "broken"),
    ];
    let settings = parse_beside(&text, &files).unwrap();
    assert_eq!(route_paths(&settings), ["/", "/y", "/site"]);
    let zones: Vec<&str> = settings.zones.iter().map(|zone| &*zone.name).collect();
    assert_eq!(zones, ["per_client", "y", "z"]);
    let [app, site] = &settings.origins[..] else {
        panic!("{:?}", settings.origins)
    };
    assert_eq!([&*app.name, &*site.name], ["app", "site"]);
    // File names are relative to the folder of the file that names them.
    assert!(settings.zones[1].plans.index_of(b"alice").is_some());
    let server = site.servers[0].to_string();
    assert!(server.ends_with("/conf.d/site.sock"), "{server}");
    let named = settings.named.iter().map(|file| {
        let name = file.path.file_name().unwrap().to_str().unwrap();
        (name, file.kind)
    });
    let expected = [
        ("*.toml", FileKind::Included),
        ("a.toml", FileKind::Included),
        ("b.toml", FileKind::Included),
        ("gold.txt", FileKind::PlanKeys),
    ];
    assert_eq!(named.collect::<Vec<_>>(), expected);
    assert!(settings.warnings.is_empty());
}

#[test]
fn files_are_included_in_the_order_of_the_list_and_each_once() {
    let route = |path: &str| format!("[[routes]]\npath = \"{path}\"\norigin = \"app\"\n");
    let text = format!("include = [\"b.toml\", \"*.toml\", \"none/*.toml\"]\n{SMALLEST}");
    let (a, b, c) = (route("/a"), route("/b"), route("/c"));
    let files = [("c.toml", &*c), ("a.toml", &*a), ("b.toml", &*b)];
    let settings = parse_beside(&text, &files).unwrap();
    assert_eq!(route_paths(&settings), ["/", "/b", "/a", "/c"]);
    let [warning] = &settings.warnings[..] else {
        panic!("{:?}", settings.warnings);
    };
    let missing = &warning.message;
    let end = "/none does not exist, so nothing is included from it; make the folder, or remove it from the list";
    assert!(
        missing.starts_with("include: ") && missing.ends_with(end),
        "{missing}"
    );
}

#[test]
fn include_below_a_table_is_reported_with_the_remedy() {
    const MOVE: &str = "include: this stands at the top of the file; move it above the first table, such as [server]";
    let below_last = format!("{SMALLEST}[log]\n{MAIN}");
    let below_first = format!(
        "[origins]\n{MAIN}app.servers = [\"http://127.0.0.1:9000\"]\n[[routes]]\npath = \"/\"\norigin = \"app\"\n"
    );
    for (text, location) in [(below_last, "13:1"), (below_first, "2:11")] {
        let expected = format!("gateway.toml:{location}: {MOVE}");
        assert_eq!(problems_beside(&text, &[]), expected);
    }
}

#[test]
#[rustfmt::skip]
fn problems_name_the_file_that_they_are_in() {
    let text = format!("{MAIN}{SMALLEST}").replace("10r/s", "0r/s");
    for (included, expected) in [
        // Problems hide the warning about a zone that nothing uses.
        (ZONE, ""),
        ("[[routes]]\npath = \"/\"\norigin = \"app\"\n",
         "1:1: routes: it has the same path, host, methods, match and listen as the route at gateway.toml:9:1, so it would never be used; remove one"),
        ("include = [\"b.toml\"]\n",
         "1:1: \"include\" is not a field of an included file, whose fields are origins, zones, jwt, routes"),
        ("[server]\nworkers = 1\n",
         "1:2: \"server\" is not a field of an included file, whose fields are origins, zones, jwt, routes"),
        ("[[routes]]\npath = \"/a\"\norigin = \"ap\"\n",
         "3:10: origin: there is no [origins.ap]; did you mean \"app\"?"),
        ("zones = 1\n", "1:9: zones: expected a table for each, such as [zones.name]; found 1"),
    ] {
        let found = problems_beside(&text, &[("conf.d/a.toml", included)]);
        let (main, other) = found.split_once("\nconf.d/a.toml:").unwrap_or((&found, ""));
        assert!(main.starts_with("gateway.toml:7:8: rate: a rate of 0"), "{found}");
        assert_eq!(main.lines().count(), 1, "{found}");
        assert_eq!(other, expected, "{included}");
    }
}

#[test]
fn names_hidden_by_a_syntax_error_are_not_reported_as_missing() {
    let text = format!("{MAIN}{SMALLEST}").replace("\"per_client\"", "\"z\"");
    let found = problems_beside(&text, &[("conf.d/a.toml", "[zones.z\n")]);
    assert_eq!(found, "conf.d/a.toml:1:9: unclosed table, expected `]`");
}

#[test]
#[rustfmt::skip]
fn a_file_that_cannot_be_included_is_reported_where_it_is_named() {
    for (list, expected) in [
        ("[\"no.toml\"]", "1:12: include: no.toml cannot be read: No such file or directory (os error 2)"),
        ("\"a.toml\"", "1:11: include: expected a list such as [\"conf.d/*.toml\"]; found \"a.toml\""),
        ("[\"./gateway.toml\"]", "1:12: include: this is the file itself; remove it from the list"),
        ("[\"*/a.toml\"]",
         "1:12: include: expected the name of a file, or one with a * in its last part, such as \"conf.d/*.toml\""),
    ] {
        let found = problems_beside(&format!("include = {list}\n{SMALLEST}"), &[]);
        assert_eq!(found, format!("gateway.toml:{expected}"));
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("latin.toml"), b"# \xe9\n").unwrap();
    let text = format!("include = [\"latin.toml\"]\n{SMALLEST}");
    let found = parse(&text, &folder.path().join("gateway.toml"), false).unwrap_err().to_string();
    assert!(found.ends_with("latin.toml is not UTF-8; save the file in that encoding"), "{found}");
}
