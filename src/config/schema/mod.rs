//! Definitions of the tables and fields of a file: names, forms of values, defaults and meanings.
//!
//! Readers, messages, `show` and the JSON Schema use the same definitions, which the macro `table!`
//! makes (`table_settings`). [`Fields`](super::fields::Fields) checks in debug builds that a reader
//! requests all fields of its table, and no others.

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
    /// Type of the value, and the form of its text.
    pub(super) form: Form,
    /// Default as JSON, which is also TOML; `None` if the field has none, or not one value.
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
    /// Makes an optional field of this form. [`described`](Self::described) gives it a name.
    pub const fn of_form(form: Form) -> Self {
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
    pub(super) const fn with_default(self, default: &'static str) -> Self {
        Self {
            default: Some(default),
            ..self
        }
    }

    /// Returns the field as a required one. Messages show `example`, which is JSON.
    pub(super) const fn required(self, example: &'static str) -> Self {
        Self {
            example: Some(example),
            ..self
        }
    }

    /// Completes the field with its entry in `table!`. A field that has a name keeps it.
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
