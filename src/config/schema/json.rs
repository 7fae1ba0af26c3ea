use serde_json::{Map, Value, json};

use super::form::{HEADER_VALUE, NAME, TOKEN};
use super::{Field, Form, Table, ranges, rules};
use crate::tables::file::FILE;

/// The JSON Schema of a file, for editors.
///
/// It is of draft 7, which the TOML extensions of editors know. It sees fields, types, the form and
/// the bounds of values, and which fields of one table exclude or need each other. It compares no
/// values, and sees nothing of other tables: a route that names an origin that does not exist, or a
/// delay above its burst. `drip check` sees that.
#[must_use]
pub fn schema() -> Value {
    let mut schema = object(&FILE);
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!("gateway.toml of drip");
    schema["minProperties"] = json!(1);
    rules::add(&mut schema);
    schema
}

fn object(table: &Table) -> Value {
    let property = |field: &Field| (field.name.to_owned(), property(field));
    let properties: Map<String, Value> = table.fields.iter().map(property).collect();
    let mut object = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    let required = table.fields.iter().filter(|field| field.example.is_some());
    let required: Vec<&str> = required.map(|field| field.name).collect();
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

fn property(field: &Field) -> Value {
    let mut property = form(&field.form);
    property["description"] = json!(field.about);
    if let Some(default) = field.default {
        // A test parses each of them.
        property["default"] = serde_json::from_str(default).unwrap_or_default();
    }
    property
}

fn form(of: &Form) -> Value {
    match of {
        Form::Text => json!({ "type": "string" }),
        Form::Like(pattern) => like(pattern),
        Form::Duration(least, most) => {
            let zero = if *least == 0 { "0|" } else { "" };
            like(&format!(
                "{zero}{}",
                ranges::with_units(&DURATION_UNITS, *least, *most)
            ))
        }
        Form::DurationOr(other, least, most) => like(&format!(
            "{other}|{}",
            ranges::with_units(&DURATION_UNITS, *least, *most)
        )),
        Form::Size(least, most) => {
            let text = ranges::with_units(&SIZE_UNITS, *least, *most);
            let bytes = ranges::numbers(*least, *most);
            json!({ "anyOf": [
                like(&format!("{text}|{bytes}")),
                { "type": "integer", "minimum": least, "maximum": most },
            ] })
        }
        Form::Template(pattern) => json!({ "type": "string", "pattern": format!("^({pattern})$") }),
        Form::Word(words) => json!({
            "anyOf": [{ "enum": words() }, { "type": "string", "pattern": VARIABLE }],
        }),
        Form::Boolean => json!({ "type": "boolean" }),
        Form::Whole(least, most) => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Form::List(item, least) => json!({
            "type": "array",
            "items": form(item),
            "minItems": least,
            "uniqueItems": true,
        }),
        Form::AnyList(item, least) => json!({
            "type": "array",
            "items": form(item),
            "minItems": least,
        }),
        Form::Table(table) => object(table),
        Form::Named(table) => by_name(&object(table)),
        Form::ByName(value, most) => {
            let mut names = by_name(&form(value));
            names["minProperties"] = json!(1);
            names["maxProperties"] = json!(most);
            names
        }
        Form::ByStatus(value) => json!({
            "type": "object",
            "propertyNames": { "pattern": "^[45]([0-9][0-9]|xx)$" },
            "additionalProperties": form(value),
        }),
        Form::HeaderFields => json!({
            "type": "object",
            "propertyNames": { "pattern": format!("^{TOKEN}$") },
            "additionalProperties": {
                "anyOf": [
                    { "type": "string", "pattern": format!("^({HEADER_VALUE})$|{VARIABLE}") },
                    { "enum": [false] },
                ],
            },
        }),
        Form::Conditions(most) => json!({
            "type": "object",
            "propertyNames": { "pattern": format!("^((header|cookie):{TOKEN}|query:.+)$") },
            "additionalProperties": { "type": "string" },
            "maxProperties": most,
        }),
        Form::OneOf(forms) => {
            let forms: Vec<Value> = forms.iter().map(form).collect();
            json!({ "anyOf": forms })
        }
    }
}

const DURATION_UNITS: [(&str, u64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];
const SIZE_UNITS: [(&str, u64); 4] = [("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10), ("B", 1)];

/// A text that a regular expression matches as a whole, or with a variable of the environment.
fn like(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^({pattern})$|{VARIABLE}") })
}

fn by_name(value: &Value) -> Value {
    json!({
        "type": "object",
        "propertyNames": { "pattern": format!("^{NAME}$") },
        "additionalProperties": value,
    })
}

/// A variable of the environment anywhere in a text.
const VARIABLE: &str = "[$][{][A-Za-z_][A-Za-z0-9_]*[}]";
