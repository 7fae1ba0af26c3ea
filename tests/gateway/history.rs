//! Tests of the history of changes in the API and the log, and of the gateway's name.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::gateway::check::{check_all, text};
use crate::support::operator::{ask, json};
use crate::support::{Gateway, Origin, assert_contains, eventually, one_zone, zone};

/// Returns the last changes, the newest first: origin of the change, and texts.
fn changes(gateway: &Gateway) -> Vec<(String, Vec<String>)> {
    let config = json(gateway, "/api/config");
    let text = |text: &Value| text.as_str().expect("a text").to_owned();
    let changes = config["changes"].as_array().expect("a list").iter();
    let change = |change: &Value| {
        let at = text(&change["at"]);
        assert!(at.ends_with('Z') && at.len() == 24, "{at}");
        let what = change["what"].as_array().expect("a list").iter();
        (text(&change["by"]), what.map(text).collect())
    };
    changes.map(change).collect()
}

/// Waits for this many changes, and returns the last one.
pub fn nth_change(gateway: &Gateway, nth: usize) -> (String, Vec<String>) {
    eventually(&format!("change {nth}"), || changes(gateway).len() == nth);
    changes(gateway).remove(0)
}

#[test]
fn each_reload_says_what_it_changed_and_by_what() {
    let origin = Origin::start();
    let plan = "[zones.z.plans.gold]\nkeys = [\"a\"]\nfile = \"gold.txt\"\nburst = 9\n";
    let file = one_zone(&origin, "10r/s", "burst = 20") + plan;
    let gateway = Gateway::start_beside(&[("gold.txt", "b\n")], &file);
    assert_eq!(changes(&gateway), []);

    let file = file.replace("10r/s", "20r/s").replace("= 20", "= 40");
    gateway.site.write(&file);
    let (by, what) = nth_change(&gateway, 1);
    assert_eq!(by, "file");
    let expected = [
        "routes[/].limits[z].burst 20 -> 40",
        "zones.z.rate 10r/s -> 20r/s",
    ];
    assert_eq!(what, expected);
    let line = gateway.wait_for_line("the changed file is in force");
    let says = format!("by=\"file\" what=\"{}\"", expected.join("; "));
    assert_contains!(line, " INFO ", &says);

    fs::write(gateway.site.folder().join("gold.txt"), "b\nc\nd\n").expect("a file");
    let (by, what) = nth_change(&gateway, 2);
    assert_eq!(by, "plan file");
    assert_eq!(what, ["zones.z.plans.gold.file gold.txt: 2 keys more"]);

    let nothing = vec!["no setting changed".to_owned()];
    let reloaded = ask(&gateway, "POST", "/api/reload", "");
    assert_eq!(reloaded.status, 200, "{}", reloaded.text());
    assert_eq!(nth_change(&gateway, 3), ("api".to_owned(), nothing.clone()));
    gateway.wait_for_line("by=\"api\" what=\"no setting changed\"");
    gateway.signal(Signal::HUP);
    assert_eq!(nth_change(&gateway, 4), ("signal".to_owned(), nothing));

    gateway.site.write(&format!("workers = 1000\n{file}"));
    let (_, what) = nth_change(&gateway, 5);
    assert_eq!(what.len(), 1, "{what:?}");
    assert!(what[0].starts_with("server.workers "), "{what:?}");
    assert!(what[0].ends_with(" -> 1000 (needs a restart)"), "{what:?}");
}

#[test]
fn a_broken_file_is_no_change_and_its_repair_is_one_of_the_file() {
    let origin = Origin::start();
    let file = one_zone(&origin, "10r/s", "burst = 20");
    let gateway = Gateway::start(&file);
    gateway.site.write(&file.replace("10r/s", "ten"));
    gateway.wait_for_line("the file has errors");
    assert_eq!(changes(&gateway), []);
    gateway.site.write(&file);
    let (by, what) = nth_change(&gateway, 1);
    assert_eq!((&*by, &*what[0]), ("file", "no setting changed"));
}

#[test]
fn a_change_of_many_settings_is_reported_in_few_texts() {
    let origin = Origin::start();
    let file = one_zone(&origin, "10r/s", "burst = 20");
    let gateway = Gateway::start(&file);
    let more: String = (0..62)
        .map(|nth| zone(&format!("z{nth}"), "$host", "1r/s"))
        .collect();
    gateway.site.write(&(file + &more));
    let (_, what) = nth_change(&gateway, 1);
    assert_eq!((what.len(), &*what[49]), (50, "and 13 more"));
    let line = gateway.wait_for_line("the changed file is in force");
    assert!(line.contains("and 53 more\"") && line.len() < 500, "{line}");
}

#[test]
fn the_name_of_the_gateway_is_that_of_its_host_until_the_file_names_it() {
    let origin = Origin::start();
    let file = one_zone(&origin, "10r/s", "burst = 20");
    let gateway = Gateway::start(&file);
    let host = rustix::system::uname();
    let host = host.nodename().to_str().expect("a name").to_owned();
    let is_named = |name: &str| {
        let labels = [("name", name)];
        json(&gateway, "/api/config")["gateway"] == name
            && gateway.value("drip_gateway_info", &labels) == Some(1.0)
    };
    assert!(is_named(&host), "{}", gateway.metrics().0);
    let printed = text(&check_all(&gateway.site.file()).stdout);
    assert_contains!(printed, &format!("name = \"{host}\"\n"));
    let line = gateway.wait_for_line("listening");
    assert_contains!(line, &format!("gateway=\"{host}\""));

    gateway.site.write(&format!("name = \"edge 7\"\n{file}"));
    eventually("it has another name", || is_named("edge 7"));
    let labels = [("name", &*host)];
    assert_eq!(gateway.value("drip_gateway_info", &labels), None);
    let what = nth_change(&gateway, 1).1;
    assert_eq!(what, [format!("server.name {host} -> edge 7")]);
}
