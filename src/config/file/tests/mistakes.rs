//! Tests that each mistake in a table or a list is reported, also beside others.

use super::*;
use crate::schema::Table;
use crate::table_settings::TableSettings;
use crate::tables::cost::{BodyCost, HeaderCost, ResponseCost};
use crate::tables::limit::LIMIT;
use crate::tables::listen::ListenTable;
use crate::{Backoff, Collapse, Cors, Health, Plan, Route, Tls, Zone};

/// Lines that begin each table, and its fields.
const TABLES: &[(&str, Table)] = &[
    ("[server]", Server::TABLE),
    ("[[server.listen]]", ListenTable::TABLE),
    ("[server.tls]", Tls::TABLE),
    ("[origins.o]", Origin::TABLE),
    ("[origins.o.backoff]", Backoff::TABLE),
    ("[origins.o.health]", Health::TABLE),
    ("[zones.z]", Zone::TABLE),
    ("[zones.z.plans.gold]", Plan::TABLE),
    ("[redis]", Redis::TABLE),
    ("[[routes]]", Route::TABLE),
    ("[[routes]]\n[routes.collapse]", Collapse::TABLE),
    ("[[routes]]\n[routes.cors]", Cors::TABLE),
    ("[[routes]]\n[[routes.limits]]", LIMIT),
    ("[[routes]]\n[routes.cost]", HeaderCost::TABLE),
    ("[[routes]]\n[routes.cost]", BodyCost::TABLE),
    ("[[routes]]\n[routes.cost]", ResponseCost::TABLE),
    ("[log]", Log::TABLE),
];

/// Returns the locations of all problems of a text: pairs of line and column.
fn locations(text: &str) -> Vec<(usize, usize)> {
    let found = parse_text(text).unwrap_err().problems;
    found
        .iter()
        .map(|problem| (problem.line, problem.column))
        .collect()
}

#[test]
fn each_wrong_field_of_a_table_is_named() {
    for (begin, table) in TABLES {
        let mut names = table.names();
        // A route with `refuse` reports its other fields.
        names.retain(|name| *name != "refuse");
        let check = |names: &[&str]| {
            let fields = names.iter().map(|name| format!("{name} = 2001-01-01\n"));
            let text = format!("{begin}\n{}", fields.collect::<String>());
            let found = locations(&text);
            let first = begin.lines().count() + 1;
            for (line, name) in (first..).zip(names) {
                let is_named = found.iter().any(|(found, _)| *found == line);
                assert!(is_named, "{name} is not named\n{text}{found:?}");
            }
        };
        // All at once, and each alone.
        check(&names);
        for name in &names {
            check(&[name]);
        }
    }
}

#[test]
#[rustfmt::skip]
fn each_wrong_item_of_a_list_is_named() {
    for before in [
        "include = ",
        "[server]\nlisten = ", "[server]\ntrusted_proxies = ", "[server]\nproxy_protocol = ",
        "[server.tls]\ncert = ", "[server.tls]\nkey = ",
        "[origins.o]\nservers = ", "[origins.o.backoff]\non = ",
        "[zones.z]\nexempt = ", "[zones.z.plans.gold]\nkeys = ",
        "routes = ", "[[routes]]\nmethods = ", "[[routes]]\nlimits = ",
        "[[routes]]\nrefund = ", "[[routes]]\nheaders = ",
        "[[routes]]\n[routes.collapse]\nvary = ", "[[routes]]\n[routes.collapse]\ncookies = ",
    ] {
        let text = format!("{before}[1.5, 2001-01-01]\n");
        let column = before.lines().last().unwrap().chars().count() + 2;
        let line = before.lines().count();
        let found = locations(&text);
        for location in [(line, column), (line, column + 5)] {
            assert!(found.contains(&location), "{location:?} in {found:?}\n{text}");
        }
    }
}

#[test]
#[rustfmt::skip]
fn each_mistake_of_a_value_is_named() {
    for (text, expected) in [
        ("[origins.o]\nclasses = { interactive = 0, batch = 1001 }",
         &["interactive: expected a whole number from 1 to 1000; found 0", "batch: expected a whole number from 1 to 1000; found 1001"][..]),
        ("[zones.z]\nkey = \"$remote_adr:$hots:$\"",
         &["$remote_adr is not a variable", "$hots is not a variable", "a $ begins a variable"][..]),
        ("[redis]\nprefix = \"${DRIP_UNSET_A}${DRIP_UNSET_B}${\"",
         &["DRIP_UNSET_A is not set", "DRIP_UNSET_B is not set", "${ begins a variable"][..]),
        ("[[routes]]\ncost = { heder = \"a\", max = 256, default = 0 }",
         &["none or several", "max: expected", "default: expected"][..]),
    ] {
        let found = problems(text);
        for part in expected {
            assert!(found.contains(part), "{part}\n{text}\n{found}");
        }
    }
}

#[test]
fn a_file_of_a_plan_that_does_not_exist_is_named_beside_other_mistakes() {
    let text = "[zones.z]\nkey = \"$host\"\nrate = \"1 r/s\"\n[zones.z.plans.gold]\nfile = \"/missing/gold.txt\"\nrate = 1\n";
    let found = parse_text(text).unwrap_err();
    let message = found.to_string();
    let missing = "5:8: file: /missing/gold.txt cannot be read";
    for part in ["3:8: rate: write", missing, "6:8: rate: expected"] {
        assert!(message.contains(part), "{part}\n{message}");
    }
    // The missing file is watched, so that the reload happens once it exists.
    let named: Vec<&Path> = found.named.iter().map(|file| &*file.path).collect();
    assert_eq!(named, [Path::new("/missing/gold.txt")]);
}

#[test]
#[rustfmt::skip]
fn a_forgotten_end_is_one_problem() {
    let rest = "\nadmin = 1\n\n[origins.app]\nservers = [\"http://127.0.0.1:9000\"]\n\n[[routes]]\npath = \"/\"\norigin = \"ap\"\n";
    for (begin, expected) in [
        ("[server", "1:8: unclosed table"),
        ("[server]\nlisten = [\"127.0.0.1:8080\"", "3:1: missing comma"),
        ("[server]\nlisten = [{ tls = false ]", "2:25: invalid inline table"),
        ("[server]\nlisten = [\"127.0.0.1:8080]", "2:27: invalid basic string"),
    ] {
        let found = problems_without_path(&format!("{begin}{rest}"));
        assert!(found.starts_with(expected), "{found}\n{begin}");
        assert_eq!(found.lines().count(), 1, "{found}\n{begin}");
    }
}
