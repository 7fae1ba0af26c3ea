//! A client of `/api/live`, which receives a stream of events.

use serde_json::Value;

use super::{Client, Gateway};

/// A connection on which samples are received.
pub struct Listener(Client);

#[derive(Debug)]
pub struct Event {
    pub id: Option<u64>,
    pub name: String,
    pub data: Value,
    /// The data as received.
    pub text: String,
}

impl Listener {
    pub fn connect(gateway: &Gateway, query: &str, fields: &str) -> Self {
        let mut client = Client::connect(gateway.site.admin);
        client.send(
            format!("GET /api/live{query} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n").as_bytes(),
        );
        let head = client.head();
        assert!(head.first_line.contains(" 200 "), "{head:?}");
        assert_eq!(head.field("content-type"), Some("text/event-stream"));
        assert_eq!(head.field("cache-control"), Some("no-store"));
        Self(client)
    }

    /// Reads the next chunk of the body.
    fn chunk(&mut self) -> String {
        let mut size = Vec::new();
        while !size.ends_with(b"\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte);
            size.extend(byte);
        }
        let size = String::from_utf8(size).expect("a size");
        let size = usize::from_str_radix(size.trim(), 16).expect("a size");
        let mut chunk = vec![0; size + 2];
        self.0.read_exact(&mut chunk);
        chunk.truncate(size);
        String::from_utf8(chunk).expect("text")
    }

    /// Reads the next event, which ends with a chunk.
    pub fn next(&mut self) -> Event {
        let (mut id, mut name, mut data) = (None, String::new(), String::new());
        let mut in_data = false;
        loop {
            let text = self.chunk();
            for line in text.split_inclusive('\n') {
                let (line, ended) = (line.trim_end_matches('\n'), line.ends_with('\n'));
                if in_data {
                    data.push_str(line);
                } else if let Some(value) = line.strip_prefix("id: ") {
                    id = value.parse().ok();
                } else if let Some(value) = line.strip_prefix("event: ") {
                    value.clone_into(&mut name);
                } else if let Some(value) = line.strip_prefix("data: ") {
                    data.push_str(value);
                    in_data = true;
                }
                in_data &= !ended;
            }
            if !data.is_empty() && !in_data {
                return Event {
                    id,
                    name,
                    data: serde_json::from_str(&data).expect("JSON"),
                    text: data,
                };
            }
        }
    }

    /// Returns the numbers of the history's samples.
    pub fn history(&mut self) -> Vec<u64> {
        let event = self.next();
        assert_eq!(event.name, "history");
        let samples = event.data["samples"].as_array().expect("a list");
        samples
            .iter()
            .map(|sample| sample["seq"].as_u64().expect("a number"))
            .collect()
    }

    /// Returns all bytes until the response ends.
    pub fn rest(mut self) -> Vec<u8> {
        self.0.rest()
    }
}
