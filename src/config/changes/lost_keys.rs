//! Plans that lost many keys in a reload: their file may have been truncated.

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
        let known = old.zones.iter().find(|known| known.name == zone.name);
        let Some(known) = known.filter(|known| known.plans != zone.plans) else {
            continue;
        };
        let counts = known.plans.counts();
        for plan in zone.plans.iter() {
            let mut old_plans = known.plans.iter().zip(&counts).enumerate();
            let old_plan = old_plans.find(|(_, (it, _))| it.name == plan.name);
            let Some((old_index, (_, &had))) = old_plan else {
                continue;
            };
            let keys = known.plans.keys_of(old_index);
            let lost = keys.filter(|key| zone.plans.of(key).is_none()).count();
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
