//! Fields of a message's head: ranges of its bytes, with well-known names recognized once.
//!
//! `field_name` has the well-known names. A set of names is a number with one bit for each name.

use httparse::Header;
use smallvec::SmallVec;

use super::field_name::FieldName;

/// Maximum number of fields in a request.
pub const MAX_REQUEST_FIELDS: usize = 256;
/// Maximum number of fields in a response.
pub const MAX_RESPONSE_FIELDS: usize = 512;

/// Range of a part of a head in the bytes of the head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    start: u32,
    length: u32,
}

impl Span {
    pub(super) fn new(start: usize, length: usize) -> Self {
        // Heads are far shorter than 4 GB: the configuration limits them to a few MB.
        let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self {
            start: narrow(start),
            length: narrow(length),
        }
    }

    /// Appends `part` to `bytes`, and returns its range.
    pub(super) fn append(bytes: &mut Vec<u8>, part: &[u8]) -> Self {
        let start = bytes.len();
        bytes.extend_from_slice(part);
        Self::new(start, part.len())
    }

    /// Returns the range of `part`, which must be a slice of `whole`.
    pub(super) fn of(whole: &[u8], part: &[u8]) -> Self {
        let start = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
        Self::new(start, part.len())
    }

    /// Returns the bytes of this range.
    pub(super) fn in_bytes(self, bytes: &[u8]) -> &[u8] {
        let (start, length) = (self.start as usize, self.length as usize);
        bytes.get(start..start + length).unwrap_or_default()
    }
}

/// Ranges of a field's name and value in the bytes of its head.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Start of the name in the bytes of the head.
    name_start: u32,
    name_length: u16,
    /// Well-known name, or `Other`.
    pub(super) known: FieldName,
    value: Span,
}

impl Field {
    /// Creates a field; `None` if the name is too long for a field name.
    pub(super) fn new(name: Span, known: FieldName, value: Span) -> Option<Self> {
        Some(Self {
            name_start: name.start,
            name_length: name.length.try_into().ok()?,
            known,
            value,
        })
    }

    /// Appends a field to `bytes`; `None` if its name is too long for a field name.
    pub(super) fn append(bytes: &mut Vec<u8>, name: &[u8], value: &[u8]) -> Option<Self> {
        let known = FieldName::of(name);
        let (name, value) = (Span::append(bytes, name), Span::append(bytes, value));
        Self::new(name, known, value)
    }

    /// Returns the range of the name.
    pub(super) fn name(self) -> Span {
        Span {
            start: self.name_start,
            length: self.name_length.into(),
        }
    }
}

/// Function that writes a field, given its name and its value.
pub type Put<'a> = &'a mut dyn FnMut(&[u8], &[u8]);

/// Writes a field whose value is a number.
pub(crate) fn put_number(put: Put<'_>, name: &[u8], number: impl itoa::Integer) {
    put(name, itoa::Buffer::new().format(number).as_bytes());
}

/// Table of fields, built before their number is known.
pub type FieldTable = SmallVec<[Field; 32]>;

