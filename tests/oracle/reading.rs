//! One message as a parser reads it.

use http::HeaderMap;

/// Fields by name in lower case: fields of one name in their order, names in the order of their first field.
pub type FieldList = Vec<(String, Vec<u8>)>;

/// One message, as far as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    pub head: Head,
    /// The target of a request as it was sent, where it is known.
    pub target: Option<Vec<u8>>,
    pub data: Vec<u8>,
    pub trailers: FieldList,
    /// Whether its end was read.
    pub whole: bool,
    /// Whether the connection stays open after it. Has no meaning before it is complete.
    pub keeps: bool,
}

/// The head of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Interim answers before it: their status and fields.
    pub interim: Vec<(u16, FieldList)>,
    /// Method, authority and path, or status and reason.
    pub line: [String; 3],
    pub is_old: bool,
    pub fields: FieldList,
}

/// Brings fields into the order in which they are compared.
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
            // hyper keeps one of several equal ones.
            values.truncate(1);
        }
    }
    let each = |(name, values): (String, Vec<Vec<u8>>)| {
        let named = values.into_iter().map(move |value| (name.clone(), value));
        named.collect::<Vec<_>>()
    };
    list.into_iter().flat_map(each).collect()
}

/// The same for hyper's fields.
pub fn of_map(map: &HeaderMap) -> FieldList {
    by_name(
        map.iter()
            .map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())),
    )
}
