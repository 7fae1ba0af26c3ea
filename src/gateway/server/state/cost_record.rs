use limit::{LearnedWork, SavedWork, WorkSource};
use serde::{Deserialize, Serialize};

use crate::http::gateway::SavedCost;

/// What was learned of the costs of one method of a route. Times are in microseconds.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CostRecord {
    route: String,
    selector: u32,
    method: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    quiet: Vec<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    busy: Vec<u32>,
    #[serde(default)]
    busy_in_row: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    learned: Option<LearnedRecord>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LearnedRecord {
    micros: u32,
    quiet: bool,
}

impl CostRecord {
    pub(super) fn of(saved: SavedCost) -> Self {
        let work = saved.work;
        Self {
            route: saved.route,
            selector: saved.selector,
            method: saved.method,
            quiet: work.quiet,
            busy: work.busy,
            busy_in_row: work.busy_in_row,
            learned: work.learned.map(|it| LearnedRecord {
                micros: it.micros,
                quiet: it.source == WorkSource::Quiet,
            }),
        }
    }

    pub(super) fn into_saved(self) -> SavedCost {
        let learned = self.learned.map(|it| LearnedWork {
            micros: it.micros,
            source: if it.quiet {
                WorkSource::Quiet
            } else {
                WorkSource::Busy
            },
        });
        SavedCost {
            route: self.route,
            selector: self.selector,
            method: self.method,
            work: SavedWork {
                quiet: self.quiet,
                busy: self.busy,
                busy_in_row: self.busy_in_row,
                learned,
            },
        }
    }
}
