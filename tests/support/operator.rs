//! Requests to the admin port.

use serde_json::Value;

use crate::support::{Answer, Client, Gateway};

/// Sends a request with more header lines to the admin port.
pub fn ask(gateway: &Gateway, method: &str, path: &str, fields: &str) -> Answer {
    let mut client = Client::connect(gateway.site.admin);
    let admin = gateway.site.admin;
    client.send(format!("{method} {path} HTTP/1.1\r\nHost: {admin}\r\n{fields}\r\n").as_bytes());
    client.answer()
}

/// Sends a request with a body to the admin port.
pub fn send(gateway: &Gateway, method: &str, path: &str, body: &str) -> Answer {
    send_with(gateway, method, path, "", body)
}

/// Sends a request with a body and more header lines.
pub fn send_with(gateway: &Gateway, method: &str, path: &str, fields: &str, body: &str) -> Answer {
    let length = body.len();
    let fields = format!("{fields}Content-Length: {length}\r\n\r\n{body}");
    let (admin, mut client) = (gateway.site.admin, Client::connect(gateway.site.admin));
    client.send(format!("{method} {path} HTTP/1.1\r\nHost: {admin}\r\n{fields}").as_bytes());
    client.answer()
}

/// Sends a request with a body. Returns the status and the JSON of the response.
pub fn post(gateway: &Gateway, path: &str, body: &str) -> (u16, Value) {
    let answer = send(gateway, "POST", path, body);
    (answer.status, parse(&answer))
}

/// Makes a change. Returns the JSON of the response.
pub fn put(gateway: &Gateway, path: &str, body: &str) -> Value {
    let answer = send(gateway, "PUT", path, body);
    assert_eq!(answer.status, 200, "{path} {body}: {}", answer.text());
    parse(&answer)
}

/// Reverts a change.
pub fn undo(gateway: &Gateway, path: &str) {
    let (status, answer) = delete(gateway, path);
    assert_eq!(status, 200, "{path}: {answer}");
}

/// Returns the JSON response of a path.
pub fn json(gateway: &Gateway, path: &str) -> Value {
    let answer = ask(gateway, "GET", path, "");
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    assert_eq!(answer.field("content-type"), Some("application/json"));
    assert_eq!(answer.field("cache-control"), Some("no-store"));
    parse(&answer)
}

pub fn parse(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("no JSON: {}", answer.text()))
}

/// Returns the gate of the first origin.
pub fn gate(gateway: &Gateway) -> Value {
    json(gateway, "/api/origins")["origins"][0]["gate"].clone()
}

/// Returns the keys of the zone `z`.
pub fn keys(gateway: &Gateway, query: &str) -> Vec<Value> {
    let keys = json(gateway, &format!("/api/zones/z/keys{query}"));
    keys["keys"].as_array().expect("a list").clone()
}

/// Returns the names of keys, in their order.
pub fn names(keys: &[Value]) -> Vec<&str> {
    keys.iter()
        .map(|key| key["key"].as_str().expect("a text"))
        .collect()
}

pub fn delete(gateway: &Gateway, path: &str) -> (u16, Value) {
    let answer = ask(gateway, "DELETE", path, "");
    (answer.status, parse(&answer))
}

/// Returns the texts of the last changes, the newest first.
pub fn changes(gateway: &Gateway) -> Vec<String> {
    let changes = json(gateway, "/api/config")["changes"].clone();
    let changes = changes.as_array().expect("a list").iter();
    let text = |change: &Value| change["what"][0].as_str().expect("a text").to_owned();
    changes.map(text).collect()
}
