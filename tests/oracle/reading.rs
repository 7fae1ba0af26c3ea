//! A message, as a parser reads it.

use http::HeaderMap;

/// Fields by name in lower case.
///
/// Names are in the order of their first field. Fields of one name are in their order.
pub type FieldList = Vec<(String, Vec<u8>)>;

/// A message, as far as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    pub head: Head,
    /// Target of a request as it was sent, if it is known.
    pub target: Option<Vec<u8>>,
    pub data: Vec<u8>,
    pub trailers: FieldList,
    /// Whether its end was read.
    pub whole: bool,
    /// Whether the connection stays open after it. Has no meaning before the message is complete.
    pub keeps: bool,
}

/// The head of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Interim responses before it: status and fields.
    pub interim: Vec<(u16, FieldList)>,
    /// Method, authority and path, or status and reason.
    pub line: [String; 3],
    pub is_old: bool,
    pub fields: FieldList,
}

/// Sorts fields for comparison.
pub fn by_name(fields: impl IntoIterator<Item = (String, Vec<u8>)>) -> FieldList {
    let mut list: Vec<(String, Vec<Vec<u8>>)> = Vec::new();
    for (name, value) in fields {
        let name = name.to_ascii_lowercase();
        match list.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(value),
            None => list.push((name, vec![value])),
        }
    }
    for (name, values) in &mut list {
        if name == "content-length" {
            // hyper keeps one of several equal values.
            values.truncate(1);
        }
    }
    let each = |(name, values): (String, Vec<Vec<u8>>)| {
        let named = values.into_iter().map(move |value| (name.clone(), value));
        named.collect::<Vec<_>>()
    };
    list.into_iter().flat_map(each).collect()
}

/// Sorts hyper's fields for comparison.
pub fn of_map(map: &HeaderMap) -> FieldList {
    by_name(
        map.iter()
            .map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())),
    )
}
