//! Expands variables of the environment in the strings of a file: `"${REDIS_URL}"`.
//!
//! `$${` stands for the characters `${`. The keys of zones, of `balance`, of `bind` and of
//! `collapse` are left as they are: a `$` in them begins a variable of the request, such as
//! `$remote_addr`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::env::{self, VarError};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::Plan;
use crate::report::{Report, Unexpanded};
use crate::toml_string::toml_value;

/// Lookup of a variable. Fails if it is not set or not text.
pub(super) type Variable<'v> = &'v dyn Fn(&str) -> Result<String, VarError>;

/// Values with variables as the file writes them, in TOML, by the names that lead to them.
pub(super) type UnexpandedValues = BTreeMap<Vec<String>, String>;

/// Returns the value of a variable of this process.
pub(super) fn of_process(name: &str) -> Result<String, VarError> {
    env::var(name)
}

/// Expands the variables in all strings of a file. Reports variables that are not set.
///
/// Returns the values before expansion: each string with variables, and each list or table around
/// such a string. `variable`: lookup of a variable. `earlier_routes`: number of routes in the files
/// before this one, because the routes of all files form one list.
pub(super) fn expand(
    file: &mut DeTable,
    report: &Report,
    variable: Variable,
    earlier_routes: usize,
) -> UnexpandedValues {
    let mut expansion = Expansion {
        report,
        variable,
        earlier_routes,
        unexpanded: BTreeMap::new(),
    };
    for (name, value) in file {
        expansion.expand_value(value, &[&**name.get_ref()]);
    }
    expansion.unexpanded
}

/// Expands the variables of one file, and collects the values before expansion.
///
/// `path` in its methods: the names and the indices that lead to a value.
struct Expansion<'e, 't> {
    report: &'e Report<'t>,
    variable: Variable<'e>,
    earlier_routes: usize,
    unexpanded: UnexpandedValues,
}

impl Expansion<'_, '_> {
    /// Expands a value. Returns whether it has variables.
    fn expand_value(&mut self, value: &mut Spanned<DeValue>, path: &[&str]) -> bool {
        if is_key(path) || !has_variable(value.get_ref()) {
            return false;
        }
        let written = toml_value(value.get_ref());
        let offset = value.span().start;
        let mut has_any = false;
        match value.get_mut() {
            DeValue::String(text) => has_any = self.expand_text(text, offset, path),
            DeValue::Array(items) => {
                let is_routes = path == ["routes"];
                let first = if is_routes { self.earlier_routes } else { 0 };
                for (index, item) in (first..).zip(items.iter_mut()) {
                    has_any |= self.expand_value(item, &[path, &[&index.to_string()]].concat());
                }
            }
            DeValue::Table(table) => {
                for (name, item) in table {
                    has_any |= self.expand_value(item, &[path, &[&**name.get_ref()]].concat());
                }
            }
            _ => {}
        }
        if has_any && !has_room_secret(path) {
            let path = path.iter().map(|name| (*name).to_owned()).collect();
            self.unexpanded.insert(path, written);
        }
        has_any
    }

    /// Expands a text. Returns whether it has variables.
    fn expand_text(&self, text: &mut Cow<str>, offset: usize, path: &[&str]) -> bool {
        let filled = self.fill(text, offset, is_template(path));
        let mut unexpanded = self.report.unexpanded.borrow_mut();
        match filled {
            // Without variables: a `$${` has become `${`.
            Ok((filled, false)) => {
                *text = Cow::Owned(filled);
                false
            }
            Ok((filled, true)) => {
                let written = std::mem::replace(text, Cow::Owned(filled));
                unexpanded.insert(offset, Unexpanded::Text(written.into_owned()));
                true
            }
            Err(problems) => {
                let name = field_name(path);
                for problem in problems {
                    let message = format!("{name}: {problem}");
                    self.report.add_problem(offset, message);
                }
                unexpanded.insert(offset, Unexpanded::Wrong);
                true
            }
        }
    }

