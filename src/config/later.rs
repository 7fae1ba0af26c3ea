//! What `gateway.toml` may say one day and this version does not take.
//!
//! Each is refused as such, not as unknown: a file that asks for it must not run without it. To take one up,
//! read it where its table is read and strike it here.

/// At the top level.
pub(super) const FILE: &[&str] = &["redis"];

/// In `[zones.NAME]`.
pub(super) const ZONE: &[&str] = &["store", "on_store_failure"];
