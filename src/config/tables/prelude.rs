//! Imports that nearly every module of `tables` needs: `use super::prelude::*`.

pub(super) use super::kinds::*;
pub(super) use super::values;
pub(super) use crate::fields::Fields;
pub(super) use crate::node::Node;
pub(super) use crate::schema::*;
pub(super) use crate::table_settings::{
    Kind, Rows, Shown, TableSettings, TypedField, read_or_default, show_table, table,
};
pub(super) use crate::toml_string::{toml_list, toml_string, toml_table, toml_text};
