//! Trailers: fields after a chunked body, or after a body over HTTP/2.

use super::field_name::FieldName;

/// Maximum number of trailer fields.
const MAX_TRAILERS: usize = 128;

/// Trailer fields of a body that may be forwarded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trailers(Vec<Line>);

/// Name and value of a field.
type Line = (Box<[u8]>, Box<[u8]>);

impl Trailers {
    /// Parses a trailer section, which ends with an empty line.
    ///
    /// Fields for framing, routing or authentication are dropped (RFC 9110, section 6.5.1). Returns
    /// `None` if a field is malformed.
    pub fn parse(section: &[u8]) -> Option<Self> {
        let mut lines = [httparse::EMPTY_HEADER; MAX_TRAILERS];
        let parsed = httparse::parse_headers(section, &mut lines);
        let Ok(httparse::Status::Complete((end, parsed))) = parsed else {
            return None;
        };
        let mut trailers = Self::default();
        for line in parsed {
            trailers.push(line.name.as_bytes(), line.value);
        }
        (end == section.len()).then_some(trailers)
    }

    /// Adds a field, unless it is not allowed as a trailer.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        if may_trail(name) {
            self.0.push((name.into(), value.into()));
        }
    }

    /// Returns the fields whose name `is_kept` accepts.
    pub(crate) fn filtered(&self, is_kept: impl Fn(&[u8]) -> bool) -> Self {
        let fields = self.0.iter().filter(|(name, _)| is_kept(name));
        Self(fields.cloned().collect())
    }

    /// Returns every field: its name and its value.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Returns whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Fields that change the meaning of a message: a trailer comes too late for them.
///
/// None of the fields with a [`FieldName`] of their own may be a trailer either.
pub(super) const NEVER_TRAILING: [&[u8]; 11] = [
    b"age",
    b"cache-control",
    b"content-encoding",
    b"content-range",
    b"expires",
    b"location",
    b"max-forwards",
    b"pragma",
    b"retry-after",
    b"set-cookie",
    b"vary",
];

/// Returns whether a field is allowed as a trailer.
fn may_trail(name: &[u8]) -> bool {
    let is_never = |never: &&[u8]| name.eq_ignore_ascii_case(never);
    let is_pseudo = name.first() == Some(&b':');
    FieldName::of(name) == FieldName::Other && !is_pseudo && !NEVER_TRAILING.iter().any(is_never)
}
