//! What nearly every table uses.

pub(super) use super::kinds::*;
pub(super) use super::values;
pub(super) use crate::config::fields::Fields;
pub(super) use crate::config::node::Node;
pub(super) use crate::config::of_table::{
    Kind, OfTable, Rows, Shown, defaults, kind, read_or_default, shown_table, table,
};
pub(super) use crate::config::schema::*;
pub(super) use crate::config::toml_string::{toml_string, toml_text};
