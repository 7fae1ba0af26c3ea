//! Comparisons with a real nginx: the same requests to both, nginx's own tests, and what goes beyond nginx.

mod access_log;
mod dialects;
mod differential;
mod dry_run;
mod import;
mod max_wait;
mod nginx;
mod proxies;
mod retold;
// Shared with the other tests, which use the rest of it.
#[allow(dead_code, unused_imports)]
#[path = "../gateway/support/mod.rs"]
mod support;
mod zones;
