//! Tests that alerts and runbooks name each other, and runbooks name only existing things.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::prometheus::board::{self, text};
use crate::prometheus::read;

/// Parts of each runbook, in this order.
const PARTS: [&str; 4] = ["Means", "See", "Do", "Do not"];

/// A section of docs/runbooks.md.
pub struct Runbook {
    pub alert: String,
    text: String,
    /// Expressions to ask Prometheus for.
    pub expressions: Vec<String>,
}

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("docs")
        .join(name);
    fs::read_to_string(path).expect("a page")
}

pub fn all() -> Vec<Runbook> {
    let page = page("runbooks.md");
    let sections = page.split("\n## ").skip(1);
    sections.map(Runbook::new).collect()
}

impl Runbook {
    fn new(section: &str) -> Self {
        let (alert, rest) = section.split_once('\n').expect("a section");
        let (mut text, mut expressions) = (String::new(), Vec::new());
        for (nth, piece) in rest.split("```").enumerate() {
            if nth % 2 == 0 {
                text.push_str(piece);
            } else {
                expressions.push(piece.strip_prefix("text\n").expect("text").to_owned());
            }
        }
        Self {
            alert: alert.to_owned(),
            text,
            expressions,
        }
    }

    /// Returns the quoted names outside of code.
    fn panels(&self) -> Vec<String> {
        let text: String = self.text.split('`').step_by(2).collect();
        let names = text.split('"').skip(1).step_by(2);
        names.map(|name| name.replace('\n', " ")).collect()
    }
}

/// Returns the alerts, each with a field of its annotations.
fn annotations(field: &str) -> Vec<(String, String)> {
    let rules = read("alerts.yml");
    let rules = rules.split("- alert: ").skip(1);
    rules
        .map(|rule| {
            let (alert, rest) = rule.split_once('\n').expect("a rule");
            let mut lines = rest.lines().map(str::trim);
            let value = lines.find_map(|line| line.strip_prefix(field)?.strip_prefix(": "));
            let value = value.unwrap_or_else(|| panic!("{alert} has no {field}"));
            (alert.to_owned(), value.trim_matches('"').to_owned())
        })
        .collect()
}

#[test]
fn each_alert_leads_to_its_runbook() {
    let runbooks: BTreeSet<_> = all().into_iter().map(|runbook| runbook.alert).collect();
    let urls = annotations("runbook_url");
    for (alert, url) in &urls {
        let anchor = alert.to_lowercase();
        assert_eq!(url, &format!("docs/runbooks.md#{anchor}"));
    }
    let alerts: BTreeSet<_> = urls.into_iter().map(|(alert, _)| alert).collect();
    assert_eq!(alerts, runbooks);
}

#[test]
fn each_runbook_has_all_parts_and_names_panels_that_there_are() {
    let boards = board::all();
    let titles: BTreeSet<_> = boards
        .iter()
        .flat_map(|board| board.panels().into_iter().map(|panel| text(panel, "title")))
        .collect();
    let mut named = 0;
    for runbook in all() {
        let alert = &runbook.alert;
        let parts = runbook.text.split("\n- **").skip(1);
        let parts: Vec<_> = parts
            .map(|part| part.split(".**").next().expect("a part"))
            .collect();
        assert_eq!(parts, PARTS, "{alert}");
        assert!(!runbook.expressions.is_empty(), "{alert} has no query");
        for title in runbook.panels() {
            assert!(titles.contains(&*title), "{alert}: no panel {title:?}");
            named += 1;
        }
    }
    assert!(named > 40, "only {named} panels are named");
}

#[test]
fn each_alert_leads_to_a_dashboard() {
    let boards = board::all();
    for (alert, url) in annotations("dashboard_url") {
        let uid = url
            .strip_prefix("/d/")
            .and_then(|rest| rest.split('/').next());
        let board = boards.iter().find(|board| Some(board.uid()) == uid);
        let board = board.unwrap_or_else(|| panic!("{alert}: no dashboard {url}"));
        let (_, query) = url.split_once('?').expect("variables");
        for variable in query.split('&') {
            let name = variable
                .split('=')
                .next()
                .and_then(|it| it.strip_prefix("var-"));
            let known = board.variables().iter().any(|(series, _)| {
                series
                    .source
                    .ends_with(&format!("{:?}", name.unwrap_or("?")))
            });
            assert!(known, "{alert}: {url}");
        }
    }
}

#[test]
fn the_operations_name_each_alert_and_no_other() {
    let operations = page("operations.md");
    let rows = operations
        .lines()
        .filter_map(|line| line.strip_prefix("| [`Drip")?.split('`').next());
    let rows: BTreeSet<_> = rows.map(|name| format!("Drip{name}")).collect();
    let alerts = annotations("runbook_url").into_iter();
    assert_eq!(rows, alerts.map(|(alert, _)| alert).collect());
}
