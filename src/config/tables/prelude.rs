//! Imports that nearly every table needs.

pub(super) use super::kinds::*;
pub(super) use super::values;
pub(super) use crate::fields::Fields;
pub(super) use crate::node::Node;
pub(super) use crate::of_table::{
    Kind, OfTable, Rows, Shown, Typed, defaults, kind, read_or_default, shown_table, table,
};
pub(super) use crate::schema::*;
pub use crate::toml_string::{toml_string, toml_text};
