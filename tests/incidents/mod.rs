//! What goes wrong in production, played for real, and whether the operator is told what it is and what helps.
//!
//! Each incident has a rule that was written before the code, from what an operator sees alone: the headline, standard
//! error, `/metrics` and `drip check`. `driver::Rule` is such a rule. Each test starts a gateway of its own, waits for calm,
//! and lasts until the incident is reported and all is calm again.
//!
//! A test with `#[ignore = "not told yet: NAME"]` is of what the gateway does not report yet. Whoever builds NAME takes the
//! mark away.
//!
//! | file | incidents |
//! |---|---|
//! | `origins` | origins that answer with errors, slowly, or nothing |
//! | `unreachable` | origins that refuse connections, and names that do not resolve |
//! | `gates` | a full gate, slow clients that hold permits, a crawler, a queue that is too long |
//! | `back_off` | an origin that becomes slow behind a gate that backs off |
//! | `zones` | an abuser, a low rate, floods of keys, queues |
//! | `keys` | keys that are wrong, an untrusted balancer, a login |
//! | `abuser` | two abusers, one after the other |
//! | `blind_spots` | a limit without keys, exempt clients, a constant key |
//! | `leaving` | clients that leave before an origin answers, and at its gate |
//! | `files` | files that are broken or overridden, and full disks |
//! | `changes` | files that were changed by mistake |
//! | `checks` | warnings of `drip check` |
//! | `tls` | certificates that expire, or do not fit |
//! | `connections`, `descriptors` | all connections or file descriptors in use |
//! | `controls` | what is no incident |
//! | `judging` | whether the driver judges |
//!
//! `driver` judges. `servers`, `clients`, `certificates`, `scene` and `traffic` play.
//! `tests/counterparts/redis/incidents.rs` has the incident of Redis.

mod abuser;
mod back_off;
mod blind_spots;
mod certificates;
mod changes;
mod checks;
mod clients;
mod connections;
mod controls;
mod descriptors;
mod driver;
mod files;
mod gates;
mod judging;
mod keys;
mod leaving;
mod origins;
mod scene;
mod servers;
mod tls;
mod traffic;
mod unreachable;
mod zones;
