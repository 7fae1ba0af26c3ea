//! Tests that alerts and runbooks name each other, and runbooks name only existing things.

use std::collections::BTreeSet;
use std::fs;

use crate::prometheus::board::{self, text};
use crate::prometheus::read;
use crate::support::page::{pages_of, root};

/// Parts of each runbook, in this order.
const PARTS: [&str; 4] = ["Means", "See", "Do", "Do not"];

/// A section of a page of runbooks in docs/operate.
pub struct Runbook {
    page: String,
    pub alert: String,
    text: String,
    /// Expressions to ask Prometheus for.
    pub expressions: Vec<String>,
}

pub fn all() -> Vec<Runbook> {
    let folder = root().join("docs/operate");
    let files = fs::read_dir(&folder).expect("a folder");
    let names = files.map(|file| file.expect("a file").file_name());
    let names = names.filter_map(|name| name.into_string().ok());
    let names = names.filter(|name| name.starts_with("runbooks-"));
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
        .iter()
        .flat_map(|name| {
            let page = fs::read_to_string(folder.join(name)).expect("a page");
            let sections = page.split("\n## ").skip(1);
            let runbooks = sections.map(|section| Runbook::new(name, section));
            runbooks.collect::<Vec<_>>()
        })
        .collect()
}

impl Runbook {
    fn new(page: &str, section: &str) -> Self {
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
            page: page.to_owned(),
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
    let runbooks = all().into_iter().map(|runbook| {
        let anchor = runbook.alert.to_lowercase();
        let url = format!("docs/operate/{}#{anchor}", runbook.page);
        (runbook.alert, url)
    });
    let runbooks: BTreeSet<_> = runbooks.collect();
    assert_eq!(BTreeSet::from_iter(annotations("runbook_url")), runbooks);
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
fn the_table_of_alerts_names_each_alert_and_no_other() {
    let page = pages_of("operate");
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| [`Drip")?.split('`').next());
    let rows: BTreeSet<_> = rows.map(|name| format!("Drip{name}")).collect();
    let alerts = annotations("runbook_url").into_iter();
    assert_eq!(rows, alerts.map(|(alert, _)| alert).collect());
}
