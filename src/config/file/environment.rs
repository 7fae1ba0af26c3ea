//! Expands variables of the environment in strings: `"${REDIS_URL}"`.
//!
//! Keys of zones, of `balance`, of `bind` and of `collapse` have their own variables, and none of
//! the environment.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::env::{self, VarError};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::Plan;
use crate::report::Report;
use crate::toml_string::toml_value;

/// Lookup of a variable. Fails if it is not set or not text.
pub(super) type Variable<'v> = &'v dyn Fn(&str) -> Result<String, VarError>;

/// Values with variables before expansion, by the names that lead to them.
pub(super) type UnexpandedValues = BTreeMap<Vec<String>, String>;

/// Returns the value of a variable of this process.
pub(super) fn of_process(name: &str) -> Result<String, VarError> {
    env::var(name)
}

/// Expands the variables in all strings of a file. Reports variables that are not set.
///
/// Returns the values before expansion: each string with variables, and each list or table around
/// such a string.
pub(super) fn expand(file: &mut DeTable, report: &Report, variable: Variable) -> UnexpandedValues {
    let mut expansion = Expansion {
        report,
        variable,
        written: BTreeMap::new(),
    };
    for (name, value) in file {
        expansion.value(value, vec![name.get_ref().to_string()]);
    }
    expansion.written
}

/// Merges the values of all files. `routes`: number of routes per file. All routes form one list.
pub(super) fn merged(files: Vec<UnexpandedValues>, routes: &[usize]) -> UnexpandedValues {
    let mut all = BTreeMap::new();
    let mut earlier = 0;
    for (file, routes) in files.into_iter().zip(routes) {
        for (mut path, text) in file {
            if path[0] == "routes"
                && let Some(index) = path.get_mut(1)
                && let Ok(own) = index.parse::<usize>()
            {
                *index = (earlier + own).to_string();
            }
            all.insert(path, text);
        }
        earlier += routes;
    }
    all
}

/// Expands the variables of one file, and collects the values before expansion.
struct Expansion<'e, 't> {
    report: &'e Report<'t>,
    variable: Variable<'e>,
    written: UnexpandedValues,
}

impl Expansion<'_, '_> {
    /// Expands a value. Returns whether it has variables.
    fn value(&mut self, value: &mut Spanned<DeValue>, path: Vec<String>) -> bool {
        if is_key(&path) || !has_variable(value.get_ref()) {
            return false;
        }
        let below = |name: &str| {
            let mut path = path.clone();
            path.push(name.to_owned());
            path
        };
        let written = toml_value(value.get_ref());
        let at = value.span().start;
        let mut has_any = false;
        match value.get_mut() {
            DeValue::String(text) => has_any = self.text(text, at, &path),
            DeValue::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    has_any |= self.value(item, below(&index.to_string()));
                }
            }
            DeValue::Table(table) => {
                for (name, item) in table {
                    has_any |= self.value(item, below(name.get_ref()));
                }
            }
            _ => {}
        }
        if has_any && !has_room_secret(&path) {
            self.written.insert(path, written);
        }
        has_any
    }

    /// Expands a text. Returns whether it has variables.
    fn text(&self, text: &mut Cow<str>, at: usize, path: &[String]) -> bool {
        let filled = self.filled(text, at, is_template(path));
        let mut expanded = self.report.expanded.borrow_mut();
        match filled {
            // The text has only `$${`.
            Ok((filled, false)) => {
                *text = Cow::Owned(filled);
                false
            }
            Ok((filled, true)) => {
                let written = std::mem::replace(text, Cow::Owned(filled));
                expanded.insert(at, Some(written.into_owned()));
                true
            }
            Err(all) => {
                let is_name = |part: &&String| part.parse::<usize>().is_err();
                let name = path.iter().rfind(is_name).map_or("", String::as_str);
                // In the plans of a zone, a name that is no field may be a client's key.
                let is_in_plans = path.len() > 3 && path[0] == "zones" && path[2] == "plans";
                let is_shown = !is_in_plans || Plan::has_field(name);
                let name = if is_shown { name } else { &path[2] };
                for wrong in all {
                    self.report.wrong(at, format!("{name}: {wrong}"));
                }
                expanded.insert(at, None);
                true
            }
        }
    }

    /// Returns the expanded text, and whether it has variables; or an error per wrong variable.
    ///
    /// A template is read again later. So each `$` stays doubled in it, also in the values of
    /// variables.
    fn filled(
        &self,
        text: &str,
        at: usize,
        is_template: bool,
    ) -> Result<(String, bool), Vec<String>> {
        const FORM: &str = "${ begins a variable of the environment, such as \"${REDIS_URL}\"; write $${ for the characters themselves";
        let mut filled = String::with_capacity(text.len());
        let mut has_any = false;
        let mut wrong = Vec::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("${") {
            if let Some(before) = before.strip_suffix('$') {
                filled.extend([before, if is_template { "$${" } else { "${" }]);
                rest = behind;
                continue;
            }
            let named = behind.split_once('}').filter(|(name, _)| is_name(name));
            let Some((name, after)) = named else {
                wrong.push(FORM.to_owned());
                rest = behind;
                continue;
            };
            rest = after;
            let value = match (self.variable)(name) {
                Ok(value) => value,
                Err(error) => {
                    wrong.push(unusable(name, &error));
                    continue;
                }
            };
            if value.is_empty() {
                let mut empty = self.report.empty.borrow_mut();
                empty.insert(at, name.to_owned());
            }
            if is_template {
                filled.extend([before, &value.replace('$', "$$")]);
            } else {
                filled.extend([before, &value]);
            }
            self.report.shared.hide(name, value);
            has_any = true;
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        filled.push_str(rest);
        Ok((filled, has_any))
    }
}

/// Returns whether a value is a key, which has its own variables.
fn is_key(path: &[String]) -> bool {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    matches!(
        path[..],
        ["zones", _, "key"]
            | ["origins", _, "balance"]
            | ["origins", _, "room", "bind"]
            | ["routes", _, "collapse", "key"]
    )
}

/// Returns whether a value is the secret of a room, a part of it, or a table with one.
///
/// Such a value may contain a secret besides variables. Each secret keeps its own text before
/// expansion.
fn has_room_secret(path: &[String]) -> bool {
    let names = [Some("origins"), None, Some("room"), Some("secret")];
    let mut both = path.iter().zip(names);
    both.all(|(name, required)| required.is_none_or(|required| name == required))
}

/// Returns whether a value may have variables of the request, too: a field that a route sets.
fn is_template(path: &[String]) -> bool {
    const FIELDS: [&str; 3] = ["request_headers", "response_headers", "answer_headers"];
    matches!(path, [routes, _, fields, _] if routes == "routes" && FIELDS.contains(&fields.as_str()))
}

/// Returns the message about a variable that cannot be used.
fn unusable(name: &str, error: &VarError) -> String {
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
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.chars().all(fits) && text.starts_with(|c: char| !c.is_ascii_digit())
}

fn has_variable(value: &DeValue) -> bool {
    match value {
        DeValue::String(text) => text.contains("${"),
        DeValue::Array(items) => items.iter().any(|item| has_variable(item.get_ref())),
        DeValue::Table(table) => table.values().any(|item| has_variable(item.get_ref())),
        _ => false,
    }
}
