//! Edits of header fields in a route: `request_headers`, `response_headers` and `answer_headers`.
//!
//! Example: `{ "x-api-version" = "2", "cookie" = false }` sets one field and removes another.

use toml::de::DeValue;

use super::jwt::note_claims;
use super::prelude::*;
use crate::KeyTemplate;
use crate::spelling::is_same_field;

/// Edits of a message's header fields: fields to set, and fields to remove.
///
/// A field that is set replaces all fields of its name. Each name occurs once, ignoring case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldEdits(Vec<(String, FieldEdit)>);

/// Edit of the fields of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldEdit {
    /// Replace the fields by one field with this value.
    Set(KeyTemplate),
    /// Remove the fields.
    Remove,
}

impl FieldEdits {
    /// Returns whether there are no edits.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether fields of this name are replaced or removed.
    ///
    /// `_` and other punctuation count as `-`: programs that read fields as variables do not
    /// distinguish them.
    pub fn has(&self, name: &[u8]) -> bool {
        self.0.iter().any(|(known, _)| is_same_field(known, name))
    }

    /// Returns the names of the fields that get a value, each with its value.
    pub fn set(&self) -> impl Iterator<Item = (&str, &KeyTemplate)> {
        self.iter().filter_map(|(name, edit)| match edit {
            FieldEdit::Set(value) => Some((name, value)),
            FieldEdit::Remove => None,
        })
    }

    /// Returns all edits, in the order in which they are written.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &FieldEdit)> {
        self.0.iter().map(|(name, edit)| (name.as_str(), edit))
    }
}

/// Edits of request fields. Values may have variables of the request.
pub(super) const REQUEST_FIELDS: Kind<FieldEdits> = Kind {
    form: FORM,
    read: |node| read(node, Owner::Request),
    show: show_edits,
};

/// Edits of response fields. Values may have variables of the request.
pub(super) const RESPONSE_FIELDS: Kind<FieldEdits> = Kind {
    read: |node| read(node, Owner::Response),
    ..REQUEST_FIELDS
};

/// Values by the names of fields. `false` removes a field.
const FORM: Form = Form::ByName(
    TOKEN,
    &Form::OneOf(&[Form::Regex(HEADER_VALUE), Form::False]),
);

/// Shows edits as an inner table; nothing if there are none.
fn show_edits(edits: &FieldEdits) -> Option<Shown> {
    let edit = |(name, edit): (&str, &FieldEdit)| {
        let value = match edit {
            FieldEdit::Set(value) => toml_text(&value.to_string()),
            FieldEdit::Remove => "false".to_owned(),
        };
        (toml_string(name), value)
    };
    (!edits.is_empty()).then(|| Shown::Value(toml_table(edits.iter().map(edit))))
}

/// Reads a value with variables, such as `$remote_addr`. `entry`: the field in the file.
fn read_template(entry: Node, value: &str) -> Option<KeyTemplate> {
    match KeyTemplate::parse_value(value) {
        Ok(template) => note_claims(entry, &template).then_some(template),
        Err(wrong) => {
            for error in wrong {
                entry.report_problem(&format!("{error}; write $$ for a $ itself"));
            }
            None
        }
    }
}

/// Returns whether the file may not edit a field, because drip writes or removes it.
///
/// These are the fields about the framing of a message and about one connection (RFC 9110, section
/// 7.6.1), and the date, which drip adds where it is missing. `name`: in lowercase.
fn is_reserved(name: &str) -> bool {
    let is_framing = matches!(name, "content-length" | "transfer-encoding" | "trailer");
    let is_about_connection = matches!(name, "connection" | "keep-alive" | "proxy-connection");
    let asks_for_more = matches!(name, "upgrade" | "http2-settings" | "expect" | "te");
    is_framing || is_about_connection || asks_for_more || name == "date"
}

/// Message whose fields are edited.
#[derive(Clone, Copy, PartialEq)]
enum Owner {
    Request,
    Response,
}

/// Reads a table of header fields.
fn read(node: Node, owner: Owner) -> Option<FieldEdits> {
    let entries = node.entries_or("a table such as { \"x-name\" = \"value\" }")?;
    let mut edits: Vec<(String, FieldEdit)> = Vec::new();
    let mut is_right = true;
    for entry in entries {
        let name = entry.name;
        let mut earlier = edits.iter();
        if earlier.any(|(known, _)| is_same_field(known, name.as_bytes())) {
            entry.report_problem(
                "this field is set twice, because case, - and _ make no difference; remove one",
            );
            is_right = false;
        }
        match (check_name(entry, owner), read_edit(entry)) {
            (true, Some(edit)) => edits.push((name.to_owned(), edit)),
            _ => is_right = false,
        }
    }
    is_right.then_some(FieldEdits(edits))
}

/// Returns whether a field of this name may be edited. Reports a problem if not.
fn check_name(entry: Node, owner: Owner) -> bool {
    let lower = entry.name.to_ascii_lowercase();
    let problem = if !values::is_token(entry.name) {
        NO_TOKEN
    } else if lower == "host" && owner == Owner::Request {
        "the Host that the origin gets is the host of [origins.NAME]: \"preserve\", \"origin\" or a name; set it there"
    } else if is_reserved(&lower) {
        "drip writes this field itself, or it belongs to one connection; remove it here"
    } else {
        return true;
    };
    entry.report_as_is(problem);
    false
}

/// Returns the reason why a field of this name cannot carry request ids, if there is one.
pub(super) fn why_unfit_for_ids(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    let is_taken = is_reserved(&lower) || matches!(&*lower, "authorization" | "cookie" | "host");
    if !values::is_token(name) {
        Some(NO_TOKEN)
    } else if is_taken || lower.starts_with("x-forwarded-") {
        Some("this field has another meaning")
    } else {
        None
    }
}

/// Message about a name that is not a token.
const NO_TOKEN: &str = "the name of a header field has letters, digits and any of !#$%&'*+-.^_`|~";

/// Reads one edit: a value to set, or `false` to remove the field.
fn read_edit(entry: Node) -> Option<FieldEdit> {
    if let DeValue::Boolean(false) = entry.value {
        return Some(FieldEdit::Remove);
    }
    let value = entry.value.as_str();
    let value = value.or_else(|| entry.report_expected("a text, or false to remove the field"))?;
    if value.is_empty() {
        return entry.refuse_as_is("an empty value; write false to remove the field");
    }
    let is_blank = |c: char| c == ' ' || c == '\t';
    if value.chars().any(|c| c.is_ascii_control() && c != '\t')
        || value.starts_with(is_blank)
        || value.ends_with(is_blank)
    {
        return entry.refuse_as_is(
            "a value has no line breaks or other control characters, and no blanks around it",
        );
    }
    read_template(entry, value).map(FieldEdit::Set)
}
