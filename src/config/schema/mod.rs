//! The fields of a file: the table that its readers use, and the JSON Schema that is made of it.
//!
//! A reader can ask for no field that its table lacks, and a table can have no field that its
//! reader does not ask for ([`Fields`](super::read::Fields) sees to both), so the schema has
//! exactly the fields that are read.

mod form;
mod json;
mod ranges;
mod rules;
mod tables;

use form::Form;

pub use json::schema;
pub(super) use rules::NOT_REFUSED;
pub(super) use tables::{
    BACKOFF, COST_BODY, COST_HEADER, COST_RESPONSE, FILE, HEALTH, INCLUDED, LIMIT, LISTEN, LOG,
    ORIGIN, PLAN, REDIS, ROUTE, SERVER, TLS, ZONE,
};

/// A table with a fixed set of fields.
#[derive(Debug)]
pub(super) struct Table {
    /// In the order in which messages list them.
    pub(super) fields: &'static [Field],
}

/// A field of a table.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    form: Form,
    /// As JSON, which is also TOML; `None` if the default is not one value.
    default: Option<&'static str>,
    is_required: bool,
    /// What it means, for people who write a file.
    about: &'static str,
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
    /// A field without a default.
    const fn new(name: &'static str, form: Form, about: &'static str) -> Self {
        Self {
            name,
            form,
            default: None,
            is_required: false,
            about,
        }
    }

    const fn or(self, default: &'static str) -> Self {
        Self {
            default: Some(default),
            ..self
        }
    }

    const fn required(self) -> Self {
        Self {
            is_required: true,
            ..self
        }
    }
}