    /// Returns the expanded text, and whether it has variables; or a problem per wrong variable.
    ///
    /// A template is parsed again later, and `$$` then stands for a `$`. So a template keeps `$$`,
    /// and each `$` in the value of a variable is doubled.
    fn fill(
        &self,
        text: &str,
        offset: usize,
        is_template: bool,
    ) -> Result<(String, bool), Vec<String>> {
        const FORM: &str = "${ begins a variable of the environment, such as \"${REDIS_URL}\"; write $${ for the characters themselves";
        let mut filled = String::with_capacity(text.len());
        let mut has_any = false;
        let mut problems = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            rest = after;
            // `$${` is no variable.
            if let Some(before) = before.strip_suffix('$') {
                filled.extend([before, if is_template { "$${" } else { "${" }]);
                continue;
            }
            let named = after.split_once('}').filter(|(name, _)| is_name(name));
            let Some((name, after)) = named else {
                problems.push(FORM.to_owned());
                continue;
            };
            rest = after;
            match (self.variable)(name) {
                Err(error) => problems.push(describe(name, &error)),
                Ok(value) => {
                    if value.is_empty() {
                        let mut empty = self.report.empty_variables.borrow_mut();
                        empty.insert(offset, name.to_owned());
                    }
                    let dollar = if is_template { "$$" } else { "$" };
                    filled.extend([before, &value.replace('$', dollar)]);
                    self.report.shared.hide(name, value);
                    has_any = true;
                }
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        filled.push_str(rest);
        Ok((filled, has_any))
    }
}

/// Returns the name of a field for messages: the last name in its path.
///
/// In the plans of a zone, a name that is not a field may be a client's key, so it is not shown.
fn field_name<'p>(path: &[&'p str]) -> &'p str {
    let is_index = |part: &str| part.parse::<usize>().is_ok();
    let name = path.iter().rfind(|part| !is_index(part)).copied();
    let name = name.unwrap_or_default();
    match path {
        ["zones", _, "plans", _, ..] if !Plan::has_field(name) => "plans",
        _ => name,
    }
}

/// Returns whether a value is a key, which has its own variables.
fn is_key(path: &[&str]) -> bool {
    matches!(
        path,
        ["zones", _, "key"]
            | ["origins", _, "balance"]
            | ["origins", _, "room", "bind"]
            | ["routes", _, "collapse", "key"]
    )
}

/// Returns whether a value is the secret of a waiting room, an item of a list of such secrets, or a
/// table that contains one.
///
/// The text of such a value is not collected, because output shows collected texts, and this one
/// may contain a secret. The type of the secret keeps a text of its own.
fn has_room_secret(path: &[&str]) -> bool {
    matches!(
        path,
        ["origins"]
            | ["origins", _]
            | ["origins", _, "room"]
            | ["origins", _, "room", "secret", ..]
    )
}

/// Returns whether a value may also have variables of the request: a header field of a route.
fn is_template(path: &[&str]) -> bool {
    matches!(
        path,
        [
            "routes",
            _,
            "request_headers" | "response_headers" | "answer_headers",
            _
        ]
    )
}

/// Returns the message about a variable that cannot be used.
fn describe(name: &str, error: &VarError) -> String {
    match error {
        VarError::NotPresent => format!(
            "{name} is not set in the environment; set it, or write $${{ for the characters themselves"
        ),
        VarError::NotUnicode(_) => {
            format!("{name} is not UTF-8 in the environment; set it to text in that encoding")
        }
    }
}

/// Returns whether a text is the name of a variable, as in shells: letters, digits and `_`.
fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.chars().all(is_part) && text.starts_with(|c: char| !c.is_ascii_digit())
}

/// Returns whether a string in the value contains `${`.
fn has_variable(value: &DeValue) -> bool {
    match value {
        DeValue::String(text) => text.contains("${"),
        DeValue::Array(items) => items.iter().any(|item| has_variable(item.get_ref())),
        DeValue::Table(table) => table.values().any(|item| has_variable(item.get_ref())),
        _ => false,
    }
}
