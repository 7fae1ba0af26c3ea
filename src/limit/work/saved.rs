//! Learned durations in the state file: the next process continues from them.
//!
//! They say how long requests of one kind take at their origin. See the parent module.

use super::recent::Recent;
use super::{LearnedWork, Work};

/// Learned durations of one kind of request, in the state file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct SavedWork {
    /// Durations while the origin had little to do, in microseconds, the oldest first.
    pub quiet: Vec<u32>,
    /// Durations while the origin was busy, in microseconds, the oldest first.
    pub busy: Vec<u32>,
    /// Number of busy durations since the last quiet one.
    pub busy_in_row: u16,
    /// Learned value.
    pub learned: Option<LearnedWork>,
}

impl Work {
    /// Returns the durations for the state file.
    pub fn save(&self) -> SavedWork {
        SavedWork {
            quiet: self.quiet.in_order().to_vec(),
            busy: self.busy.in_order().to_vec(),
            busy_in_row: self.busy_in_row,
            learned: self.learned,
        }
    }

    /// Continues from saved durations. If there are too many, the last ones count.
    pub fn restore(saved: &SavedWork) -> Self {
        let recent = |times: &[u32]| {
            let mut recent = Recent::default();
            for micros in times {
                recent.push((*micros).max(1));
            }
            recent
        };
        let learned = saved.learned.map(|learned| LearnedWork {
            micros: learned.micros.max(1),
            ..learned
        });
        Self {
            quiet: recent(&saved.quiet),
            busy: recent(&saved.busy),
            busy_in_row: saved.busy_in_row,
            learned,
        }
    }
}
