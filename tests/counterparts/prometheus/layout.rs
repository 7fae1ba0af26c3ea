//! Tests of the dashboards' files: accepted by Grafana, and readable for people.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::prometheus::board::{self, Board, items, text};
use crate::prometheus::{provided, read};
use crate::support::{assert_contains, drip};

/// Grafana's names for the units in use.
const UNITS: [&str; 7] = ["bytes", "none", "ops", "percentunit", "reqps", "s", "short"];

fn area(panel: &Value) -> [u64; 4] {
    ["x", "y", "w", "h"].map(|side| {
        panel["gridPos"][side]
            .as_u64()
            .unwrap_or_else(|| panic!("{} has no position", panel["title"]))
    })
}

fn overlap(one: [u64; 4], other: [u64; 4]) -> bool {
    let [x, y, w, h] = one;
    let [other_x, other_y, other_w, other_h] = other;
    x < other_x + other_w && other_x < x + w && y < other_y + other_h && other_y < y + h
}

/// Calls `visit` with each value of the field `datasource`, at any depth.
fn each_datasource(of: &Value, visit: &mut impl FnMut(&Value)) {
    match of {
        Value::Array(items) => items.iter().for_each(|item| each_datasource(item, visit)),
        Value::Object(fields) => {
            for (name, value) in fields {
                if name == "datasource" {
                    visit(value);
                }
                each_datasource(value, visit);
            }
        }
        _ => {}
    }
}

#[test]
fn each_dashboard_is_of_a_schema_of_grafana_10_or_later_and_has_its_variables() {
    let boards = board::all();
    let files: Vec<_> = boards.iter().map(|board| board.file.as_str()).collect();
    assert_eq!(files, ["overview.json", "zone.json"]);
    let uids: HashSet<_> = boards.iter().map(Board::uid).collect();
    assert_eq!(uids.len(), boards.len());
    for board in &boards {
        let is_recent = board.json["schemaVersion"].as_u64() >= Some(38);
        assert!(is_recent, "{}", board.file);
        assert_eq!(board.json["id"], Value::Null, "{}", board.file);
        let variables = items(&board.json["templating"]["list"]);
        let names: HashSet<_> = variables.map(|variable| text(variable, "name")).collect();
        let mut asked = String::new();
        for query in board.queries().iter().chain(&board.annotations()) {
            asked.push_str(&query.expression);
        }
        let links = items(&board.json["links"]).map(|link| text(link, "url"));
        asked.extend(links.map(|url| url.replace(['{', '}'], "")));
        for variable in names.iter().filter(|&&name| name != "datasource") {
            let is_used = asked.contains(&format!("${variable}"));
            assert!(is_used, "nothing uses {variable}");
        }
        assert!(names.contains("datasource"), "{}", board.file);
    }
}

#[test]
fn panels_do_not_overlap_and_have_a_description_and_a_unit() {
    for board in board::all() {
        let mut ids = HashSet::new();
        for panel in board.panels() {
            let title = text(panel, "title");
            assert!(!title.is_empty(), "{}", board.file);
            assert!(ids.insert(panel["id"].as_u64().expect("an id")), "{title}");
            let [x, _, w, h] = area(panel);
            assert!(w > 0 && h > 0 && x + w <= 24, "{title} sticks out");
            if panel["type"] == "row" {
                continue;
            }
            assert!(text(panel, "description").len() > 30, "{title}");
            let defaults = &panel["fieldConfig"]["defaults"];
            let overridden = items(&panel["fieldConfig"]["overrides"])
                .flat_map(|set| items(&set["properties"]))
                .filter(|property| property["id"] == "unit")
                .map(|property| text(property, "value"));
            for unit in overridden.chain([text(defaults, "unit")]) {
                assert!(UNITS.contains(&unit), "{title}: {unit:?}");
            }
            let steps = items(&defaults["thresholds"]["steps"]).count();
            assert!(steps > 0, "{title}");
            let targets = items(&panel["targets"]).map(|target| text(target, "refId"));
            let targets: Vec<_> = targets.collect();
            let names: HashSet<_> = targets.iter().collect();
            assert!(!names.is_empty() && names.len() == targets.len(), "{title}");
        }
        for layout in board.layouts() {
            for (nth, panel) in layout.iter().enumerate() {
                for other in &layout[..nth] {
                    let is_apart = !overlap(area(panel), area(other));
                    assert!(is_apart, "{} lies on {}", panel["title"], other["title"]);
                }
            }
        }
    }
}