/// Builds the table of a request's fields, and the bit set of the names in it.
///
/// Returns `None` if a name is too long, or if a line ends in a line feed without a carriage
/// return. The parser accepts that (RFC 9112, section 2.2), but the gateway does not.
pub(super) fn strict_table(head: &[u8], parsed: &[Header<'_>]) -> Option<(Box<[Field]>, u32)> {
    let (mut table, mut present) = (Vec::with_capacity(parsed.len()), 0);
    for header in parsed {
        let field = field(head, header)?;
        // The line before this field.
        if !head.get(..field.name_start as usize)?.ends_with(b"\r\n") {
            return None;
        }
        present |= field.known.bit();
        table.push(field);
    }
    let is_strict = head.ends_with(b"\r\n\r\n");
    is_strict.then(|| (table.into_boxed_slice(), present))
}

/// Fills the table with the parsed fields of `head`. Returns the bit set of the names in it.
///
/// Accepts any line endings. Returns `None` if a name is too long.
pub(super) fn fill(table: &mut FieldTable, head: &[u8], parsed: &[Header<'_>]) -> Option<u32> {
    table.clear();
    let mut present = 0;
    for header in parsed {
        let field = field(head, header)?;
        present |= field.known.bit();
        table.push(field);
    }
    Some(present)
}

/// Converts a parsed field to ranges of `head`.
fn field(head: &[u8], header: &Header<'_>) -> Option<Field> {
    let name = header.name.as_bytes();
    let value = Span::of(head, header.value);
    Field::new(Span::of(head, name), FieldName::of(name), value)
}

/// Returns the bit set of the names in a table.
pub(super) fn present_names(table: &[Field]) -> u32 {
    table.iter().fold(0, |all, field| all | field.known.bit())
}

/// The fields of a head, in order.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    /// Bytes of the head, which the ranges refer to.
    pub(super) head: &'a [u8],
    pub(super) table: &'a [Field],
    /// Bit set of the names that occur.
    pub(super) present: u32,
}

impl<'a> Fields<'a> {
    /// Returns every field: its known name, its name as sent, and its trimmed value.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = (FieldName, &'a [u8], &'a [u8])> {
        self.table.iter().map(move |field| {
            let (name, value) = (field.name(), field.value);
            let (name, value) = (name.in_bytes(self.head), value.in_bytes(self.head));
            (field.known, name, value)
        })
    }

    /// Returns whether the field occurs.
    pub fn has(self, known: FieldName) -> bool {
        self.present & known.bit() != 0
    }

    /// Returns the values of a well-known field, in order.
    pub fn all(self, known: FieldName) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        let table = if self.has(known) { self.table } else { &[] };
        let fields = table.iter().filter(move |field| field.known == known);
        fields.map(move |field| field.value.in_bytes(self.head))
    }

    /// Returns the first value of a well-known field.
    pub fn first(self, known: FieldName) -> Option<&'a [u8]> {
        self.all(known).next()
    }

    /// Returns the values of the fields called `name`, in order, as they are written.
    pub fn named(self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.named_by(name.len(), move |found| {
            found.eq_ignore_ascii_case(name.as_bytes())
        })
    }

    /// Returns the values of the fields whose name has this length and meets `is_name`, in order.
    ///
    /// Most names have another length, so they are not read.
    pub fn named_by(
        self,
        length: usize,
        is_name: impl Fn(&[u8]) -> bool,
    ) -> impl Iterator<Item = &'a [u8]> {
        self.table
            .iter()
            .filter(move |field| usize::from(field.name_length) == length)
            .filter(move |field| is_name(field.name().in_bytes(self.head)))
            .map(move |field| field.value.in_bytes(self.head))
    }

    /// Returns the elements of a well-known list field, without the blanks around them.
    pub fn elements(self, known: FieldName) -> impl Iterator<Item = &'a [u8]> {
        let lines = self.all(known);
        let elements = lines.flat_map(|line| line.split(|byte| *byte == b','));
        elements.map(without_blanks)
    }

    /// Returns whether a well-known list field has this element, ignoring case.
    pub fn lists(self, known: FieldName, element: &[u8]) -> bool {
        self.elements(known)
            .any(|it| it.eq_ignore_ascii_case(element))
    }

    /// Returns whether the field is not forwarded, because `Connection` lists it.
    ///
    /// Some fields are forwarded even then.
    pub fn is_listed_in_connection(self, known: FieldName, name: &[u8]) -> bool {
        self.has(FieldName::Connection)
            && !known.is_always_forwarded()
            && self.lists(FieldName::Connection, name)
    }
}

/// Returns the text if it consists of digits only, at least one.
pub(crate) fn decimal(text: &[u8]) -> Option<&str> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    str::from_utf8(text).ok().filter(|_| is_number)
}

/// Returns the only value; `None` if there is none or several.
///
/// Of several fields with the same name, programs differ in which one they read.
pub(crate) fn only<T>(mut values: impl Iterator<Item = T>) -> Option<T> {
    let first = values.next();
    first.filter(|_| values.next().is_none())
}

/// Removes the blanks around a text (RFC 9110, section 5.5).
///
/// A form feed is not a blank. A carriage return without its line feed is not a blank either.
pub(crate) fn without_blanks(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

#[cfg(test)]
mod tests;
