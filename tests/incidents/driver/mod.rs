//! Plays an incident and checks what an operator sees.
//!
//! An operator sees the headline, standard error, `/metrics` and `drip check`.
//!
//! | file | content |
//! |---|---|
//! | `rule` | a rule: what must be reported of an incident, and what must not |
//! | `general` | what holds for all headlines |
//! | `lines` | lines of standard error: their levels, and which incidents they begin and end |
//! | `watch` | all headlines of a gateway while a test runs |
//! | `quiet` | what is calm |
//! | `incident` | an incident, from its begin to the calm after it |
//!
//! `tests/counterparts/redis/incidents.rs` includes this folder, too.

pub mod general;
pub mod incident;
pub mod lines;
pub mod quiet;
pub mod rule;
pub mod watch;

pub use incident::{Incident, pauses};
pub use quiet::stays_quiet;
pub use rule::{Check, Is, Line, RULE, Rule, Series, Severity, has, text};
