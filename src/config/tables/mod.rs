//! Tables of the configuration file. Each module defines the fields of one table with the macro
//! `table!` (in `table_settings`), reads them, and checks that they fit together.
//!
//! `values` reads single values, `kinds` combines readers with forms and outputs, and `names` reads
//! the names of tables and references to them.

pub(super) mod backoff;
pub(super) mod balance;
pub(super) mod client_auth;
pub(super) mod collapse;
pub(super) mod cors;
pub(super) mod cost;
pub(super) mod fail_on;
pub(super) mod file;
pub(super) mod header_fields;
pub(super) mod health;
pub(super) mod jwt;
pub(super) mod kinds;
pub(super) mod limit;
pub(super) mod listen;
pub(super) mod log;
pub(super) mod names;
mod networks;
pub(super) mod origin;
pub(super) mod origin_server;
pub(super) mod origin_tls;
mod page;
pub(super) mod plan;
pub(super) mod plan_keys;
mod prelude;
pub(super) mod redis;
pub(super) mod rewrite;
pub(super) mod room;
pub(super) mod route;
mod route_match;
pub(super) mod routes;
pub(super) mod server;
pub(super) mod tls;
pub(super) mod url;
pub(super) mod values;
pub(super) mod zone;

#[cfg(test)]
mod tests;
