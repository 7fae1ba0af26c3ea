use serde_json::{Map, Value, json};

use super::form::{HEADER_VALUE, NAME, TOKEN};
use super::{FILE, Field, Form, Table};

/// The JSON Schema of a file, for editors.
///
/// It is of draft 7, which the TOML extensions of editors know. It sees fields, types and the form
/// of values; it does not see what a value means together with others, such as a route that names
/// an origin that does not exist. `drip check` sees that.
#[must_use]
pub fn schema() -> Value {
    let mut schema = object(&FILE);
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!("gateway.toml of drip");
    schema["minProperties"] = json!(1);
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
    let required = table.fields.iter().filter(|field| field.is_required);
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
        Form::Like(pattern) => {
            json!({ "type": "string", "pattern": format!("^({pattern})$|{VARIABLE}") })
        }
        Form::Template(pattern) => json!({ "type": "string", "pattern": format!("^({pattern})$") }),
        Form::Word(words) => json!({
            "anyOf": [{ "enum": words }, { "type": "string", "pattern": VARIABLE }],
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
        Form::OneOf(forms) => {
            let forms: Vec<Value> = forms.iter().map(form).collect();
            json!({ "anyOf": forms })
        }
    }
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
