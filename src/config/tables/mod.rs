//! The tables of the file: for each its settings, its fields with their readers, and its rules.

pub(super) mod backoff;
pub(super) mod health;
pub(super) mod kinds;
pub(super) mod names;
pub(super) mod origin;
mod url;
pub(super) mod values;
