//! Parses the dashboards: their panels and queries.

use std::fs;

use serde_json::Value;

use crate::prometheus::{provided, read};

/// A dashboard.
pub struct Board {
    pub file: String,
    pub json: Value,
}

/// A query that a dashboard sends to Prometheus.
pub struct Query {
    /// Location in the dashboard, for failure messages.
    pub source: String,
    pub expression: String,
    /// Whether it is an instant query rather than a range query.
    pub instant: bool,
    /// Legend of a series: text with `{{label}}` in it.
    pub legend: String,
}

pub fn all() -> Vec<Board> {
    let folder = fs::read_dir(provided("dashboards")).expect("the dashboards");
    let mut files: Vec<_> = folder
        .map(|file| {
            file.expect("a file")
                .file_name()
                .into_string()
                .expect("a name")
        })
        .collect();
    files.sort();
    files.into_iter().map(Board::load).collect()
}

impl Board {
    fn load(file: String) -> Self {
        let text = read(&format!("dashboards/{file}"));
        let json = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        Self { file, json }
    }

    pub fn uid(&self) -> &str {
        text(&self.json, "uid")
    }

    /// Returns the panels laid out together: those of the board, and of each collapsed row.
    pub fn layouts(&self) -> Vec<Vec<&Value>> {
        let top: Vec<_> = items(&self.json["panels"]).collect();
        let mut layouts: Vec<Vec<_>> = top
            .iter()
            .map(|panel| items(&panel["panels"]).collect())
            .collect();
        layouts.push(top);
        layouts
    }

    /// Returns all panels, including rows.
    pub fn panels(&self) -> Vec<&Value> {
        self.layouts().concat()
    }

    /// Returns the queries of the panels.
    pub fn queries(&self) -> Vec<Query> {
        let panels = self.panels().into_iter();
        panels.flat_map(|panel| self.queries_of(panel)).collect()
    }

    /// Returns the queries of one panel.
    pub fn queries_of(&self, panel: &Value) -> Vec<Query> {
        let query = |target: &Value| Query {
            source: format!("{}, {:?}", self.file, text(panel, "title")),
            expression: text(target, "expr").to_owned(),
            instant: target["instant"] == true,
            legend: text(target, "legendFormat").to_owned(),
        };
        items(&panel["targets"]).map(query).collect()
    }

    /// Returns the queries of the annotations.
    pub fn annotations(&self) -> Vec<Query> {
        let asked = items(&self.json["annotations"]["list"])
            .filter(|annotation| annotation["builtIn"] != 1);
        let query = |annotation| Query {
            source: format!("{}, annotation {:?}", self.file, text(annotation, "name")),
            expression: text(annotation, "expr").to_owned(),
            instant: false,
            legend: format!(
                "{}{}",
                text(annotation, "titleFormat"),
                text(annotation, "textFormat")
            ),
        };
        asked.map(query).collect()
    }

    /// Returns the series that fill each variable, with the label of its values.
    pub fn variables(&self) -> Vec<(Query, String)> {
        let asked =
            items(&self.json["templating"]["list"]).filter(|variable| variable["type"] == "query");
        let query = |variable: &Value| {
            let definition = text(&variable["query"], "query");
            let inner = definition
                .strip_prefix("label_values(")
                .and_then(|rest| rest.strip_suffix(')'));
            let (series, label) = inner
                .and_then(|inner| inner.rsplit_once(", "))
                .unwrap_or_else(|| panic!("{definition} is not label_values(series, label)"));
            let query = Query {
                source: format!("{}, variable {:?}", self.file, text(variable, "name")),
                expression: series.to_owned(),
                instant: true,
                legend: format!("{{{{{label}}}}}"),
            };
            (query, label.to_owned())
        };
        asked.map(query).collect()
    }
}

/// Returns a text that must be there.
pub fn text<'a>(of: &'a Value, field: &str) -> &'a str {
    of[field]
        .as_str()
        .unwrap_or_else(|| panic!("no {field} in {of}"))
}

/// Returns the items of a list; none if there is no list.
pub fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Returns the labels in a legend such as `{{origin}} p99`.
pub fn labels_of_legend(legend: &str) -> Vec<&str> {
    let pieces = legend.split("{{").skip(1);
    pieces
        .map(|piece| piece.split("}}").next().expect("a piece").trim())
        .collect()
}
