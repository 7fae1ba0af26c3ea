use crate::KeyTemplate;
use crate::spelling::is_same_field;

/// Changes of a message's header fields: fields to set, and fields to remove.
///
/// A field that is set replaces all fields of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldEdits(Vec<(String, FieldEdit)>);

/// What becomes of the fields of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldEdit {
    /// They are replaced by one field with this value.
    Set(KeyTemplate),
    /// They are removed.
    Remove,
}

impl FieldEdits {
    /// Changes in the order in which they are written. Each name is there once, whatever its case.
    pub fn new(edits: Vec<(String, FieldEdit)>) -> Self {
        Self(edits)
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether fields of this name are replaced or removed.
    ///
    /// `_` and other signs count as `-`: programs that read fields as variables see them alike.
    pub fn has(&self, name: &[u8]) -> bool {
        self.0.iter().any(|(known, _)| is_same_field(known, name))
    }

    /// The fields to set, with their values.
    pub fn set(&self) -> impl Iterator<Item = (&str, &KeyTemplate)> {
        self.iter().filter_map(|(name, edit)| match edit {
            FieldEdit::Set(value) => Some((name, value)),
            FieldEdit::Remove => None,
        })
    }

    /// All changes, in the order in which they are written.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &FieldEdit)> {
        self.0.iter().map(|(name, edit)| (name.as_str(), edit))
    }
}
