//! What values of one table mean together, as far as JSON Schema has words for it.

use serde_json::{Value, json};

use crate::tables::route::NOT_REFUSED;

/// A duration above zero.
const LASTING: &str = "^0*[1-9]";
/// A duration of zero.
const ZERO: &str = "^0+(d|h|m|s|ms|us|ns)?$";
/// A rate of parts of a request.
const OF_PARTS: &str = "^[0-9]*[.][0-9]*[1-9]";
const WINDOWS: [&str; 3] = [
    "fixed_window",
    "sliding_window_log",
    "sliding_window_counter",
];
/// Adds the rules to the schema of a file.
pub fn add(schema: &mut Value) {
    let rules = [
        ("/properties/server", server()),
        (
            "/properties/server/properties/listen/items/anyOf/1",
            listen(),
        ),
        ("/properties/origins/additionalProperties", origin()),
        (
            "/properties/origins/additionalProperties/properties/health",
            json!([{ "oneOf": [{ "required": ["path"] }, { "required": ["grpc"] }] }]),
        ),
        (
            "/properties/origins/additionalProperties/properties/room",
            room(),
        ),
        ("/properties/zones/additionalProperties", zone()),
        (
            "/properties/zones/additionalProperties/properties/plans/additionalProperties",
            plan(),
        ),
        ("/properties/routes/items", route()),
        ("/properties/routes/items/properties/limits/items", limit()),
    ];
    for (place, rules) in rules {
        let table = schema.pointer_mut(place);
        debug_assert!(table.is_some(), "no {place}");
        if let Some(table) = table {
            table["allOf"] = rules;
        }
    }
}

/// Tables in which a field has this value; without it, any value that is not another one.
fn has(field: &str, value: &Value) -> Value {
    json!({ "required": [field], "properties": { field: value } })
}

fn not_both(one: &str, other: &str, value: &Value) -> Value {
    json!({ "not": { "required": [one, other], "properties": { other: value } } })
}

fn server() -> Value {
    let with_tls = json!({ "type": "object", "required": ["tls"], "properties": { "tls": { "const": true } } });
    json!([{
        "if": { "not": { "required": ["tls"] } },
        "then": { "properties": { "listen": { "items": { "not": with_tls } } } },
    }])
}

fn listen() -> Value {
    let tls = json!({ "const": true });
    json!([
        not_both("redirect", "tls", &tls),
        {
            "if": has("address", &json!({ "pattern": "^unix:" })),
            "then": { "not": has("tls", &tls) },
        },
        {
            // A variable may begin a socket file.
            "if": has("address", &json!({ "pattern": "^[0-9\\[]" })),
            "then": { "not": { "required": ["mode"] } },
        },
    ])
}

fn origin() -> Value {
    json!([
        {
            "if": has("store", &json!({ "const": "redis" })),
            "then": {
                "properties": { "queue_timeout": { "not": { "pattern": ZERO } } },
                "anyOf": [
                    has("rate", &json!({ "not": { "const": "none" } })),
                    has("max_in_flight", &json!({ "not": { "const": 0 } })),
                ],
            },
        },
        {
            "if": { "required": ["gateways"] },
            "then": has("store", &json!({ "not": { "const": "memory" } })),
        },
        {
            "if": has("queue_timeout", &json!({ "pattern": ZERO })),
            "then": { "properties": { "hold": { "not": { "pattern": LASTING } } } },
        },
    ])
}

fn room() -> Value {
    json!([{ "anyOf": [
        has("sessions", &json!({ "minimum": 1 })),
        has("admit", &json!({ "not": { "const": "none" } })),
        { "required": ["opens"] },
    ] }])
}

fn zone() -> Value {
    let plans = |value: &Value| json!({ "additionalProperties": value });
    let rate = |value: &Value| {
        json!({ "properties": {
            "rate": { "not": value },
            "plans": plans(&json!({ "properties": { "rate": { "not": value } } })),
        } })
    };
    let is_lasting = json!({ "pattern": LASTING });
    let counts = |algorithms: &[&str]| has("algorithm", &json!({ "enum": algorithms }));
    let meters: Vec<&str> = [&WINDOWS[..], &["token_bucket"]].concat();
    json!([
        {
            "if": has("store", &json!({ "const": "redis" })),
            "then": rate(&json!({ "const": "none" })),
        },
        {
            "if": has("lease", &is_lasting),
            "then": {
                "required": ["store"],
                "properties": {
                    "store": { "not": { "const": "memory" } },
                    "algorithm": { "not": { "const": "sliding_window_log" } },
                },
            },
        },
        { "if": counts(&meters), "then": rate(&json!({ "const": "none" })) },
        { "if": counts(&WINDOWS), "then": rate(&json!({ "pattern": OF_PARTS })) },
        {
            "if": counts(&WINDOWS),
            "then": { "properties": { "plans": plans(&json!({ "not": { "required": ["burst"] } })) } },
        },
        {
            "if": counts(&["token_bucket"]),
            "then": { "properties": { "plans": plans(&json!({ "properties": { "burst": { "minimum": 1 } } })) } },
        },
    ])
}

fn plan() -> Value {
    json!([{ "anyOf": [
        { "required": ["file"] },
        has("keys", &json!({ "minItems": 1 })),
    ] }])
}

fn route() -> Value {
    let useless = NOT_REFUSED.map(|field| json!({ "required": [field] }));
    json!([{
        "if": { "required": ["refuse"] },
        "then": { "not": { "anyOf": useless } },
        "else": { "required": ["origin"] },
    }])
}

fn limit() -> Value {
    json!([not_both("delay", "nodelay", &json!({ "const": true }))])
}