#[test]
fn each_datasource_is_the_variable() {
    let variable = json!({"type": "prometheus", "uid": "${datasource}"});
    let grafana = json!({"type": "grafana", "uid": "-- Grafana --"});
    for board in board::all() {
        let mut seen = 0;
        each_datasource(&board.json, &mut |datasource| {
            seen += 1;
            let is_known = *datasource == variable || *datasource == grafana;
            assert!(is_known, "{}: {datasource}", board.file);
        });
        let queries = board.queries().len() + board.annotations().len();
        assert!(seen > queries, "{}: {seen} for {queries}", board.file);
    }
}

#[test]
fn links_lead_from_each_dashboard_to_the_other_and_to_the_live_page() {
    let boards = board::all();
    for board in &boards {
        let whole = board.json.to_string();
        let mut linked = HashSet::new();
        for link in whole.split("/d/").skip(1) {
            let uid = link.split('/').next().expect("a piece");
            assert!(boards.iter().any(|board| board.uid() == uid), "{uid}");
            linked.insert(uid.to_owned());
        }
        let others = boards.len() - 1;
        assert_eq!(linked.len(), others, "{} links {linked:?}", board.file);
        assert!(!linked.contains(board.uid()), "{} links itself", board.file);
        let mut links = items(&board.json["links"]);
        let live = links.find(|link| text(link, "title") == "Live page");
        let live = live.unwrap_or_else(|| panic!("{} has no link", board.file));
        assert!(text(live, "url").starts_with("${live}/"), "{live}");
    }
}

#[test]
fn grafana_is_provisioned_with_these_dashboards_and_the_interval_of_the_scrapes() {
    let value = |file: &str, name: &str| {
        let text = read(file);
        let mut lines = text.lines().map(str::trim);
        let value = lines.find_map(|line| line.strip_prefix(name).map(str::to_owned));
        value.unwrap_or_else(|| panic!("{file} has no {name}"))
    };
    let interval = value("prometheus.yml", "scrape_interval: ");
    let datasource = read("provisioning/datasources/prometheus.yaml");
    assert!(datasource.contains(&format!("timeInterval: {interval}\n")));
    let compose = read("compose.yaml");
    let folder = value("provisioning/dashboards/drip.yaml", "path: ");
    assert!(compose.contains(&format!("- ./dashboards:{folder}:ro\n")));
    for file in ["prometheus.yml", "alerts.yml"] {
        assert!(compose.contains(&format!("- ./{file}:/etc/prometheus/{file}:ro\n")));
    }
}

#[test]
fn the_composed_gateway_has_a_right_file_and_is_asked_where_it_listens() {
    let file = provided("gateway/gateway.toml");
    let mut check = drip();
    check.env("DRIP_ADMIN_TOKEN", "secret");
    let output = check
        .args(["check", "--all", "-c"])
        .arg(file)
        .output()
        .expect("drip");
    let problems = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{problems}");
    let settings = String::from_utf8_lossy(&output.stdout);
    assert_contains!(settings, "admin = \"0.0.0.0:9090\"");
    assert!(read("prometheus.yml").contains("targets: [\"gateway:9090\"]"));
    let compose = read("compose.yaml");
    assert!(compose.contains("\n  gateway:\n"));
    assert!(compose.contains("- ./gateway:/etc/drip:ro\n"));
    assert!(compose.contains("dockerfile: packaging/Containerfile\n"));
}
