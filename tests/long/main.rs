//! Tests that take minutes or load the whole machine: `tests/run.sh long` runs them by night.

mod beside;
mod collapse_crowd;
#[path = "../counterparts/programs/mod.rs"]
#[allow(dead_code, reason = "the groups use the rest")]
mod programs;
mod redis;
#[allow(dead_code, unused_imports, reason = "the other binaries use the rest")]
#[path = "../support/mod.rs"]
mod support;
mod work;
