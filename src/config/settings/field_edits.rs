//! Edits of header fields.

use crate::KeyTemplate;
use crate::spelling::is_same_field;

/// Edits of a message's header fields: fields to set, and fields to remove.
///
/// A field that is set replaces all fields of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldEdits(Vec<(String, FieldEdit)>);

/// Edit of the fields of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldEdit {
    /// Replace the fields by one field with this value.
    Set(KeyTemplate),
    /// Remove the fields.
    Remove,
}

impl FieldEdits {
    /// Makes edits in the order in which they are written. Each name occurs once, ignoring case.
    pub fn new(edits: Vec<(String, FieldEdit)>) -> Self {
        Self(edits)
    }

    /// Returns whether there are no edits.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether fields of this name are replaced or removed.
    ///
    /// `_` and other punctuation count as `-`: programs that read fields as variables do not
    /// distinguish them.
    pub fn has(&self, name: &[u8]) -> bool {
        self.0.iter().any(|(known, _)| is_same_field(known, name))
    }

    /// Returns the fields to set, with their values.
    pub fn set(&self) -> impl Iterator<Item = (&str, &KeyTemplate)> {
        self.iter().filter_map(|(name, edit)| match edit {
            FieldEdit::Set(value) => Some((name, value)),
            FieldEdit::Remove => None,
        })
    }

    /// Returns all edits, in the order in which they are written.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &FieldEdit)> {
        self.0.iter().map(|(name, edit)| (name.as_str(), edit))
    }
}
