//! A trace collector that parses the parts of OTLP that the tests need.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use crate::support::{Origin, eventually};

/// A span of the protocol, with ids in hexadecimal digits.
#[derive(Clone, Debug)]
pub struct Span {
    pub trace: String,
    pub id: String,
    pub parent: String,
    pub name: String,
    /// 1 is internal, 3 is client.
    pub kind: u64,
    pub begin: u64,
    pub end: u64,
    pub attributes: BTreeMap<String, String>,
    /// Message of an error.
    pub error: Option<String>,
}

impl Span {
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).map(String::as_str)
    }
}

pub struct Collector {
    origin: Origin,
    got: Arc<Mutex<Vec<Span>>>,
}

impl Collector {
    pub fn start() -> Self {
        Self::at("127.0.0.1:0")
    }

    pub fn at(address: &str) -> Self {
        let got = Arc::<Mutex<Vec<Span>>>::default();
        let to_keep = Arc::clone(&got);
        let origin = Origin::at(address, move |exchange| {
            let body = exchange.body()?;
            assert_eq!(exchange.head.first_line, "POST /v1/traces HTTP/1.1");
            let kind = exchange.field("content-type");
            assert_eq!(kind, Some("application/x-protobuf"));
            to_keep.lock().expect("no panic").extend(spans(&body));
            exchange.reply(b"")
        });
        Self { origin, got }
    }

    pub fn address(&self) -> SocketAddr {
        self.origin.address
    }

    pub fn spans(&self) -> Vec<Span> {
        self.got.lock().expect("no panic").clone()
    }

    /// Waits until the collector has this many spans, and returns them.
    pub fn wait_for(&self, count: usize) -> Vec<Span> {
        eventually(&format!("{count} spans arrive"), || {
            self.spans().len() >= count
        });
        self.spans()
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (byte, rest) = bytes.split_first().expect("a whole message");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return value;
        }
    }
}

/// Returns the fields of a message: each an id, and a number or bytes.
fn fields(mut message: &[u8]) -> Vec<(u64, u64, &[u8])> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message);
        let mut number = 0;
        let length = match tag & 7 {
            0 => {
                number = varint(&mut message);
                0
            }
            1 => 8,
            2 => usize::try_from(varint(&mut message)).expect("a length"),
            5 => 4,
            kind => panic!("wire type {kind}"),
        };
        let (bytes, rest) = message.split_at(length);
        found.push((tag >> 3, number, bytes));
        message = rest;
    }
    found
}

/// Returns the values of one field.
fn all(message: &[u8], id: u64) -> Vec<&[u8]> {
    let expected = fields(message).into_iter().filter(|field| field.0 == id);
    expected.map(|field| field.2).collect()
}

fn one(message: &[u8], id: u64) -> &[u8] {
    all(message, id).first().copied().unwrap_or_default()
}

fn number(message: &[u8], id: u64) -> Option<u64> {
    let mut expected = fields(message).into_iter().filter(|field| field.0 == id);
    expected.next().map(|field| field.1)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

fn hex(bytes: &[u8]) -> String {
    let digits = |text: String, byte: &u8| text + &format!("{byte:02x}");
    bytes.iter().fold(String::new(), digits)
}

/// Returns the attributes in this field: each a `KeyValue` with a text or a whole number.
fn attributes(message: &[u8], id: u64) -> BTreeMap<String, String> {
    let attribute = |pair: &[u8]| {
        let value = one(pair, 2);
        let value = number(value, 3).map_or_else(|| text(one(value, 1)), |it| it.to_string());
        (text(one(pair, 1)), value)
    };
    all(message, id).into_iter().map(attribute).collect()
}

/// Returns the spans of an `ExportTraceServiceRequest`, with the attributes of their resources.
fn spans(request: &[u8]) -> Vec<Span> {
    let mut found = Vec::new();
    for of_resource in all(request, 1) {
        let resource = attributes(one(of_resource, 1), 1);
        for of_scope in all(of_resource, 2) {
            found.extend(all(of_scope, 2).into_iter().map(|it| span(it, &resource)));
        }
    }
    found
}

fn span(span: &[u8], resource: &BTreeMap<String, String>) -> Span {
    const ERROR: u64 = 2;
    let time = |id| u64::from_le_bytes(one(span, id).try_into().expect("a time"));
    let status = one(span, 15);
    let mut attributes = attributes(span, 9);
    attributes.extend(resource.clone());
    Span {
        trace: hex(one(span, 1)),
        id: hex(one(span, 2)),
        parent: hex(one(span, 4)),
        name: text(one(span, 5)),
        kind: number(span, 6).unwrap_or_default(),
        begin: time(7),
        end: time(8),
        attributes,
        error: (number(status, 3) == Some(ERROR)).then(|| text(one(status, 2))),
    }
}
