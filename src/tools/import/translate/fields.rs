//! Translates `proxy_set_header` to `request_headers`, and `add_header` to `response_headers`.
//!
//! A scope is the blocks around a directive, from which nginx inherits directives.

use config::{KeyTemplate, toml_string, toml_text};

use super::probe;
use super::scope::Scope;
use super::zones::first_unsupported_variable;
use crate::import::tree::Directive;

/// Header fields that replace those of a message: entries in TOML, such as `x-a = "b"`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::import) struct Fields(Vec<String>);

/// Names of the settings of a route that change header fields.
const REQUEST_HEADERS: &str = "request_headers";
const RESPONSE_HEADERS: &str = "response_headers";

impl Fields {
    /// Reads the request fields that a location sets.
    pub(super) fn of_requests(scope: &Scope) -> Self {
        let mut fields = Self::default();
        for directive in scope.all("proxy_set_header") {
            let [name, value] = &directive.args[..] else {
                let what = "proxy_set_header has a name and a value; it is left out";
                directive.at.note(what);
                continue;
            };
            if value.is_empty() {
                // In drip, `false` removes the field, as an empty value does in nginx.
                fields.add(REQUEST_HEADERS, directive, "false");
            } else if !is_set_by_drip(&name.to_ascii_lowercase(), value) {
                let value = toml_value(directive, value).unwrap_or_else(|why| {
                    // The client's own field must not reach the origin in place of nginx's field.
                    let why = format!("{why}, so the origin gets no such field");
                    note_left_out(directive, &why);
                    "false".to_owned()
                });
                fields.add(REQUEST_HEADERS, directive, &value);
            }
        }
        fields
    }

    /// Reads the response fields that a location sets with `add_header ... always`.
    pub(super) fn of_responses(scope: &Scope) -> Self {
        let mut fields = Self::default();
        for directive in scope.all("add_header") {
            let (name, value) = (directive.arg(0), directive.arg(1));
            // nginx adds no field without a value.
            if value.is_empty() {
                continue;
            }
            let value = if directive.arg(2) != "always" {
                Err("without always, nginx adds it to responses with some statuses only")
            } else if name.eq_ignore_ascii_case("set-cookie") {
                Err("drip would replace the cookies of the origin")
            } else {
                toml_value(directive, value)
            };
            match value {
                Err(why) => note_left_out(directive, why),
                Ok(value) if fields.add(RESPONSE_HEADERS, directive, &value) => {
                    directive.at.note(format!("add_header {name}: drip replaces a field of this name that the origin sends, and nginx sends both"));
                }
                Ok(_) => {}
            }
        }
        fields
    }

    /// Adds a field with a value in TOML, if `setting` accepts it. Returns whether it does.
    ///
    /// `setting`: one of the two settings of a route. A field that is left out is noted.
    fn add(&mut self, setting: &str, directive: &Directive, value: &str) -> bool {
        let name = directive.arg(0).to_ascii_lowercase();
        let entry = format!("{} = {value}", toml_string(&name));
        let entries = [&self.0[..], &[entry]].concat();
        let is_valid = probe::fields(setting, &entries.join(", "));
        if is_valid {
            self.0 = entries;
        } else {
            note_left_out(directive, &format!("{setting} cannot have it"));
        }
        is_valid
    }

    /// Returns the value of `request_headers` or `response_headers` in TOML; `None` without fields.
    pub(super) fn toml(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| format!("{{ {} }}", self.0.join(", ")))
    }
}

/// Returns whether a request field needs no setting.
///
/// drip sends such a value anyway, or `origins` translates it to the origin's `host`.
fn is_set_by_drip(name: &str, value: &str) -> bool {
    match name {
        "host" | "upgrade" | "connection" => true,
        "x-forwarded-for" => ["$proxy_add_x_forwarded_for", "$remote_addr"].contains(&value),
        "x-forwarded-proto" => value == "$scheme",
        "x-forwarded-host" => ["$host", "$http_host"].contains(&value),
        _ => false,
    }
}

/// Returns the value of a field in TOML.
///
/// # Errors
///
/// Returns the reason why drip does not support the value.
fn toml_value(directive: &Directive, value: &str) -> Result<String, &'static str> {
    let template = KeyTemplate::parse_value(value).ok();
    let template = template.filter(|template| first_unsupported_variable(template).is_none());
    let template = template
        .ok_or("drip does not know its variables")?
        .to_string();
    if template.contains("${") {
        return Err(
            "a letter, digit or _ follows a variable, and drip has no ${...} form in header values",
        );
    }
    let has_variable = |start: &str| template.contains(&format!("${start}"));
    if has_variable("arg_") || has_variable("cookie_") {
        let (name, field) = (&directive.name, directive.arg(0));
        directive.at.note(format!("{name} {field}: drip decodes arguments and cookies, and nginx passes them as the client wrote them"));
    }
    Ok(toml_text(&template))
}

/// Notes that a directive is left out.
fn note_left_out(directive: &Directive, why: &str) {
    let (name, field) = (&directive.name, directive.arg(0));
    let what = format!("{name} {field} is not translated: {why}");
    directive.at.note(what);
}
