//! What a supervisor knows of its zone's settings.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use config::Plans;
use limit::{Algorithm, NewKeyBudget, Rate};

use super::super::overrides::Overrides;
use super::super::store_link::Sharing;

/// A supervisor's settings. They can change while it runs.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// How the requests of each key are counted. Never changes.
    pub algorithm: Algorithm,
    /// The rate of each key without a plan.
    pub rate: Rate,
    /// Other rates for some keys.
    pub plans: Plans,
    /// The most keys that this supervisor may remember.
    pub max_keys: NonZeroUsize,
    /// A drained key is forgotten after it was not used for this long.
    pub idle_timeout: Duration,
    /// Bounds the unknown keys that get buckets of their own; `None`: all get one.
    pub new_keys: Option<NewKeys>,
    /// What differs from the file for a while.
    pub overrides: Arc<Overrides>,
    /// The most arrivals that it keeps to be replayed. Never changes.
    pub most_arrivals: usize,
    /// Set for a zone that is kept in a store.
    pub(in crate::zone) sharing: Option<Sharing>,
}

/// How many unknown keys get buckets of their own.
#[derive(Clone, Debug)]
pub struct NewKeys {
    /// The most, over time.
    pub rate: Rate,
    /// One for all supervisors of the zone.
    pub budget: Arc<NewKeyBudget>,
}
