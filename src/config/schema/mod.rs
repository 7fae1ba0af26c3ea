//! Fields of a file: the tables that its readers use, and the JSON Schema made from them.
//!
//! The schema has exactly the fields that are read. [`Fields`](super::fields::Fields) checks that a
//! reader requests only fields of its table, and that it requests all of them.

mod form;
mod json;

pub(super) use form::*;
pub use json::schema;

/// A table with a fixed set of fields, in the order in which messages and `show` list them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    pub(super) fields: &'static [Field],
}

/// A field of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) form: Form,
    /// Default as JSON, which is also TOML; `None` if it is not one value.
    pub(super) default: Option<&'static str>,
    /// Example value as JSON, if the field is required.
    pub(super) example: Option<&'static str>,
    /// Point at which a change takes effect.
    pub(super) effect: Effect,
    /// Meaning of the field, for people who write a file.
    pub(super) about: &'static str,
}

/// Point at which a change of a field takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// At the reload, also for requests that wait.
    Now,
    /// For requests whose head arrives after the reload.
    NextRequest,
    /// For connections that are accepted or opened after the reload.
    NewConnections,
    /// After a restart.
    Restart,
}

impl Table {
    /// Returns whether the table has a field of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.field(name).is_some()
    }

    /// Returns the definition of a field.
    pub(super) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Returns the names of the fields, in the order of messages.
    pub(super) fn names(&self) -> Vec<&'static str> {
        self.fields.iter().map(|field| field.name).collect()
    }
}

impl Field {
    /// Makes an optional field of this form, without a name or a default.
    pub const fn of(form: Form) -> Self {
        Self {
            name: "",
            form,
            default: None,
            example: None,
            effect: Effect::Now,
            about: "",
        }
    }

    /// Returns the field with a default, as JSON.
    pub(super) const fn or(self, default: &'static str) -> Self {
        Self {
            default: Some(default),
            ..self
        }
    }

    /// Returns the field as a required one. Messages show `example`.
    pub(super) const fn required(self, example: &'static str) -> Self {
        Self {
            example: Some(example),
            ..self
        }
    }

    /// Completes the field with the values of its table. A field that has a name keeps it.
    pub(super) const fn described(
        self,
        name: &'static str,
        effect: Effect,
        about: &'static str,
    ) -> Self {
        Self {
            name: if self.name.is_empty() {
                name
            } else {
                self.name
            },
            effect,
            about,
            ..self
        }
    }
}
