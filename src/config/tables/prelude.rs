//! Imports that nearly every table needs.

pub(super) use super::kinds::*;
pub(super) use super::values;
pub(super) use crate::fields::Fields;
pub(super) use crate::node::Node;
pub(super) use crate::schema::*;
pub(super) use crate::table_settings::{
    Kind, Rows, Shown, TableSettings, TypedField, kind, read_or_default, shown_table, table,
};
pub(super) use crate::toml_string::{toml_list, toml_string, toml_table, toml_text};
