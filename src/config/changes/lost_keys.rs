//! Finds plans that lost many keys in a reload: the file with the keys may have been truncated.
//!
//! A plan gives other limits to some keys of a zone.

use std::sync::Arc;

use crate::{Plan, Settings};

/// A plan that lost at least half of its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostKeys {
    /// Zone of the plan.
    pub zone: String,
    /// Name of the plan.
    pub plan: Arc<str>,
    /// Name of the plan's file, without folders; `None`: the keys are in the gateway's file.
    pub file: Option<String>,
    /// Number of keys that have no plan any more.
    pub lost: usize,
    /// Number of keys that the plan had before.
    pub had: usize,
}

/// Returns the plans that lost at least half of their keys from `old` to `new`.
///
/// A key that has another plan now is not lost. A plan that was removed lost none.
pub fn lost_keys(old: &Settings, new: &Settings) -> Vec<LostKeys> {
    let mut found = Vec::new();
    for zone in &new.zones {
        let old_zone = old.zones.iter().find(|known| known.name == zone.name);
        let Some(old_zone) = old_zone.filter(|known| known.plans != zone.plans) else {
            continue;
        };
        let old_counts = old_zone.plans.counts();
        for plan in zone.plans.iter() {
            let mut old_plans = old_zone.plans.iter();
            let Some(old_index) = old_plans.position(|known| known.name == plan.name) else {
                continue;
            };
            let had = old_counts[old_index];
            let keys = old_zone.plans.keys_of(old_index);
            let lost = keys.filter(|key| zone.plans.plan_of(key).is_none()).count();
            if lost > 0 && lost * 2 >= had {
                found.push(LostKeys {
                    zone: zone.name.clone(),
                    plan: Arc::clone(&plan.name),
                    file: plan.file_name(),
                    lost,
                    had,
                });
            }
        }
    }
    found
}

impl Plan {
    /// Returns the name of the plan's file, without folders.
    pub(super) fn file_name(&self) -> Option<String> {
        let name = self.file.as_ref()?.file_name()?;
        Some(name.to_string_lossy().into_owned())
    }
}
