//! Tests of production incidents: whether the operator is informed of the cause and the remedy.
//!
//! Each incident has a rule that was written before the code, from what an operator sees: the
//! headline, standard error, `/metrics` and `drip check`. `driver::Rule` is such a rule. Each test
//! starts its own gateway, waits for calm, and lasts until the incident is reported and all is calm
//! again.
//!
//! | file | incidents |
//! |---|---|
//! | `origins` | origins that answer with errors, slowly, or nothing, or refuse connections |
//! | `gates` | slow clients that hold permits, a crawler, a queue that is too long |
//! | `back_off` | an origin that becomes slow behind a gate that backs off |
//! | `zones` | abusers, and a rate that is too low |
//! | `keys` | keys that are wrong or the same for all, exempt clients, an untrusted balancer |
//! | `leaving` | clients that disconnect before an origin answers, or while they wait |
//! | `files` | files that are broken, overridden or changed by mistake, and full disks |
//! | `tls` | certificates that expire, or do not fit |
//! | `connections` | all connections or file descriptors in use |
//! | `controls` | situations without an incident |
//!
//! `driver` checks the rules. `servers`, `clients` and `certificates` play the incidents.
//! `tests/counterparts/redis/incidents.rs` has the incident of Redis.

mod back_off;
mod certificates;
mod clients;
mod connections;
mod controls;
mod driver;
mod files;
mod gates;
mod keys;
mod leaving;
mod origins;
mod servers;
mod tls;
mod zones;
