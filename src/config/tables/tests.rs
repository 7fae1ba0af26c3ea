//! Tests that `docs/configuration.md` describes the tables of the configuration.

use serde_json::Value;

use super::file::FILE;
use super::limit::LIMIT;
use super::listen::ListenTable;
use crate::schema::{Effect, Form, Table};
use crate::table_settings::TableSettings;
use crate::{
    Backoff, Collapse, Cors, Health, Jwt, Log, Origin, OriginServer, Plan, Redis, Room, Route,
    Server, Tls, Zone,
};

const PAGE: &str = include_str!("../../../docs/configuration.md");

/// Titles of the sections with a table of fields.
const SECTIONS: [(&str, Table); 17] = [
    ("## `[server]`", Server::TABLE),
    ("### `listen`", ListenTable::TABLE),
    ("## `[server.tls]`", Tls::TABLE),
    ("## `[origins.NAME]`", Origin::TABLE),
    ("### Servers", OriginServer::TABLE),
    ("## `[origins.NAME.backoff]`", Backoff::TABLE),
    ("## `[origins.NAME.health]`", Health::TABLE),
    ("## `[origins.NAME.room]`", Room::TABLE),
    ("## `[zones.NAME]`", Zone::TABLE),
    ("### Plans", Plan::TABLE),
    ("## `[jwt.NAME]`", Jwt::TABLE),
    ("## `[redis]`", Redis::TABLE),
    ("## `[[routes]]`", Route::TABLE),
    ("### Limits", LIMIT),
    ("## `[routes.collapse]`", Collapse::TABLE),
    ("## `[routes.cors]`", Cors::TABLE),
    ("## `[log]`", Log::TABLE),
];

/// Names of the fields that the page describes outside of a table of fields.
const IN_PROSE: [&[&str]; 8] = [
    &[
        "include", "server", "origins", "zones", "jwt", "redis", "routes", "log",
    ],
    &["header", "default", "max"],
    &["body_per", "max"],
    &["response_header", "estimate", "max"],
    &["learn", "unit", "max", "mode"],
    &["file"],
    &["html", "json"],
    &["zone", "burst"],
];

/// Adds the tables that a value of this form may contain.
fn add_tables(form: &Form, found: &mut Vec<Table>) {
    match form {
        Form::Table(table) => {
            found.push(*table);
            for field in table.fields {
                add_tables(&field.form, found);
            }
        }
        Form::List(of, _) | Form::AnyList(of, _) | Form::ByName(_, of) => add_tables(of, found),
        Form::OneOf(forms) => forms.iter().for_each(|form| add_tables(form, found)),
        _ => {}
    }
}

#[test]
fn the_page_has_a_section_for_each_table() {
    let mut all = Vec::new();
    add_tables(&Form::Table(FILE), &mut all);
    assert!(all.len() > SECTIONS.len());
    for table in all {
        let names = table.names();
        let has_section = SECTIONS.iter().any(|(_, known)| known.names() == names);
        assert!(
            has_section || IN_PROSE.contains(&&names[..]),
            "add a table of fields to docs/configuration.md, and to SECTIONS: {names:?}"
        );
    }
}

fn in_words(effect: Effect) -> &'static str {
    match effect {
        Effect::Now => "now",
        Effect::NextRequest => "next request",
        Effect::NewConnections => "new connections",
        Effect::Restart => "restart",
    }
}

/// Returns the rows of the first table of fields after a title. The first row has the column names.
fn rows(title: &str) -> Vec<Vec<&'static str>> {
    let (_, section) = PAGE.split_once(&format!("\n{title}\n")).expect(title);
    let start = section.find("| field |").expect(title);
    let lines = section[start..].lines();
    let lines = lines.take_while(|line| line.starts_with('|'));
    let cells = |line: &'static str| line.split('|').map(str::trim).collect();
    lines.map(cells).collect()
}

#[test]
fn the_page_documents_the_default_and_the_effect_of_each_field() {
    for (title, table) in SECTIONS {
        let rows = rows(title);
        let column = |name: &str| rows[0].iter().position(|it| *it == name);
        let (default, effect) = (column("default").expect(title), column("takes effect"));
        let mut described = Vec::new();
        for row in &rows[2..] {
            let name = row[1].trim_matches('`');
            let field = table.fields.iter().find(|field| field.name == name);
            let field = field.unwrap_or_else(|| panic!("{title} has no {name}"));
            assert_eq!(
                row[default] == "required",
                field.example.is_some(),
                "{title} {name}"
            );
            let documented: Option<Value> =
                serde_json::from_str(row[default].trim_matches('`')).ok();
            let is = field
                .default
                .and_then(|it| serde_json::from_str::<Value>(it).ok());
            // The page uses a word where nothing is limited.
            if let (Some(documented), Some(is)) = (documented, is) {
                assert_eq!(documented, is, "{title} {name}");
            }
            if let Some(effect) = effect {
                let mut documented = row[effect].split("; ");
                let is = in_words(field.effect);
                assert!(
                    documented.any(|documented| documented.ends_with(is)),
                    "{title} {name}: {is}"
                );
            }
            described.push(name);
        }
        for field in table.fields {
            let is_table = matches!(field.form, Form::Table(_) | Form::ByName(_, Form::Table(_)));
            assert!(
                is_table || described.contains(&field.name),
                "{title} {}",
                field.name
            );
        }
    }
}
