//! Tests that the pages of `docs/reference` describe the tables of the configuration.

use std::fs;

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

/// Folder of the pages.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference");
/// Maximum number of words of a page.
const MAX_WORDS: usize = 2500;

/// Titles of the sections with a table of fields, each with the definition of the fields.
const SECTIONS: [(&str, Table); 17] = [
    ("`[server]`", Server::TABLE),
    ("`listen`", ListenTable::TABLE),
    ("`[server.tls]`", Tls::TABLE),
    ("`[origins.NAME]`", Origin::TABLE),
    ("Servers", OriginServer::TABLE),
    ("`[origins.NAME.backoff]`", Backoff::TABLE),
    ("`[origins.NAME.health]`", Health::TABLE),
    ("`[origins.NAME.room]`", Room::TABLE),
    ("`[zones.NAME]`", Zone::TABLE),
    ("Plans", Plan::TABLE),
    ("`[jwt.NAME]`", Jwt::TABLE),
    ("`[redis]`", Redis::TABLE),
    ("`[[routes]]`", Route::TABLE),
    ("Limits", LIMIT),
    ("`[routes.collapse]`", Collapse::TABLE),
    ("`[routes.cors]`", Cors::TABLE),
    ("`[log]`", Log::TABLE),
];

/// Names of the fields that the pages describe outside of a table of fields.
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
        Form::UniqueList(inner, _) | Form::List(inner, _) | Form::ByName(_, inner) => {
            add_tables(inner, found);
        }
        Form::OneOf(forms) => forms.iter().for_each(|form| add_tables(form, found)),
        _ => {}
    }
}

#[test]
fn the_pages_have_a_section_for_each_table() {
    let mut all = Vec::new();
    add_tables(&Form::Table(FILE), &mut all);
    assert!(all.len() > SECTIONS.len());
    for table in all {
        let names = table.names();
        let has_section = SECTIONS.iter().any(|(_, known)| known.names() == names);
        assert!(
            has_section || IN_PROSE.contains(&&names[..]),
            "add a table of fields to docs/reference, and to SECTIONS: {names:?}"
        );
    }
}

/// Returns an effect as the pages write it.
fn in_words(effect: Effect) -> &'static str {
    match effect {
        Effect::Now => "now",
        Effect::NextRequest => "next request",
        Effect::NewConnections => "new connections",
        Effect::Restart => "restart",
    }
}

/// Returns the file name and the text of each page, in the order of names.
fn pages() -> Vec<(String, String)> {
    let mut pages = Vec::new();
    for file in fs::read_dir(FOLDER).unwrap() {
        let file = file.unwrap();
        let name = file.file_name().into_string().unwrap();
        pages.push((name, fs::read_to_string(file.path()).unwrap()));
    }
    pages.sort();
    pages
}

/// Returns the rows of the first table of fields after a title. The first row has the column names.
fn rows<'a>(text: &'a str, title: &str) -> Vec<Vec<&'a str>> {
    let heading = format!("# {title}\n");
    let sections: Vec<&str> = text.split(&heading).collect();
    let [_, section] = sections[..] else {
        panic!("{} sections have the title {title}", sections.len() - 1)
    };
    let start = section.find("| field |").expect(title);
    let lines = section[start..].lines();
    let lines = lines.take_while(|line| line.starts_with('|'));
    let cells = |line: &'a str| line.split('|').map(str::trim).collect();
    lines.map(cells).collect()
}

#[test]
fn the_first_page_lists_all_pages_and_none_is_long() {
    let pages = pages();
    let (_, first) = pages.iter().find(|(name, _)| name == "README.md").unwrap();
    let contents = fs::read_to_string(format!("{FOLDER}/../SUMMARY.md")).unwrap();
    for (name, text) in &pages {
        let is_listed = name == "README.md" || first.contains(&format!("]({name})"));
        assert!(is_listed, "README.md does not list {name}");
        let is_listed = contents.contains(&format!("](reference/{name})"));
        assert!(is_listed, "SUMMARY.md does not list {name}");
        let words = text.split_whitespace().count();
        assert!(words <= MAX_WORDS, "{name} has {words} words");
    }
}

#[test]
fn the_pages_document_the_default_and_the_effect_of_each_field() {
    let texts: Vec<String> = pages().into_iter().map(|(_, text)| text).collect();
    let text = texts.concat();
    for (title, table) in SECTIONS {
        let rows = rows(&text, title);
        let column = |name: &str| rows[0].iter().position(|title| *title == name);
        let (default, effect) = (column("default").expect(title), column("takes effect"));
        let mut described = Vec::new();
        for row in &rows[2..] {
            let name = row[1].trim_matches('`');
            let field = table.fields.iter().find(|field| field.name == name);
            let field = field.unwrap_or_else(|| panic!("{title} has no {name}"));
            let is_required = row[default] == "required";
            assert_eq!(is_required, field.example.is_some(), "{title} {name}");
            let parse = |json: &str| serde_json::from_str::<Value>(json).ok();
            let documented = parse(row[default].trim_matches('`'));
            // The page uses a word where nothing is limited.
            if let (Some(documented), Some(actual)) = (documented, field.default.and_then(parse)) {
                assert_eq!(documented, actual, "{title} {name}");
            }
            if let Some(effect) = effect {
                let mut documented = row[effect].split("; ");
                let actual = in_words(field.effect);
                let is_documented = documented.any(|text| text.ends_with(actual));
                assert!(is_documented, "{title} {name}: {actual}");
            }
            described.push(name);
        }
        for field in table.fields {
            let is_table = matches!(field.form, Form::Table(_) | Form::ByName(_, Form::Table(_)));
            let name = field.name;
            assert!(is_table || described.contains(&name), "{title} {name}");
        }
    }
}
