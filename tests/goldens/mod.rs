//! Tests of the output of commands against golden files in this folder.
//!
//! `DRIP_UPDATE_GOLDENS=1` writes the files anew. `tests/counterparts/redis/goldens` tests the
//! output of a
//! running gateway.

mod files;
mod golden;
