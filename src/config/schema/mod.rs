//! The fields of a file: the tables that its readers use, and the JSON Schema that is made of them.
//!
//! A reader can ask for no field that its table lacks, and a table can have no field that its
//! reader does not ask for ([`Fields`](super::fields::Fields) sees to both), so the schema has
//! exactly the fields that are read.

mod form;
mod json;

pub(super) use form::*;
pub use json::schema;
/// A table with a fixed set of fields, in the order in which messages list them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    pub(super) fields: &'static [Field],
}

/// A field of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) form: Form,
    /// As JSON, which is also TOML; `None` if the default is not one value.
    pub(super) default: Option<&'static str>,
    /// If the field is required: a value as an example, as JSON.
    pub(super) example: Option<&'static str>,
    /// When a change takes effect.
    pub(super) effect: Effect,
    /// What it means, for people who write a file.
    pub(super) about: &'static str,
    /// Its place when settings are shown: behind all fields of a lower one.
    pub(super) shown_at: i8,
}

/// What a change of a field in the file takes effect on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The reload, also for requests that wait.
    Now,
    /// Requests whose head arrives after the reload.
    NextRequest,
    /// Connections that are accepted or opened after the reload.
    NewConnections,
    /// Only a process that is started with it.
    Restart,
}

impl Table {
    /// Whether it has a field of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.name == name)
    }

    /// The names of the fields, in the order of messages.
    pub(super) fn names(&self) -> Vec<&'static str> {
        self.fields.iter().map(|field| field.name).collect()
    }
}

impl Field {
    /// An optional field of this form, without a name or a default.
    pub const fn of(form: Form) -> Self {
        Self {
            name: "",
            form,
            default: None,
            example: None,
            effect: Effect::Now,
            about: "",
            shown_at: 0,
        }
    }

    /// The same field with a default, as JSON.
    pub(super) const fn or(self, default: &'static str) -> Self {
        Self {
            default: Some(default),
            ..self
        }
    }

    /// The same field, required. Messages show how the example is written.
    pub(super) const fn required(self, example: &'static str) -> Self {
        Self {
            example: Some(example),
            ..self
        }
    }

    /// The same field, which is shown behind those of a lower place.
    pub(super) const fn shown_at(self, place: i8) -> Self {
        Self {
            shown_at: place,
            ..self
        }
    }

    /// The same field as its table has it; a field that has a name keeps it.
    pub(super) const fn described(
        self,
        name: &'static str,
        effect: Effect,
        about: &'static str,
    ) -> Self {
        Self {
            name: match self.name.as_bytes() {
                [] => name,
                _ => self.name,
            },
            effect,
            about,
            ..self
        }
    }
}
