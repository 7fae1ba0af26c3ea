//! Writes the JSON Schema of a configuration file, which editors use to complete and check it.

use serde_json::{Map, Value, json};

use super::{Field, Form, Table};
use crate::tables::file::FILE;

/// Returns the JSON Schema of a file, for editors.
///
/// The schema is of draft 7, which the TOML extensions of editors support. It has fields, types,
/// the form of texts and the bounds of numbers. It does not describe relations between values, or
/// that a name must exist: `drip check` checks these.
pub fn schema() -> Value {
    let mut schema = table_schema(&FILE);
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!("gateway.toml of drip");
    schema["minProperties"] = json!(1);
    // Sorted, so that the text does not depend on the order in which objects are built.
    schema.sort_all_objects();
    schema
}

/// Returns the schema of a table.
fn table_schema(table: &Table) -> Value {
    let property = |field: &Field| (field.name.to_owned(), field_schema(field));
    let properties: Map<String, Value> = table.fields.iter().map(property).collect();
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    let required = table.fields.iter().filter(|field| field.example.is_some());
    let required: Vec<&str> = required.map(|field| field.name).collect();
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// Returns the schema of a field, with its meaning and its default.
fn field_schema(field: &Field) -> Value {
    let mut schema = value_schema(&field.form);
    schema["description"] = json!(field.about);
    if let Some(default) = field.default {
        // A test parses each default.
        schema["default"] = serde_json::from_str(default).unwrap_or_default();
    }
    schema
}

/// Returns the schema of a value of this form.
fn value_schema(form: &Form) -> Value {
    match form {
        Form::Text => json!({ "type": "string" }),
        Form::Regex(pattern) => {
            json!({ "type": "string", "pattern": format!("^({pattern})$|{VARIABLE}") })
        }
        Form::Word(words) => json!({
            "anyOf": [{ "enum": words() }, { "type": "string", "pattern": VARIABLE }],
        }),
        Form::False => json!({ "enum": [false] }),
        Form::Boolean => json!({ "type": "boolean" }),
        Form::Whole(min, max) => {
            json!({ "type": "integer", "minimum": min, "maximum": max })
        }
        Form::List(item, min_items) => {
            json!({ "type": "array", "items": value_schema(item), "minItems": min_items })
        }
        Form::UniqueList(item, min_items) => {
            let mut list = value_schema(&Form::List(item, *min_items));
            list["uniqueItems"] = json!(true);
            list
        }
        Form::Table(table) => table_schema(table),
        Form::ByName(names, value) => json!({
            "type": "object",
            "propertyNames": { "pattern": format!("^({names})$") },
            "additionalProperties": value_schema(value),
        }),
        Form::BoundedByName(names, value, [min, max]) => {
            let mut table = value_schema(&Form::ByName(names, value));
            table["minProperties"] = json!(min);
            table["maxProperties"] = json!(max);
            table
        }
        Form::OneOf(forms) => {
            let forms: Vec<Value> = forms.iter().map(value_schema).collect();
            json!({ "anyOf": forms })
        }
    }
}

/// Regular expression of a variable of the environment, anywhere in a text.
const VARIABLE: &str = "[$][{][A-Za-z_][A-Za-z0-9_]*[}]";
